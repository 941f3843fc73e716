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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from mlsim.profiling.measuring.measurement import MeasuredFigure
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
) -> Rounds:
    """Measure every part in turn, and again, until enough rounds are done or time is up.

    Parameters
    ----------
    parts
        What measures, by a name for people.
    deadline
        On the clock: no round begins that would probably end after it, once there are six. Where
        other programs disturb most figures, none begins after it in any case.
    """
    rounds = Rounds()
    began = clock()
    while rounds.count < most:
        each = (clock() - began) / rounds.count if rounds.count else 0.0
        if rounds.count >= FEWEST_ROUNDS and clock() + each > deadline:
            break
        if rounds.hopeless and clock() > deadline:
            break
        for name, measure in parts.items():
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
) -> tuple[dict[str, MeasuredFigure], dict[str, str]]:
    """Return the figures that are ceilings, and what is none, with the reason.

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
    """
    figures, refused = {}, {}
    for name, each in values.items():
        size = base_of(name) == "B"
        reason = ""
        if each:
            spread = Spread.across(each, SIZE_STEP if size else resolution)
            reason = too_noisy(spread, SIZE_LIMIT if size else NOISE_LIMIT)
        if len(each) < STRETCHES:
            reason = _too_few(len(each), rounds, (disturbed or {}).get(name, 0))
        if reason:
            refused[name] = reason
        else:
            figures[name] = MeasuredFigure(name, base_of(name), spread, how(name))
    return figures, refused


def _too_few(measured: int, rounds: int, taken: int) -> str:
    """Say why a figure has fewer than six stretches."""
    if taken:
        return f"too noisy: other programs took its cores in {taken} of {rounds} rounds"
    if rounds < STRETCHES:
        return f"too noisy: stopped after {rounds} rounds, since other programs took the cores"
    return f"measured in {measured} of {rounds} rounds only"
