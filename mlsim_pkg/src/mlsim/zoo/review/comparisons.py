"""Other people's open tables of devices beside ours: what differs, by how much, and why.

The rows lie in `data/comparisons/`: of each table the facts only (a device of ours,
the name it has there, a figure, its value in base units), with the repository, path
and commit where they were read. A reason is given for each difference, not for each
row; a test sees to it that none is missing and that none is left over.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, nearest, unknown_name
from mlsim.hardware import Device
from mlsim.records import DATA, DataFile, Figure, load
from mlsim.records.tables import rows
from mlsim.units import text
from mlsim.zoo.spaces import Hardware

FOLDER = DATA / "comparisons"
COLUMNS = ("device", "figure", "name", "column", "value", "unit")
# Makers round: within a hundredth two tables say the same.
TOLERANCE = 0.01
_FIELDS = {
    "title": str, "source": str, "licence": str, "repository": str, "path": str, "commit": str,
    "read": datetime.date,
}  # fmt: skip
_OPTIONAL = ("copied", "reasons")


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of ours and what another table says: its name there, column and value.

    `theirs` is in the base unit of `figure`. `reason` is empty where the two agree.
    """

    device: Device
    figure: Figure
    name: str
    column: str
    theirs: float
    reason: str = ""

    @property
    def ratio(self) -> float:
        """How many times ours theirs is."""
        return self.theirs / self.figure.si

    @property
    def agrees(self) -> bool:
        """Whether the two are the same but for rounding."""
        return abs(self.ratio - 1) <= TOLERANCE

    @property
    def text(self) -> str:
        """Theirs, with a unit that people use."""
        return text(self.theirs, self.figure.base)


@dataclass(frozen=True)
class OpenTable:
    """Somebody's table of devices: whose, where it was read, and what it says.

    `copied` names sources of ours that are this table: comparing it with its
    own copy would show nothing, so such figures are left out.
    """

    key: str
    title: str
    source: str
    licence: str
    repository: str
    path: str
    commit: str
    read: datetime.date
    copied: tuple[str, ...] = ()
    reasons: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address of the file as it was read."""
        return f"https://github.com/{self.repository}/blob/{self.commit}/{self.path}"

    def compare(self) -> tuple[Compared, ...]:
        """Set every figure of the table beside ours.

        Raises
        ------
        DataFileError
            If a row names a device or a figure that we don't have, or holds no
            number; names file and line.
        """
        found = rows(FOLDER / f"{self.key}.csv", COLUMNS, partial(_row, self))
        return tuple(each for each in found if each is not None)

    def differences(self) -> tuple[Compared, ...]:
        """Return what differs by more than rounding, the largest first.

        >>> worst = table("torchao").differences()[0]
        >>> worst.device.key, worst.figure.name, round(worst.ratio)
        ('Workstation.RTX5090', 'memory.bandwidth', 1000)
        """
        found = [each for each in self.compare() if not each.agrees]
        return tuple(sorted(found, key=lambda each: -max(each.ratio, 1 / each.ratio)))


@cache
def tables(folder: Path = FOLDER) -> dict[str, OpenTable]:
    """Return the tables that are compared, by key.

    Raises
    ------
    DataFileError
        If one lacks a field, or has one that is unknown.
    """
    file = load(folder / "tables.toml")
    return {key: _table(file, key, fields) for key, fields in file.data.items()}


def table(key: str) -> OpenTable:
    """Return one table.

    Raises
    ------
    UnknownNameError
        If there is none of that key; suggests the nearest.
    """
    if key not in tables():
        raise unknown_name("open table", key, list(tables()))
    return tables()[key]


def _table(file: DataFile, key: str, fields: dict[str, Any]) -> OpenTable:
    file.only(fields, (*_FIELDS, *_OPTIONAL), key)
    for name, kind in _FIELDS.items():
        file.need(fields, name, kind, key)
    reasons: dict[tuple[str, str], str] = {}
    fields = dict(fields)
    for each in fields.pop("reasons", []):
        pairs = ((device, figure) for device in each["devices"] for figure in each["figures"])
        reasons |= dict.fromkeys(pairs, each["reason"])
    copied = tuple(fields.pop("copied", ()))
    return OpenTable(key, **fields, copied=copied, reasons=reasons)


def _row(source: OpenTable, row: dict[str, str]) -> Compared | None:
    """Set one row beside ours; None if ours is a copy of that very table."""
    keys = Hardware.keys()
    if row["device"] not in keys:
        raise DataFileError(f"there is no device {row['device']!r}.{nearest(row['device'], keys)}")
    device: Device = Hardware.get(row["device"])
    figure = device.figures.get(row["figure"])
    if figure is None:
        near = nearest(row["figure"], list(device.figures))
        raise DataFileError(f"{row['device']} has no figure {row['figure']!r}.{near}")
    if row["unit"] != figure.base:
        raise DataFileError(f"the unit must be {figure.base}, not {row['unit']!r}.")
    if figure.source in source.copied:
        return None
    found = Compared(device, figure, row["name"], row["column"], float(row["value"]))
    if found.agrees:
        return found
    reason = source.reasons.get((device.key, figure.name), "")
    return Compared(device, figure, row["name"], row["column"], found.theirs, reason)
