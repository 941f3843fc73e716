"""Which part of a prompt a cache would have: what a trace says of common beginnings.

A trace names the blocks of each prompt, so that equal names at the start mean equal tokens. The
cache holds so many blocks, and drops the one that nobody has used for longest.
"""

from __future__ import annotations

import csv
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.workloads.requests import MOST, check_count
from mlsim.workloads.traces import PROMPT, is_jsonl, objects, opened

if TYPE_CHECKING:
    import numpy

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
    size = check_count("block_tokens", block_tokens)
    most = None if blocks is None else check_count("prefix_blocks", blocks, most=10**9)
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
