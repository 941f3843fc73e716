"""Units by name: the same factors as the units library's, without importing it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from mlsim.units import DEFINITIONS, known_factor
from mlsim.values import quantity
from mlsim.zoo import spaces

UNITS = sorted(
    {
        (figure.unit, figure.base)
        for space in vars(spaces).values()
        if isinstance(space, spaces.Namespace)
        for record in space
        for figure in getattr(record, "figures", {}).values()
        if figure.base != "year"
    }
)


def test_every_unit_of_the_zoo_is_what_the_library_says() -> None:
    for unit, base in UNITS:
        theirs = quantity(1.0, unit).to(base).magnitude
        assert known_factor(unit, base) == pytest.approx(theirs, rel=1e-15), unit


def test_every_name_and_every_prefix_is_what_the_library_says() -> None:
    lines = [re.split(r"\s+=\s+", line) for line in DEFINITIONS.strip().splitlines()]
    prefixes = [name.rstrip("-") for line in lines if line[0].endswith("-") for name in line]
    names = [name for line in lines if not line[0].endswith("-") for name in (line[0], *line[2:])]
    bases = ("s", "B", "FLOP", "MAC", "sample", "token", "parameter", "element", "pair", "J",
             "kg_CO2e", "USD", "L", "year", "1", "W")  # fmt: skip
    compared = 0
    for name in names:
        for unit in (name, *(f"{prefix}{name}" for prefix in prefixes if prefix[:1].isalpha())):
            for base in bases:
                known = known_factor(unit, base)
                if known is not None and "%" not in unit:
                    assert known == pytest.approx(quantity(1.0, unit).to(base).magnitude, rel=1e-14)
                    compared += 1
    assert compared > 500


def test_what_it_does_not_know_is_left_to_the_library() -> None:
    for unit in ("", "m^2", "GB/s/", "furlong", "(B)", "GGB", "B per s"):
        assert known_factor(unit, "B/s") is None, unit


def test_another_dimension_is_left_to_the_library() -> None:
    assert known_factor("GB", "B/s") is None
    assert known_factor("TFLOP/s", "B/s") is None


def test_the_zoo_is_read_without_a_units_library() -> None:
    program = (
        "import sys; from mlsim.zoo import spaces\n"
        "read = [list(each) for each in vars(spaces).values() if isinstance(each, spaces.Namespace)]\n"
        "print(sum(map(len, read)), sorted({'pint', 'numpy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    count, _, loaded = done.stdout.strip().partition(" ")
    assert int(count) > 250
    assert loaded == "[]"
