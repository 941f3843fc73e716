"""A sweep in a folder: Parquet files of so many rows, and a note of what was asked.

A block is written under a temporary name and then swapped in, so what bears a block's name
is whole. Blocks that are there are read through when the sweep is asked again, and those that
are damaged, or cut off, are computed once more.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mlsim.engine.sweeps.answering import block
from mlsim.engine.sweeps.digest import digests
from mlsim.engine.sweeps.question import Question
from mlsim.engine.sweeps.rows import Words
from mlsim.engine.sweeps.runner import Progress, bounds, compute, rows_of_block
from mlsim.engine.sweeps.table import UNITS, asked
from mlsim.errors import InvalidValueError, UnfinishedError, nearest, need

if TYPE_CHECKING:
    import pandas

# Readers of a folder of Parquet files pass over names that begin so.
NOTE, _TEMPORARY = "_sweep.json", "._block-"
_PURPOSE, _EXTRA = "a sweep in a folder", "sweeps"
_MARK = b"mlsim.sweep"


@dataclass(frozen=True)
class SweptFolder:
    """A finished sweep in a folder.

    Attributes
    ----------
    path
        The folder; `pandas.read_parquet(path)` reads it, too.
    rows, blocks
        Rows in it, and the files that they are in.
    units
        The unit of each column that has one.
    """

    path: Path
    rows: int
    blocks: int
    units: dict[str, str]

    def read(self, columns: Sequence[str] | None = None, where: Any = None) -> pandas.DataFrame:
        """Return rows as a table.

        Parameters
        ----------
        columns
            Those that are read; all by default.
        where
            Conditions on rows, as pyarrow takes them: [("hardware", "==", "NVIDIA A100")].

        Raises
        ------
        InvalidValueError
            If there is no such column, or a condition is none.
        """
        need("pyarrow", _PURPOSE, _EXTRA)
        from pyarrow import ArrowInvalid, parquet

        for name in columns or ():
            if name not in self.columns:
                raise InvalidValueError(
                    f"{self.path} has no column {name!r}.{nearest(name, self.columns)} It has: "
                    f"{', '.join(self.columns)}."
                )
        try:
            found = parquet.read_table(
                self.path, columns=None if columns is None else list(columns), filters=where
            )
        except (ArrowInvalid, TypeError, ValueError) as error:
            words = str(error).partition("\n")[0]
            raise InvalidValueError(
                f"where = {where!r} is no condition on rows: {words}. Such as "
                "[('feasible', '==', True)]."
            ) from None
        table: pandas.DataFrame = found.to_pandas()
        table.attrs[UNITS] = {
            name: unit for name, unit in self.units.items() if name in table.columns
        }
        return table

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        from pyarrow import parquet

        return tuple(parquet.read_schema(self.path / name_of(0)).names)

    def to_dict(self) -> dict[str, Any]:
        """Return what it holds, for JSON."""
        return {
            "path": str(self.path),
            "rows": self.rows,
            "blocks": self.blocks,
            "columns": list(self.columns),
            "units": self.units,
        }

    def __str__(self) -> str:
        size = sum(each.stat().st_size for each in self.path.glob("block-*.parquet"))
        return f"{self.rows:,} rows in {self.blocks:,} file(s), {size / 1e6:,.1f} MB: {self.path}"


def name_of(index: int) -> str:
    """Return the name of a block's file."""
    return f"block-{index:08d}.parquet"


def sweep_into(
    question: Question,
    path: Path,
    scheduler: Any,
    watch: Callable[[Progress], None] | None,
    block_rows: Any,
) -> SweptFolder:
    """Write a sweep into a folder, or what is missing of it there.

    Raises
    ------
    InvalidValueError
        If the folder holds another sweep, or something else.
    UnfinishedError
        If it can't be written, or a worker dies.
    """
    need("pyarrow", _PURPOSE, _EXTRA)
    path = path.expanduser().absolute()
    mark = _opened(question, path, block_rows)
    places = bounds(question.rows, mark["block_rows"])
    key, began = str(mark["question"]), time.perf_counter()
    missing = [
        place
        for index, place in enumerate(places)
        if not _sound(path / name_of(index), place[1] - place[0], key)
    ]
    there = question.rows - sum(stop - start for start, stop in missing)
    done = 0
    _tell(watch, question, there, done, began)
    try:
        more = ((str(path), mark["block_rows"], key),)
        for (start, stop), _ in compute(question, missing, _write, more, scheduler):
            done += stop - start
            _tell(watch, question, there, done, began)
    except UnfinishedError as error:
        kept = f"{there + done:,} of {question.rows:,} rows are kept in {path}"
        raise UnfinishedError(f"{error}. {kept}; ask again to go on.") from error
    for each in path.glob(f"{_TEMPORARY}*"):
        each.unlink(missing_ok=True)  # what was killed left it
    return SweptFolder(path, question.rows, len(places), question.units)


def _tell(
    watch: Callable[[Progress], None] | None,
    question: Question,
    there: int,
    done: int,
    began: float,
) -> None:
    if watch:
        watch(Progress(there + done, question.rows, done, time.perf_counter() - began))


def _opened(question: Question, path: Path, block_rows: Any) -> dict[str, Any]:
    """Return the folder's note; make folder and note where there are none."""
    note = path / NOTE
    parts = digests(question)
    size = rows_of_block(question, block_rows)
    if note.exists():
        return _same(path, note, parts, None if block_rows is None else size)
    if path.exists() and (not path.is_dir() or any(_visible(path))):
        raise InvalidValueError(
            f"out = {str(path)!r} is no empty folder, and holds no sweep. Give a new one."
        )
    mark = {
        "question": parts["all"],
        "parts": parts,
        "rows": question.rows,
        "block_rows": size,
        "units": question.units,
        **question.notes,
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        temporary = path / f"{_TEMPORARY}{uuid4().hex}"
        temporary.write_text(json.dumps(mark, indent=2), encoding="utf-8")
        temporary.replace(note)
    except OSError as error:
        raise UnfinishedError(f"the folder {path} can't be written: {error}.") from error
    return mark


def _visible(path: Path) -> list[Path]:
    return [each for each in path.iterdir() if not each.name.startswith(_TEMPORARY)]


def _same(path: Path, note: Path, parts: dict[str, str], size: int | None) -> dict[str, Any]:
    """Return the note of a folder that holds this very sweep.

    Raises
    ------
    InvalidValueError
        If it holds another; says what differs.
    """
    try:
        mark: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
        before, rows = mark["parts"], mark["block_rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidValueError(
            f"{note} can't be understood ({type(error).__name__}), so nobody knows which sweep "
            f"{path} holds. Give another folder, or remove this one."
        ) from None
    if before != parts:
        names = [each for each in {**before, **parts} if before.get(each) != parts.get(each)]
        differ = ", ".join(each for each in names if each != "all")
        raise InvalidValueError(
            f"{path} holds another sweep: {differ} differ(s). Give another folder, or remove "
            "this one."
        )
    if size not in (None, rows):
        raise InvalidValueError(
            f"{path} holds blocks of {rows:,} rows, not of {size:,}: leave block_rows out to go on."
        )
    return mark


def _sound(path: Path, rows: int, key: str) -> bool:
    """Tell whether a block is there, of this sweep, and every page of it is as it was written."""
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            kept = (file.schema_arrow.metadata or {}).get(_MARK, b"").decode()
            if file.metadata.num_rows != rows or kept != key:
                return False
            for _ in file.iter_batches():
                pass
    except (ArrowException, OSError, ValueError):
        return False
    return True


def _write(question: Question, start: int, stop: int, target: tuple[str, int, str]) -> int:
    """Compute a block and put it in its place; return its bytes.

    `target` is the folder, the rows of a block, and the digest of the question.
    """
    from pyarrow import ArrowException, parquet

    folder, block_rows, key = target
    table = _arrow(question, start, stop, key)
    path = Path(folder) / name_of(start // block_rows)
    temporary = path.with_name(f"{_TEMPORARY}{os.getpid()}-{uuid4().hex}")
    # What repeats is kept once; of results that would take time for nothing.
    few = [name for name in table.column_names if name not in question.results]
    try:
        parquet.write_table(
            table, temporary, use_dictionary=few, write_page_checksum=True, compression="snappy"
        )
        temporary.replace(path)
        return path.stat().st_size
    except (ArrowException, OSError) as error:
        raise UnfinishedError(f"{path.name} can't be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _arrow(question: Question, start: int, stop: int, key: str) -> Any:
    """Return the rows of a block as a table of Arrow, with units."""
    import pyarrow

    done = block(question, start, stop)
    columns = asked(question, start, stop)
    for name in question.results:
        columns[name] = done.words[name] if name in done.words else done.numbers[name]
    columns |= {"feasible": done.feasible, "reason": done.reasons}
    arrays, fields = [], []
    for name, column in columns.items():
        found = _dictionary(pyarrow, column) if isinstance(column, Words) else pyarrow.array(column)
        unit = question.units.get(name)
        fields.append(pyarrow.field(name, found.type, metadata={"unit": unit} if unit else None))
        arrays.append(found)
    return pyarrow.table(arrays, schema=pyarrow.schema(fields, metadata={_MARK: key.encode()}))


def _dictionary(pyarrow: Any, words: Words) -> Any:
    codes = pyarrow.array(words.codes, mask=words.codes < 0)
    return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(words.labels, pyarrow.string()))
