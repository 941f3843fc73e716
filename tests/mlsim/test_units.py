"""Units: conversion, text, and refusals in words of our own."""

from __future__ import annotations

import math

import pint
import pytest

from mlsim.errors import InvalidValueError, UnitError
from mlsim.units import factor, scale_for, text, to_base
from mlsim.values import quantity, registry, scaled


def test_decimal_and_binary_prefixes_differ() -> None:
    assert factor("GB", "B") == 1e9
    assert factor("GiB", "B") == 2**30
    assert factor("TiB", "B") == 2**40
    assert factor("kB", "B") == 1e3
    assert factor("KiB", "B") == 1024


def test_units_that_people_write() -> None:
    assert factor("TFLOPs/s", "FLOP/s") == factor("TFLOP/s", "FLOP/s") == 1e12
    assert factor("TOP/s", "FLOP/s") == 1e12
    assert factor("Gb/s", "B/s") == 1e9 / 8
    assert factor("ms", "s") == 1e-3
    assert factor("us", "s") == factor("µs", "s") == 1e-6
    assert factor("image/s", "sample/s") == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [("B", "FLOP"), ("B", "token"), ("parameter", "element"), ("sample", "token"), ("s", "sample")],
)
def test_what_is_counted_apart_cannot_be_added(one: str, other: str) -> None:
    with pytest.raises(pint.DimensionalityError):
        quantity(1.0, one) + quantity(1.0, other)
    with pytest.raises(UnitError, match=f"a value in {one} was given where {other} is expected"):
        factor(one, other)


def test_a_byte_is_no_number() -> None:
    with pytest.raises(pint.DimensionalityError):
        quantity(1.0, "B") + 1.0


def test_the_registry_is_made_once() -> None:
    assert registry() is registry()


def test_quantities_print_symbols() -> None:
    assert str(quantity(2.0, "TB/s")) == "2 TB/s"
    assert f"{quantity(2.039, 'TB/s'):.1f}" == "2.0 TB/s"
    assert f"{quantity(1.5, 'ms'):~.3f}" == "1.500 ms"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2 TB/s", 2e12),
        ("2,039 GB/s", 2.039e12),
        ("  1.5   GB/s ", 1.5e9),
        ("1e12 B/s", 1e12),
        ("1 TiB/s", 2.0**40),
        ("2 MB/ms", 2e9),
    ],
)
def test_text_becomes_a_number_in_base_units(value: str, expected: float) -> None:
    assert to_base(value, "B/s", "memory_bandwidth") == pytest.approx(expected, rel=1e-15)


def test_a_quantity_of_another_registry_is_understood() -> None:
    theirs = pint.UnitRegistry().Quantity(2.0, "terabyte/second")
    assert to_base(theirs, "B/s", "memory_bandwidth") == 2e12


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("2 TB", UnitError, "memory_bandwidth: a value in TB was given where B/s is expected"),
        (
            "2 XB/s",
            UnitError,
            "memory_bandwidth: unknown unit 'XB/s'; expected B/s, such as 'GB/s'",
        ),
        ("2", UnitError, "memory_bandwidth needs a unit: '2' could mean anything. Use B/s"),
        (2e12, UnitError, "memory_bandwidth needs a unit: 2000000000000.0 could mean anything"),
        (None, UnitError, "memory_bandwidth needs a unit: None"),
        ("fast", InvalidValueError, "must be a number and a unit such as '2 B/s', not 'fast'"),
        ("", InvalidValueError, "must be a number and a unit such as '2 B/s', not ''"),
        # What Pint's own parser stumbles over.
        ("2 (", UnitError, r"'\(' is no unit; expected B/s"),
        ("2 TB^", UnitError, r"'TB\^' is no unit; expected B/s"),
        ("2 $", UnitError, r"'\$' is no unit; expected B/s"),
        ("2 3 TB/s", UnitError, "'3 TB/s' is no unit; expected B/s"),
        ("2 B/0", UnitError, "'B/0' is no unit; expected B/s"),
    ],
)
def test_what_is_no_rate_is_refused(value: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        to_base(value, "B/s", "memory_bandwidth")


@pytest.mark.parametrize(
    ("value", "base", "shown"),
    [
        (55.48261e-6, "s", "55.48 µs"),
        (0.9999e-3, "s", "999.9 µs"),
        (0.99996e-3, "s", "1 ms"),
        (12.0, "s", "12 s"),
        (3e-12, "s", "0.003 ns"),
        (2.039e12, "B/s", "2.039 TB/s"),
        (80e9, "B", "80 GB"),
        (8_178_368_512, "FLOP", "8.178 GFLOP"),
        (312e12, "FLOP/s", "312 TFLOP/s"),
        (0.0, "s", "0 s"),
        (25_557_032, "parameter", "25,557,032 parameter"),
        (18024.4, "sample/s", "18,024 sample/s"),
        (0.5, "1", "0.5"),
        (-1e9, "B", "-1 GB"),
    ],
)
def test_numbers_are_written_for_people(value: float, base: str, shown: str) -> None:
    assert text(value, base) == shown


def test_scaling_leaves_the_value_alone() -> None:
    for value in (1e-9, 3.3e-4, 0.5, 7.0):
        assert scaled(value, "s").to("s").magnitude == pytest.approx(value, rel=1e-15)


def test_what_has_no_size_is_not_scaled() -> None:
    for value in (0.0, math.inf, math.nan):
        assert scale_for(value, "B") == (1.0, "B")
