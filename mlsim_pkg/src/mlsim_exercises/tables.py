"""TOML of exercises, table by table: what is wrong in one is an error with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_exercises.errors import ExerciseError
from mlsim_exercises.places import Key, Places, toml_lines

# Of each key that a table may have, the type of its value.
Kinds = Mapping[str, type | tuple[type, ...]]


@dataclass(frozen=True)
class Table:
    """A table of a file: what it says, and the way to it from the top."""

    places: Places
    data: Any
    path: Key = ()

    @property
    def file(self) -> str:
        """The file, as it was named."""
        return self.places.file

    @property
    def line(self) -> int | None:
        """The line of its head."""
        return self.places.line(*self.path)

    def inner(self, *path: str | int) -> Table:
        """Return a table in it, which may be missing."""
        return Table(self.places, {}, (*self.path, *path))

    def items(self, name: str) -> Iterator[tuple[dict[str, Any], Table]]:
        """Yield the tables of a list in it: what each says, and the table."""
        for number, each in enumerate(self.data.get(name, [])):
            yield each, Table(self.places, each, (*self.path, name, number))

    def line_of(self, key: str) -> int | None:
        """Return the line of a key."""
        return self.places.line(*self.path, key)

    def error(self, message: str, *, key: str = "", hint: str | None = None) -> ExerciseError:
        """Return an error with the line of a key, or of the table."""
        line = self.line_of(key) if key else self.line
        return ExerciseError(message, file=self.file, line=line, hint=hint)

    def check(self, name: str, value: Any, known: Kinds) -> None:
        """Refuse a key that is unknown, and a value of the wrong type.

        Raises
        ------
        ExerciseError
            With file and line.
        """
        if name not in known:
            hint = f"Known are: {', '.join(known)}."
            raise self.error(f"unknown key '{name}'", key=name, hint=hint)
        wanted = known[name]
        if not isinstance(value, wanted) or isinstance(value, bool):
            kind = "number" if isinstance(wanted, tuple) else wanted.__name__
            raise self.error(f"'{name}' is {value!r}, which must be a {kind}", key=name)


def read_toml(path: str | Path) -> Table:
    """Return what a file of exercises says; its tables are not checked yet.

    Raises
    ------
    ExerciseError
        If there is no such file, it is no TOML, or has other tables.
    """
    file = Path(path)
    if not file.is_file():
        raise ExerciseError(
            "there is no such exercise file",
            file=str(path),
            hint=f"Looked in {file.resolve().parent}: the path starts from the chapter's folder.",
        )
    text = file.read_text(encoding="utf-8")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else None
        raise ExerciseError(f"invalid TOML: {error}", file=str(path), line=line) from None
    top = Table(Places(str(path), toml_lines(text)), data)
    for key in data:
        if key not in {"exercise", "selfcheck"}:
            hint = "Use [[exercise]] and [[selfcheck]]."
            raise top.inner(key, 0).error(f"unknown table '{key}'", hint=hint)
        if not isinstance(data[key], list):
            raise top.inner(key).error(f"'{key}' must be written [[{key}]]")
    return top
