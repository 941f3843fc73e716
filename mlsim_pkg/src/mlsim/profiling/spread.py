"""Repeated measurements: their median, and an interval that needs no shape of the noise.

Times of a computer are not normal: most are close to the least, a few are far above it. The
median does not follow those few. The interval around it is made of the values themselves: the
true median lies outside the k-th least and the k-th greatest of n with the chance that fewer
than k of n coins show heads, on either side.

Coins must not know of one another. Values that follow each other on one machine do: it drifts, and
the next minute finds another median than this one. `Spread.across` is for values from stretches of
time, and its interval reaches beyond them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mlsim.errors import InvalidValueError

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Spread:
    """Values of one thing, measured several times.

    Attributes
    ----------
    values
        As they were measured, in order.
    median
        The middle one, or the mean of the two in the middle.
    low, high
        Between which the true median lies, with the chance `confidence`.
    confidence
        At least 0.95 from six values on; with fewer, that of the whole range.
    """

    values: tuple[float, ...]
    median: float
    low: float
    high: float
    confidence: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Return the spread of values.

        Raises
        ------
        InvalidValueError
            If there is none, or one is not finite.

        >>> found = Spread.of([5.0, 1.0, 2.0, 4.0, 3.0, 6.0, 100.0])
        >>> found.median, found.low, found.high, found.confidence
        (4.0, 1.0, 100.0, 0.984375)
        """
        taken = tuple(float(each) for each in values)
        if not taken or not all(map(math.isfinite, taken)):
            raise InvalidValueError(f"a spread needs finite values, at least one, not {taken}.")
        ranked, count = sorted(taken), len(taken)
        middle = (ranked[(count - 1) // 2] + ranked[count // 2]) / 2
        rank = _rank(count)
        return cls(taken, middle, ranked[rank - 1], ranked[-rank], coverage(count, rank))

    @classmethod
    def across(cls, values: Iterable[float], resolution: float = 0.0) -> Spread:
        """Return the spread of values of which each is from another stretch of time.

        The interval reaches from the median as far to either side as the values differ. As far as
        a machine drifted within these stretches, it may drift again until the next run: more
        stretches of the same minute don't bring its long-run value nearer.

        Parameters
        ----------
        resolution
            What can't be told apart, as a part of the median: the interval is never narrower to
            either side.

        Returns
        -------
        Spread
            Its `confidence` is that of the values' own range if no stretch knew of another. The
            rest of the width is for the drift: where it is forgotten in a third of the time
            measured, the long-run value lies inside in more than nine of ten runs. A drift that
            takes longer than a run does not show in it.

        Raises
        ------
        InvalidValueError
            If there is no value, or one is not finite.

        >>> found = Spread.across([100.0, 101.0, 99.0, 100.0, 100.0, 102.0])
        >>> found.median, found.low, found.high
        (100.0, 97.0, 103.0)
        >>> Spread.across([100.0] * 6, resolution=0.015).high
        101.5
        """
        inner = cls.of(values)
        reach = max(max(inner.values) - min(inner.values), resolution * abs(inner.median))
        return cls(
            inner.values, inner.median, inner.median - reach, inner.median + reach,
            coverage(len(inner.values), 1),
        )  # fmt: skip

    @property
    def range(self) -> float:
        """How far the values differ, over the median: 0.1 is 10 %.

        >>> Spread.of([90.0, 100.0, 110.0]).range
        0.2
        """
        found = max(self.values) - min(self.values)
        return found / abs(self.median) if self.median else math.inf

    @property
    def relative(self) -> float:
        """Width of the interval over the median: 0.1 is 10 %.

        >>> Spread.across([90.0, 100.0, 110.0]).relative
        0.4
        """
        return (self.high - self.low) / abs(self.median) if self.median else math.inf

    def agrees(self, other: Spread) -> bool:
        """Whether the two intervals have a value in common.

        That two measurements of one thing agree. It doesn't show that two things are alike: for
        two versions of a program, run them in turns and take the spread of the ratio.

        >>> Spread.of([1.0, 2.0, 3.0]).agrees(Spread.of([3.0, 4.0])), Spread.of([1]).agrees(
        ...     Spread.of([2]))
        (True, False)
        """
        return self.low <= other.high and other.low <= self.high


def coverage(count: int, rank: int) -> float:
    """Return the chance that the median lies between the k-th least and the k-th greatest value.

    >>> coverage(9, 2), coverage(2, 1)
    (0.9609375, 0.5)
    """
    outside: int = sum(math.comb(count, below) for below in range(rank))
    return 1 - outside / int(2 ** (count - 1))


def _rank(count: int) -> int:
    """Return the greatest rank from either end that covers enough; 1 where none does."""
    fitting = [k for k in range(1, (count + 1) // 2 + 1) if coverage(count, k) >= CONFIDENCE]
    return max(fitting, default=1)
