"""Rounds: everything is measured once, then all of it again, so that a slow minute shows.

A machine drifts: its clock goes up and down in steps, neighbors come and go. What is measured in
one stretch of time knows nothing of the next one. So each round goes through all figures, and the
rounds of a run are put into six stretches, one after the other. In a stretch, a figure is its best,
as STREAM takes it: what disturbs a sample makes it slower, never faster. The figure is the median
of the six, and `Spread.across` says how far it may lie elsewhere in another minute. A figure whose
stretches differ too much is no ceiling.

Two things slow all stretches alike, so no spread shows them, and another run differs by them. A
product that is timed before it is warm is one: see `product_worker`. A program that works beside
it all the time is the other: samples from which it took a core are not counted (`waiting`), and
what has no other sample in a stretch is no ceiling.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from mlsim.profiling.measuring.measurement import TIME_UP, MeasuredFigure
from mlsim.profiling.measuring.streams import STEPS_PER_DOUBLING
from mlsim.profiling.spread import Spread

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

    def stretches(self) -> dict[str, list[float]]:
        """Return the best of each stretch: the least of what is a time, the greatest of rates.

        A stretch of which all rounds were disturbed has none.
        """
        found: dict[str, list[float]] = {}
        for name, values in self.values.items():
            kept = ([each for each in group if each is not None] for group in split(values))
            best = min if is_time(name) else max
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


def is_time(name: str) -> bool:
    """Whether a figure is a time, so that less is better."""
    return name.startswith("starts.")


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
