"""Units: their sizes beside those of Pint, their texts, and refusals in words of our own."""

from __future__ import annotations

import math
import re

import kept
import pint
import pytest
import refusals

from mlsim.errors import UnitError
from mlsim.units import definitions, factor, known_factor, rounded, scale_for, text, to_base
from mlsim.values import quantity
from mlsim.zoo import spaces

UNITS = {
    (figure.unit, figure.base)
    for space in vars(spaces).values()
    if isinstance(space, spaces.Namespace)
    for record in space
    for figure in getattr(record, "figures", {}).values()
    if figure.base != "year"
}


def test_every_unit_of_the_zoo_and_every_name_with_every_prefix_is_what_pint_says() -> None:
    lines = [re.split(r"\s+=\s+", line) for line in definitions()]
    prefixes = [name.rstrip("-") for line in lines if line[0].endswith("-") for name in line]
    names = [name for line in lines if not line[0].endswith("-") for name in (line[0], *line[2:])]
    bases = ["1", "W", *(line[0] for line in lines if line[1].startswith("["))]
    units = {f"{prefix}{name}" for name in names for prefix in ("", *prefixes) if prefix[:1] != "1"}
    known = {pair: known_factor(*pair) for pair in UNITS}
    assert None not in known.values()
    for unit in units:
        known |= {(unit, base): known_factor(unit, base) for base in bases if "%" not in unit}
    compared = {pair: found for pair, found in known.items() if found is not None}
    assert len(compared) > 500
    for (unit, base), found in compared.items():
        assert found == pytest.approx(quantity(1.0, unit).to(base).magnitude, rel=1e-14), unit


def test_what_names_alone_do_not_tell_is_left_to_pint() -> None:
    for unit in ("", "m^2", "GB/s/", "furlong", "(B)", "GGB", "B per s", "GB", "TFLOP/s"):
        assert known_factor(unit, "B/s") is None, unit


def test_units_that_people_write() -> None:
    """GB are 1e9 bytes and GiB 2**30, and an operation of integers is one too."""
    assert [factor(unit, "B") for unit in ("kB", "GB", "KiB", "GiB")] == [1e3, 1e9, 2**10, 2**30]
    assert factor("TFLOPs/s", "FLOP/s") == factor("TOP/s", "FLOP/s") == 1e12
    assert factor("Gb/s", "B/s") == 1e9 / 8
    assert factor("us", "s") == factor("µs", "s") == 1e-6
    assert factor("image/s", "sample/s") == 1.0
    assert known_factor("GB*min/s/s", "B/s") == 60e9


def test_what_is_counted_apart_cannot_be_added() -> None:
    apart = [("B", "FLOP"), ("B", "token"), ("parameter", "element"), ("sample", "token")]
    for one, other in [*apart, ("s", "sample"), ("B", "1")]:
        with pytest.raises(pint.DimensionalityError):
            quantity(1.0, one) + quantity(1.0, other)
        with pytest.raises(UnitError, match=f"a value in {one} was given where {other} is expecte"):
            factor(one, other)


def test_text_and_quantities_become_a_number_in_base_units() -> None:
    theirs = pint.UnitRegistry().Quantity(2.0, "terabyte/second")
    cases = {"2 TB/s": 2e12, "2,039 GB/s": 2.039e12, "  1.5   GB/s ": 1.5e9, "1e12 B/s": 1e12}
    for value, expected in {**cases, "1 TiB/s": 2.0**40, "2 MB/ms": 2e9, theirs: 2e12}.items():
        assert to_base(value, "B/s", "memory_bandwidth") == pytest.approx(expected, rel=1e-15)
    assert (to_base("7", "1", "x"), to_base(7, "1", "x")) == (7.0, 7)


def test_what_is_no_rate_is_refused() -> None:
    def ask(value: object, base: str = "B/s") -> object:
        return to_base(value, base, "memory_bandwidth")

    assert refusals.answered(ask, "rates") == []


def test_numbers_are_written_for_people() -> None:
    cases = kept.cases("numbers_for_people.toml")
    wrong = {(value, base): text(value, base) for value, base, _ in cases}
    assert wrong == {(value, base): shown for value, base, shown in cases}
    assert [scale_for(value, "B") for value in (0.0, math.inf, math.nan)] == [(1.0, "B")] * 3
    assert text(math.inf, "FLOP") == "inf FLOP"
    assert f"{quantity(2.039, 'TB/s'):.1f}" == "2.0 TB/s"


def test_so_many_digits_zeros_too() -> None:
    """Three of them, of what is small, large, or as good as whole."""
    cases = {7.999999999999999: "8", 1.2345e-5: "1.23e-05", 1.2345e-4: "0.000123", 1e15: "1e+15"}
    cases |= {-1234.5: "-1,234", 0.9996: "1.00", 20.04: "20.0", math.inf: "inf"}
    assert {each: rounded(each, 3) for each in cases} == cases
