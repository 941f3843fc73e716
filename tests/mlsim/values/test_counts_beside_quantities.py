"""A quantity on the left of a count: Python asks the count first, and the result is the same."""

from __future__ import annotations

import pytest

from mlsim import given
from mlsim.values import quantity

MEMORY, PARAMETERS = given("8 GB", "memory"), given("4 parameter", "parameters")


def test_a_quantity_over_a_count_keeps_its_units_and_its_place() -> None:
    each = MEMORY / PARAMETERS
    assert (each.si, each.base, each.name) == (2e9, "B/parameter", "memory / parameters")
    back = each * PARAMETERS
    assert (back.si, back.base) == (8e9, "B")
    assert back.name == "memory / parameters × parameters"


@pytest.mark.parametrize("sign", ["__add__", "__sub__"])
def test_what_does_not_add_up_is_refused_with_a_count_on_the_right_too(sign: str) -> None:
    pint = pytest.importorskip("pint")
    with pytest.raises(pint.DimensionalityError):
        {"__add__": lambda: MEMORY + PARAMETERS, "__sub__": lambda: MEMORY - PARAMETERS}[sign]()


def test_per_cent_and_a_share_add_up_in_either_order() -> None:
    half, tenth = quantity(50.0, "%"), given(0.1, "a tenth")
    assert float((half + tenth).to("1").magnitude) == pytest.approx(0.6)
    assert float((half - tenth).to("1").magnitude) == pytest.approx(0.4)
