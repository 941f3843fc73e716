"""What is taken off for handing in late: a rule that is declared once and told to everybody."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from mlsim_book.errors import SourceError
from mlsim_grading.finish_options import AT_MOST, GRACE, PER_DAY

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Late:
    """How late something is, the share of its points that is taken off, and both in words."""

    by: timedelta
    share: float
    words: str


@dataclass(frozen=True)
class LateRule:
    """Percent of the points that were earned, taken off for each day that has begun.

    `due` has a time zone. Within the `grace` (in minutes) nothing is late; after it, days count
    from when the work was due. No more than `at_most` percent is taken off.
    """

    due: datetime
    per_day: float = PER_DAY
    at_most: float = AT_MOST
    grace: float = GRACE

    @property
    def words(self) -> str:
        """The rule as it is told.

        >>> LateRule(read_due("2026-11-30T23:59+01:00"), grace=15, at_most=50).words
        'Due 2026-11-30 23:59 (UTC+01:00), with 15 minutes of grace. After that, 10 % of the points that were earned are taken off for each day that has begun, 50 % at most.'
        """  # noqa: E501 - the sentence as it is told
        grace = f", with {self.grace:g} minutes of grace" if self.grace else ""
        return (
            f"Due {self.due:%Y-%m-%d %H:%M} ({self.due.tzname()}){grace}. After that,"
            f" {self.per_day:g} % of the points that were earned are taken off for each day that"
            f" has begun, {self.at_most:g} % at most."
        )

    def of(self, handed_at: str) -> Late | None:
        """Return how late a time is, None if it is in time or nothing says when it was.

        A time without a zone, as in the zip of a course system, is one where it was due.

        >>> rule = LateRule(read_due("2026-11-30T23:59+00:00"), grace=15)
        >>> rule.of("2026-12-01T00:10:00"), rule.of("")
        (None, None)
        >>> rule.of("2026-12-02T01:00:00").words
        'Handed in 1 day 1 h after it was due: 20 % is taken off.'
        """
        at = read_time(handed_at, self.due)
        by = at - self.due if at else timedelta(0)
        if by <= timedelta(minutes=self.grace):
            return None
        share = min(self.at_most, self.per_day * math.ceil(by / _DAY)) / 100
        return Late(
            by, share, f"Handed in {_span(by)} after it was due: {share * 100:g} % is taken off."
        )


def _span(by: timedelta) -> str:
    minutes = max(1, int(by.total_seconds() // 60))
    days, hours = minutes // 1440, minutes // 60 % 24
    parts = [f"{days} day{'s' if days != 1 else ''}"] if days else []
    parts += [f"{hours} h"] if hours else []
    parts += [f"{minutes % 60} min"] if not days and minutes % 60 else []
    return " ".join(parts)


def read_time(text: str, like: datetime) -> datetime | None:
    """Return a time that was noted somewhere, None if it is none; without a zone, in another's."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=like.tzinfo)


def read_due(text: str) -> datetime:
    """Return the time at which something is due.

    Raises
    ------
    SourceError
        It is no date of ISO 8601, or has no time or no zone.

    >>> read_due("2026-11-30T23:59Z").isoformat()
    '2026-11-30T23:59:00+00:00'
    """
    hint = "Write date, time and zone, as in 2026-11-30T23:59+01:00."
    try:
        due = datetime.fromisoformat(text)
    except ValueError:
        raise SourceError(f"--due {text}: this is no date as ISO 8601 has it", hint=hint) from None
    if due.tzinfo is None or len(text) < len("2026-11-30T00"):
        lacks = "its zone" if due.tzinfo is None and "T" in text.upper() else "a time and its zone"
        raise SourceError(f"--due {text}: it lacks {lacks}", hint=hint)
    return due
