"""Rounds: everything is measured once, then all of it again, so that a slow minute shows.

In a round, a figure is the best of a few samples taken one after the other, as STREAM takes
it: what disturbs a sample makes it slower, never faster. Over the rounds, the figure is the
median, and its spread says how well it is known. A figure that spreads too far is no ceiling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mlsim.profiling.spread import Spread

# The interval of the median may be this wide, as a part of it.
NOISE_LIMIT = 0.10
ROUNDS, FEWEST_ROUNDS = 9, 6

# What a round gives: rates in base units by the names of figures.
Measure = Callable[[], Mapping[str, float]]


@dataclass
class Rounds:
    """Figures of several rounds, by name.

    `lost` has what could not be measured at all, with the reason.
    """

    values: dict[str, list[float]] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def spreads(self) -> dict[str, Spread]:
        """Return the spread of every figure."""
        return {name: Spread.of(values) for name, values in self.values.items()}


def run_rounds(
    parts: Mapping[str, Measure],
    clock: Callable[[], float],
    deadline: float,
    say: Callable[[str], None] = lambda _: None,
    most: int = ROUNDS,
) -> Rounds:
    """Measure every part in turn, and again, until enough rounds are done or time is up.

    Parameters
    ----------
    parts
        What measures, by a name for people.
    deadline
        On the clock: no round begins that would probably end after it, once there are six.
    """
    rounds = Rounds()
    began = clock()
    while rounds.count < most:
        each = (clock() - began) / rounds.count if rounds.count else 0.0
        if rounds.count >= FEWEST_ROUNDS and clock() + each > deadline:
            break
        for name, measure in parts.items():
            say(f"round {rounds.count + 1} of {most}: {name}")
            for figure, value in measure().items():
                rounds.values.setdefault(figure, []).append(value)
        rounds.count += 1
    return rounds


QUIET = (
    "To quiet the machine: close other programs, a browser above all; plug a laptop in and take it "
    "off battery saving; let it cool; on a shared or virtual machine, try again at another time."
)


def too_noisy(spread: Spread, limit: float = NOISE_LIMIT) -> str:
    """Say why a figure is no ceiling; "" where it is one.

    >>> too_noisy(Spread.of([99.0, 100.0, 101.0]))
    ''
    >>> too_noisy(Spread.of([80.0, 100.0, 101.0]))
    'too noisy: its median is known to 21 %, and 10 % is allowed'
    """
    if spread.relative <= limit:
        return ""
    known, allowed = round(100 * spread.relative), round(100 * limit)
    return f"too noisy: its median is known to {known} %, and {allowed} % is allowed"
