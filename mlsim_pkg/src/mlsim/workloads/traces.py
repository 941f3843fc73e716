"""Traces of requests: files of when they arrived and how long they were, read strictly.

CSV files under the names of their columns, or JSONL files in Mooncake's format, a request a line.

A trace may name the blocks of each prompt, so that equal names at the start mean equal tokens:
then it says which part of a prompt a cache would have. The cache holds so many blocks, and drops
the one that nobody has used for longest.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mlsim.errors import DataFileError, InvalidValueError, check_whole
from mlsim.workloads.requests import MOST, Requests, number

if TYPE_CHECKING:
    import numpy


# Names of the three columns: ours, those of Vidur's traces, and those of Azure's.
ARRIVED = ("arrived", "arrived_at", "arrival_time", "TIMESTAMP")
PROMPT = ("prompt_tokens", "num_prefill_tokens", "ContextTokens")
OUTPUT = ("output_tokens", "num_decode_tokens", "GeneratedTokens")
# The keys of Mooncake's traces, whose times are in ms.
KEYS = ("timestamp", "input_length", "output_length")
_MS = 1000.0


def read_trace(path: Path | str, *, most: int | None = None) -> Requests:
    """Read the requests of a trace, plain or gzipped.

    The columns are `arrived` (s, or a time of day with its date), `prompt_tokens` and
    `output_tokens`, also under the names of Vidur's and Azure's traces. Without arrivals all
    requests are there at once, or come at a rate that the caller gives. A file whose name
    ends in `.jsonl` has Mooncake's keys: `timestamp` (ms), `input_length`, `output_length`.

    Raises
    ------
    DataFileError
        If a column is missing, or a row has a hole or what can't be; names the line.
    InvalidValueError
        If there is no such file.
    """
    path = Path(path)
    with opened(path) as file:
        rows = _lines(path, file) if is_jsonl(path) else _rows(path, file)
        return _requests(path, rows, most)


def is_jsonl(path: Path) -> bool:
    """Tell whether a file is in Mooncake's format, by its name."""
    return ".jsonl" in path.suffixes


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a trace, plain or gzipped, and say in words what is wrong with it.

    Raises
    ------
    DataFileError
        If it is no text.
    InvalidValueError
        If there is no such file.
    """
    try:
        options: Any = {"encoding": "utf-8-sig", "newline": ""}
        with (
            gzip.open(path, "rt", **options)
            if path.suffix == ".gz"
            else path.open(**options) as file
        ):
            yield file
    except FileNotFoundError:
        raise InvalidValueError(f"there is no trace {path}.") from None
    except IsADirectoryError:
        raise InvalidValueError(f"{path} is a folder; give the CSV file in it.") from None
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, csv.Error) as error:
        raise DataFileError(f"{path}: no CSV file as text in UTF-8 ({error}).") from None


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


def _lines(path: Path, file: TextIO) -> Iterator[tuple[int, tuple[float | None, int, int]]]:
    for line, where, found in objects(path, file):
        for key in KEYS:
            if key not in found:
                raise DataFileError(f"{where}: no {key}; a request has {', '.join(KEYS)}.")
        time, *sizes = (str(found[key]) for key in KEYS)
        if math.isnan(number(time)):
            raise DataFileError(f"{where}: timestamp must be milliseconds, not {time!r}.")
        tokens = (_tokens(where, key, each) for key, each in zip(KEYS[1:], sizes, strict=True))
        yield line, (number(time) / _MS, *tokens)  # type: ignore[misc]


def objects(path: Path, file: TextIO) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the objects of a JSONL file, with the number of the line and its place in words.

    Raises
    ------
    DataFileError
        If a line holds something else.
    """
    for place, line in enumerate(file, 1):
        if not line.strip():
            continue
        where = f"{path}: line {place}"
        try:
            found = json.loads(line)
        except ValueError as error:
            raise DataFileError(f"{where}: no JSON ({error}).") from None
        if not isinstance(found, dict):
            raise DataFileError(f"{where}: a request is an object, {{...}}, not {line.strip()!r}.")
        yield place, where, found


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
    found = number(cell)
    if not found >= 1 or not found.is_integer():
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


# What names the blocks of a prompt, and how many tokens one has, in Mooncake's traces.
BLOCKS, BLOCK_TOKENS = "hash_ids", 512
# What a CSV file may say of each prompt instead.
COLUMN = "prefix_tokens"


def cached_tokens(
    path: Path | str,
    count: int,
    blocks: int | None = None,
    *,
    block_tokens: int = BLOCK_TOKENS,
) -> numpy.ndarray[Any, Any]:
    """Return how many tokens of each of the first prompts a cache would have: whole numbers.

    A block is there once an earlier request had it, so a prompt that comes right after it is
    taken to find it. The last token of a prompt is always worked on.

    Parameters
    ----------
    path
        A JSONL file in Mooncake's format, with the blocks of each prompt (`hash_ids`); or a CSV
        file with a column `prefix_tokens`.
    count
        How many prompts.
    blocks
        Blocks that the cache holds; by default all that were ever seen.
    block_tokens
        Tokens of a block: 512 in Mooncake's traces.

    Raises
    ------
    DataFileError
        If a line has no blocks, or other than its prompt has; names the line.
    InvalidValueError
        If there is no such file, or a number can't be.
    """
    import numpy as np

    path = Path(path)
    size = check_whole("block_tokens", block_tokens, most=MOST)
    most = None if blocks is None else check_whole("prefix_blocks", blocks, most=10**9)
    with opened(path) as file:
        if is_jsonl(path):
            rows = _by_blocks(_named(path, file, size), most, size)
        elif most is not None:
            raise InvalidValueError(
                f"prefix_blocks: {path} names no blocks, so it can't say what a smaller cache has. "
                f"Leave it out, or give a JSONL file with {BLOCKS}."
            )
        else:
            rows = _by_column(path, file)
        return np.array(list(islice(rows, count)))


def _named(path: Path, file: Any, size: int) -> Iterator[tuple[int, list[Any]]]:
    """Yield the length of each prompt and the names of its blocks."""
    for _, where, found in objects(path, file):
        names, length = found.get(BLOCKS), int(found["input_length"])
        if not isinstance(names, list):
            raise DataFileError(f"{where}: {BLOCKS} must be a list of blocks, not {names!r}.")
        needed = -(-length // size)
        if len(names) != needed:
            raise DataFileError(
                f"{where}: {len(names)} blocks of {size} tokens for a prompt of {length:,}, which "
                f"has {needed}. Is block_tokens right?"
            )
        yield length, names


def _by_blocks(
    prompts: Iterator[tuple[int, list[Any]]], most: int | None, size: int
) -> Iterator[int]:
    """Yield how many tokens of each prompt are found, and remember its blocks."""
    kept: OrderedDict[Any, None] = OrderedDict()
    for length, names in prompts:
        found = 0
        for name in names:
            if name not in kept:
                break
            found += 1
        yield min(found * size, length - 1)
        # The end of a prompt is dropped before its beginning, without which it is of no use.
        for name in reversed(names):
            kept[name] = None
            kept.move_to_end(name)
        while most is not None and len(kept) > most:
            kept.popitem(last=False)


def _by_column(path: Path, file: Any) -> Iterator[int]:
    """Yield what a column says of each prompt."""
    reader = csv.reader(file)
    heads = [each.strip() for each in next(reader, [])]
    if COLUMN not in heads:
        raise InvalidValueError(
            f"{path} says nothing of prefixes: it needs a column {COLUMN}, with the tokens of each "
            f"prompt that are cached, or to be a JSONL file with {BLOCKS}."
        )
    prompt = next(heads.index(each) for each in PROMPT if each in heads)
    for row in islice(filter(None, reader), MOST):
        where, cell = f"{path}: line {reader.line_num}", row[heads.index(COLUMN)]
        known = int(cell) if cell.strip().isdecimal() else -1
        if not 0 <= known <= float(row[prompt]):
            raise DataFileError(
                f"{where}: {COLUMN} must be a whole number from 0 up to the prompt's "
                f"{row[prompt]}, not {cell!r}."
            )
        yield min(known, int(float(row[prompt])) - 1)
