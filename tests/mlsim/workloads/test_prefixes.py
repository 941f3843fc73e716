"""Traces whose prompts begin alike: blocks by hand, caches of any size, and holes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from refusals import answered

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.workloads.traces import cached_tokens, read_trace

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
    # A larger cache never finds less.
    rows = [row(16, each % 3, 10 + each % 5, 20 + each % 7, each) for each in range(60)]
    write(path, rows)
    sums = [cached_tokens(path, 60, each, block_tokens=4).sum() for each in (1, 4, 8, 16, 64, 500)]
    assert sums == sorted(sums)
    assert sums[-1] == cached_tokens(path, 60, block_tokens=4).sum()


def test_a_csv_file_has_the_columns_of_three_services(tmp_path: Path) -> None:
    path, packed = tmp_path / "trace.csv", tmp_path / "trace.csv.gz"
    days = ["2023-11-16 23:59:59.2500000", "2023-11-17 00:00:01.5000000"]
    rows = [f"{day},{prompt},{prompt + 1}\n" for day, prompt in zip(days, (3, 5), strict=True)]
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n\n" + "".join(rows), "utf-8")
    packed.write_bytes(gzip.compress(b"output_tokens,arrived,prompt_tokens\n4,7.5,3\n6,9.75,5\n"))
    for each in (path, packed):
        found = read_trace(each)
        assert found.arrived.tolist() == pytest.approx([0, 2.25])
        assert (found.prompt_tokens.tolist(), found.output_tokens.tolist()) == ([3, 5], [4, 6])
        assert found.words == f"2 requests of {each.name}"
        assert len(read_trace(each, most=1)) == 1
    path.write_text("num_prefill_tokens,num_decode_tokens\n2,3\n2,3\n", "utf-8")
    assert read_trace(path).arrived.tolist() == [0, 0]


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


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    def ask(line: str = "", csv: str | None = None, **given: Any) -> Any:
        if csv is not None:
            (tmp_path / "trace.csv").write_text(csv, "utf-8")
            return read_trace(tmp_path / "trace.csv")
        path = write(tmp_path / "trace.jsonl", [row(600, 1, 2)])
        path.write_text(path.read_text("utf-8") + line + "\n", "utf-8")
        return cached_tokens(path, len(read_trace(path)), **given)

    assert answered(ask, "prefixes") == []
    with pytest.raises(InvalidValueError, match="no trace"):
        cached_tokens(tmp_path / "none.jsonl", 2)
