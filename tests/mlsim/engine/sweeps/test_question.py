"""What a sweep asks, by hand: which row has which values, how far it is, what a table shows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mlsim import Engine, Hardware, Models
from mlsim.engine.sweeps import runner
from mlsim.engine.sweeps.question import DOORS, Axis, givable, label, listed, question
from mlsim.engine.sweeps.rows import Words, _column, _joined, runs_as_arrays
from mlsim.engine.sweeps.runner import ONE_BY_ONE, TOGETHER, Progress, rows_of_block, say

ASKED: dict[str, Any] = {"model": ["Llama3_8B", "GPT2"], "hardware": "H100"}
ASKED |= {"batch_size": [1, 2, 3], "prompt_tokens": [5, 7]}


def test_rows_of_a_sweep() -> None:
    """Two models by three batches by two prompts; what is computed together changes fastest."""
    asked = question("serve", ASKED)
    assert (asked.rows, asked.together) == (12, 6)
    assert [axis.name for axis in asked.axes] == [*ASKED]
    assert [axis.name for axis in asked.choices] == ["model", "hardware"]
    batch, prompt = asked.arrays
    # Rows 4 to 8: the last batch of the first model, then the second model's.
    expected = (
        (batch, [2, 2, 0, 0, 1]),
        (prompt, [0, 1, 0, 1, 0]),
        (asked.axes[0], [0, 0, 1, 1, 1]),
    )
    for axis, places in expected:
        assert asked.spread(axis, np.arange(len(axis)), 4, 9).tolist() == places
    numbers = asked.numbers(4, 9)
    assert numbers["batch_size"].tolist() == [3, 3, 1, 1, 2]
    assert numbers["prompt_tokens"].tolist() == [5, 7, 5, 7, 5]
    parts = [(part["model"].key, start, stop) for part, start, stop in asked.parts(4, 9)]
    assert parts == [("Llama3_8B", 4, 6), ("GPT2", 6, 9)]
    assert next(asked.parts(6, 12))[1:] == (6, 12)
    assert rows_of_block(asked, None) == TOGETHER == 500_000
    loaded = question("load", {"model": "GPT2", "hardware": "H100", "rate": 1.0})
    assert rows_of_block(loaded, None) == ONE_BY_ONE == 2000
    assert rows_of_block(asked, 7) == 7
    assert asked.units["prompt_tokens"] == "token/sample"
    assert asked.units["decode_throughput"] == "token/s"


def test_arguments_that_change_fastest_stand_last() -> None:
    run: dict[str, Any] = {"global_batch": [8, 16], "model": "GPT2", "hardware": "H100"}
    asked = question("train", {**run, "tokens": [1e9], "tensor_parallel": [1, 2]}, "step_time")
    assert [axis.name for axis in asked.axes] == [
        *("model", "hardware", "tensor_parallel", "global_batch", "tokens")
    ]
    assert (asked.results, asked.named) == (("step_time",), True)
    usual = question("train", {**run, "tokens": 1e9, "price": ["2 USD/h", "3 USD/h"]})
    assert usual.results[-3:] == ("training_time", "device_time", "training_cost")
    assert not usual.named
    # What is not given brings no column.
    assert "training_time" not in question("train", {**run, "tokens": None}).results
    assert "training_time" in question("train", {**run, "tokens": [None, 1e9]}).results
    usual, best = (givable(DOORS["train"], ["bound", each]) for each in ("roofline", "calibrated"))
    assert set(best) - set(usual) == {"compute_fraction", "kernel_overhead"}
    # Runs of a language model are computed together, not those of a network, of a search, or
    # with something in place of an equation.
    plain = {"model": Models.Llama3_8B, "tensor_parallel": 8}
    for more, together in (
        ({}, True),
        ({"search": False}, True),
        ({"search": True}, False),
        ({"hop_latency": "1 us"}, False),
        ({"model": Models.ResNet50}, False),
    ):
        assert runs_as_arrays(question("train", run), {**plain, **more}) is together, more


def test_values_of_an_argument() -> None:
    cases: list[tuple[str, Any, list[Any]]] = [
        ("batch_size", 8, [8]),
        ("batch_size", [[1, 2], (3,)], [1, 2, 3]),
        ("hardware", ("A100", "T4"), ["A100", "T4"]),
        ("pue", (1.1, 1.2), [(1.1, 1.2)]),
        ("pue", [1.1, (1.1, 1.2)], [1.1, (1.1, 1.2)]),
        ("groups", [3, 4], [[3, 4]]),
        ("groups", [[3, 4], [5]], [[3, 4], [5]]),
        ("batch_size", np.array([[1, 2], [3, 4]]), [1, 2, 3, 4]),
        ("hardware", np.array(["A100", "T4"]), ["A100", "T4"]),
        ("precision", {"fp8", "bf16", "fp16"}, ["bf16", "fp16", "fp8"]),
        ("price", {3, "2", 1}, [1, 3, "2"]),
        ("batch_size", iter((4, 2)), [4, 2]),
    ]
    for name, given, expected in cases:
        assert list(listed(name, given)) == expected
    assert listed("batch_size", range(3)) == range(3)
    # Numbers stay an array; words become a list.
    for kind, given in (
        (np.ndarray, [2, 3]),
        (np.ndarray, [0.5]),
        (list, ["A100"]),
        (list, [True]),
    ):
        assert type(listed("batch_size", np.array(given))) is kind
    for each, words in (
        (Models.ResNet50, "ResNet-50 v1.5"),
        (Hardware.Cloud.A100, "NVIDIA A100 SXM 80 GB"),
        ((1, 2), "(1, 2)"),
    ):
        assert label(each) == words


def test_columns_of_what_was_asked() -> None:
    """Counts are whole numbers; words are kept once, also where two devices have one name."""
    asked = question("serve", ASKED)

    def column(axis: Axis) -> Any:
        made = question("serve", ASKED)
        object.__setattr__(made, "axes", (axis,))
        return _column(made, axis, 0, len(axis))

    counted = column(Axis("batch_size", np.array([1.0, 3.0]), "sample"))
    assert (counted.dtype, counted.tolist()) == (np.int64, [1, 3])
    for rate in (
        Axis("batch_size", np.array([1.0, 2.5]), "sample"),
        Axis("memory_bandwidth", np.array([1.0, 3.0]), "B/s"),
        Axis("batch_size", np.array([1.0, 2.0**53]), "sample"),
    ):
        assert column(rate).dtype == float
    assert column(Axis("host", [True, False])).dtype == bool
    assert column(Axis("tensor_parallel", [1, 2])).dtype == np.int64
    assert column(Axis("reserve", [1, 0.5])).tolist() == [1.0, 0.5]
    mixed = column(Axis("host", [True, 2]))
    assert (mixed.codes.tolist(), mixed.labels) == ([0, 1], ["True", "2"])
    words = column(Axis("hardware", ["one", "two", "one"]))
    assert (words.codes.tolist(), words.labels) == ([0, 1, 0], ["one", "two"])
    assert asked.rows == 12


def test_words_below_one_another() -> None:
    first, second = Words(np.array([0, -1]), ["a", "b"]), Words(np.array([1, 0, -1]), ["b", "c"])
    joined = _joined([first, second])
    assert joined.labels == ["a", "b", "c"]
    assert joined.codes.tolist() == [0, -1, 2, 1, -1]
    first.put(np.array([0]), "c")
    first.put(np.array([], dtype=int), "d")
    assert (first.codes.tolist(), first.labels) == ([2, -1], ["a", "b", "c"])


def test_how_far_a_sweep_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five rows in blocks of two, a block each 2 s: two rows take 2 s, five take 6."""
    clock = iter(range(10, 100, 2))
    monkeypatch.setattr(runner.time, "perf_counter", lambda: float(next(clock)))
    seen: list[Progress] = []
    asked = {"model": "Llama3_8B", "hardware": "H100", "batch_size": range(1, 6)}
    Engine.sweep(**asked, block_rows=2, progress=seen.append)
    assert [(each.rows, each.of, each.computed, each.seconds) for each in seen] == [
        *((2, 5, 2, 2.0), (4, 5, 4, 4.0), (5, 5, 5, 6.0))
    ]
    assert seen[0].text() == "2 of 5 rows (40%), 1/s, 3 s left"
    assert Progress(2, 5, 0, 0.0).text() == "2 of 5 rows (40%), 0/s"
    # Three of four were there already: what is left is judged by what was computed.
    assert Progress(8, 10, 2, 4.0).text() == "8 of 10 rows (80%), 0/s, 4 s left"
    for each in (seen[0], seen[-1]):
        say(each)
    lines = [f"\r{each.text():<78}" for each in (seen[0], seen[-1])]
    assert capsys.readouterr().err == "".join(lines) + "\n"
    # So many blocks at one time: threads of a cluster's workers, at least one; workers of a
    # pool; eight where nobody says.
    for scheduler, workers in (
        (SimpleNamespace(nthreads=lambda: {"a": 2, "b": 3}), 5),
        (SimpleNamespace(nthreads=dict), 1),
        (SimpleNamespace(_max_workers=3), 3),
        (SimpleNamespace(), 8),
    ):
        assert runner._workers(scheduler) == workers
