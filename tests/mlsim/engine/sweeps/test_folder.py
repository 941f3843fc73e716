"""Sweeps in a folder: whole blocks only, the same rows, and on from where it was stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import pytest

from mlsim import Engine, Models
from mlsim.engine.sweeps import runner
from mlsim.engine.sweeps.runner import _digest
from mlsim.errors import InvalidValueError, MissingLibraryError, UnfinishedError
from mlsim.values import quantity

ASKED: dict[str, Any] = {"model": "Llama3_8B", "hardware": ["H100", "L40S"]}
ASKED |= {"tensor_parallel": [1, 2], "batch_size": [1, 8, 512], "prompt_tokens": [128, 200_000]}
ROWS, BLOCK = 24, 5


def blocks(path: Path) -> dict[str, float]:
    return {each.name: each.stat().st_mtime_ns for each in path.glob("block-*.parquet")}


@pytest.fixture
def plans(tmp_path: Path) -> Path:
    path = tmp_path / "plans"
    Engine.sweep(**ASKED, out=path, block_rows=BLOCK)
    return path


def test_a_folder_holds_the_same_rows_as_a_table(plans: Path) -> None:
    table = Engine.sweep(**ASKED)
    found = Engine.sweep(**ASKED, out=plans)
    assert (found.rows, found.blocks) == (ROWS, 5)
    assert "24 rows in 5 file(s)" in str(found)
    read = pandas.read_parquet(plans)
    assert found.units == table.attrs["units"]
    assert list(read.columns) == list(table.columns) == list(found.columns)
    for name in table.columns:
        if isinstance(table[name].dtype, pandas.CategoricalDtype):
            assert read[name].tolist() == table[name].tolist()
        else:
            pandas.testing.assert_series_equal(read[name], table[name], rtol=1e-14)


def test_pandas_reads_a_folder(plans: Path, tmp_path: Path) -> None:
    runs = [("feasible", "==", True)]
    some = pandas.read_parquet(plans, columns=["batch_size", "reason"], filters=runs)
    table = Engine.sweep(**ASKED)
    assert some.batch_size.tolist() == table[table.feasible].batch_size.tolist()
    one = Engine.sweep(model="Llama3_8B", hardware="H100", out=tmp_path / "one")
    assert (one.rows, one.blocks, one.columns[:2]) == (1, 1, ("model", "hardware"))


def test_what_is_there_is_not_computed_again(plans: Path) -> None:
    """What a kill left is cleared; units stand in the files."""
    from pyarrow import parquet

    before, seen = blocks(plans), []
    left = plans / "._block-1-killed"
    left.write_bytes(b"half of it")
    Engine.sweep(**ASKED, out=plans, progress=seen.append)
    assert blocks(plans) == before
    assert [(each.rows, each.computed) for each in seen] == [(ROWS, 0)]
    assert not left.exists()
    schema = parquet.read_schema(plans / "block-00000000.parquet")
    assert schema.field("time_to_first_token").metadata == {b"unit": b"s"}


def test_a_damaged_block_is_computed_again(plans: Path, tmp_path: Path) -> None:
    """And no other: one that is gone, empty, cut, flipped, mere text, or of another model."""
    whole = pandas.read_parquet(plans)
    victim = plans / "block-00000002.parquet"
    other = tmp_path / "other"
    Engine.sweep(**{**ASKED, "model": "Llama3_70B"}, out=other, block_rows=BLOCK)
    data = victim.read_bytes()
    flipped = data[:40] + bytes([data[40] ^ 255]) + data[41:]
    for damage in (None, b"", data[:-50], flipped, b"PAR1", (other / victim.name).read_bytes()):
        victim.unlink()
        if damage is not None:
            victim.write_bytes(damage)
        before, seen = blocks(plans), []
        Engine.sweep(**ASKED, out=plans, progress=seen.append)
        assert seen[-1].computed == BLOCK
        after = blocks(plans)
        assert {name for name in after if after[name] != before.get(name)} == {victim.name}
        pandas.testing.assert_frame_equal(pandas.read_parquet(plans), whole)


def test_another_question_or_something_else_in_a_folder_is_refused(
    plans: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    before = blocks(plans)
    for change, words in (
        ({"batch_size": [1, 8, 513]}, "another sweep: batch_size differ"),
        ({"precision": "fp8"}, "another sweep: precision differ"),
        ({"model": Models.Llama3_70B}, "another sweep: model differ"),
        ({"results": ["cache_memory"]}, "another sweep: results differ"),
        ({"block_rows": 6}, "holds blocks of 5 rows, not of 6"),
        ({"out": mine}, "is no empty folder"),
        ({"out": mine / "thesis.txt"}, "is no empty folder"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            Engine.sweep(**{**ASKED, "out": plans, **change})
    assert blocks(plans) == before
    assert [each.name for each in mine.iterdir()] == ["thesis.txt"]
    with pytest.raises(UnfinishedError, match="can't be written"):
        Engine.sweep(**ASKED, out=mine / "thesis.txt" / "plans")
    for text in ("", "[1]", json.dumps({"parts": 1})):
        (plans / runner.NOTE).write_text(text)
        with pytest.raises(InvalidValueError, match="can't be understood"):
            Engine.sweep(**ASKED, out=plans)


def test_what_tells_a_value_from_another() -> None:
    ours = type("Ours", (SimpleNamespace,), {"__module__": "mlsim.ours"})
    theirs = type("Ours", (SimpleNamespace,), {"__module__": "mlsim_ours"})
    alike: list[tuple[Any, ...]] = [
        (3, 5), ("3", "5"), (3.0, 3), (True, 1), (None, "None"), ([2, 3], [3, 2], [2, [3]], [[2], 3], [[2, 3]]),
        ({"a": 2}, {"a": 3}, {"b": 2}), (np.array([2, 3]), np.array([2.0, 3.0])),
        (quantity(2, "GB/s"), quantity(3, "GB/s"), quantity(2, "MB/s")),
        (Path("a"), Path("b")), (date(2026, 5, 2), date(2026, 5, 3)),
        (Models.Llama3_8B, replace(Models.Llama3_8B, layers=33), replace(Models.Llama3_8B, name="x")),
        (ours(a=2), ours(a=3), ours(b=2), ours(a=2, b=2)),
    ]  # fmt: skip
    for values in alike:
        found = [_digest("x", each) for each in values]
        assert len(set(found)) == len(values), values
        assert found == [_digest("y", each) for each in values]
        assert {len(each) for each in found} == {32}
    assert _digest("x", {"b": 2, "a": 3}) == _digest("x", {"a": 3, "b": 2})
    assert _digest("x", ours(b=2, a=3)) == _digest("x", ours(a=3, b=2))
    for each in (print, object(), int, theirs(a=2)):
        with pytest.raises(InvalidValueError, match=r"^x = .* can't be told from others"):
            _digest("x", [each])


def test_a_full_disk_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet

    write, path = parquet.write_table, tmp_path / "plans"
    written = []

    def full(table: Any, where: Any, **options: Any) -> None:
        if len(written) == 2:
            Path(where).write_bytes(b"half of it")
            raise OSError(28, "No space left on device")
        written.append(where)
        write(table, where, **options)

    monkeypatch.setattr(parquet, "write_table", full)
    with pytest.raises(UnfinishedError, match="No space left on device") as error:
        Engine.sweep(**ASKED, out=path, block_rows=BLOCK)
    assert f"10 of 24 rows are kept in {path}; ask again to go on." in str(error.value)
    assert {each.name for each in path.iterdir()} == {runner.NOTE, *blocks(path)}
    assert [*sorted(blocks(path))] == ["block-00000000.parquet", "block-00000001.parquet"]
    monkeypatch.setattr(parquet, "write_table", write)
    seen = []
    assert Engine.sweep(**ASKED, out=path, progress=seen.append).rows == ROWS
    assert (seen[0].rows, seen[-1].computed) == (10, 14)


KILLED = """
import sys
from mlsim import Engine
Engine.sweep(model="Llama3_8B", hardware="H100", batch_size=[1, 2])
print({"distributed", "dask"} & set(sys.modules), flush=True)
Engine.sweep(model="Llama3_8B", hardware="H100", rate=[1 + n / 1000 for n in range(4000)],
             requests=50, out=sys.argv[1], block_rows=2)
"""


def test_a_sweep_that_was_killed_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "plans"
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100", "requests": 50}
    asked["rate"] = [1 + n / 1000 for n in range(4000)]
    command = [sys.executable, "-c", KILLED, str(path)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while len(blocks(path)) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    # A table needs no Dask.
    assert run.communicate()[0] == "set()\n"
    there = blocks(path)
    assert 3 <= len(there) < 2000
    left = path / "._block-1-killed"
    left.write_bytes(b"half of it")

    class EnoughError(Exception):
        pass

    def stop(progress: Any) -> None:
        if progress.computed >= 6:
            raise EnoughError

    with pytest.raises(EnoughError):
        Engine.sweep(**asked, out=path, progress=stop)
    after = blocks(path)
    assert len(after) == len(there) + 3
    assert {name: after[name] for name in there} == there
    # What is read of an unfinished folder is whole rows.
    assert len(pandas.read_parquet(path)) == 2 * len(after)


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_processes_write_the_same_folder_until_one_is_killed(tmp_path: Path, plans: Path) -> None:
    path = tmp_path / "three"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = Engine.sweep(**ASKED, out=tmp_path / "two", scheduler=pool, block_rows=BLOCK)
        pool.submit(die)
        with pytest.raises(UnfinishedError, match=r"of 24 rows are kept in .*; ask again to go on"):
            Engine.sweep(**ASKED, out=path, scheduler=pool, block_rows=BLOCK)
    pandas.testing.assert_frame_equal(
        pandas.read_parquet(found.path), pandas.read_parquet(plans), check_like=True
    )
    assert Engine.sweep(**ASKED, out=path).rows == ROWS


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_cluster_of_dask_writes_the_same_folder(tmp_path: Path, plans: Path) -> None:
    distributed = pytest.importorskip("distributed")
    size = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    local = distributed.LocalCluster(**size, dashboard_address=None)
    with local as cluster, distributed.Client(cluster) as client:
        found = Engine.sweep(**ASKED, out=tmp_path / "two", scheduler=client, block_rows=BLOCK)
        table = Engine.sweep(**ASKED, scheduler=client, block_rows=BLOCK)
    assert pandas.read_parquet(found.path).reason.tolist() == table.reason.tolist()
    pandas.testing.assert_frame_equal(
        pandas.read_parquet(found.path), pandas.read_parquet(plans), check_like=True
    )


def test_a_missing_library_and_what_can_not_be_told_apart_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Engine.serve(model="Llama3_8B", hardware="H100")
    asked = {"work": work, "grid": "Sweden", "data_centre": "Google", "host": False}
    with pytest.raises(InvalidValueError, match="can't be told from others of its kind"):
        Engine.sweep(**asked, out=tmp_path / "plans")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingLibraryError, match=r"a sweep in a folder needs pyarrow.*\[sweeps\]"):
        Engine.sweep(**ASKED, out=tmp_path / "plans")
