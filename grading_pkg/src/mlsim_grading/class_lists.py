"""Read a class list, as Moodle, Canvas and Gradescope write it, or a list of names.

What was taken for what is told in `notes`, as nobody else can say whether it was right.

Names of people are compared exactly, after what spelling leaves open is set aside: capitals,
composed or decomposed accents, what stands between the words, and which word comes first. Nothing
else: "Joerg" is "Jörg" only if the class list says so.
"""

from __future__ import annotations

import difflib
import itertools
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_grading.tables import Table, read_table

_MOST_WORDS = 12  # words of a name
_APOSTROPHES = str.maketrans("", "", "'’ʼ`")


@dataclass(frozen=True)
class Word:
    """A word of a text, and what stands right before and after it."""

    text: str
    before: str
    after: str


def words(text: str) -> tuple[Word, ...]:
    r"""Return the words of a text, caseless and composed.

    >>> [each.text for each in words("Mu\u0308ller, J\u00f6rg_12")]
    ['müller', 'jörg', '12']
    """
    folded = fold(text)
    found = []
    start = None
    for place, char in enumerate(folded + " "):
        inside = unicodedata.category(char)[0] in "LMN"
        if inside and start is None:
            start = place
        elif not inside and start is not None:
            before = folded[start - 1] if start else ""
            found.append(Word(folded[start:place], before, char))
            start = None
    return tuple(found)


def fold(text: str) -> str:
    """Return a text without differences of case and composition."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def plain(text: str) -> str:
    """Return a text without its accents.

    >>> plain("josé")
    'jose'
    """
    parts = unicodedata.normalize("NFKD", text)
    return "".join(char for char in parts if unicodedata.category(char) != "Mn")


def forms(name: str) -> set[tuple[str, ...]]:
    """Return the words of a name in the orders in which it is written: each surname may be first.

    Platforms leave apostrophes out.

    >>> sorted(forms("Ada Lovelace"))
    [('ada', 'lovelace'), ('lovelace', 'ada')]
    >>> sorted(forms("O'Brien"))
    [('brien', 'o'), ('o', 'brien'), ('obrien',)]
    """
    found: set[tuple[str, ...]] = set()
    for text in (name, name.translate(_APOSTROPHES)):
        parts = tuple(each.text for each in words(text))
        turns = len(parts) if len(parts) <= _MOST_WORDS else 1
        found |= {parts[place:] + parts[:place] for place in range(turns)}
    return found


def file_name(student: str) -> str:
    """Return a student's name as the name of a file.

    >>> file_name("Ada Lovelace/1815")
    'Ada_Lovelace_1815'
    """
    composed = unicodedata.normalize("NFC", student)
    return re.sub(r"[^\w@.+-]+", "_", composed).strip("._") or "student"


@cache
def names_of_columns() -> dict[str, Any]:
    """Return what columns are called, and the roles of staff."""
    path = Path(__file__).with_name("data") / "class_lists.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def kind_of(column: str) -> str:
    """Return what a column holds, by its name; "" if the name isn't known.

    >>> kind_of("Last Name "), kind_of("E-Mail-Adresse"), kind_of("Group")
    ('last', 'email', '')
    """
    wanted = fold(re.sub(r"[\s_]+", " ", column.strip().strip('"*:')))
    return _kinds().get(wanted, "")


@cache
def _kinds() -> dict[str, str]:
    kinds = names_of_columns()["columns"].items()
    return {fold(name): kind for kind, names in kinds for name in names}


@dataclass(frozen=True)
class Student:
    """A student of a class list.

    `name` is what the assignment calls them, different for each. `id` is what the column chosen
    for it says. `also` are other spellings that the list declares, `ids` all that can tell this
    student from others, `columns` the whole row.
    """

    name: str
    id: str = ""
    also: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Roster:
    """A class list: its students, its columns in order, and what was made of it."""

    students: tuple[Student, ...] = ()
    columns: tuple[str, ...] = ()
    id_column: str = ""
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The students' names, in order."""
        return [each.name for each in self.students]

    @cached_property
    def _by_name(self) -> dict[str, Student]:
        return {each.name: each for each in self.students}

    def of(self, name: str) -> Student | None:
        """Return the student of this name, if there is one."""
        return self._by_name.get(name)

    def identified(self, column: str) -> Roster:
        """Return the list with another column by which students are told apart.

        Raises
        ------
        SourceError
            It has no such column.
        """
        chosen = self._column(column)
        students = tuple(
            replace(each, id=tidy(each.columns.get(chosen, ""))) for each in self.students
        )
        return replace(self, students=students, id_column=chosen)

    def groups(self, column: str) -> dict[str, tuple[str, ...]]:
        """Return the groups that a column names, each with its students; empty cells are none.

        Raises
        ------
        SourceError
            The list has no such column.
        """
        chosen = self._column(column)
        found: dict[str, list[str]] = {}
        for each in self.students:
            if group := tidy(each.columns.get(chosen, "")):
                found.setdefault(group, []).append(each.name)
        return {group: tuple(names) for group, names in found.items()}

    def _column(self, wanted: str) -> str:
        chosen = {fold(each): each for each in self.columns}.get(fold(tidy(wanted)))
        if chosen is None:
            raise SourceError(
                f"the class list has no column '{wanted}'",
                hint=f"Its columns: {', '.join(self.columns) or 'none'}.",
            )
        return chosen

    def row(self, name: str) -> list[str]:
        """Return what the list says of a student, a cell for each column."""
        student = self.of(name)
        return [student.columns.get(each, "") if student else "" for each in self.columns]


def tidy(text: str) -> str:
    """Return a cell composed, and with single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


_LONGEST = 200  # characters of a name
_NAMED = ("student", "full", "first", "last")
_POINTS, _TESTER = "points possible", {"student", "test"}


@dataclass(frozen=True)
class _Row:
    line: int
    name: str
    cells: tuple[str, ...]


def read_roster(path: Path, id_column: str = "") -> Roster:
    """Read a class list: with a header, any columns and any order; without, names come first.

    Parameters
    ----------
    id_column
        The column by which students are told apart, besides their names. With it, two may have
        the same name.

    Raises
    ------
    SourceError
        No such file, no such column, no student in it, or one without a name, written twice, or
        not to be told from another as the name of a file; with the line.
    """
    if not path.is_file():
        raise SourceError("there is no such list of students", file=path)
    table = read_table(path)
    if not table.rows:
        raise _nobody(path)
    return _Reading(path, table, id_column).roster()


def told_roster(path: Path, id_column: str, say: Callable[[str], None]) -> Roster:
    """Read a class list and say what was taken for what."""
    roster = read_roster(path, id_column)
    for note in roster.notes:
        say(f"{path}: {note}")
    return roster


def _nobody(path: Path) -> SourceError:
    hint = "Write a header, student, and below it one name or number a line."
    return SourceError("there is no student in this file", file=path, hint=hint)


class _Reading:
    """A table on its way to a class list."""

    def __init__(self, path: Path, table: Table, id_column: str) -> None:
        self._path = path
        self._table = table
        first = tuple(tidy(cell) for cell in table.rows[0][1])
        self._kinds = [kind_of(cell) for cell in first]
        self._headed = self._is_head(first) or fold(tidy(id_column)) in {*map(fold, first)} - {""}
        if not self._headed:
            self._kinds = [""] * len(first)
        self._columns = _different(first) if self._headed else ()
        self._id = self._id_place(id_column) if id_column else None
        self._notes: list[str] = []
        self._named = self._name_places()

    def roster(self) -> Roster:
        """Return the class list."""
        self._tell()
        rows = list(self._people())
        if not rows:
            raise _nobody(self._path)
        students = [self._student(row) for row in rows]
        students = self._told_apart(students, rows)
        column = self._columns[self._id] if self._id is not None and self._columns else ""
        return Roster(tuple(students), self._columns, column, tuple(self._notes))

    def _is_head(self, first: Sequence[str]) -> bool:
        """Say whether the first row names columns; "Student" may be somebody's role."""
        for place, kind in enumerate(self._kinds):
            below = (fold(_cell(cells, place).strip()) for _, cells in self._table.rows[1:])
            if kind and fold(first[place]) not in below:
                return True
        return False

    def _id_place(self, wanted: str) -> int:
        if not self._headed:
            raise SourceError(
                f"this list has no header, so no column '{wanted}'", file=self._path, line=1,
                hint="Write the names of its columns into its first line.",
            )  # fmt: skip
        known = {fold(each): place for place, each in reversed(list(enumerate(self._columns)))}
        if fold(tidy(wanted)) in known:
            return known[fold(tidy(wanted))]
        near = difflib.get_close_matches(fold(wanted), known, n=1)
        hint = f"Did you mean '{self._columns[known[near[0]]]}'? " if near else ""
        raise SourceError(
            f"there is no column '{wanted}'", file=self._path, line=self._table.rows[0][0],
            hint=f"{hint}Its columns: {', '.join(self._columns)}.",
        )  # fmt: skip

    def _name_places(self) -> list[int]:
        """Return the columns that make a name, in the order in which they are joined."""
        place = {kind: self._kinds.index(kind) for kind in {*self._kinds} if kind}
        if "student" in place:
            return [place["student"]]
        if {"first", "last"} <= set(place):
            return [place[kind] for kind in ("first", "middle", "last") if kind in place]
        for kind in ("full", "last", "first"):
            if kind in place:
                return [place[kind]]
        if self._id is not None:
            return [self._id]
        return [place[kind] for kind in ("id", "email") if kind in place][:1] or [0]

    def _tell(self) -> None:
        """Say what was taken for what, where it wasn't plain."""
        encoding, delimiter = self._table.encoding, self._table.delimiter
        if encoding != "utf-8":
            self._notes.append(f"the class list was read as {encoding.upper()}")
        if delimiter not in {",", ""}:
            name = {"\t": "tab", ";": "semicolon", "|": "bar"}.get(delimiter, repr(delimiter))
            self._notes.append(f"the class list's columns were split at each {name}")
        line, cells = self._table.rows[0]
        if not self._headed:
            self._notes.append(
                f"line {line} ('{tidy(cells[0])}') was taken for a student, as it names no column"
                " that is known; if it is a header, call the column of names 'student'"
            )
        elif not set(self._kinds) & set(_NAMED):
            taken = self._columns[self._named[0]]
            self._notes.append(f"no column is named for names; '{taken}' was taken")

    def _people(self) -> list[_Row]:
        """Return the rows of students; left out are Canvas's own rows, and staff."""
        found: list[_Row] = []
        canvas = {"ID", "Section"} <= set(self._columns)
        at_role = self._kinds.index("role") if "role" in self._kinds else None
        for line, cells in self._table.rows[self._headed :]:
            parts = (tidy(_cell(cells, place)) for place in self._named)
            name = " ".join(filter(None, parts))
            role = tidy(_cell(cells, at_role)) if at_role is not None else ""
            if canvas and (fold(name) == _POINTS or (not name and not found)):
                continue  # what is possible, and what is hidden
            if canvas and {each.text for each in words(name)} == _TESTER:
                self._notes.append(f"line {line}, Canvas's test student, was left out")
            elif fold(role) in names_of_columns()["staff"]:
                self._notes.append(f"line {line} ('{name}') was left out: {role}")
            else:
                found.append(self._checked(_Row(line, name, cells)))
        return found

    def _checked(self, row: _Row) -> _Row:
        more = row.cells[len(self._columns) :] if self._columns else ()
        cells, columns = len(row.cells), len(self._columns)
        if not row.name:
            wrong, hint = "this row names no student", None
        elif len(row.name) > _LONGEST:
            wrong, hint = f"this name has {len(row.name)} characters", None
        elif any(cell.strip() for cell in more):
            wrong = f"this row has {cells} cells, and there are {columns} columns"
            hint = 'Put "quotes" around a cell with a delimiter in it.'
        else:
            return row
        raise SourceError(wrong, file=self._path, line=row.line, hint=hint)

    def _student(self, row: _Row) -> Student:
        chosen = tidy(_cell(row.cells, self._id)) if self._id is not None else ""
        if self._id is not None and not chosen:
            column = self._columns[self._id]
            raise SourceError(f"'{row.name}' has no {column}", file=self._path, line=row.line)
        ids = [chosen] if chosen else []
        also: list[str] = []
        for place, kind in enumerate(self._kinds if self._headed else ()):
            cell = tidy(_cell(row.cells, place))
            if kind in {"id", "email"} and cell and place not in self._named:
                # "Participant 4711" of a Moodle worksheet is the 4711 of its folders
                worksheet = re.fullmatch(r"\D+ (\d+)", cell)
                ids.append(worksheet[1] if worksheet else cell)
            elif kind == "also":
                also += [part.strip() for part in re.split("[;|]", cell) if part.strip()]
        values = {name: _cell(row.cells, at).strip() for at, name in enumerate(self._columns)}
        return Student(row.name, chosen, tuple(also), tuple(dict.fromkeys(ids)), values)

    def _told_apart(self, students: Sequence[Student], rows: Sequence[_Row]) -> list[Student]:
        """Return the students under names that differ, also as names of files."""
        if self._id is not None:
            self._unique([each.id for each in students], rows)
        many = Counter(fold(each.name) for each in students)
        named = [
            replace(each, name=f"{each.name} ({each.id})", also=(*each.also, each.name))
            if many[fold(each.name)] > 1 and each.id
            else each
            for each in students
        ]
        found: dict[str, tuple[str, int]] = {}
        for each, row in zip(named, rows, strict=True):
            key = fold(file_name(each.name))
            if key in found:
                other, first = found[key]
                same = "is written twice" if fold(other) == fold(each.name) else (
                    f"gets the same file as '{other}'"
                )  # fmt: skip
                hint = "If these are two people, name a column that tells them apart: --id COLUMN."
                raise SourceError(
                    f"'{each.name}' {same} (line {first})", file=self._path, line=row.line,
                    hint=hint if self._columns and len(self._columns) > 1 else None,
                )  # fmt: skip
            found[key] = (each.name, row.line)
        return named

    def _unique(self, ids: Sequence[str], rows: Sequence[_Row]) -> None:
        found: dict[str, int] = {}
        for each, row in zip(ids, rows, strict=True):
            if fold(each) in found:
                raise SourceError(
                    f"'{each}' is written twice (line {found[fold(each)]})",
                    file=self._path, line=row.line,
                )  # fmt: skip
            found[fold(each)] = row.line


def _cell(cells: Sequence[str], place: int) -> str:
    return cells[place] if place < len(cells) else ""


def _different(columns: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns that differ, as a spreadsheet's needn't."""
    found: list[str] = []
    for place, name in enumerate(columns, start=1):
        wanted = name or f"column {place}"
        names = (f"{wanted} ({number})" for number in itertools.count(2))
        found.append(wanted if wanted not in found else next(n for n in names if n not in found))
    return tuple(found)
