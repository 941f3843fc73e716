"""What was not graded, and why: every file of it, for the terminal and for a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mlsim_book.grading.matching import MATCHES
from mlsim_book.grading.results import Result
from mlsim_book.grading.submissions import Passed

HEAD = ("file", "reason", "may be from", "student")
_SHOWN = 10  # lines on the terminal


@dataclass(frozen=True)
class Left:
    """A file that was not graded: why, of whom it is, or else of whom it may be.

    `work` is whether somebody may miss it: a notebook, not the system's own files.
    """

    file: str
    reason: str
    candidates: tuple[str, ...] = ()
    student: str = ""
    work: bool = True

    def row(self) -> list[str]:
        """Return its cells in the table."""
        return [self.file, self.reason, "; ".join(self.candidates), self.student]


def not_graded(results: Iterable[Result], passed: Iterable[Passed]) -> list[Left]:
    """Return every file that was not run, or whose run counts for nobody; notebooks first."""
    notebooks = (
        Left(each.file, reason, each.candidates, each.student)
        for each in results
        if (reason := each.unread or each.undecided or each.failed)
    )
    return [*notebooks, *(Left(each.name, each.reason, work=False) for each in passed)]


def told(left: Sequence[Left], place: str) -> Iterator[str]:
    """Yield the lines for the terminal: notebooks one by one, other files by their number."""
    work = [each for each in left if each.work]
    for each in work[:_SHOWN]:
        who = f" (may be from {', '.join(each.candidates)})" if each.candidates else ""
        yield f"WARN: {each.file} was not graded: {each.reason}{who}"
    if len(work) > _SHOWN:
        yield f"WARN: and {len(work) - _SHOWN:,} more notebooks"
    if any(not each.student for each in work):
        yield f"Say whose they are in {MATCHES} beside the key, with columns file and student."
    others = len(left) - len(work)
    if others:
        files = "files are no notebooks" if others > 1 else "file is no notebook"
        yield f"{others:,} other {files}"
    if left:
        yield f"all that was not graded, with the reason: {place}"
