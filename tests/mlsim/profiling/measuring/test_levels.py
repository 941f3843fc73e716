"""Levels of memory, found in curves of which the truth is known."""

from __future__ import annotations

import random
import re

import pytest

from mlsim.errors import InvalidValueError
from mlsim.profiling.measuring.rounds import find_levels, level_figures

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
    expected = (50e9, None, SIZES[0], SIZES[-1])
    assert (level.rate, level.capacity, level.first, level.last) == expected


def test_a_level_ends_where_its_rate_has_fallen_by_a_third() -> None:
    """Of 800 to 100: three halvings, of which one is a third.

    One point of 200 is two halvings down: the third is reached half way to it, where a doubling
    lies between two points.
    """
    sizes = [2.0**power for power in range(10, 24)]
    rates = [800.0] * 6 + [200.0] + [100.0] * 7
    fast, slow = find_levels(sizes, rates)
    assert (fast.rate, fast.first, fast.last) == (800.0, 2.0**10, 2.0**15)
    assert fast.capacity == pytest.approx(2**15.5)
    assert (slow.rate, slow.last, slow.capacity) == (100.0, 2.0**23, None)
    # Where the last set alone is fast again, the level reaches as far.
    assert find_levels(sizes, [*rates[:-1], 500.0])[0].capacity == sizes[-1]
    # Levels nearer than a quarter are one.
    for lower, count in ((79.0, 2), (81.0, 1)):
        assert len(find_levels(sizes, [100.0] * 7 + [lower] * 7)) == count


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


def test_what_is_no_curve() -> None:
    for sizes, rates in (
        ([1, 2, 3], [1, 1, 1]),
        ([1, 2, 2, 4], [1] * 4),
        ([1, 2, 3, 4], [1] * 3),
        ([0, 2, 3, 4], [1] * 4),
        ([1, 2, 3, 4], [1, 0, 1, 1]),
    ):
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
