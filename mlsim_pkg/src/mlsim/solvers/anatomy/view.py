"""Views of an anatomy: rows under a header, for a terminal, a notebook, a table or a file."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, need, unknown_name
from mlsim.units import MEMORY, text

if TYPE_CHECKING:
    import pandas

# Columns of bytes, seconds and the like, and the unit in which they are written.
UNITS = {
    **dict.fromkeys(("time", "step_time", "paging_time", "epoch_time", "all_epochs"), "s"),
    **dict.fromkeys(("memory", "excess"), MEMORY),
    "intensity": "FLOP/byte",
    "throughput": "sample/s",
}


@dataclass(frozen=True)
class View:
    """Rows of one kind, in a fixed order of columns.

    Attributes
    ----------
    title
        What the rows are.
    columns
        Names of the columns; each row is a mapping that has them.
    rows
        Raw numbers: counts, bytes, seconds.
    notes
        Lines below the rows, such as totals in words.
    heads
        What columns are called when written, where that differs from their names.
    most
        Rows that are written; of more, those at the ends. 0 for all.

    >>> view = View("Layers", ("layer", "operations"), [{"layer": "fc", "operations": 1200}])
    >>> print(view)
    Layers
      layer  operations
      fc          1,200
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    heads: Mapping[str, str] = field(default_factory=dict)
    most: int = 0

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> list[Any]:
        """Return a column.

        Raises
        ------
        UnknownNameError
            If there is none of that name.
        """
        if name not in self.columns:
            raise unknown_name("column", name, self.columns)
        return [row.get(name) for row in self.rows]

    @property
    def frame(self) -> pandas.DataFrame:
        """The rows as a pandas table, numbers as they are.

        Raises
        ------
        MissingLibraryError
            If pandas is not installed.
        """
        library = need("pandas", "a table of layers", "arrays")
        rows = [{name: row.get(name) for name in self.columns} for row in self.rows]
        table: pandas.DataFrame = library.DataFrame(rows, columns=list(self.columns))
        return table

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the rows as CSV; with a path, also write them there, whole or not at all."""
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow([_plain(row.get(name)) for name in self.columns])
        if path is not None:
            save(Path(path), written.getvalue())
        return written.getvalue()

    def _cells(self) -> list[list[str]]:
        head = [self.heads.get(name, name.replace("_", " ")) for name in self.columns]
        rows = [[_shown(name, row.get(name)) for name in self.columns] for row in self.rows]
        if self.most and len(rows) > self.most:
            ends = self.most // 2
            left_out = [f"... {len(rows) - 2 * ends} more", *["..."] * (len(head) - 1)]
            rows = [*rows[:ends], left_out, *rows[-ends:]]
        return [head, *rows]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        left = self._left()
        lines = [
            "  "
            + "  ".join(
                f"{cell:<{width}}" if index in left else f"{cell:>{width}}"
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        return "\n".join([self.title, *lines, *(f"  {note}" for note in self.notes)])

    def _left(self) -> set[int]:
        """Return the columns of words, which are aligned to the left."""
        return {
            index
            for index, name in enumerate(self.columns)
            if any(isinstance(row.get(name), str) for row in self.rows)
        }

    def _repr_markdown_(self) -> str:
        head, *rows = self._cells()
        left = self._left()
        rule = ["---" if index in left else "---:" for index in range(len(head))]
        lines = [f"**{_marked(self.title)}**", "", f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|"]
        lines += [
            f"| {' | '.join(_marked(each).replace('|', ' ') for each in row)} |" for row in rows
        ]
        return "\n".join([*lines, "", "  \n".join(map(_marked, self.notes))]).rstrip()

    __repr__ = __str__


def save(path: Path, content: str) -> None:
    """Write a file in one go: what stood there before is lost only once the new one is whole.

    Raises
    ------
    InvalidValueError
        If its folder is not there.
    """
    path = path.expanduser()
    if not path.parent.is_dir():
        raise InvalidValueError(f"there is no folder {str(path.parent)!r} to write to.")
    handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        Path(made).replace(path)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise


def _marked(words: str) -> str:
    """Keep names that somebody gave from being markup, and shapes on a line."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(" x ", "\u00a0x\u00a0")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return "" if value is None else value


def _shown(name: str, value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, (str, tuple)):
        return " x ".join(map(str, value)) if isinstance(value, tuple) else value
    if name in UNITS:
        return text(float(value), UNITS[name])
    if name.endswith("share"):
        return f"{value:.1%}"
    return f"{value:,.0f}"
