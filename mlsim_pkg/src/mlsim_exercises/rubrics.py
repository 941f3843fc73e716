"""A rubric as data: what earns the points of an answer that a person reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Criterion:
    """One part of a rubric: its name, the most that it gives, and what earns that or half of it."""

    name: str
    points: int
    full: str
    half: str = ""

    @property
    def head(self) -> str:
        """How it is called at the top of a column.

        >>> Criterion("Reason", 2, "Says why.").head
        'Reason (2)'
        """
        return f"{self.name} ({self.points})"


def rubric_list(rubric: Iterable[Criterion]) -> str:
    """Return a rubric as a list in Markdown, as students and instructors read it.

    >>> print(rubric_list([Criterion("Reason", 2, "Says why.", "Says that."), Criterion("Unit", 1, "Has it.")]))
    - **Reason** (2 points): Says why. *Half of them:* Says that.
    - **Unit** (1 point): Has it.
    """  # noqa: E501 - the line as it is written
    return "\n".join(_line(each) for each in rubric)


def _line(criterion: Criterion) -> str:
    points = f"{criterion.points} point{'s' if criterion.points != 1 else ''}"
    half = f" *Half of them:* {' '.join(criterion.half.split())}" if criterion.half else ""
    return f"- **{criterion.name}** ({points}): {' '.join(criterion.full.split())}{half}"
