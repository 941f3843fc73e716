"""Layouts that can't be: what is said, and what would do instead."""

from __future__ import annotations

from typing import Any

import pytest
from training_runs import CHIP, MIXTURE, NODE, SMALL, gpt, train

from mlsim import Engine
from mlsim.errors import InvalidValueError

BASE: dict[str, Any] = {
    "model": "Llama3_8B",
    "hardware": "DGX_A100_SuperPOD",
    "global_batch": 64,
    "tensor_parallel": 8,
}


def refused(words: str, **changes: Any) -> str:
    with pytest.raises(InvalidValueError) as caught:
        Engine.train(**{**BASE, **changes})
    message = str(caught.value)
    assert words in message
    return message


def test_sizes_multiply_to_the_devices() -> None:
    words = "the parallel sizes multiply to 24, not to devices = 16"
    message = refused(words, devices=16, data_parallel=3)
    assert "8 (tensor x pipeline x context) times data_parallel = 3" in message
    assert "Leave data_parallel out" in message


def test_copies_are_what_the_devices_leave() -> None:
    run = Engine.train(**BASE, devices=64, pipeline_parallel=2)
    assert (run.run.parallelism.data, run.devices) == (4, 64)
    assert Engine.train(**BASE).devices == 8


@pytest.mark.parametrize(("devices", "near"), [(17, "16 and 24"), (7, "8.")])
def test_devices_that_are_no_multiple(devices: int, near: str) -> None:
    message = refused(f"does not divide devices = {devices}", devices=devices)
    assert f"Near it: {near}" in message


def test_more_devices_than_there_are() -> None:
    message = refused("needs 10,000 devices", devices=10_000)
    assert "NVIDIA DGX A100 SuperPOD has 2,480" in message
    assert "data_parallel 1250" in message
    assert "Clusters" in message


def test_one_device_is_no_node() -> None:
    message = refused("needs 8 devices", hardware="H100")
    assert "NVIDIA H100 SXM 80 GB is one." in message


def test_a_node_is_no_cluster() -> None:
    message = refused("needs 16 devices", hardware="HGX_A100", data_parallel=2)
    assert "has 8" in message


@pytest.mark.parametrize(
    ("layout", "near"),
    [
        ({"pipeline_parallel": 4, "interleaved": 3}, "use one of 1, 2, 4, 8"),
        ({"pipeline_parallel": 3, "interleaved": 2}, "the 11 layers of a stage"),
        ({"pipeline_parallel": 64}, "64 stages are more than the 32 layers"),
    ],
)
def test_each_stage_has_layers_and_each_part_as_many(layout: dict[str, int], near: str) -> None:
    refused(near, **layout)


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


def test_a_stage_of_layers_of_several_kinds_is_as_full_as_its_experts() -> None:
    found = Engine.train(
        model="DeepSeek_V3",
        hardware="DGX_H100_SuperPOD",
        global_batch=64,
        pipeline_parallel=4,
        check_memory=False,
    )
    assert found.value("stage_layers") == 16


def test_parts_of_a_stage_need_a_pipeline() -> None:
    message = refused("need a pipeline", interleaved=2)
    assert "set pipeline_parallel, or leave interleaved out" in message


def test_parts_in_turn_need_whole_rounds_of_micro_batches() -> None:
    message = refused(
        "3 micro-batches must be a multiple of the 2 stages",
        pipeline_parallel=2,
        interleaved=2,
        global_batch=3,
    )
    assert "leave interleaved out" in message


@pytest.mark.parametrize(
    ("tensor", "what"), [(3, "32 attention heads"), (64, "32 attention heads")]
)
def test_tensor_parallelism_divides_the_heads(tensor: int, what: str) -> None:
    message = refused(f"does not divide the {what}", tensor_parallel=tensor)
    assert "Near it are" in message


def test_tensor_parallelism_divides_keys_and_values_or_copies_them() -> None:
    run = Engine.train(**{**BASE, "tensor_parallel": 16})
    assert run.run.parallelism.tensor == 16


def test_a_dense_model_has_no_experts() -> None:
    refused("has no experts. Leave it out", expert_parallel=2)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"expert_parallel": 3, "data_parallel": 3}, "does not divide the 8 experts"),
        ({"expert_parallel": 4, "data_parallel": 2}, "can't be laid out over"),
    ],
)
def test_experts_are_spread_over_copies(layout: dict[str, int], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        train(model=MIXTURE, global_batch=96, **layout)


@pytest.mark.parametrize(("batch", "near"), [(65, "64 and 66"), (1, "2.")])
def test_the_batch_is_divided_evenly(batch: int, near: str) -> None:
    message = refused(f"global_batch = {batch} is no multiple", global_batch=batch, data_parallel=2)
    assert "data_parallel x micro_batch = 2 x 1 = 2" in message
    assert f"Near it: {near}" in message


def test_a_micro_batch_larger_than_the_share() -> None:
    refused("= 1 x 128 = 128. Near it: 128", micro_batch=128)


def test_sequences_within_the_context() -> None:
    message = refused("131,073 tokens are longer than the context", sequence_tokens=131_073)
    assert "131,072" in message
    assert "dataclasses.replace(model, context=...)" in message


def test_sequences_are_4096_tokens_or_the_context_if_left_out() -> None:
    assert Engine.train(**BASE).run.sequence_tokens == 4096
    short = Engine.train(model="GPT2", hardware=CHIP, global_batch=1)
    assert short.run.sequence_tokens == 1024


def test_devices_share_a_sequence_evenly() -> None:
    refused("context_parallel = 3 does not divide sequences of 4,096", context_parallel=3)


def test_sequence_parallelism_is_among_tensor_devices() -> None:
    message = refused("of which there is one", tensor_parallel=1, sequence_parallel=True)
    assert "set tensor_parallel, or leave it out" in message


@pytest.mark.parametrize(
    "layout",
    [
        {"tensor_parallel": 8},
        {"pipeline_parallel": 4},
        {"tensor_parallel": 2, "pipeline_parallel": 2, "data_parallel": 8},
        {"context_parallel": 32},
    ],
)
def test_what_divides_is_answered(layout: dict[str, int]) -> None:
    run = train(**layout)
    assert run.feasible
    size = 1
    for each in layout.values():
        size *= each
    assert run.devices == size


def test_devices_left_out_are_as_many_as_the_sizes_make() -> None:
    assert train(hardware=NODE).devices == 1
    assert train(hardware=NODE, tensor_parallel=4, data_parallel=2).devices == 8


def test_interleaving_takes_what_the_layers_give() -> None:
    run = train(model=gpt(layers=12), pipeline_parallel=2, interleaved=6)
    # One other stage, in six parts; it has as many layers, and no output layer.
    other = run.value("stage_time") - run.value("output_time")
    assert run.value("bubble_time") == pytest.approx(other / 6, rel=1e-12)


def test_a_model_and_a_machine_may_be_records_or_names() -> None:
    from mlsim import Clusters, Models

    by_name = Engine.train(**BASE).value("step_time")
    records = {"model": Models.Llama3_8B, "hardware": Clusters.DGX_A100_SuperPOD}
    assert Engine.train(**{**BASE, **records}).value("step_time") == by_name
    assert Engine.train(model=SMALL, hardware="A100", global_batch=1).feasible
