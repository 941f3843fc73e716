"""Traces whose prompts begin alike: blocks by hand, caches of any size, and holes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.workloads.prefixes import cached_tokens
from mlsim.workloads.traces import read_trace

# The two requests that Mooncake's description of the format shows: they share twelve blocks.
EXAMPLE = (
    {"timestamp": 27482, "input_length": 6955, "output_length": 52,
     "hash_ids": [46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 2353, 2354]},
    {"timestamp": 30535, "input_length": 6472, "output_length": 26,
     "hash_ids": [46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 2366]},
)  # fmt: skip


def write(path: Path, rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(length: int, *blocks: Any, at: int = 0) -> dict[str, Any]:
    return {"timestamp": at, "input_length": length, "output_length": 5, "hash_ids": list(blocks)}


def test_a_trace_in_mooncakes_format_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "trace.jsonl", EXAMPLE)
    found = read_trace(path)
    assert found.arrived.tolist() == pytest.approx([0, 3.053])
    assert found.prompt_tokens.tolist() == [6955, 6472]
    assert found.output_tokens.tolist() == [52, 26]
    # Its description says: the first 12 * 512 = 6144 tokens.
    assert cached_tokens(path, 2).tolist() == [0, 6144]


def test_a_small_cache_drops_what_nobody_used_for_longest(tmp_path: Path) -> None:
    rows = [row(8, 1, 2), row(8, 3, 4), row(8, 1, 2), row(8, 3, 4)]
    path = write(tmp_path / "trace.jsonl", rows)

    def found(blocks: int | None) -> list[int]:
        return cached_tokens(path, 4, blocks, block_tokens=4).tolist()

    # A whole prompt that is there leaves its last token to be worked on.
    assert found(None) == found(4) == [0, 0, 7, 7]
    # Of three blocks, the end of the oldest prompt goes first: its beginning is still found.
    assert found(3) == [0, 0, 4, 4]
    assert found(2) == [0, 0, 0, 0]
    # Only a beginning counts.
    write(path, [row(12, 1, 2, 3), row(12, 9, 2, 3), row(12, 1, 8, 3)])
    assert cached_tokens(path, 3, block_tokens=4).tolist() == [0, 0, 4]


def test_a_larger_cache_never_finds_less(tmp_path: Path) -> None:
    rows = [row(16, each % 3, 10 + each % 5, 20 + each % 7, each) for each in range(60)]
    path = write(tmp_path / "trace.jsonl", rows)
    found = [cached_tokens(path, 60, each, block_tokens=4).sum() for each in (1, 4, 8, 16, 64, 500)]
    assert found == sorted(found)
    assert found[-1] == cached_tokens(path, 60, block_tokens=4).sum()


def test_a_csv_file_may_say_it_itself(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("prompt_tokens,output_tokens,prefix_tokens\n10,5,4\n\n10,5,10\n", "utf-8")
    assert cached_tokens(path, 2).tolist() == [4, 9]
    with pytest.raises(InvalidValueError, match="names no blocks"):
        cached_tokens(path, 2, 10)
    path.write_text("prompt_tokens,output_tokens\n10,5\n", "utf-8")
    with pytest.raises(InvalidValueError, match="needs a column prefix_tokens"):
        cached_tokens(path, 2)
    path.write_text("prompt_tokens,output_tokens,prefix_tokens\n10,5,11\n", "utf-8")
    with pytest.raises(DataFileError, match="line 2"):
        cached_tokens(path, 2)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2: no JSON"),
        ("[1, 2]", "line 2: a request is an object"),
        ('{"timestamp": 1, "input_length": 5}', "line 2: no output_length"),
        ('{"timestamp": 1, "input_length": 0, "output_length": 5}', "line 2: input_length"),
        ('{"timestamp": "x", "input_length": 5, "output_length": 5}', "line 2: timestamp"),
        ('{"timestamp": NaN, "input_length": 5, "output_length": 5}', "line 2: timestamp"),
        ('{"timestamp": 1, "input_length": 5, "output_length": 5}', "line 2: hash_ids"),
        (json.dumps(row(5, 1, 2)), "line 2: 2 blocks of 512"),
    ],
)
def test_a_hole_is_named(line: str, words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "trace.jsonl", [row(600, 1, 2)])
    path.write_text(path.read_text("utf-8") + line + "\n", "utf-8")
    with pytest.raises(DataFileError, match=words):
        cached_tokens(path, len(read_trace(path)))


def test_what_is_no_number_of_blocks_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "trace.jsonl", EXAMPLE)
    for given in ({"blocks": 0}, {"blocks": 1.5}, {"block_tokens": 0}):
        with pytest.raises(InvalidValueError, match="whole number from 1"):
            cached_tokens(path, 2, **given)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="no trace"):
        cached_tokens(tmp_path / "none.jsonl", 2)
