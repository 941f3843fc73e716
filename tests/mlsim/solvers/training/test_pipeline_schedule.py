"""The bubble, judged by a simulation: every pass of every micro-batch, one after another.

A stage does its passes in the order of Megatron-LM's schedules, plain and interleaved
[@narayanan2021megatron, section 2.2]. A pass starts when its stage is free and what it needs
has come. Nothing here knows the equation of the bubble.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from mlsim import Engine, Training
from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError

Pass = tuple[str, int, int]  # forward or backward, the micro-batch, the part of the stage


def order_of(stage: int, stages: int, parts: int, count: int) -> list[Pass]:
    """Return the passes of a stage: forward ones first, then one of each in turn."""
    ahead = stages - stage - 1
    if parts > 1:
        ahead = 2 * ahead + (parts - 1) * stages
    ahead = min(ahead, parts * count)

    def unit(number: int) -> tuple[int, int]:
        """Return micro-batch and part: as many micro-batches as stages, part after part."""
        if parts == 1:
            return number, 0
        group, place = divmod(number, stages * parts)
        return group * stages + place % stages, place // stages

    forward = [("F", *unit(each)) for each in range(parts * count)]
    backward = [("B", index, parts - 1 - part) for _, index, part in forward]
    passes = forward[:ahead]
    for one, other in zip(forward[ahead:], backward, strict=False):
        passes += [one, other]
    return passes + backward[len(forward) - ahead :]


def simulate(
    stages: int, parts: int, count: int, forward: Sequence[float], backward: Sequence[float]
) -> float:
    """Return when the last pass ends; times are of each part of the model, in its order."""
    queues = [order_of(stage, stages, parts, count) for stage in range(stages)]
    free = [0.0] * stages
    ends: dict[Pass, float] = {}  # by forward or backward, micro-batch, and part of the model
    left = sum(map(len, queues))
    while left:
        for stage, queue in enumerate(queues):
            while queue:
                which, index, part = queue[0]
                place = part * stages + stage
                if which == "F":
                    needs = [("F", index, place - 1)] if place else []
                else:
                    later = ("B", index, place + 1)
                    needs = [("F", index, place), *([later] if place + 1 < stages * parts else [])]
                if any(need not in ends for need in needs):
                    break
                start = max([free[stage], *(ends[need] for need in needs)])
                long = (forward if which == "F" else backward)[place]
                free[stage] = ends[which, index, place] = start + long
                queue.pop(0)
        before, left = left, sum(map(len, queues))
        assert left < before, "the schedule waits for itself"
    return max(free)


def test_the_simulation_by_hand() -> None:
    """Two stages, two micro-batches, forward 1, backward 2; the last stage 2 and 4.

    Stage 1: F1 from 0 to 1, F2 from 1 to 2. Stage 2: F1 1 to 3, B1 3 to 7, F2 7 to 9, B2 9
    to 13. Stage 1: B1 7 to 9, B2 13 to 15.
    """
    assert simulate(2, 1, 2, [1, 2], [2, 4]) == 15
    assert simulate(1, 1, 3, [1], [2]) == 9
    passes = ["F0", "F1", "B0", "F2", "B1", "B2"]
    assert [f"{which}{index}" for which, index, _ in order_of(0, 2, 1, 3)] == passes
    # With two parts the last of two stages has one pass ahead for each stage.
    assert order_of(1, 2, 2, 2)[:4] == [("F", 0, 0), ("F", 1, 0), ("F", 0, 1), ("B", 0, 1)]


def test_the_equation_is_the_simulated_bubble() -> None:
    """Layers take 3 in each stage; the last one's output layer takes `output`, a third forward.

    Without parts in turn any number of micro-batches will do.
    """
    for stages, output, parts in product((2, 3, 4, 8), (0.0, 0.1, 1.0, 2.5), (1, 2, 4)):
        some = (1, 2, 3, 5, 11) if parts == 1 else ()
        for count in (*some, stages, 2 * stages, 5 * stages):
            forward = [1 / parts] * (stages * parts)
            backward = [2 / parts] * (stages * parts)
            forward[-1] += output / 3
            backward[-1] += 2 * output / 3
            took = simulate(stages, parts, count, forward, backward)
            bubble = EQUATIONS["bubble_time"](stages, 3 + output, output, parts)
            assert took == pytest.approx(count * (3 + output) + bubble, rel=1e-12)


def simulated(training: Training, **ask: Any) -> float:
    """Return work and bubble of a run, simulated with times of its stages.

    A model of twice as many layers takes longer by the layers of a stage; what is left is
    the output layer's.
    """
    run = training.run.parallelism
    model = training.model
    twice = Engine.train(model=replace(model, layers=2 * model.layers), **ask)
    names = ("forward_time", "recompute_time", "backward_time", "exchange_time")
    layers = {name: twice.value(name) - training.value(name) for name in names}
    output = {name: training.value(name) - layers[name] for name in names}
    assert output["recompute_time"] == pytest.approx(0, abs=1e-9)
    assert output["exchange_time"] == pytest.approx(0, abs=1e-9)
    places = run.pipeline * run.interleaved
    ahead = layers["forward_time"] + layers["exchange_time"] / 3
    back = layers["recompute_time"] + layers["backward_time"] + 2 * layers["exchange_time"] / 3
    forward, backward = ([each / run.interleaved] * places for each in (ahead, back))
    forward[-1] += output["forward_time"]
    backward[-1] += output["backward_time"]
    count = int(training.value("micro_batches"))
    return simulate(run.pipeline, run.interleaved, count, forward, backward)


CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Llama3_8B", {"pipeline_parallel": 4}),
    ("Llama3_8B", {"pipeline_parallel": 8}),
    ("Qwen3_8B", {"pipeline_parallel": 6}),
    ("Gemma2_9B", {"pipeline_parallel": 7}),
    ("Llama3_70B", {"pipeline_parallel": 8}),
    ("Llama3_8B", {"pipeline_parallel": 4, "interleaved": 4}),
    ("Llama3_8B", {"pipeline_parallel": 4, "interleaved": 2, "tensor_parallel": 2}),
    ("Gemma2_9B", {"pipeline_parallel": 2, "interleaved": 3, "recompute": "full"}),
)


@pytest.mark.parametrize("estimate", ["roofline", "calibrated"])
@pytest.mark.parametrize(("name", "layout"), CASES, ids=str)
def test_models_with_an_output_layer(name: str, layout: dict[str, Any], estimate: str) -> None:
    ask: dict[str, Any] = {
        "hardware": "HGX_H100",
        "global_batch": 2 * layout["pipeline_parallel"],
        "check_memory": False,
        "estimate": estimate,
        **layout,
    }
    training = Engine.train(model=name, **ask)
    found = training.value("steady_time") + training.value("bubble_time")
    assert found == pytest.approx(simulated(training, **ask), rel=1e-6)
    # As if all stages waited for one like the last, it was longer by a visible part.
    slowest = (layout["pipeline_parallel"] - 1) * training.value("stage_time")
    assert slowest / layout.get("interleaved", 1) > 1.1 * training.value("bubble_time")


def test_a_stage_is_not_shorter_than_its_output_layer() -> None:
    ask: dict[str, Any] = {
        "model": "Llama3_8B",
        "hardware": "HGX_H100",
        "global_batch": 8,
        "pipeline_parallel": 8,
        "memory_bandwidth": "1 GB/s",
        "check_memory": False,
    }
    output = Engine.train(**ask).value("output_time")
    assert Engine.train(**ask, stage_time=f"{1.1 * output} s").value("bubble_time") > 0
    with pytest.raises(InvalidValueError, match=r"stage_time = .* output_share would be 1\.1"):
        Engine.train(**ask, stage_time=f"{output / 1.1} s")
