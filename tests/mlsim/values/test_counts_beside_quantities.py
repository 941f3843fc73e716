"""A quantity on the left of a count: Python asks the count first, and the result is the same."""

from __future__ import annotations

import numpy as np
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
    fifth = given("20 %", "a fifth")
    named = (fifth + tenth, tenth + fifth, fifth - tenth, tenth - fifth, fifth * tenth)
    assert [each.name for each in named] == [
        "a fifth + a tenth", "a tenth + a fifth", "a fifth − a tenth", "a tenth − a fifth",
        "a fifth × a tenth",
    ]  # fmt: skip
    assert [each.si for each in named] == pytest.approx([0.3, 0.3, 0.1, -0.1, 0.02])


def test_what_is_counted_may_be_left_out_where_values_are_compared() -> None:
    """64 tokens of 128 KiB each are 8 MiB, in bytes per token; to add them up is refused."""
    cache = given("128 KiB/token", "cache of a token") * given(64, "tokens")
    whole, more = given("8 MiB", "8 MiB"), given("9 MiB", "9 MiB")
    assert (cache.base, cache.si) == ("B/token", 8 * 2**20)
    assert cache == whole != more
    assert (cache < more, more > cache, cache >= more, whole <= cache) == (True, True, False, True)
    assert cache.to("MiB").magnitude == pytest.approx(8)
    assert cache.to("KiB").magnitude == pytest.approx(8192)
    assert cache.show(".1f", "MiB").text == "8.0 MiB"
    assert cache != given("8 s", "a time")
    pint = pytest.importorskip("pint")
    with pytest.raises(pint.DimensionalityError):
        cache + whole
    # A count on the left: of tokens beside one of anything, and a share beside per cent.
    for less, more in (
        (given("3 token", "tokens"), given(4, "four")), (given(0.1, "a tenth"), quantity(50.0, "%"))
    ):  # fmt: skip
        assert (less < more, less <= more, less > more, less >= more) == (True, True, False, False)
        assert (more > less, more >= less, more < less, more <= less) == (True, True, False, False)
        assert less != more
        assert not less == more  # noqa: SIM201
    assert given(0.5, "a half") == quantity(50.0, "%") == given(0.5, "a half")
    assert given("8 s", "a time") > 0 < given("1 s", "another")  # nothing has any unit
    times = quantity(np.array([-1.0, 2.0]), "s")
    assert whole != times
    assert (times + given("60 ms", "t")).magnitude.tolist() == [-0.94, 2.06]
    assert abs(times).magnitude.tolist() == [1, 2]


def test_a_count_on_the_right_of_a_plain_number() -> None:
    eight, three = given(8, "eight"), given(3, "three")
    assert (17 // eight, 17 % eight, 17 - eight, 17 / eight) == (2, 1, 9, 2.125)
    assert (eight // 3, eight % 3, 2**three, eight**2) == (2, 2, 8, 64)
    assert (divmod(17, eight), divmod(eight, 3)) == ((2, 1), (2, 2))
    # The root of a negative number is none of a count.
    assert given(-4, "minus four") ** 0.5 == pytest.approx(2j)
    assert ((17 - eight).name, (17 / eight).name) == ("17 − eight", "17 / eight")
