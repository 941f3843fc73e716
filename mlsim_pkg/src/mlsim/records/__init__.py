"""Data files: TOML, read strictly, each figure with its source.

A figure is a table with a value, a unit, and where they come from:

    [memory.bandwidth]
    value = 2039
    unit = "GB/s"
    kind = "datasheet"
    source = "nvidia2021a100"
    where = "page 3, A100 80GB SXM column"
    quote = "2,039 GB/s"
    read = 2026-11-21

An unknown key, a missing source or a repeated table is an error that names the
file and the line.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import (
    DataFileError,
    InvalidValueError,
    MlsimError,
    UnitError,
    WrongKindError,
    nearest,
)
from mlsim.units import factor, scale_for
from mlsim.values import Origin, literal, quantity

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

# All data files, a folder for each layer and each kind of measurement.
DATA = Path(__file__).parents[1] / "data"

KINDS = ("datasheet", "measured", "derived", "estimate", "secondary", "given")
_REQUIRED = ("value", "unit", "kind", "source", "where", "quote", "read")
_OPTIONAL = ("note", "per", "sparsity", "direction", "unit_used")
_FIELDS = (*_REQUIRED, *_OPTIONAL)


# What a value must be, for people who don't write Python.
_WORDS = {
    "str": "text in quotes", "int": "a whole number", "float": "a number",
    "bool": "true or false", "list": "a list", "dict": "a table",
}  # fmt: skip


def in_words(kind: str) -> str:
    """Say what a value of a type is, without naming the type.

    >>> in_words("int"), in_words("date")
    ('a whole number', 'date')
    """
    return _WORDS.get(kind, kind)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number from a document: as printed, and in base units.

    `si` is the value in `base`; `kind` distinguishes a datasheet from a
    measurement, a derivation or a secondary source. A figure that a user gives
    has the kind "given" and no source.
    """

    name: str
    value: float
    unit: str
    si: float
    base: str
    kind: str = "given"
    source: str = ""
    where: str = ""
    quote: str = ""
    read: datetime.date | None = None
    note: str = ""
    per: str = ""
    sparsity: str = ""
    direction: str = ""
    unit_used: str = ""

    @property
    def one_way(self) -> float:
        """The rate of a link in one direction: makers add up both."""
        return self.si / 2 if self.direction == "both ways" else self.si

    @property
    def quantity(self) -> Quantity:
        """The figure as printed: a value with unit, name and source."""
        return self.of("")

    def of(self, owner: str, name: str = "") -> Quantity:
        """Return the same, named as a figure of something, such as a device."""
        made = quantity(self.value, self.unit)
        made._origin = partial(self._origin_of, f"{owner} {name or self.name}".strip())
        return made.as_read(",g", self.unit) if self.unit != "year" else made

    def by_name(self, _: str = "") -> Quantity:
        """Return the figure as a value, as `show` asks for it."""
        return self.quantity

    def _origin_of(self, name: str, _: Quantity) -> Origin:
        name = name.replace("_", " ").replace(".", " ")
        printed = f"{self.text} {self.direction}".strip()
        brief = f"{name}: {printed}, {self.kind}"
        if self.source:
            from mlsim.records.references import references

            where = f"{self.where}: “{self.quote}”, read {self.read}"
            # A machine that somebody measured names the program, which is no document.
            cited = f"[@{self.source}]" if self.source in references() else literal(self.source)
            brief += f", {cited}, {literal(where)}"
        return Origin(name, brief, brief + (f"\n\n{literal(self.note)}" if self.note else ""))

    @property
    def text(self) -> str:
        """The figure in words: "2,039 GB/s"."""
        if self.unit == "year":
            return f"{self.value:.0f}"
        shown = f"{self.value:,g}" if abs(self.value) < 1e6 else f"{self.value:,.0f}"
        return shown if self.unit == "1" else f"{shown} {self.unit}"

    def origin(self) -> str:
        """Where the figure comes from, in one line."""
        if self.kind == "given":
            return "given"
        parts = [self.kind, self.source, self.where, f'"{self.quote}"', f"read {self.read}"]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class DataFile:
    """A TOML file in memory, which knows the line of each key."""

    path: Path
    content: str
    data: Mapping[str, Any]

    def line(self, *keys: str) -> int:
        """Return the line of `[a.b]` or of `key =` below it (1 if not found, or no key)."""
        if not keys:
            return 1
        table, section = ".".join(keys), ".".join(keys[:-1])
        inside = not section
        for number, raw in enumerate(self.content.splitlines(), start=1):
            line = raw.strip()
            header = re.fullmatch(r"\[\[?\s*([^\]]+?)\s*\]?\](?:\s*#.*)?", line)
            if header:
                named = re.sub(r"\s", "", header[1])
                if named == table or named.startswith(table + "."):
                    return number
                inside = named == section
            elif inside and re.match(rf"{re.escape(keys[-1])}\s*=", line):
                return number
        return 1

    def error(self, message: str, *keys: str) -> DataFileError:
        """Make an error that names this file and the line of a key."""
        return DataFileError(f"{self.path}:{self.line(*keys)}: {message}")

    def only(self, table: Mapping[str, Any], allowed: Collection[str], *keys: str) -> None:
        """Refuse a key that is not allowed in a table.

        Raises
        ------
        DataFileError
            Naming the key, its line and the nearest allowed one.
        """
        if not isinstance(table, Mapping):
            raise self.error(f"{'.'.join(keys)} must be a table, not {table!r}.", *keys)
        for key in table:
            if key not in allowed:
                raise self.error(
                    f"unknown key {key!r}.{nearest(key, allowed)} "
                    f"Allowed here: {', '.join(sorted(allowed))}.",
                    *keys,
                    key,
                )

    def need(self, table: Mapping[str, Any], key: str, kind: type, *keys: str) -> Any:
        """Return a value that must be there and of a kind.

        Raises
        ------
        DataFileError
            If it is absent or of another kind.
        """
        if key not in table:
            raise self.error(f"{'.'.join((*keys, key))} is missing.", *keys)
        value = table[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(
                f"{'.'.join((*keys, key))} must be {in_words(kind.__name__)}, not {value!r}.",
                *keys,
                key,
            )
        return value

    def texts(
        self, names: Iterable[str], table: Mapping[str, Any] | None = None, *keys: str
    ) -> dict[str, str]:
        """Return texts that must be there, by name: of a table, or of the file itself."""
        where = self.data if table is None else table
        found = {name: self.need(where, name, str, *keys) for name in names}
        for name, text in found.items():
            if not text:
                raise self.error(f"{name} must be text, not empty.", *keys, name)
        return found

    def one_of(self, key: str, allowed: Collection[str]) -> None:
        """Refuse a text of the file that is none of those allowed.

        Raises
        ------
        DataFileError
            Naming those allowed and the nearest.
        """
        value = self.need(self.data, key, str)
        if value not in allowed:
            words = f"{key} must be one of {', '.join(allowed)}, not {value!r}."
            raise self.error(words + nearest(value, allowed), key)

    @contextmanager
    def at(self, *keys: str) -> Iterator[None]:
        """Let what is refused within name this file and the line of a key."""
        try:
            yield
        except DataFileError:
            raise
        except MlsimError as error:
            raise self.error(str(error), *keys) from None

    def figures(self, table: str, bases: Mapping[str, str]) -> dict[str, Figure]:
        """Read what stands below a table as figures: "memory.capacity" in the base of "capacity".

        Raises
        ------
        DataFileError
            If a name is unknown, or a figure is none.
        """
        rows = self.data.get(table, {})
        self.only(rows, bases, table)
        return {
            f"{table}.{name}": self.figure(row, bases[name], table, name)
            for name, row in rows.items()
        }

    def figure(self, table: Mapping[str, Any], base: str, *keys: str) -> Figure:
        """Read a table as a figure in the dimension of `base`.

        Raises
        ------
        DataFileError
            If a field is unknown or missing, or the number can't be.
        """
        name = ".".join(keys)
        if not isinstance(table, Mapping):
            raise self.error(f"{name} must be a table with {', '.join(_REQUIRED)}.", *keys)
        self.only(table, _FIELDS, *keys)
        for field in _REQUIRED:
            if table.get(field) in (None, ""):
                raise self.error(
                    f"{name} lacks its {field}: add it. Every figure needs one.", *keys
                )
        if table["kind"] not in KINDS[:-1]:
            raise self.error(
                f"{name}: kind {table['kind']!r} is none of {', '.join(KINDS[:-1])}."
                f"{nearest(table['kind'], KINDS[:-1])}",
                *keys,
                "kind",
            )
        for field, text in table.items():
            if not isinstance(text, str) and field not in ("value", "read"):
                raise self.error(f"{name}: {field} must be text, not {text!r}.", *keys, field)
        value = table["value"]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"{name}: value must be a number, not {value!r}.", *keys, "value")
        if not math.isfinite(value) or value <= 0:
            raise self.error(f"{name}: value must be positive, not {value!r}.", *keys, "value")
        if not isinstance(table["read"], datetime.date):
            raise self.error(f"{name}: read must be a date such as 2026-11-21.", *keys, "read")
        try:
            scale = 1.0 if base == "year" else factor(table["unit"], base)
        except UnitError as error:
            raise self.error(f"{name}: {error}", *keys, "unit") from None
        return Figure(name=name, si=value * scale, base=base, **table)


def load(path: str | Path) -> DataFile:
    """Read a TOML file.

    Raises
    ------
    DataFileError
        If it can't be read, is no TOML, or repeats a key or a table.
    """
    path = Path(path)
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataFileError(f"{path}: can't be read: {error}.") from error
    except UnicodeDecodeError as error:
        begins = error.object[: error.start].count(b"\n") + 1
        raise DataFileError(
            f"{path}:{begins}: this is no UTF-8, in which a data file must be: {error.reason}."
        ) from error
    try:
        return DataFile(path, content, tomllib.loads(content))
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+)", str(error))
        line = place[1] if place else len(content.splitlines())
        raise DataFileError(f"{path}:{line}: {error}") from error


def known(figures: Mapping[str, Figure], owner: str, *names: str) -> Quantity | None:
    """Return the first of these figures of something that is on record, as a value."""
    return next((figures[name].of(owner) for name in names if name in figures), None)


def checked_name(name: Any, what: str) -> str:
    """Return the name that a user gave something; it is text, and not blank.

    Raises
    ------
    WrongKindError
        If it is no text.
    InvalidValueError
        If it is blank.

    >>> checked_name("My chip", "a device")
    'My chip'
    """
    if not isinstance(name, str):
        raise WrongKindError(
            f"{what} needs a name first: text such as 'My chip', not {name!r}. What it can do "
            "follows by keyword."
        )
    if not name.strip():
        raise InvalidValueError(f"{what} needs a name that is not blank, such as 'My chip'.")
    return name


def given(name: str, si: float, base: str) -> Figure:
    """Make the figure of a value that a user gave.

    >>> given("memory.bandwidth", 2e12, "B/s").text
    '2 TB/s'
    """
    scale, unit = scale_for(si, base)
    return Figure(name, si / scale, unit, si, base)


# What fields of a record may hold, and numbers that may be 0 though no default is.
_TYPES = {"int": int, "bool": bool, "str": str, "tuple[int, ...]": list}
_MAY_BE_ZERO = ("kernel", "query_rank")


def read_fields(
    file: DataFile, name: str, allowed: Iterable[Field[Any]], table: dict[str, Any]
) -> dict[str, Any]:
    """Read a table strictly: known keys, each of its kind; a list becomes a tuple.

    Raises
    ------
    DataFileError
        If a key is unknown, missing or of the wrong kind; names file and line.
    """
    allowed = tuple(allowed)
    file.only(table, [each.name for each in allowed], name)
    values: dict[str, Any] = {}
    for each in allowed:
        if each.name not in table:
            if each.default is MISSING:
                raise file.error(f"{name}.{each.name} is missing.", name)
            continue
        kind, key = _TYPES[str(each.type)], each.name
        value = file.need(table, key, kind, name)
        least = 0 if each.default == 0 or key in _MAY_BE_ZERO else 1
        for one in (value or [value]) if kind is list else ():
            if type(one) is not int or one < 1:
                words = f"{name}.{key} must hold whole numbers from 1 up, not {one!r}."
                raise file.error(words, name, key)
        if kind is int and value < least:
            raise file.error(f"{name}.{key} must be {least} or more, not {value}.", name, key)
        values[key] = tuple(value) if kind is list else value
    return values


def entry_of(file: DataFile, name: str, number: int) -> DataFile:
    """Return the file without the lines above an entry `[[name]]`, so that errors name its own."""
    lines = file.content.splitlines()
    heads = [
        at for at, line in enumerate(lines) if re.match(rf"\[\[\s*{name}\s*\]\]", line.strip())
    ]
    if number >= len(heads):  # a list in one line, [{...}, {...}]
        return file
    return replace(file, content="\n" * heads[number] + "\n".join(lines[heads[number] :]))
