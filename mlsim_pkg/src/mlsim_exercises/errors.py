"""What can be wrong with an exercise, and where in its file."""

from __future__ import annotations

from pathlib import Path


class LocatedError(Exception):
    r"""Something is wrong at a place that its author knows.

    Parameters
    ----------
    message
        What was given and what is allowed.
    file, line
        Where, as the author knows it.
    hint
        What to do next.

    >>> str(LocatedError("unknown key 'lvel'", file="tea.exercises.toml", line=4))
    "tea.exercises.toml:4: unknown key 'lvel'"
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.message, self.file, self.line, self.hint = message, file, line, hint
        place = ":".join(str(part) for part in (file, line) if part)
        head = f"{place}: {message}" if place else message
        super().__init__(f"{head}\n  {hint}" if hint else head)


class ExerciseError(LocatedError, ValueError):
    """An exercise file says something that isn't allowed, or that can't be computed."""
