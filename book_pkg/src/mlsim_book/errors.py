"""What can go wrong with a book, and how it is reported.

BookError                   anything that stops a build; file and line where known
├── SourceError             a chapter, include or configuration file is wrong
├── CellError               a cell or an inline expression failed
└── ToolError               pandoc, node or another tool is missing or failed

Problems that need not stop a lenient build are collected as `Problem`s in a
`Problems` list; a strict build fails when it holds any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mlsim_exercises.data import LocatedError


class BookError(LocatedError):
    r"""A build can't go on.

    >>> str(BookError("unclosed div", file="intro.qmd", line=12, hint="Add ':::'."))
    "intro.qmd:12: unclosed div\n  Add ':::'."
    """


class SourceError(BookError, ValueError):
    """A source file says something that isn't allowed."""


class CellError(BookError, RuntimeError):
    """A cell or an inline expression raised while the page was executed."""


class ToolError(BookError, RuntimeError):
    """A program the build needs is missing, too old, or failed."""


@dataclass(frozen=True)
class Problem:
    """Something that a strict build refuses and a lenient one reports."""

    message: str
    file: str = ""
    line: int | None = None
    hint: str | None = None

    def text(self) -> str:
        """Return `file:line: message`, with the hint on a line of its own.

        >>> Problem("no such label: fig-x", file="a.qmd", line=3).text()
        'a.qmd:3: no such label: fig-x'
        """
        return str(LocatedError(self.message, file=self.file, line=self.line, hint=self.hint))


@dataclass
class Problems:
    """Problems met so far, in the order in which they were met."""

    found: list[Problem] = field(default_factory=list)
    advice: list[Problem] = field(default_factory=list)  # reported, but no reason to stop

    def add(
        self,
        message: str,
        *,
        file: str | Path = "",
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        """Note a problem once, however often it is met."""
        problem = Problem(message, str(file), line, hint)
        if problem not in self.found:
            self.found.append(problem)

    def advise(
        self, message: str, *, file: str = "", line: int | None = None, hint: str | None = None
    ) -> None:
        """Note something that the author should know, and that stops no build."""
        problem = Problem(message, file, line, hint)
        if problem not in self.advice:
            self.advice.append(problem)

    def __len__(self) -> int:
        return len(self.found)
