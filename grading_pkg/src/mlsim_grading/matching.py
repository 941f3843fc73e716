"""Whose a file is: what a platform says, what names say, what the notebook says; never a guess.

A platform knows who handed in, so its word goes first. The outermost folder or name comes before
those in it, which students write. Where two of these differ, or one fits two students, nobody gets
the file: it is put before the instructor, who writes `matches.csv`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mlsim_book.errors import SourceError
from mlsim_grading.lms import Claim
from mlsim_grading.names import fold, words
from mlsim_grading.people import People
from mlsim_grading.process import clean
from mlsim_grading.roster import Roster, Student
from mlsim_grading.submissions import Handed
from mlsim_grading.tables import read_table

MATCHES = "matches.csv"
_SHOWN = 60  # characters of a folder's name


@dataclass(frozen=True)
class Whose:
    """Whose a file is, and by what: `student` is "" where nobody can say.

    `by` is "platform", "name", "notebook", "group" or "matches.csv". `undecided` says why nobody
    gets it, and `candidates` who it may be from. `notes` are for the instructor.
    """

    student: str = ""
    by: str = ""
    notes: tuple[str, ...] = ()
    undecided: str = ""
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Word:
    """What one part of a path says, and how that part is called in a sentence."""

    of: str
    students: frozenset[str]
    complaint: str = ""  # why it names nobody, whoever may be meant
    group: str = ""  # whose members the students are
    note: str = ""


class Matcher:
    """Finds whose a file is.

    Parameters
    ----------
    names
        Students as the assignment calls them.
    roster
        What the class list says of them, and others.
    decided
        Whose each of some files is, by the name under which it is shown.
    groups
        Students who hand in together, by the name of their group.
    """

    def __init__(
        self,
        names: Collection[str],
        roster: Roster | None = None,
        title: str = "",
        decided: Mapping[str, str] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._own_numbers = bool(names)
        self._groups = groups or {}
        self._called = People([Student(each) for each in self._groups], title)
        listed = {each.name: each for each in (roster or Roster()).students}
        self.names = tuple(dict.fromkeys([*names, *listed]))
        self._people = People([listed.get(name, Student(name)) for name in self.names], title)
        self._decided = decided or {}
        self._columns = {
            _joined(value): column
            for each in listed.values()
            for column, value in each.columns.items()
            if value
        }

    def whose(self, handed: Handed, inside: str = "") -> Whose:
        """Return whose a file is, of which its notebook says that it was made for `inside`."""
        if handed.name in self._decided:
            return Whose(self._decided[handed.name], MATCHES)
        if not self.names:
            return Whose(clean(handed.label), "platform" if handed.claim else "name")
        found = self._by_path(handed)
        made_for = self._people.called(inside) if inside else frozenset()
        if found is None:
            return self._by_notebook(handed, made_for, inside)
        if found.by == "group":
            return self._of_group(found, made_for, inside)
        if inside and found.student and found.student not in made_for:
            if len(made_for) == 1 and self._together(found.student, *made_for):
                note = f"handed in by {found.student}, of the same group"
                return Whose(next(iter(made_for)), "group", (*found.notes, note))
            platform = handed.claim.system if handed.claim and found.by == "platform" else ""
            said = platform or "the file's name"
            why = f"{said} says {found.student}, the notebook was made for {clean(inside, _SHOWN)}"
            return Whose(undecided=why, candidates=_sorted({found.student} | made_for))
        if found.undecided and made_for:
            return Whose(
                undecided=found.undecided, candidates=_sorted({*found.candidates, *made_for})
            )
        return found

    def _together(self, *students: str) -> bool:
        return any({*students} <= {*members} for members in self._groups.values())

    def _of_group(self, found: Whose, made_for: frozenset[str], inside: str) -> Whose:
        """Return which member's numbers the notebook of a group has."""
        (group,) = found.notes
        members = made_for & {*found.candidates}
        if len(members) == 1:
            return Whose(next(iter(members)), "group")
        if not inside and not self._own_numbers:  # all have the same
            return Whose(found.candidates[0], "group")
        said = f"the notebook was made for {clean(inside, _SHOWN)}" if inside else (
            "the notebook doesn't say whose numbers it has"
        )  # fmt: skip
        why = f"it is of {clean(group, _SHOWN)}, and {said}"
        return Whose(undecided=why, candidates=_sorted({*found.candidates, *made_for}))

    def hopeless(self, handed: Handed) -> str:
        """Return why a file is nobody's whatever its notebook says, so that it needn't be run."""
        if handed.name in self._decided or not self.names:
            return ""
        found = self._by_path(handed)
        return found.undecided if found is not None else ""

    def _by_path(self, handed: Handed) -> Whose | None:
        """Return whose a file is by where it lies; None if that says nothing."""
        said = self._said(handed, numbers=False) or self._said(handed, numbers=True)
        if not said:
            return self._by_group(handed)
        first, *others = said
        if first.group:
            return Whose(by="group", notes=(first.group,), candidates=self._members(first.group))
        candidates = _sorted(set().union(*(each.students for each in said)))
        if first.complaint or len(first.students) > 1:
            why = first.complaint or f"{first.of} fits {_and(first.students)}"
            return Whose(undecided=why, candidates=candidates)
        (student,) = first.students
        for other in others:
            if other.complaint or student not in other.students:
                differs = f"{first.of} says {student}, {other.of} says {_and(other.students)}"
                return Whose(undecided=other.complaint or differs, candidates=candidates)
        platform = handed.claim is not None and first.of == handed.claim.system
        text = handed.claim.name if platform and handed.claim else "/".join(handed.parts)
        notes = (
            (f"taken for {student}, whose name has accents",)
            if self._people.accented(student, text)
            else ()
        )
        own = (first.note,) if first.note else ()
        return Whose(student, "platform" if platform else "name", (*notes, *own))

    def _by_group(self, handed: Handed) -> Whose | None:
        """Return the group that names of a file and its folders name; None if they name none."""
        for part in handed.parts:
            found = self._called.named(PurePosixPath(part).stem, numbers=False).students
            if len(found) == 1:
                (group,) = found
                return Whose(by="group", notes=(group,), candidates=self._members(group))
        return None

    def _members(self, group: str) -> tuple[str, ...]:
        return tuple(self._groups[group])

    def _said(self, handed: Handed, *, numbers: bool) -> list[_Word]:
        """Return what the parts of a path say, from the outermost to where a platform says it.

        A folder that holds everything may be called after anything: of what it says, a name counts
        if it is a single one, and `numbers` only if nothing else says anything.
        """
        said: list[_Word] = []
        for place, part in enumerate(handed.parts):
            if handed.claim is not None and place == handed.claimed_at:
                said.append(self._claimed(handed.claim))
                break  # what is inside, a student wrote
            last, own = place + 1 == len(handed.parts), place >= handed.shared
            stem = PurePosixPath(part).stem if last or part.lower().endswith(".zip") else part
            named = self._people.named(stem, numbers=own or numbers)
            of = "the file's name" if last else f"'{clean(part, _SHOWN)}'"
            if named.students and (own or len(named.students) == 1):
                said.append(_Word(of, named.students))
            elif named.more and own:
                why = f"{of} says more than {_and(named.more)}"
                said.append(_Word(of, named.more, why))
        return [each for each in said if each.students or each.complaint]

    def _claimed(self, claim: Claim) -> _Word:
        """Return what a platform says: by its numbers and by its name, if they agree."""
        groups = self._called.called(claim.name) if claim.name else frozenset()
        if len(groups) == 1:  # its numbers are those of groups, too
            (group,) = groups
            return _Word(claim.system, frozenset(self._groups[group]), group=group)
        known = [found for each in claim.ids if (found := self._people.with_id(each))]
        by_id = frozenset.intersection(*known) if known else frozenset()
        by_name = self._people.called(claim.name) if claim.name else frozenset()
        if known and not by_id:
            why = f"{claim.system} gives numbers of different students"
            return _Word(claim.system, frozenset().union(*known), why)
        if by_id and by_name and not by_id & by_name:
            why = f"{claim.system}'s name is {_and(by_name)}'s, its number {_and(by_id)}'s"
            return _Word(claim.system, by_id | by_name, why)
        column = self._columns.get(_joined(claim.name)) if not by_name else None
        group = f"if that is a group of the column '{column}', add --groups '{column}'"
        if by_id or by_name:
            note = f"{claim.system} calls it {clean(claim.name, _SHOWN)}; {group}" if column else ""
            return _Word(claim.system, (by_id & by_name) or by_id or by_name, note=note)
        if not claim.name:
            return _Word(claim.system, frozenset())
        why = f"{claim.system} says {clean(claim.name, _SHOWN)}, who is not on the class list"
        why += f"; {group}" if column else ""
        return _Word(claim.system, frozenset(self._people.like([claim.name])), why)

    def _by_notebook(self, handed: Handed, made_for: frozenset[str], inside: str) -> Whose:
        if len(made_for) == 1:
            note = "known by the notebook alone, not by the file's name"
            return Whose(next(iter(made_for)), "notebook", (note,))
        why = "no student of the list is named by the file or in it"
        if inside:
            said = clean(inside, _SHOWN)
            why = f"the notebook was made for {said}, who is not on the class list"
        near = self._people.like([PurePosixPath(part).stem for part in handed.parts])
        return Whose(undecided=why, candidates=_sorted({*near, *made_for}))


def _joined(name: str) -> str:
    """Return a name as Canvas writes it: letters and digits."""
    return "".join(each.text for each in words(name))


def _sorted(students: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(students))


def _and(students: Collection[str]) -> str:
    return " and ".join(sorted(students)[:4])


def read_matches(path: Path, students: Sequence[str]) -> dict[str, str]:
    """Return whose each file is, as the instructor wrote it: columns `file` and `student`.

    Raises
    ------
    SourceError
        It lacks a column, or names a student who isn't on the list; with the line.
    """
    if not path.exists():
        return {}
    table = read_table(path)
    head = [fold(cell.strip()) for cell in table.rows[0][1]] if table.rows else []
    if not {"file", "student"} <= set(head):
        raise SourceError("this table needs the columns file and student", file=path, line=1)
    known = {fold(each): each for each in students}
    found = {}
    for line, cells in table.rows[1:]:
        row = dict(zip(head, (cell.strip() for cell in cells), strict=False))
        file, student = row.get("file", ""), row.get("student", "")
        if not file or not student:
            continue
        if known and fold(student) not in known:
            raise SourceError(f"'{student}' is not on the class list", file=path, line=line)
        # a file's name may have been guarded against being a formula
        name = unicodedata.normalize("NFC", file.removeprefix("'"))
        found[name] = known.get(fold(student), student)
    return found
