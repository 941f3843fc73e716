"""Layouts: how devices, layers, batches and sequences are divided, and what a stage then does."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from training_runs import CHIP, NODE, SMALL, gpt, train

from mlsim import Clusters, Engine, Models

BASE: dict[str, Any] = {
    "model": "Llama3_8B",
    "hardware": "DGX_A100_SuperPOD",
    "global_batch": 64,
    "tensor_parallel": 8,
}


def test_copies_are_what_the_devices_leave_and_devices_what_the_sizes_make() -> None:
    run = Engine.train(**BASE, devices=64, pipeline_parallel=2)
    assert (run.run.parallelism.data, run.devices) == (4, 64)
    assert Engine.train(**BASE).devices == 8
    assert train(hardware=NODE).devices == 1
    for layout in (
        {"tensor_parallel": 8},
        {"pipeline_parallel": 4},
        {"tensor_parallel": 2, "pipeline_parallel": 2, "data_parallel": 8},
        {"context_parallel": 32},
    ):
        run = train(**layout)
        assert (run.feasible, run.devices) == (True, prod(layout.values()))
    # Sixteen devices share 8 heads of keys and values, which are copied.
    assert Engine.train(**{**BASE, "tensor_parallel": 16}).run.parallelism.tensor == 16


def test_stages_may_hold_unequally_many_layers() -> None:
    """Of 32 layers on three stages, two hold 11; the last holds 10 and the output layer."""
    asked = {**BASE, "global_batch": 6, "check_memory": False}
    uneven = Engine.train(**{**asked, "pipeline_parallel": 3})
    even = Engine.train(**{**asked, "pipeline_parallel": 2})
    value = uneven.value
    assert (value("stage_layers"), value("spared_layers")) == (11, 1)
    layers = [each.value("stage_time") - each.value("output_time") for each in (uneven, even)]
    assert layers[0] / 10 == pytest.approx(layers[1] / 16, rel=1e-9)
    full = layers[0] / 10 * 11
    waits = max(0, full - value("stage_time"))
    assert value("bubble_time") == pytest.approx(2 * full + value("micro_batches") * waits)
    # The first stage, which keeps most, is as full as any: 11 layers' weights and inputs.
    assert value("saved_memory") / even.value("saved_memory") > 11 / 16 - 1e-9
    assert sum(uneven.shares.values()) == pytest.approx(1)
    # Layers of several kinds: 61 on four stages are 16 in the fullest.
    kinds = {"model": "DeepSeek_V3", "hardware": "DGX_H100_SuperPOD", "pipeline_parallel": 4}
    found = Engine.train(**kinds, global_batch=64, check_memory=False)
    assert found.value("stage_layers") == 16
    # In six parts each, a stage waits for a sixth of another, which has no output layer.
    run = train(model=gpt(layers=12), pipeline_parallel=2, interleaved=6)
    other = run.value("stage_time") - run.value("output_time")
    assert run.value("bubble_time") == pytest.approx(other / 6, rel=1e-12)


def test_what_is_left_out_has_a_usual_value_and_records_are_as_good_as_names() -> None:
    run = Engine.train(**BASE)
    assert run.run.sequence_tokens == 4096  # or the context, if that is shorter
    assert Engine.train(model="GPT2", hardware=CHIP, global_batch=1).run.sequence_tokens == 1024
    records = {"model": Models.Llama3_8B, "hardware": Clusters.DGX_A100_SuperPOD}
    assert Engine.train(**{**BASE, **records}).value("step_time") == run.value("step_time")
    assert Engine.train(model=SMALL, hardware="A100", global_batch=1).feasible
