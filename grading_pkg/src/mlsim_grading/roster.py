"""The class list: who there is, under which names and numbers, and what else it says of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from mlsim_book.errors import SourceError
from mlsim_grading.names import fold


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
