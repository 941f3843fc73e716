"""Traces of requests: CSV files of when they arrived and how long they were, read strictly."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.workloads.requests import MOST, Requests

# Names of the three columns: ours, those of Vidur's traces, and those of Azure's.
ARRIVED = ("arrived", "arrived_at", "arrival_time", "TIMESTAMP")
PROMPT = ("prompt_tokens", "num_prefill_tokens", "ContextTokens")
OUTPUT = ("output_tokens", "num_decode_tokens", "GeneratedTokens")


def read_trace(path: Path | str, *, most: int | None = None) -> Requests:
    """Read the requests of a trace, plain or gzipped.

    The columns are `arrived` (s, or a time of day with its date), `prompt_tokens` and
    `output_tokens`, also under the names of Vidur's and Azure's traces. Without arrivals all
    requests are there at once, or come at a rate that the caller gives.

    Raises
    ------
    DataFileError
        If a column is missing, or a row has a hole or what can't be; names the line.
    InvalidValueError
        If there is no such file.
    """
    path = Path(path)
    try:
        with _open(path) as file:
            return _requests(path, _rows(path, file), most)
    except FileNotFoundError:
        raise InvalidValueError(f"there is no trace {path}.") from None
    except IsADirectoryError:
        raise InvalidValueError(f"{path} is a folder; give the CSV file in it.") from None
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, csv.Error) as error:
        raise DataFileError(f"{path}: no CSV file as text in UTF-8 ({error}).") from None


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _rows(path: Path, file: TextIO) -> Iterator[tuple[int, tuple[float | None, int, int]]]:
    reader = csv.reader(file)
    heads = [each.strip() for each in next(reader, [])]
    arrived, prompt, output = (_column(heads, names) for names in (ARRIVED, PROMPT, OUTPUT))
    if prompt is None or output is None:
        raise DataFileError(
            f"{path}: line 1: a trace has the columns {ARRIVED[0]}, {PROMPT[0]} and {OUTPUT[0]} "
            f"(or those of Vidur's and Azure's traces); this one has {', '.join(heads) or 'none'}."
        )
    for row in reader:
        if not row:
            continue
        where = f"{path}: line {reader.line_num}"
        if len(row) != len(heads):
            raise DataFileError(f"{where}: {len(row)} cells, where line 1 has {len(heads)}.")
        time = None if arrived is None else _time(where, heads[arrived], row[arrived])
        sizes = (_tokens(where, heads[each], row[each]) for each in (prompt, output))
        yield reader.line_num, (time, *sizes)  # type: ignore[misc]


def _column(heads: Sequence[str], names: Sequence[str]) -> int | None:
    return next((heads.index(each) for each in names if each in heads), None)


def _time(where: str, name: str, cell: str) -> float:
    try:
        found = float(cell)
    except ValueError:
        found = _moment(cell)
    if not math.isfinite(found):
        raise DataFileError(f"{where}: {name} must be seconds, or a date and time, not {cell!r}.")
    return found


def _moment(cell: str) -> float:
    """Return a date and time in seconds; NaN where it is none."""
    from datetime import UTC, datetime

    # Azure writes seven digits of a second.
    whole, dot, rest = cell.strip().partition(".")
    try:
        found = datetime.fromisoformat(whole + dot + rest[:6])
    except ValueError:
        return math.nan
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _tokens(where: str, name: str, cell: str) -> int:
    try:
        found = float(cell)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 1 or not found.is_integer():
        raise DataFileError(f"{where}: {name} must be a whole number from 1 up, not {cell!r}.")
    return int(found)


def _requests(path: Path, rows: Iterator[Any], most: int | None) -> Requests:
    import numpy as np

    limit = MOST if most is None else most
    found = list(islice(rows, limit + (most is None)))
    if not found:
        raise DataFileError(f"{path}: a trace without requests.")
    if len(found) > limit:
        raise InvalidValueError(f"{path} has more than {MOST:,} requests; say how many to follow.")
    times, prompts, outputs = zip(*(row for _, row in found), strict=True)
    if times[0] is None:
        arrived = np.zeros(len(found))
    else:
        arrived = np.array(times) - times[0]
        back = np.flatnonzero(np.diff(arrived) < 0)
        if len(back):
            line = found[int(back[0]) + 1][0]
            raise DataFileError(f"{path}: line {line}: arrives before the request above it.")
    return Requests(
        arrived,
        np.array(prompts),
        np.array(outputs),
        words=f"{len(found):,} requests of {path.name}",
    )
