"""Factors and bands by hand, and tested on the shelf."""

from __future__ import annotations

import math
from statistics import median

import pytest

from mlsim.engine.accuracy import shelf
from mlsim.engine.factors import SHELVES, Factor, factor_of, t_quantile, within_series
from mlsim.engine.own_rows import OwnRow


def of(*ratios: float, kind: str = "solve") -> Factor:
    """Return the factor of rows with these ratios of measured over predicted time."""
    rows = [
        OwnRow(kind, "words", "Cloud.A100", "A100", (("batch_size", str(n)),), ratio, 1.0)
        for n, ratio in enumerate(ratios)
    ]
    return factor_of(kind, rows)


def test_quantiles_of_student_are_those_of_tables() -> None:
    # Published tables, 80% between the two: freedom 1, 2, 3, 5, 10, 30.
    published = {1: 3.078, 2: 1.886, 3: 1.638, 5: 1.476, 10: 1.372, 30: 1.310}
    for freedom, value in published.items():
        assert t_quantile(freedom) == pytest.approx(value, abs=5e-4)
    assert t_quantile(4, 0.95) == pytest.approx(2.776, abs=5e-4)


def test_five_rows_by_hand() -> None:
    # Logarithms -0.2, -0.1, 0, 0.1, 0.2: mean 0, variance 0.1 / 4.
    found = of(*(math.exp(each) for each in (-0.2, -0.1, 0, 0.1, 0.2)))
    width = 1.533 * math.sqrt(0.025) * math.sqrt(1 + 1 / 5)
    assert found.factor == pytest.approx(1)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((-width, width), rel=1e-3)
    assert "these 5 rows" in found.spread


def test_each_row_is_corrected_by_the_others_alone() -> None:
    # By the other row, 2 is corrected to 2 / 8 and 8 to 8 / 2: errors of 0.75 and 3.
    found = of(2.0, 8.0)
    assert found.factor == pytest.approx(4)
    assert found.before == pytest.approx(median((1, 7)))
    assert found.after == pytest.approx(median((0.75, 3)))


def test_one_row_has_the_spread_of_the_shelf() -> None:
    found = of(1.5)
    scatter, freedom, _ = within_series("networks")
    width = t_quantile(freedom) * scatter * math.sqrt(2)
    assert math.log(found.high / found.factor) == pytest.approx(width)
    assert found.after is None
    assert "networks" in found.spread


def test_few_rows_that_agree_are_no_certainty() -> None:
    assert of(1.3, 1.3, 1.3).high > 1.4
    # Rows that don't agree are wider than the shelf.
    assert "these 2 rows" in of(1.0, 9.0).spread


def test_what_is_measured_twice_counts_once() -> None:
    row = OwnRow("solve", "words", "Cloud.A100", "A100", (("batch_size", "1"),), 2.0, 1.0)
    found = factor_of("solve", [row] * 6)
    assert found.rows == 1
    assert "networks" in found.spread


@pytest.mark.parametrize("kind", list(SHELVES))
def test_bands_of_two_rows_hold_the_rest_of_a_series(kind: str) -> None:
    held = total = 0
    series: dict[str, list[float]] = {}
    for row in shelf(SHELVES[kind]):
        series.setdefault(row.series, []).append(row.ratio())
    for ratios in series.values():
        for first in range(len(ratios) - 3):
            found = of(*ratios[first : first + 2], kind=kind)
            rest = ratios[:first] + ratios[first + 2 :]
            held += sum(found.low <= each <= found.high for each in rest)
            total += len(rest)
    assert held / total > 0.7
