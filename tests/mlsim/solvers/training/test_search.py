"""`search=True`: the layout that it finds fits, and no layout written by hand is faster."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from refusals import answered
from training_runs import CHIP, CLUSTER, SMALL

from mlsim import Engine, Models
from mlsim.errors import InvalidValueError

MEASURED = {"estimate": "calibrated", "overlap": {"gradient": 0.5}}
CASES: tuple[dict[str, Any], ...] = (
    {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "global_batch": 64},
    {"model": "Llama2_13B", "hardware": "Selene", "devices": 32, "global_batch": 64, **MEASURED},
    {"model": SMALL, "hardware": CLUSTER, "devices": 16, "global_batch": 32},
)


def times_by_hand(case: dict[str, Any]) -> list[float]:
    """Return the times of what fits of the layouts that a person would try, and more shards."""
    found = []
    for tensor, pipeline, micro, shard, recompute in product(
        (1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4), ("none", "zero1", "zero2", "zero3"), ("none", "full")
    ):
        try:
            layout = {"tensor_parallel": tensor, "pipeline_parallel": pipeline, "shard": shard}
            layout |= {"sequence_parallel": tensor > 1, "recompute": recompute}
            run = Engine.train(**case, **layout, micro_batch=micro)
        except InvalidValueError:
            continue
        if run.feasible:
            found.append(run.value("step_time"))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["model"]))
def test_no_layout_by_hand_is_faster(case: dict[str, Any]) -> None:
    """It fits, uses all devices, and is answered the same when it is given."""
    found = Engine.train(**case, search=True)
    tried = times_by_hand(case)
    assert len(tried) > 50
    assert found.value("step_time") <= min(tried) * (1 + 1e-12)
    assert (found.feasible, found.devices) == (True, case["devices"])
    assert found.value("memory_free") >= 0
    layout = found.run.parallelism
    assert layout.tensor <= 8
    names = ("tensor", "pipeline", "data")
    again = Engine.train(
        **case,
        **{f"{name}_parallel": getattr(layout, name) for name in names},
        interleaved=layout.interleaved,
        sequence_parallel=layout.sequence,
        shard=layout.shard,
        recompute=found.run.recipe.recompute,
        micro_batch=int(found.run.micro_batch),
    )
    assert again.value("step_time") == found.value("step_time")


def test_what_is_asked_besides_is_kept() -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "HGX_H100", "global_batch": 64}
    besides = {"attention": "standard", "context_parallel": 2, "memory_capacity": "1 TB"}
    found = Engine.train(**asked, **besides, search=True, tokens=1e12, price="2 USD/h")
    assert (found.run.recipe.attention, found.run.parallelism.context) == ("standard", 2)
    hours = 1e12 / found.value("token_rate") / 3600
    assert found.training_cost.to("USD").magnitude == pytest.approx(2 * 8 * hours)
    assert found.value("memory_capacity") == 1e12
    # All devices are used if nobody says how many; and one device has one layout.
    assert found.devices == 8
    alone = Engine.train(model=SMALL, hardware=CHIP, global_batch=8, search=True)
    assert (str(alone.run.parallelism), alone.run.recipe.recompute) == ("1 device", "none")


def test_more_memory_is_never_slower() -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "HGX_A100", "global_batch": 32}
    times = [
        Engine.train(**asked, search=True, memory_capacity=size).value("step_time")
        for size in ("40 GB", "80 GB", "200 GB")
    ]
    assert times == sorted(times, reverse=True)


def test_the_search_takes_a_pipeline_where_it_is_faster() -> None:
    """256 thousand words make Gemma's output layer long; that is no reason to avoid stages."""
    ask: dict[str, Any] = {"hardware": "Eos", "devices": 64, "global_batch": 32}
    ask |= {"model": Models.Gemma2_9B, "estimate": "calibrated", "software": "kernels"}
    best = Engine.train(**ask, search=True)
    assert best.run.parallelism.pipeline == 2
    flat = Engine.train(**ask, tensor_parallel=2, sequence_parallel=True, shard="zero1",
                        recompute="none").value("step_time")  # fmt: skip
    assert best.value("step_time") < flat
    # With a bubble as long as if all stages were like the last, it would have lost.
    slowest = best.value("stage_time") / best.run.parallelism.interleaved
    assert best.value("step_time") - best.value("bubble_time") + slowest > flat


def test_bad_input_is_named() -> None:
    def search(**asked: Any) -> Any:
        given = {"model": SMALL, "hardware": CLUSTER, "global_batch": 32, "search": True}
        return Engine.train(**{**given, **asked})

    assert answered(search, "training", "search") == []
