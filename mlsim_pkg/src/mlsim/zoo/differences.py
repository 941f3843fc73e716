"""What changed between two folders of data files: figures, and what they belong to."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}

# A figure's fields, or the plain value of a key that is no figure.
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure or key that was added, removed or changed.

    `old` and `new` are the entry's fields before and after; None where there
    was none.
    """

    record: str
    entry: str
    old: Entry | None
    new: Entry | None

    @property
    def kind(self) -> str:
        """Whether it was added, removed or changed."""
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that differ, if it was changed."""
        if self.old is None or self.new is None:
            return ()
        names = dict.fromkeys((*self.old, *self.new))
        return tuple(name for name in names if self.old.get(name) != self.new.get(name))

    def as_dict(self) -> dict[str, Any]:
        """Return the difference as plain data."""
        return {
            "record": self.record,
            "entry": self.entry,
            "kind": self.kind,
            "fields": list(self.fields),
            "old": _plain(self.old),
            "new": _plain(self.new),
        }

    def __str__(self) -> str:
        return f"{_SIGNS[self.kind]} {self.entry}: {self._said()}"

    def _said(self) -> str:
        if self.old is None or self.new is None:
            return _text(self.new if self.old is None else self.old)
        parts = []
        names = list(self.fields)
        if {"value", "unit"} & set(names):
            parts.append(f"{_amount(self.old)} -> {_amount(self.new)}")
            names = [name for name in names if name not in ("value", "unit")]
        absent = "none"
        parts += [
            f"{name} {self.old.get(name, absent)} -> {self.new.get(name, absent)}" for name in names
        ]
        return ", ".join(parts)


def differences(old: str | Path, new: str | Path) -> list[Difference]:
    """List what differs between two folders of data files, by record and entry.

    All data files below a folder count, as those of the package's `data` do. A
    record is identified by its kind and its key, wherever its file lies.

    Raises
    ------
    DataFileError
        If a folder or a file can't be read.
    """
    before, after = _records(Path(old)), _records(Path(new))
    found = []
    for record in sorted(before.keys() | after.keys()):
        first, second = before.get(record, {}), after.get(record, {})
        for entry in dict.fromkeys((*first, *second)):
            was, now = first.get(entry), second.get(entry)
            if was != now:
                found.append(Difference(record, entry, was, now))
    return found


def as_text(found: list[Difference]) -> str:
    """Write differences for a terminal, by record, with a last line that counts them."""
    lines: list[str] = []
    for record, of_record in groupby(found, key=lambda each: each.record):
        lines += [record, *(f"  {each}" for each in of_record)]
    counts = {kind: sum(each.kind == kind for each in found) for kind in _SIGNS}
    said = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return "\n".join([*lines, said or "no differences"])


def _records(folder: Path) -> dict[str, dict[str, Entry]]:
    """Read every data file of a folder: its entries by record."""
    paths = sorted(folder.rglob("*.toml"))
    if not paths:
        raise DataFileError(f"{folder}: there are no data files (*.toml) in this folder.")
    found: dict[str, dict[str, Entry]] = {}
    for path in paths:
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise DataFileError(f"{path}: can't be read: {error}.") from error
        # A file without a key, such as one of many grids, is identified by its name.
        # What the folder itself is called doesn't count: it may be a copy.
        place = path.parent.name if path.parent != folder else "data"
        name = f"{_kind(data) or place} {data.get('key', path.stem)}"
        if name in found:
            raise DataFileError(f"{path}:1: there is another file of {name} in {folder}.")
        found[name] = dict(_entries(data, ""))
    return found


def _kind(data: Mapping[str, Any]) -> str:
    """Identify a kind by its keys; empty for what surrounds machines, which goes by its folder."""
    if "device" in data:
        return "system"
    if "compute" in data:
        return "device"
    return "model" if "layers" in data or "transformer" in data else ""


def _entries(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Entry]]:
    """Yield figures whole, and every other key with its value."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and "value" not in value:
            yield from _entries(value, f"{name}.")
        elif isinstance(value, Mapping):
            yield name, value
        elif name == "layers" and isinstance(value, list):
            for number, layer in enumerate(value, start=1):
                yield from _layer(number, layer)
        else:
            yield name, {"value": value}


def _layer(number: int, layer: Any) -> Iterator[tuple[str, Entry]]:
    named = isinstance(layer, Mapping) and "name" in layer
    name = f"layers.{layer['name']}" if named else f"layers.{number}"
    yield name, (dict(layer) if isinstance(layer, Mapping) else {"value": layer})


def _amount(entry: Entry) -> str:
    """Write a value with its unit: "2,039 GB/s"."""
    value = entry.get("value")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    unit = entry.get("unit", "")
    # A year is no amount.
    shown = f"{value:,}" if number and unit != "year" else f"{value}"
    return f"{shown} {unit}".strip()


def _text(entry: Entry | None) -> str:
    """Write a whole entry: its amount and source, or all its fields."""
    if not entry:
        return "nothing"
    if "value" not in entry:
        return ", ".join(f"{name} {value}" for name, value in entry.items() if name != "name")
    source = f" [{entry['source']}]" if "source" in entry else ""
    return f"{_amount(entry)}{source}"


def _plain(entry: Entry | None) -> dict[str, Any] | None:
    """Return an entry with dates as text, as JSON has them."""
    if entry is None:
        return None
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value
        for name, value in entry.items()
    }
