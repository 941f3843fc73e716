"""Whose a file is: what a platform says, what names say, what the notebook says; never a guess.

A platform knows who handed in, so its word goes first. The outermost folder or name comes before
those in it, which students write. Where two of these differ, or one fits two students, nobody gets
the file: it is put before the instructor, who writes `matches.csv`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

from mlsim_book.errors import SourceError
from mlsim_grading.class_lists import Roster, Student, Word, fold, forms, plain, words
from mlsim_grading.process import clean
from mlsim_grading.submissions import Claim, Handed
from mlsim_grading.tables import read_columns

_SHORTEST_ID = 4  # characters of a number that is looked for among other words
_SHORTEST = 3  # letters of a word that reminds of somebody
_LONGEST = 500  # characters of a name; a file system has fewer
_FEW = 4  # names in a sentence
_WORDS = """
answer answers assignment attempt copy corrected draft ex exam exercise exercises final fixed
homework hw lab late latest new notebook of part problem problems project ps pset quiz re rev
revised resubmission resubmit set sheet solution solutions submission submit submitted task the ue
ver version week wk ws abgabe blatt copie entrega tarea devoir tp td
"""
_FILLERS = frozenset(_WORDS.split())  # what names of files say besides the student
_APART = ("_", "_ ", "_ -", "_ -()[],+", "_ -()[],+@.")  # what numbers and addresses end at


@dataclass(frozen=True)
class Named:
    """Whom a text names. `more` are those whose name is only a part of a longer one in it."""

    students: frozenset[str] = frozenset()
    more: frozenset[str] = frozenset()


class People:
    """The students of a class, by name, spelling and number."""

    def __init__(self, students: Iterable[Student], title: str = "") -> None:
        self.names: dict[str, list[tuple[str, ...]]] = {}
        self._forms: dict[tuple[str, ...], set[str]] = defaultdict(set)
        self._plain: dict[tuple[str, ...], set[str]] = defaultdict(set)
        self._joined: dict[str, set[str]] = defaultdict(set)
        self._ids: dict[str, set[str]] = defaultdict(set)
        self._words: dict[str, set[str]] = defaultdict(set)
        self._chosen: set[str] = set()
        self._title = tuple(each.text for each in words(title))
        for student in students:
            self._add(student)
        self._longest = max(map(len, self._forms), default=0)

    def _add(self, student: Student) -> None:
        name = student.name
        own = {form for text in (name, *student.also) for form in forms(text)}
        self.names[name] = sorted(own)
        for form in own:
            self._forms[form].add(name)
            self._plain[tuple(map(plain, form))].add(name)
            self._joined["".join(form)].add(name)
            for word in form:
                self._words[plain(word)].add(name)
        for each in {student.id, *student.ids} - {""}:
            self._ids[fold(each)].add(name)
        if student.id:
            self._chosen.add(fold(student.id))

    def with_id(self, number: str) -> frozenset[str]:
        """Return the students with this number or address."""
        return frozenset(self._ids.get(fold(number), ()))

    def called(self, name: str) -> frozenset[str]:
        """Return the students whose name this is, whole, with its accents or without any."""
        form = tuple(each.text for each in words(name))
        found = self._forms.get(form) or self._joined.get("".join(form))
        return frozenset(found or self._plain.get(tuple(map(plain, form))) or ())

    def named(self, text: str, *, numbers: bool = True) -> Named:
        """Return the students whom a text names among other words, or by their numbers, too.

        >>> people = People([Student("Ann Lee"), Student("Lee")], "Week 2")
        >>> sorted(people.named("Lee, Ann - Week2").students), people.named("Bo Lee").more
        (['Ann Lee'], frozenset({'Lee'}))
        """
        if len(text) > _LONGEST:
            return Named()
        parts = words(text)
        texts = tuple(each.text for each in parts)
        size = len(self._title)
        title = [at for at in range(len(texts)) if size and texts[at : at + size] == self._title]
        found = self._numbered(text) if numbers else set()
        more: set[str] = set()
        for start, end, students in self._spans(texts):
            if any(at <= start and end <= at + size for at in title):
                continue  # a student may be called Week
            if self._goes_on(parts, start, end):
                more |= students
            else:
                found |= students
        return Named(frozenset(found), frozenset(more - found))

    def like(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return the few students of whose names most words are in these texts."""
        shared: dict[str, int] = defaultdict(int)
        for word in {plain(each.text) for text in texts for each in words(text)}:
            if len(word) >= _SHORTEST and not self._filler(word):
                for student in self._words.get(word, ()):
                    shared[student] += 1
        most = max(shared.values(), default=0)
        return tuple(sorted(name for name, count in shared.items() if count == most)[:_FEW])

    def accented(self, student: str, text: str) -> bool:
        """Say whether a text has a student's name only without its accents."""
        said = {each.text for each in words(text)}
        own = self.names[student]
        if any(set(form) <= said or "".join(form) in said for form in own):
            return False
        bare = set(map(plain, said))
        return any(set(map(plain, form)) <= bare for form in own)

    def _spans(self, texts: tuple[str, ...]) -> list[tuple[int, int, set[str]]]:
        """Return where names stand; one that lies in a longer one isn't meant."""
        for table, line in (self._forms, texts), (self._plain, tuple(map(plain, texts))):
            spans = [
                (start, end, table[line[start:end]])
                for start in range(len(line))
                for end in range(start + 1, min(len(line), start + self._longest) + 1)
                if line[start:end] in table
            ]
            spans += [
                (at, at + 1, self._joined[text])
                for at, text in enumerate(texts)
                if text in self._joined and (text,) not in table
            ]
            if spans:
                return [
                    (start, end, students)
                    for start, end, students in spans
                    if not any(
                        a <= start and end <= b and (a, b) != (start, end) for a, b, _ in spans
                    )
                ]
        return []

    def _numbered(self, text: str) -> set[str]:
        """Return the students one of whose numbers or addresses stands in a text, whole."""
        folded = fold(text)
        pieces = {folded, *_addresses(folded, self._ids)}
        for marks in _APART:
            pieces |= {
                each for each in re.split(f"[{re.escape(marks)}]", folded) if "@" not in each
            }
        found: set[str] = set()
        for piece in pieces:
            if piece in self._chosen or (len(piece) >= _SHORTEST_ID and piece in self._ids):
                found |= self._ids[piece]
        return found

    def _goes_on(self, parts: tuple[Word, ...], start: int, end: int) -> bool:
        """Say whether a name is longer: "Lee" in "Ann Lee", or "Ann Lee" in "Ann Lee-Smith"."""
        inner = {left.after for left, _ in pairwise(parts[start:end])}
        for at in (start, end):  # between this word and the one before
            if 0 < at < len(parts):
                mark, other = parts[at].before, parts[at - 1 if at == start else at].text
                joined = mark in {"-", "'", "’"} and mark == parts[at - 1].after
                if joined and inner and mark not in inner and not self._filler(other):
                    return True
        if end - start > 1 or not parts[start].text.isalpha():
            return False
        others = [each.text for at, each in enumerate(parts) if not start <= at < end]
        return not all(map(self._filler, others))

    def _filler(self, word: str) -> bool:
        return not word.isalpha() or len(word) == 1 or word in _FILLERS or word in self._title


def _addresses(text: str, known: Collection[str]) -> Iterator[str]:
    """Yield the addresses in a text: of those that could end there, the longest that is known."""
    for found in re.finditer(r"[^\s,;()\[\]@]+@([^\s_,;()\[\]@]+)", text):
        local = found[0].split("@")[0]
        starts = [0, *(at + 1 for at, char in enumerate(local) if char in "_-")]
        wholes = (f"{local[at:]}@{found[1]}" for at in starts)
        yield from [whole for whole in wholes if whole in known][:1]


def as_known(roster: Roster, names: Iterable[str], old: Roster) -> Roster:
    """Return a newer class list with the students of an older one under their names of then.

    The newer may write "Lovelace, Ada" for "Ada Lovelace": numbers and whole names tell.
    """
    before = {each.name: each for each in old.students}
    people = People(before.get(name, Student(name)) for name in names)
    known = []
    for each in roster.students:
        same = frozenset().union(*map(people.with_id, each.ids)) or people.called(each.name)
        known.append(each.name if each.name in people.names or len(same) != 1 else min(same))
    many = Counter(known)
    students = tuple(
        each
        if name == each.name or many[name] > 1
        else replace(each, name=name, also=(*each.also, each.name))
        for each, name in zip(roster.students, known, strict=True)
    )
    return replace(roster, students=students)


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
            two = {found.student, *made_for}
            if len(made_for) == 1 and any(two <= {*each} for each in self._groups.values()):
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
            return Whose(
                by="group", notes=(first.group,), candidates=tuple(self._groups[first.group])
            )
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
        notes = [first.note] if first.note else []
        if self._people.accented(student, text):
            notes.insert(0, f"taken for {student}, whose name has accents")
        return Whose(student, "platform" if platform else "name", tuple(notes))

    def _by_group(self, handed: Handed) -> Whose | None:
        """Return the group that names of a file and its folders name; None if they name none."""
        for part in handed.parts:
            found = self._called.named(PurePosixPath(part).stem, numbers=False).students
            if len(found) == 1:
                (group,) = found
                return Whose(by="group", notes=(group,), candidates=tuple(self._groups[group]))
        return None

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
    rows, _ = read_columns(path, ("file", "student"))
    known = {fold(each): each for each in students}
    found = {}
    for line, row in rows:
        file, student = row["file"], row["student"]
        if not file or not student:
            continue
        if known and fold(student) not in known:
            raise SourceError(f"'{student}' is not on the class list", file=path, line=line)
        # a file's name may have been guarded against being a formula
        name = unicodedata.normalize("NFC", file.removeprefix("'"))
        found[name] = known.get(fold(student), student)
    return found
