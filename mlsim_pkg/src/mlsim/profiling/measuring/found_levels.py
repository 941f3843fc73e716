"""The levels of memory of one machine: those of the curve, by the names that the system has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from statistics import median

from mlsim.profiling.measuring.levels import FoundLevel, find_levels
from mlsim.profiling.measuring.rounds import STRETCHES

# A level of a stretch of time, or one that the system reports, is the same one within this factor.
SAME = 2.0


def level_figures(
    table: str,
    sizes: Sequence[int],
    curves: Sequence[Sequence[float]],
    reported: Mapping[int, int],
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Return sizes and bandwidths of caches by figure, a value for each curve, and what is lost.

    Parameters
    ----------
    table
        Where the figures belong: "memory" or "one_core".
    sizes, curves
        Working sets, and their rates in each stretch of time.
    reported
        Sizes in B by level, as the system reports them; empty where it does not.

    >>> sizes = [2 ** (13 + k) for k in range(12)]
    >>> curve = [400.0 if size <= 2**17 else 100.0 for size in sizes]
    >>> values, lost = level_figures("memory", sizes, [curve] * 6, {1: 2**17})
    >>> sorted(values), round(values["memory.l1"][0] / 2**10), lost
    (['memory.l1', 'memory.l1_bandwidth', 'memory.last_level'], 161, {})
    """
    if not curves:
        why = "too noisy: other programs took its cores in every round"
        return {}, {f"{table}.l{number}": why for number in sorted(reported) or (1,)}
    middle = [median(each) for each in zip(*curves, strict=True)]
    levels = [level for level in find_levels(sizes, middle) if level.capacity]
    names, lost = _named(levels, reported)
    values: dict[str, list[float]] = {}
    by_curve = [find_levels(sizes, curve) for curve in curves]
    for level, name in names:
        found = [each for each in (_same(level, levels_) for levels_ in by_curve) if each]
        if len(found) < min(STRETCHES, len(curves)):
            lost[f"l{name}"] = (
                f"too noisy: found in {len(found)} of {len(curves)} stretches of time"
            )
            continue
        values[f"{table}.l{name}"] = found
        flat = [n for n, size in enumerate(sizes) if level.first <= size <= level.last]
        values[f"{table}.l{name}_bandwidth"] = [median(curve[n] for n in flat) for curve in curves]
    last = [name for _, name in names][-1:]
    if last and f"{table}.l{last[0]}" in values and table == "memory":
        values["memory.last_level"] = values[f"memory.l{last[0]}"]
    return values, {f"{table}.{name}": reason for name, reason in lost.items()}


def _same(level: FoundLevel, others: Sequence[FoundLevel]) -> float | None:
    """Return the size of the level of one curve that is this one."""
    capacity = level.capacity or 1.0
    near = [each.capacity for each in others if each.capacity]
    best = min(near, key=lambda size: abs(log2(size / capacity)), default=None)
    return best if best and abs(log2(best / capacity)) < log2(SAME) else None


def _named(
    levels: Sequence[FoundLevel], reported: Mapping[int, int]
) -> tuple[list[tuple[FoundLevel, int]], dict[str, str]]:
    """Give each level the number of the reported one that it is; without any, count them."""
    if not reported:
        return [(level, number) for number, level in enumerate(levels, start=1)], {}
    named, lost = [], {}
    for number, size in sorted(reported.items()):
        near = [each for each in levels if abs(log2((each.capacity or 1.0) / size)) < log2(SAME)]
        if near:
            best = min(near, key=lambda each: abs(log2((each.capacity or 1.0) / size)))
            named.append((best, number))
        else:
            lost[f"l{number}"] = f"not found: the system reports {size / 2**10:,.0f} KiB"
    # A level that is left over may be the last cache, of which others use a part.
    over = [each.capacity or 0.0 for each in levels if each not in [level for level, _ in named]]
    last = f"l{max(reported)}"
    if last in lost and over:
        found = f"{max(over) / 2**10:,.0f} KiB"
        lost[last] += f", and a level ends at {found}: other guests may use the rest"
    return named, lost


def level_words(name: str, team: str, reported: Mapping[int, int]) -> str:
    """Say how a size or a bandwidth of a level was found.

    >>> level_words("memory.l1", "all cores", {1: 98304})[:56]
    'Working sets from small to large, all cores: the size at'
    """
    number = name.partition(".")[2][1:2]
    if name.endswith("_bandwidth"):
        return (
            f"Triad over working sets that fit in this level, {team}; counted as STREAM counts, "
            "24 B for each element."
        )
    said = reported.get(int(number)) if number.isdigit() else max(reported.values(), default=None)
    beside = f" The system reports {said / 2**10:,.0f} KiB." if said else ""
    return (
        f"Working sets from small to large, {team}: the size at which the rate has fallen by a "
        f"third of the way to the next level.{beside}"
    )
