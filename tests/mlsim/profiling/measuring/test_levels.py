"""Levels of memory, found in curves of which the truth is known."""

from __future__ import annotations

import random
import re

import pytest

from mlsim.errors import InvalidValueError
from mlsim.profiling import find_levels
from mlsim.profiling.measuring.found_levels import level_figures

KIB = 2**10
SIZES = [8 * KIB * 2 ** (step / 4) for step in range(62)]  # to 300 MiB
CACHES = {1: 48 * KIB, 2: 1024 * KIB, 3: 32 * 1024 * KIB}
RATES = (500e9, 180e9, 100e9, 40e9)


def least_recently_used(size: float) -> float:
    """A cache that keeps what was used last has nothing left of a larger set."""
    return next(
        (rate for rate, cache in zip(RATES, CACHES.values(), strict=False) if size <= cache),
        RATES[-1],
    )


def worn(size: float) -> float:
    """A cache that keeps less and less of a larger set, and nothing of one twice its size."""
    seconds, left = 0.0, 1.0
    for rate, cache in zip(RATES, [*CACHES.values(), float("inf")], strict=True):
        kept = min(left, max(0.0, min(1.0, 2 - size / cache)))
        seconds, left = seconds + kept / rate, left - kept
    return 1 / seconds


@pytest.mark.parametrize("cache", [least_recently_used, worn])
@pytest.mark.parametrize("seed", range(5))
def test_three_caches_are_found(cache, seed: int) -> None:
    noise = random.Random(seed)
    levels = find_levels(SIZES, [cache(size) * noise.gauss(1, 0.04) for size in SIZES])
    assert len(levels) == 4
    for level, size in zip(levels, CACHES.values(), strict=False):
        assert size / 1.5 < level.capacity < 1.5 * size
    assert levels[-1].capacity is None
    assert levels[-1].rate == pytest.approx(RATES[-1], rel=0.12)
    assert [level.rate for level in levels] == sorted((each.rate for each in levels), reverse=True)


def test_memory_without_a_cache_has_one_level() -> None:
    (level,) = find_levels(SIZES, [50e9] * len(SIZES))
    assert (level.rate, level.capacity, level.first, level.last) == (
        50e9,
        None,
        SIZES[0],
        SIZES[-1],
    )


def test_small_sets_that_only_start_are_left_out() -> None:
    """A call costs as much as many bytes: the curve of NumPy rises before it falls."""
    rates = [1 / (1 / least_recently_used(size) + 2e-6 / size) for size in SIZES]
    levels = find_levels(SIZES, rates)
    sizes = [level.capacity for level in levels[:-1]]
    assert sizes[-1] == pytest.approx(CACHES[3], rel=0.3)
    # The first level drowns; nothing is made up for it.
    assert all(size > 200 * KIB for size in sizes)


def test_a_level_is_wider_than_an_edge() -> None:
    """A gentle way down from one level to the next is no level of its own."""
    rates = [100e9 if size < 2**22 else max(25e9, 100e9 * 2**22 / size) for size in SIZES]
    assert len(find_levels(SIZES, rates)) == 2


@pytest.mark.parametrize(
    ("sizes", "rates"),
    [
        ([1, 2, 3], [1, 1, 1]),
        ([1, 2, 2, 4], [1] * 4),
        ([1, 2, 3, 4], [1] * 3),
        ([1, 2, 3, 4], [1, 0, 1, 1]),
    ],
)
def test_what_is_no_curve(sizes: list[float], rates: list[float]) -> None:
    with pytest.raises(InvalidValueError):
        find_levels(sizes, rates)


def curves(count: int = 6) -> list[list[float]]:
    noise = random.Random(1)
    return [
        [least_recently_used(size) * noise.gauss(1, 0.02) for size in SIZES] for _ in range(count)
    ]


def test_levels_get_the_names_that_the_system_has() -> None:
    values, lost = level_figures("memory", SIZES, curves(), CACHES)
    assert lost == {}
    assert set(values) == {
        *(f"memory.l{level}" for level in CACHES),
        *(f"memory.l{level}_bandwidth" for level in CACHES),
        "memory.last_level",
    }
    assert values["memory.last_level"] == values["memory.l3"]
    assert all(len(each) == 6 for each in values.values())


def test_a_cache_that_is_not_found_is_said() -> None:
    values, lost = level_figures("one_core", SIZES, curves(), {**CACHES, 4: 2**40})
    assert "one_core.l4" not in values
    assert lost == {"one_core.l4": "not found: the system reports 1,073,741,824 KiB"}
    shared = {**CACHES, 3: 5 * CACHES[3]}
    values, lost = level_figures("one_core", SIZES, curves(), shared)
    assert "one_core.l2" in values
    assert re.fullmatch(
        r"not found: the system reports 163,840 KiB, and a level ends at 3\d,\d{3} KiB: .*",
        lost["one_core.l3"],
    )


def test_without_a_report_levels_are_counted() -> None:
    values, _ = level_figures("one_core", SIZES, curves(), {})
    assert [name for name in values if not name.endswith("bandwidth")] == [
        "one_core.l1", "one_core.l2", "one_core.l3",
    ]  # fmt: skip


def test_a_level_of_few_stretches_is_none() -> None:
    flat = [[40e9] * len(SIZES)] * 3
    values, lost = level_figures("memory", SIZES, [*curves(4), *flat], CACHES)
    assert values == {}
    assert lost["memory.l1"] == "too noisy: found in 4 of 7 stretches of time"
