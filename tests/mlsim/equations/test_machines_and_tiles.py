"""Amdahl's law, the power of a clock, and what tiles save: by hand, and at their limits."""

from __future__ import annotations

import numpy as np
import pytest

from mlsim.equations.machines import power_ratio, speedup
from mlsim.equations.tiles import operand_reads, tile_intensity


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99, 1.0])
def test_a_speedup_is_between_one_and_both_limits(share: float) -> None:
    counts = np.array([1.0, 2.0, 16.0, 1024.0])
    gains = speedup(share, counts)
    assert gains[0] == pytest.approx(1)
    assert (np.diff(gains) >= 0).all()
    assert (gains <= counts + 1e-9).all()
    assert share == 1 or (gains <= 1 / (1 - share) + 1e-9).all()


def test_a_circuit_of_half_the_size_takes_a_quarter_at_twice_the_clock() -> None:
    """The rule of constant field: a^3 at the same clock, a^2 at 1/a of it."""
    for a in (0.5, 0.7):
        assert power_ratio(a, a, 1.0) == pytest.approx(a**3)
        assert power_ratio(a, a, 1 / a) == pytest.approx(a**2)


@pytest.mark.parametrize("tile", [1, 2, 4, 8])
def test_reads_are_those_that_loops_make(tile: int) -> None:
    """Count them in a loop over tiles, each of which loads a tile of both inputs."""
    rows, columns, depth, reads = 8, 16, 24, 0
    for _ in range(0, rows, tile):
        for _ in range(0, columns, tile):
            for _ in range(0, depth, tile):
                reads += 2 * tile * tile
    assert operand_reads(rows, columns, depth, tile) == reads


def test_intensity_is_work_over_bytes() -> None:
    n, tile, size = 1024, 64, 2.0
    work = 2 * n**3
    assert tile_intensity(tile, size) == work / (size * operand_reads(n, n, n, tile))
