"""What a submission got: a mark for each question, and what there is to say."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mark:
    """What one question got. `path` is the wrong path that was taken, from 1, or 0."""

    question: str
    title: str
    points: float
    of: int
    kind: str  # as of a verdict
    message: str
    given: str  # the student's answer, as it was read
    path: int = 0


@dataclass(frozen=True)
class Result:
    """What one submission got.

    `notes` are for whoever grades; `told` are those that the student reads, without the texts of
    errors. `failed` says why it was not run, where that is not its own fault. `sources` is the
    same for notebooks with the same code, "" where there is too little of it.

    `unread` says why the file could not even be read. `by` is by what its student is known. Where
    nobody can say who that is, `student` is "", `undecided` says why, and `candidates` who it may
    be from. A platform may have said which `attempt` it is, when it was `handed_at`, that it is
    `late`, and by an `order` which of two came later; `packed_at` is its time in a zip, which may
    be that of the download.

    `of_group` is who handed it in, where that was another member of the student's group.

    `taken_off` are points lost by handing in late, `late_words` tells them; `counts` says whether
    this is the submission of its student that is taken.
    """

    file: str
    student: str
    marks: tuple[Mark, ...]
    notes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    seconds: float = 0.0
    digest: str = field(default="", compare=False)
    failed: str = ""
    sources: str = ""
    by: str = ""
    undecided: str = ""
    unread: str = ""
    candidates: tuple[str, ...] = ()
    attempt: int = 0
    order: int = 0
    handed_at: str = ""
    packed_at: str = ""
    late: bool = False
    of_group: str = ""
    taken_off: float = 0.0
    late_words: str = ""
    counts: bool = True

    @property
    def points(self) -> float:
        """Points in all."""
        return sum(mark.points for mark in self.marks)

    @property
    def final(self) -> float:
        """Points in all, less those that were taken off."""
        return max(0.0, self.points - self.taken_off)

    @property
    def of(self) -> int:
        """Points that could be had."""
        return sum(mark.of for mark in self.marks)
