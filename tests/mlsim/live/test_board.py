"""The board of layouts: its numbers are those of the runs, and it says why a layout is none."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from matplotlib import pyplot
from scripts import ask_node, view_of

from mlsim import Engine, live
from mlsim.errors import InvalidValueError, MlsimError

ASKED: dict[str, Any] = {
    "model": "Llama3_8B",
    "hardware": "Selene",
    "devices": 16,
    "global_batch": 24,
    "sequence_tokens": 2048,
    "check_memory": False,
}
OPTIONS = ((1, 2, 16), (1, 2, 8), (1, 2), ("none", "zero1"), ("none", "full"))
NAMES = ("tensor", "stages", "parts", "shard", "recompute")


@pytest.fixture(scope="module")
def runs() -> dict[Any, Any]:
    found = {}
    for layout in product(*OPTIONS):
        tensor, stages, parts, shard, recompute = layout
        try:
            found[layout] = Engine.train(
                **ASKED, tensor_parallel=tensor, pipeline_parallel=stages, interleaved=parts,
                shard=shard, recompute=recompute,
            )  # fmt: skip
        except MlsimError:
            continue
    return found


def test_what_it_shows_is_what_the_runs_say(runs: Any, tmp_path: Any) -> None:
    best = min((run for run in runs.values() if run.feasible), key=lambda run: run.step_time.si)
    made = live.board(runs, best=best, node=8, still=pyplot.figure())
    layouts = list(product(*OPTIONS))
    states = [dict(zip(NAMES, map(str, layout), strict=True)) for layout in layouts]
    asks = [("ask", ["known", made.data, state]) for state in states]
    for layout, found in zip(layouts, ask_node(view_of(made), asks, tmp_path), strict=True):
        assert ("refused" in found) == (layout not in runs), layout
        if run := runs.get(layout):
            assert found["kept"] == pytest.approx(run.value("memory_required"), rel=2e-3)
            assert found["step"] == pytest.approx(run.value("step_time"), rel=2e-3)
            assert found["fits"] == run.feasible
            assert found["micro"] == run.micro_batches.si


def test_it_says_why_there_is_no_such_layout(runs: Any) -> None:
    best = runs[2, 1, 1, "zero1", "full"]
    told = live.board(runs, best=best, node=8, still=pyplot.figure()).data["layouts"]
    assert told["16 2 1 none none"] == "16 GPUs don't make whole copies of 32"
    assert told["1 1 1 none none"] == "24 sequences don't divide among 16 copies"
    assert told["2 1 2 none none"] == "a single stage has one part"
    assert told["1 2 2 none none"] == "3 micro-batches don't divide among 2 stages"


def test_runs_of_another_task_are_refused(runs: Any) -> None:
    other = Engine.train(**ASKED | {"global_batch": 32, "sequence_tokens": 1024})
    with pytest.raises(InvalidValueError, match="tokens in a step"):
        live.board(runs, best=other, node=8, still=pyplot.figure())
    with pytest.raises(InvalidValueError, match="not none"):
        live.board({}, best=other, node=8, still=pyplot.figure())
