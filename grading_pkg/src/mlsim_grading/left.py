"""What was not graded, and why: every file of it, for the terminal and for a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mlsim_grading.cells import some
from mlsim_grading.matching import MATCHES, Matcher
from mlsim_grading.results import Result
from mlsim_grading.submissions import Passed

HEAD = ("file", "reason", "may be from", "student")
NOT_GRADED = "not_graded.csv"
NOTHING = "nothing was handed in"
_SHOWN = 10  # lines on the terminal
_FEW = 3  # files that are named in a row


@dataclass(frozen=True)
class Left:
    """A file that was not graded: why, of whom it is, or else of whom it may be.

    `work` is whether somebody may miss it: a notebook, or all that a student handed in, not the
    system's own files.
    """

    file: str
    reason: str
    candidates: tuple[str, ...] = ()
    students: tuple[str, ...] = ()
    work: bool = True

    def row(self) -> list[str]:
        """Return its cells in the table."""
        return [self.file, self.reason, "; ".join(self.candidates), "; ".join(self.students)]


def whose(passed: Iterable[Passed], matcher: Matcher) -> list[Passed]:
    """Return what was no submission with its students, as far as there is a class list."""
    return [_of_somebody(each, matcher) if matcher.names else each for each in passed]


def _of_somebody(passed: Passed, matcher: Matcher) -> Passed:
    found = [matcher.whose(each) for each in passed.handed]
    students = dict.fromkeys(each.student for each in found if each.student)
    candidates = dict.fromkeys(name for each in found for name in each.candidates)
    return replace(passed, students=tuple(students), candidates=tuple(candidates))


def not_graded(results: Sequence[Result], passed: Iterable[Passed]) -> list[Left]:
    """Return every file that was not run, or whose run counts for nobody; notebooks first."""
    notebooks = (
        Left(each.file, reason, each.candidates, (each.student,) if each.student else ())
        for each in results
        if (reason := each.unread or each.undecided or each.failed) and not each.of_group
    )
    there = {each.student for each in results}
    others = (
        Left(each.name, each.reason, each.candidates, each.students,
             work=not there.issuperset(each.students))
        for each in passed
    )  # fmt: skip
    return [*notebooks, *others]


def absent(left: Iterable[Left]) -> Mapping[str, str]:
    """Return what to say of students in place of `NOTHING`, if no notebook is known to be theirs.

    >>> absent([Left("hw.pdf", "no notebook", (), ("Ada",)), Left("Lee.ipynb", "", ("Bo",))])
    {'Bo': 'Lee.ipynb may be theirs: see not_graded.csv', 'Ada': 'no notebook was handed in, but hw.pdf (no notebook)'}
    """  # noqa: E501 - sentences as they are told
    theirs: dict[str, list[str]] = {}
    perhaps: dict[str, list[str]] = {}
    for each in left:
        for name in each.students:
            theirs.setdefault(name, []).append(f"{each.file} ({each.reason})")
        for name in each.candidates:
            perhaps.setdefault(name, []).append(each.file)
    return {
        **{name: f"{some(files, _FEW)} may be theirs: see {NOT_GRADED}"
           for name, files in perhaps.items()},
        **{name: f"no notebook was handed in, but {some(files, _FEW)}"
           for name, files in theirs.items()},
    }  # fmt: skip


def told(left: Sequence[Left], place: str) -> Iterator[str]:
    """Yield the lines for the terminal: notebooks one by one, other files by their number."""
    work = [each for each in left if each.work]
    for each in work[:_SHOWN]:
        who = f" (may be from {', '.join(each.candidates)})" if each.candidates else ""
        yield f"WARN: {each.file} was not graded: {each.reason}{who}"
    if len(work) > _SHOWN:
        yield f"WARN: and {len(work) - _SHOWN:,} more notebooks"
    if any(not each.students for each in work):
        yield f"Say whose they are in {MATCHES} beside the key, with columns file and student."
    others = len(left) - len(work)
    if others:
        files = "files are no notebooks" if others > 1 else "file is no notebook"
        yield f"{others:,} other {files}"
    if left:
        yield f"all that was not graded, with the reason: {place}"
