"""Rounds: everything is measured once, then all of it again, so that a slow minute shows.

A machine drifts: its clock goes up and down in steps, neighbors come and go. What is measured in
one stretch of time knows nothing of the next one. So each round goes through all figures, and the
rounds of a run are put into six stretches, one after the other. In a stretch, a figure is its best,
as STREAM takes it: what disturbs a sample makes it slower, never faster. The figure is the median
of the six, and `Spread.across` says how far it may lie elsewhere in another minute. A figure whose
stretches differ too much is no ceiling.

Two things slow all stretches alike, so no spread shows them, and another run differs by them. A
product that is timed before it is warm is one: see `samples`. A program that works beside
it all the time is the other: samples from which it took a core are not counted, and what
has no other sample in a stretch is no ceiling.

Levels of memory come from a curve: how fast a working set of each size is gone through. While it
fits in a cache, its rate does not depend on its size; where it no longer fits, the rate falls to
that of the next level. The fewest flat parts that explain this staircase are its levels. A cache
that gives up what was used longest ago stops helping at once when the set outgrows it. One that
gives up anything still keeps a part: of a set a quarter larger, four fifths. There the rate has
gone about a third of the way down, on a logarithmic scale, and so a level is said to end there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from statistics import linear_regression, median
from typing import TypeVar

from mlsim.errors import InvalidValueError
from mlsim.profiling.measuring.measurement import TIME_UP, MeasuredFigure
from mlsim.profiling.measuring.parts import STEPS_PER_DOUBLING
from mlsim.profiling.stopwatch import Spread

# What a further flat part must gain in squared differences of log2(rate).
PENALTY = 0.25
# Flat parts whose rates are nearer than this are one.
LEAST_STEP = log2(1.25)
# Where a level ends: so far down to the next one.
DOWN = 1 / 3
# A part this steep (in log2(rate) for each doubling of the size) and this short is an edge.
STEEP, SHORT = 0.25, 2.0
# A part of fewer doublings is an edge in any case.
NARROW = 1.0


@dataclass(frozen=True, slots=True)
class FoundLevel:
    """A flat part of the curve.

    Attributes
    ----------
    rate
        The median rate of the part, in the units of the curve.
    first, last
        Sizes of the first and the last working set of the part.
    capacity
        The size at which the rate has fallen by a third of the way to the next part, on a
        logarithmic scale; None of the last part, which is main memory.
    """

    rate: float
    first: float
    last: float
    capacity: float | None


def find_levels(sizes: Sequence[float], rates: Sequence[float]) -> tuple[FoundLevel, ...]:
    """Return the levels of a curve, the fastest first.

    Parameters
    ----------
    sizes
        Working sets in B, ascending.
    rates
        How fast each was gone through, in B/s.

    Raises
    ------
    InvalidValueError
        If there are fewer than four points, or one that can't be.

    >>> sizes = [2.0 ** (10 + k / 2) for k in range(20)]
    >>> rates = [400.0 if size <= 2**14 else 100.0 for size in sizes]
    >>> found = find_levels(sizes, rates)
    >>> [(level.rate, level.capacity and round(level.capacity)) for level in found]
    [(400.0, 18390), (100.0, None)]
    """
    _check(sizes, rates)
    x, y = [log2(each) for each in sizes], [log2(each) for each in rates]
    parts = _split(y)
    # At small sizes starting costs more than moving: what is slower there is no level.
    fastest = max(range(len(parts)), key=lambda n: median(y[slice(*parts[n])]))
    parts = _merged(parts[fastest:], y)
    flat = [part for n, part in enumerate(parts) if not _edge(part, x, y, n, len(parts))]
    flat = _merged(flat or parts[-1:], y)
    found = []
    for n, (begin, end) in enumerate(flat):
        below = flat[n + 1] if n + 1 < len(flat) else None
        capacity = None if below is None else _crossing(x, y, (begin, end), below)
        rate = median(rates[begin:end])
        found.append(FoundLevel(rate, sizes[begin], sizes[end - 1], capacity))
    return tuple(found)


def _check(sizes: Sequence[float], rates: Sequence[float]) -> None:
    ascending = all(a < b for a, b in itertools.pairwise(sizes))
    if len(sizes) != len(rates) or len(sizes) < 4 or not ascending or min(sizes) <= 0:
        raise InvalidValueError(
            f"levels need four sizes or more, ascending, and a rate for each; there are "
            f"{len(sizes)} sizes and {len(rates)} rates."
        )
    if min(rates) <= 0:
        raise InvalidValueError(f"a rate must be positive, not {min(rates)}.")


Part = tuple[int, int]


def _split(y: Sequence[float]) -> list[Part]:
    """Cut a curve into the flat parts with the least squared differences and penalties."""
    count = len(y)
    sums, squares = [0.0], [0.0]
    for each in y:
        sums.append(sums[-1] + each)
        squares.append(squares[-1] + each * each)

    def cost(begin: int, end: int) -> float:
        total = sums[end] - sums[begin]
        return squares[end] - squares[begin] - total * total / (end - begin)

    best, came = [0.0] + [float("inf")] * count, [0] * (count + 1)
    for end in range(1, count + 1):
        for begin in range(end):
            value = best[begin] + cost(begin, end) + PENALTY
            if value < best[end]:
                best[end], came[end] = value, begin
    parts, end = [], count
    while end:
        parts.append((came[end], end))
        end = came[end]
    return parts[::-1]


def _merged(parts: list[Part], y: Sequence[float]) -> list[Part]:
    """Join neighbors that are about as fast, or of which the larger set is the faster one."""
    joined = parts[:1]
    for part in parts[1:]:
        before = joined[-1]
        if median(y[slice(*before)]) - median(y[slice(*part)]) < LEAST_STEP:
            joined[-1] = (before[0], part[1])
        else:
            joined.append(part)
    return joined


def _edge(part: Part, x: Sequence[float], y: Sequence[float], n: int, count: int) -> bool:
    """Whether a part between two others is the way down from one to the next."""
    if n in (0, count - 1):
        return False
    begin, end = part
    span = x[end - 1] - x[begin]
    return span < NARROW or (
        span < SHORT and -linear_regression(x[begin:end], y[begin:end]).slope > STEEP
    )


def _crossing(x: Sequence[float], y: Sequence[float], above: Part, below: Part) -> float:
    """Return the size at which the curve has fallen far enough from one part to the next."""
    high, low = median(y[slice(*above)]), median(y[slice(*below)])
    enough = high - DOWN * (high - low)
    at = max(n for n in range(above[0], below[1]) if y[n] >= enough)
    if at + 1 >= len(x):
        return float(2 ** x[at])
    fall = y[at] - y[at + 1]
    part = (y[at] - enough) / fall if fall > 0 else 0.5
    return float(2 ** (x[at] + part * (x[at + 1] - x[at])))


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


# The stretches of a figure may differ by this part of their median.
NOISE_LIMIT = 0.10
# A size is read off a grid of quarters of a doubling, so it may spread further than a rate, and
# is known to half a step of the grid.
SIZE_LIMIT = 0.5
SIZE_STEP = 2 ** (1 / STEPS_PER_DOUBLING / 2) - 1
STRETCHES = 6
# Three rounds in a stretch are enough; one is the least.
MOST_ROUNDS, FEWEST_ROUNDS = 3 * STRETCHES, STRETCHES
# The first parts of a round are what a roof is made of.
ROOF_PARTS = 3
# Six rounds may take so much longer than was allowed, and no longer.
PATIENCE = 0.5
# Processors change their clock in steps of 100 MHz, 3 % at 3.3 GHz, and a run may see one step
# only: what it measured lies between half a step below and half a step above.
CLOCK_STEP = 0.03

_BASES = {"compute": "FLOP/s", "ceilings": "FLOP/s", "starts": "s", "disk": "B/s", "links": "B/s"}

T = TypeVar("T")
# What a round gives: rates in base units by the names of figures.
# None where other programs disturbed all samples of the round.
Measure = Callable[[], Mapping[str, float | None]]


@dataclass
class Rounds:
    """Figures of several rounds, by name, in the order in which they were measured.

    A value is None where other programs disturbed all samples of the round.
    """

    values: dict[str, list[float | None]] = field(default_factory=dict)
    count: int = 0
    # What six rounds would have taken, in s, where time was up before.
    wanted: float = 0.0

    def with_more(self, more: Rounds) -> Rounds:
        """Return these rounds with more behind them."""
        names = dict.fromkeys([*self.values, *more.values])
        values = {name: [*self.values.get(name, []), *more.values.get(name, [])] for name in names}
        return Rounds(values, self.count + more.count, self.wanted or more.wanted)

    def stretches(self) -> dict[str, list[float]]:
        """Return the best of each stretch: the least of what is a time, the greatest of rates.

        A stretch of which all rounds were disturbed has none.
        """
        found: dict[str, list[float]] = {}
        for name, values in self.values.items():
            kept = ([each for each in group if each is not None] for group in split(values))
            best = min if name.startswith("starts.") else max
            found[name] = [best(each) for each in kept if each]
        return found

    @property
    def hopeless(self) -> bool:
        """Whether other programs disturbed more than half of the figures in some round."""
        return 2 * len(self.disturbed) > len(self.values)

    @property
    def disturbed(self) -> dict[str, int]:
        """In how many rounds other programs disturbed a figure, where in any."""
        counts = {name: values.count(None) for name, values in self.values.items()}
        return {name: count for name, count in counts.items() if count}


def split(values: Sequence[T]) -> list[Sequence[T]]:
    """Cut values into six stretches in their order, or as many as there are values.

    >>> split("abcdefgh")
    ['a', 'b', 'cd', 'e', 'f', 'gh']
    """
    count = min(STRETCHES, len(values))
    if not count:
        return []
    ends = [len(values) * n // count for n in range(count + 1)]
    return [values[begin:end] for begin, end in itertools.pairwise(ends)]


def best_curves(curves: Sequence[Sequence[float] | None]) -> list[list[float]]:
    """Return the curve of each stretch: at each point the best of its rounds.

    A stretch of which all curves were disturbed (None) has none.

    >>> best_curves([[1.0, 4.0], [2.0, 3.0], *[[5.0, 5.0]] * 11])[0]
    [2.0, 4.0]
    >>> len(best_curves([None, *[[5.0, 5.0]] * 5]))
    5
    """
    kept = ([each for each in group if each is not None] for group in split(curves))
    return [[max(each) for each in zip(*group, strict=True)] for group in kept if group]


def middle_curve(curves: Sequence[Sequence[float] | None]) -> list[float]:
    """Return the curve of which each point is the median of the stretches."""
    return [median(each) for each in zip(*best_curves(curves), strict=True)]


def run_rounds(
    parts: Mapping[str, Measure],
    clock: Callable[[], float],
    deadline: float,
    say: Callable[[str], None] = lambda _: None,
    most: int = MOST_ROUNDS,
    *,
    accept_noisy: bool = False,
) -> Rounds:
    """Measure every part in turn, and again, until enough rounds are done or time is up.

    Parameters
    ----------
    parts
        What measures, by a name for people.
    deadline
        On the clock: no round begins that would probably end after it. For six rounds there is
        half of the time more. Once it shows, after two rounds, that not even that is enough, none
        begins. The first one has its first parts in any case, memory and products, without which
        there is no roof.
    accept_noisy
        Whether fewer than six are of use: then rounds are made up to the deadline.
    """
    rounds = Rounds()
    began = last = clock()
    latest = deadline + PATIENCE * max(deadline - began, 0.0)
    while rounds.count < most:
        now, rest = clock(), FEWEST_ROUNDS - rounds.count
        if rounds.count:
            # the first one also finds out how long a sample is, so the last one tells more
            each = now - last
            in_time, six = now + each <= deadline, now + rest * each <= latest
            if rest > 0 and not six:
                rounds.wanted = now - began + rest * each
            if not in_time and (rest <= 0 or not six):
                break
            if rest > 0 and not six and rounds.count > 1 and not accept_noisy:
                break
            if rounds.hopeless and now > deadline:
                break
        last = now
        for place, (name, measure) in enumerate(parts.items()):
            if place >= ROOF_PARTS and not rounds.count and clock() > deadline:
                rounds.wanted = FEWEST_ROUNDS * (clock() - began) * len(parts) / place
                return rounds
            say(f"round {rounds.count + 1} of {most}: {name}")
            for figure, value in measure().items():
                rounds.values.setdefault(figure, []).append(value)
        rounds.count += 1
    return rounds


def too_noisy(spread: Spread, limit: float = NOISE_LIMIT) -> str:
    """Say why a figure is no ceiling; "" where it is one.

    >>> too_noisy(Spread.across([99.0, 100.0, 101.0]))
    ''
    >>> too_noisy(Spread.across([80.0, 100.0, 101.0]))
    'too noisy: its stretches of time differ by 21 %, and 10 % is allowed'
    """
    if spread.range <= limit:
        return ""
    found, allowed = round(100 * spread.range), round(100 * limit)
    return f"too noisy: its stretches of time differ by {found} %, and {allowed} % is allowed"


def base_of(name: str) -> str:
    """Return the unit of a figure.

    >>> base_of("memory.l1"), base_of("memory.l1_bandwidth"), base_of("one_core.fp32")
    ('B', 'B/s', 'FLOP/s')
    """
    table, _, short = name.partition(".")
    if short.endswith("bandwidth"):
        return "B/s"
    if table == "memory" or (short[:1] == "l" and short[1:2].isdigit()):
        return "B"
    return _BASES.get(table, "FLOP/s")


def judged(
    values: Mapping[str, Sequence[float]],
    how: Callable[[str], str],
    rounds: int,
    disturbed: Mapping[str, int] | None = None,
    resolution: float = CLOCK_STEP / 2,
    *,
    wanted: float = 0.0,
    accept_noisy: bool = False,
) -> tuple[dict[str, MeasuredFigure], dict[str, str]]:
    """Return the figures that are ceilings, and what is none, with the reason.

    Noisy ones are kept if they are accepted, and say so; of fewer than six stretches each interval
    is as wide as six of them together would allow.

    Parameters
    ----------
    values
        Of each figure, one for each stretch of time.
    how
        Says what measured a figure.
    disturbed
        In how many rounds other programs disturbed a figure.
    resolution
        How far a rate or a time may lie elsewhere in another run, however steady it was in this.
    wanted
        What six rounds would have taken, in s, where time was up before.
    """
    figures, refused = {}, {}
    for name, each in values.items():
        size = base_of(name) == "B"
        reason, limit = "", SIZE_LIMIT if size else NOISE_LIMIT
        apart = SIZE_STEP if size else resolution
        if len(each) < STRETCHES:
            reason = _too_few(len(each), rounds, (disturbed or {}).get(name, 0), wanted)
            apart = max(apart, min(1.0, limit * STRETCHES / max(len(each), 1)))
        if each:
            spread = Spread.across(each, apart)
            reason = reason or too_noisy(spread, limit)
        if each and (accept_noisy or not reason):
            figures[name] = MeasuredFigure(name, base_of(name), spread, how(name), reason)
        else:
            refused[name] = reason
    return figures, refused


def more_time(wanted: float) -> str:
    """Say how long six rounds take, in s, where time was up before.

    >>> more_time(53.2)
    'give --seconds 54 or more'
    """
    return f"give --seconds {math.ceil(wanted)} or more"


def _too_few(measured: int, rounds: int, taken: int, wanted: float) -> str:
    """Say why a figure has fewer than six stretches."""
    if wanted and rounds < STRETCHES:
        return f"{TIME_UP} after {rounds} of {STRETCHES} rounds: {more_time(wanted)}"
    if taken:
        return f"too noisy: other programs took its cores in {taken} of {rounds} rounds"
    if rounds < STRETCHES:
        return f"too noisy: stopped after {rounds} rounds, since other programs took the cores"
    return f"measured in {measured} of {rounds} rounds only"
