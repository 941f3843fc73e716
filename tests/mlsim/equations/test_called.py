"""Equations called on values give a value with its origin; on anything else they are functions."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import sympy

from mlsim import Hardware, given
from mlsim.equations import EQUATIONS, machines, roofline
from mlsim.equations.roofline import memory_time
from mlsim.errors import UnitError

A100 = Hardware.Cloud.A100


def test_a_value_has_the_formula_what_went_in_and_the_origins_of_that() -> None:
    time = memory_time(given("2 GB", "weights"), A100.memory.bandwidth)
    assert time.si == pytest.approx(2e9 / 2.039e12)
    assert (time.name, time.text) == ("memory time", "981 µs")
    formula = "memory time = 2 GB / 2.039 TB/s = "
    assert time.origin.brief == f"{formula}980.9 µs [@williams2009roofline]"
    assert time.origin.how.startswith(f"{formula}**980.9 µs** [@williams2009roofline]")
    assert EQUATIONS["memory_time"].tex in time.origin.how
    for how in (time.origin.how, "\n".join(time.origin.note)):
        assert "weights = 2 GB, chosen for this page" in how
        assert "2,039 GB/s, datasheet, [@nvidia2022a100]" in how
    assert time.origin.note[0].startswith("memory_time = bytes_moved / memory_bandwidth = 2 GB")


def test_plain_numbers_beside_values_are_in_base_units() -> None:
    bandwidth = A100.memory.bandwidth
    for found in (
        memory_time(memory_bandwidth=bandwidth, bytes_moved=2e9),
        memory_time(2e9, memory_bandwidth=bandwidth),
        EQUATIONS["memory_time"](2e9, bandwidth),
        memory_time(given("2000 MB", "weights"), 2.039e12),
    ):
        assert found.to("ms").magnitude == pytest.approx(2e3 / 2039)
        assert "2 GB / 2.039 TB/s" in found.origin.brief


def test_a_value_of_a_value_cites_the_first_and_a_share_is_printed_as_one() -> None:
    parallel = given(0.9, "parallel share")
    gained = machines.speedup(parallel, 9.0)
    assert gained == pytest.approx(5)
    assert "speedup = 1 / (1 - 0.9 + 0.9 / 9) = 5 [@pattbuzzwords]" in (gained / 9).origin.how
    assert isinstance(gained, float)


def test_arrays_symbols_and_floats_get_what_the_function_gives() -> None:
    plain = memory_time(2e9, 2e12)
    assert type(plain) is float
    many = memory_time(np.array([1e9, 2e9]), 2e12)
    assert type(many) is np.ndarray
    assert many[1] == plain
    with_unit = memory_time(np.array([1e9, 2e9]), A100.memory.bandwidth)
    assert not isinstance(with_unit, float)
    assert with_unit.shape == (2,)
    moved, bandwidth = sympy.symbols("moved bandwidth")
    assert memory_time(moved, bandwidth) == moved / bandwidth


def test_values_in_the_wrong_places_are_refused_with_what_it_takes() -> None:
    with pytest.raises(UnitError, match=r"bytes_moved was given in B/s, and is in B\. It takes, "):
        memory_time(A100.memory.bandwidth, given("2 GB", "weights"))


def test_it_is_still_read_as_the_function_it_wraps() -> None:
    assert inspect.getsource(memory_time).startswith("@equation")
    assert EQUATIONS["memory_time"].topic is roofline.ROOFLINE
    assert tuple(inspect.signature(memory_time).parameters) == ("bytes_moved", "memory_bandwidth")
    assert memory_time.__module__ == roofline.__name__
    assert memory_time.__doc__ == EQUATIONS["memory_time"].function.__doc__
