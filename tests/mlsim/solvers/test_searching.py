"""Searches of plain functions whose answers are known: places, jumps, and elasticities."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mlsim.errors import InvalidValueError
from mlsim.solvers.arrays import SCAN, STEP, bisect, elasticities, scan


def test_a_range_is_spread_evenly_on_a_logarithmic_scale() -> None:
    points = scan(2.0, 200.0, whole=False)
    assert len(points) == SCAN
    assert [points[0], points[SCAN // 2], points[-1]] == pytest.approx([2, 20, 200])
    assert scan(1.0, 5.0, whole=True).tolist() == [1, 2, 3, 4, 5]
    for low, high in ((0.0, 3.0), (-1.0, 3.0), (3.0, 3.0), (3.0, 2.0)):
        with pytest.raises(InvalidValueError, match=f"in order, not {low}, {high}"):
            scan(low, high, whole=False)


def test_a_bracket_is_halved_to_the_place_or_the_jump() -> None:
    """The root of 5; the first whole number above it; falling, and where a step jumps."""
    assert bisect(np.square, 5.0, 1.0, 4.0, whole=False) == pytest.approx(5**0.5, rel=1e-15)
    assert bisect(np.square, 5.0, 1.0, 9.0, whole=True) == 3
    assert bisect(np.reciprocal, 0.25, 1.0, 9.0, whole=False) == pytest.approx(4, rel=1e-15)
    assert bisect(lambda x: (x >= 7) * 2.0, 1.0, 2.0, 90.0, whole=True) == 7


def test_elasticities_are_exponents_the_largest_first() -> None:
    """A quantity to the power of 3, of -2, of 0; and a result of nothing has none."""
    powers = {"batch_size": 3, "peak_flops": 0, "memory_bandwidth": -2}
    table = elasticities(
        (name, 7.0, lambda scale, power=power: 5 * (7.0 * scale) ** power, STEP)
        for name, power in powers.items()
    )
    assert table.input.tolist() == ["batch_size", "memory_bandwidth", "peak_flops"]
    assert table.elasticity.tolist() == [3, -2, 0]
    assert table.index.tolist() == [0, 1, 2]
    assert (table.value[0], table.unit.tolist()) == (7, ["sample", "B/s", "FLOP/s"])
    nothing = elasticities((name, 7.0, partial(np.multiply, 0.0), STEP) for name in powers)
    assert nothing.elasticity.tolist() == [0, 0, 0]
