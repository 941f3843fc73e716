"""Blocks of a sweep, computed here or by whoever has a `submit`; and a folder that keeps them.

A folder has Parquet files of so many rows, and a note of what was asked. A block is written under
a temporary name and then swapped in, so what bears a block's name is whole. Blocks that are there
are read through when the sweep is asked again, and those that are damaged, or cut off, are
computed once more.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from mlsim.engine.sweeps.question import Question
from mlsim.engine.sweeps.rows import Block, Words, asked, block
from mlsim.errors import InvalidValueError, MlsimError, UnfinishedError, check_whole, need
from mlsim.solvers.answer import Answer
from mlsim.solvers.arrays import alone

if TYPE_CHECKING:
    pass


# Rows of a block: of a door whose numbers run as arrays, and of one that is asked row by row.
TOGETHER, ONE_BY_ONE = 500_000, 2_000
# Blocks that wait for each worker, beside the one that it has.
WAITING = 1
# Workers of a scheduler that does not say how many it has.
_UNKNOWN = 8

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is.

    Attributes
    ----------
    rows, of
        Rows that are done, and all of them.
    computed
        Those of them that were computed now; the others were there.
    seconds
        Since it began.

    >>> Progress(rows=3_000_000, of=4_000_000, computed=2_000_000, seconds=2.0).text()
    '3,000,000 of 4,000,000 rows (75%), 1,000,000/s, 1 s left'
    """

    rows: int
    of: int
    computed: int
    seconds: float

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.computed / self.seconds if self.seconds > 0 else 0.0

    def text(self) -> str:
        """Say it in a line."""
        left = f", {(self.of - self.rows) / self.rate:,.0f} s left" if self.rate else ""
        share = self.rows / self.of
        return f"{self.rows:,} of {self.of:,} rows ({share:.0%}), {self.rate:,.0f}/s{left}"


def say(progress: Progress) -> None:
    """Write how far a sweep is over the line before, on the standard error."""
    end = "\n" if progress.rows == progress.of else ""
    print(f"\r{progress.text():<78}", end=end, file=sys.stderr, flush=True)


def rows_of_block(question: Question, asked: Any) -> int:
    """Return how many rows a block has.

    Raises
    ------
    InvalidValueError
        If what was asked for is no whole number from 1 up.
    """
    if asked is None:
        return TOGETHER if question.together > 1 else ONE_BY_ONE
    return check_whole("block_rows", asked)


def bounds(rows: int, size: int) -> list[tuple[int, int]]:
    """Return where each block begins and ends.

    >>> bounds(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def run(
    question: Question,
    scheduler: Any,
    watch: Callable[[Progress], None] | None,
    block_rows: Any = None,
) -> list[Block]:
    """Compute all rows of a sweep; return its blocks in order."""
    # Nobody watches, and no worker waits: columns need not be put together from parts.
    at_once = scheduler is watch is block_rows is None and question.together > 1
    size = question.rows if at_once else rows_of_block(question, block_rows)
    places = bounds(question.rows, max(size, 1))
    found: dict[tuple[int, int], Block] = {}
    began = time.perf_counter()
    for place, done in compute(question, places, block, (), scheduler):
        found[place] = done
        if watch:
            rows = sum(len(each) for each in found.values())
            watch(Progress(rows, question.rows, rows, time.perf_counter() - began))
    return [found[place] for place in places]


def compute(
    question: Question,
    places: Iterable[tuple[int, int]],
    work: Callable[..., Result],
    more: tuple[Any, ...],
    scheduler: Any,
) -> Iterator[tuple[tuple[int, int], Result]]:
    """Yield each place with what `work` makes of it, in the order in which they are done.

    `work` takes the question, where a block starts and stops, and what is in `more`.

    Raises
    ------
    UnfinishedError
        If a worker dies, or the scheduler refuses.
    """
    if scheduler is None:
        for place in places:
            yield place, work(question, *place, *more)
        return
    yield from _submitted(question, list(places), (work, more), scheduler)


def _submitted(
    question: Question, places: list[tuple[int, int]], work: tuple[Any, Any], scheduler: Any
) -> Iterator[tuple[tuple[int, int], Any]]:
    """Keep every worker busy with a few blocks at a time; yield them as they are done."""
    try:
        sent = pickle.dumps(question)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidValueError(
            f"this sweep can't be sent to workers: {error}. Give names, numbers and records of the "
            "zoo, or leave scheduler out."
        ) from None
    dask = hasattr(scheduler, "scatter")
    # A cluster is sent the question once, and not with every block.
    given = scheduler.scatter(sent, broadcast=True, hash=False) if dask else sent
    options = {"pure": False} if dask else {}
    done: Queue[tuple[tuple[int, int], Any]] = Queue()
    waiting, flying = iter(places), {}

    def submit() -> None:
        place = next(waiting, None)
        if place is None:
            return
        future = scheduler.submit(_at_worker, given, place, *work, **options)
        flying[place] = future
        future.add_done_callback(lambda ended, place=place: done.put((place, ended)))

    try:
        for _ in range(min(len(places), _workers(scheduler) * (1 + WAITING))):
            submit()
        while flying:
            place, future = done.get()
            del flying[place]
            submit()
            yield place, future.result()
    except MlsimError:
        raise
    except Exception as error:
        raise UnfinishedError(
            f"a worker stopped: {type(error).__name__}: {error}".rstrip()
        ) from error
    finally:
        for future in flying.values():
            future.cancel()


def _workers(scheduler: Any) -> int:
    """Return how many blocks a scheduler computes at one time."""
    if hasattr(scheduler, "nthreads"):
        return max(1, int(sum(scheduler.nthreads().values())))
    return int(getattr(scheduler, "_max_workers", _UNKNOWN))


@lru_cache(maxsize=4)
def _unpacked(sent: bytes) -> Question:
    found: Question = pickle.loads(sent)  # noqa: S301  # the one who asks sent it
    return found


def _at_worker(sent: bytes, place: tuple[int, int], work: Any, more: tuple[Any, ...]) -> Any:
    # Workers share the processors, so each takes one.
    with alone():
        return work(_unpacked(sent), *place, *more)


def digests(question: Question) -> dict[str, str]:
    """Return a digest of each argument, of the results, and "all" of them.

    The same for the same question in another process; another one if a figure of a record
    changes, or the package's version.

    Raises
    ------
    InvalidValueError
        If a value can't be told from another of its kind, such as a function.
    """
    parts = {axis.name: _digest(axis.name, axis.entries) for axis in question.axes}
    parts["door"] = question.door.name
    parts["results"] = _digest("results", question.results)
    try:
        parts["version of mlsim"] = version("mlsim")
    except PackageNotFoundError:
        parts["version of mlsim"] = "not installed"
    parts["all"] = _digest("all", sorted(parts.items()))
    return parts


def _digest(name: str, value: Any) -> str:
    found = hashlib.sha256()
    _feed(found, name, value)
    return found.hexdigest()[:32]


def _feed(found: Any, name: str, value: Any) -> None:
    """Add a value to a digest: its kind, and what it holds."""
    found.update(type(value).__name__.encode() + b"(")
    if hasattr(value, "tobytes"):
        found.update(str(value.dtype).encode() + str(value.shape).encode() + value.tobytes())
    elif value is None or isinstance(value, (bool, int, float, str, bytes)):
        found.update(repr(value).encode())
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            _feed(found, name, key)
            _feed(found, name, value[key])
    elif isinstance(value, (list, tuple)):
        for each in value:
            _feed(found, name, each)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            if each.compare or each.name == "name":
                _feed(found, name, getattr(value, each.name))
    elif hasattr(value, "units"):
        found.update(f"{value.magnitude!r} {value.units!s}".encode())
    elif hasattr(value, "__fspath__") or hasattr(value, "isoformat"):
        found.update(str(value).encode())
    elif not _own(found, name, value):
        raise InvalidValueError(
            f"{name} = {value!r} can't be told from others of its kind, so a folder could not say "
            "which sweep it holds. Give a name, a number or a record; or leave out=... out."
        )
    found.update(b")")


def _own(found: Any, name: str, value: Any) -> bool:
    """Add an object by its attributes, if it is one of this package; tell whether it is."""
    ours = type(value).__module__.startswith("mlsim.") and hasattr(value, "__dict__")
    if not ours or isinstance(value, Answer):  # which also has what was looked up in it
        return False
    _feed(found, name, value.__dict__)
    return True


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

    def tell() -> None:
        if watch:
            watch(Progress(there + done, question.rows, done, time.perf_counter() - began))

    tell()
    try:
        more = ((str(path), mark["block_rows"], key),)
        for (start, stop), _ in compute(question, missing, _write, more, scheduler):
            done += stop - start
            tell()
    except UnfinishedError as error:
        kept = f"{there + done:,} of {question.rows:,} rows are kept in {path}"
        raise UnfinishedError(f"{error}. {kept}; ask again to go on.") from error
    for each in path.glob(f"{_TEMPORARY}*"):
        each.unlink(missing_ok=True)  # what was killed left it
    return SweptFolder(path, question.rows, len(places), question.units)


def _opened(question: Question, path: Path, block_rows: Any) -> dict[str, Any]:
    """Return the folder's note; make folder and note where there are none."""
    note = path / NOTE
    parts = digests(question)
    size = rows_of_block(question, block_rows)
    if note.exists():
        return _same(path, note, parts, None if block_rows is None else size)
    others = path.is_dir() and any(not each.name.startswith(_TEMPORARY) for each in path.iterdir())
    if others or (path.exists() and not path.is_dir()):
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
        if isinstance(column, Words):
            codes = pyarrow.array(column.codes, mask=column.codes < 0)
            labels = pyarrow.array(column.labels, pyarrow.string())
            found = pyarrow.DictionaryArray.from_arrays(codes, labels)
        else:
            found = pyarrow.array(column)
        unit = question.units.get(name)
        fields.append(pyarrow.field(name, found.type, metadata={"unit": unit} if unit else None))
        arrays.append(found)
    return pyarrow.table(arrays, schema=pyarrow.schema(fields, metadata={_MARK: key.encode()}))
