"""What training holds: the formulas of ZeRO and of Korthikanti et al., by hand."""

from __future__ import annotations

from typing import Any

import pytest
from training_runs import HEADS, LAYERS, MIXTURE, SMALL, TOKENS, WIDE, WORDS, gpt, train

from mlsim import Engine, Training
from mlsim.workloads.blocks import Attention, FeedForward

EXACT = 1e-12
MICRO = 2
# s b h of one micro-batch, in elements; 5 a s / h of the formulas.
SBH = TOKENS * MICRO * WIDE
SCORES = 5 * HEADS * TOKENS / WIDE
STATE = ("weight_memory", "gradient_memory", "optimizer_memory")
PARAMETERS = SMALL.parameter_count


def exactly(value: float) -> object:
    return pytest.approx(value, rel=EXACT)


def kept(**changes: Any) -> Training:
    """Train as Korthikanti et al. did: scores in memory, dropout, micro-batches of 2."""
    return train(**{"attention": "standard", "dropout": True, "micro_batch": MICRO, **changes})


def of_a_layer(**changes: Any) -> float:
    """Return bytes kept for each layer: the difference that four more layers make."""
    few, many = (
        kept(model=gpt(layers=layers), **changes).value("saved_memory") for layers in (4, 8)
    )
    return (many - few) / 4


# ---- activations ------------------------------------------------------------------------


def test_a_layer_keeps_34_bytes_and_its_scores() -> None:
    assert of_a_layer() == exactly(SBH * (34 + SCORES))


@pytest.mark.parametrize("t", [2, 4, 8])
def test_tensor_parallelism_divides_all_but_ten(t: int) -> None:
    found = of_a_layer(tensor_parallel=t)
    assert found == exactly(SBH * (10 + 24 / t + SCORES / t))


@pytest.mark.parametrize("t", [2, 4, 8])
def test_sequence_parallelism_divides_all(t: int) -> None:
    found = of_a_layer(tensor_parallel=t, sequence_parallel=True)
    assert found == exactly(SBH * (34 + SCORES) / t)


@pytest.mark.parametrize(
    ("layout", "bytes_"),
    [
        ({}, 34),
        ({"tensor_parallel": 4}, 10 + 24 / 4),
        ({"tensor_parallel": 4, "sequence_parallel": True}, 34 / 4),
    ],
)
def test_selective_recomputation_keeps_no_scores(layout: dict[str, Any], bytes_: float) -> None:
    assert of_a_layer(recompute="selective", **layout) == exactly(SBH * bytes_)


@pytest.mark.parametrize("t", [1, 8])
def test_full_recomputation_keeps_the_input_of_a_layer(t: int) -> None:
    assert of_a_layer(recompute="full", tensor_parallel=t) == exactly(2 * SBH)


def test_while_a_layer_is_computed_again_all_of_it_is_alive() -> None:
    found = kept(recompute="full").value("working_memory")
    assert found == exactly(SBH * (34 + SCORES))


def test_while_scores_are_computed_again_those_of_a_layer_are_alive() -> None:
    assert kept(recompute="selective").value("working_memory") == exactly(SBH * SCORES)
    assert kept(recompute="none").value("working_memory") == 0


def test_flash_attention_writes_no_scores() -> None:
    assert of_a_layer(attention="flash") == exactly(34 * SBH)


def test_without_dropout_there_are_no_masks() -> None:
    # Two masks of the block outputs; of the scores, mask and dropped copy.
    found = of_a_layer(dropout=False)
    assert found == exactly(SBH * (32 + 2 * HEADS * TOKENS / WIDE))


def test_shared_keys_and_values_are_kept_once() -> None:
    attention = Attention(heads=8, kv_heads=2, head_size=8)
    few, many = (
        kept(model=gpt(layers=layers, attention=attention), attention="flash").value("saved_memory")
        for layers in (4, 8)
    )
    # Keys and values are a quarter of 4 bytes a feature.
    assert (many - few) / 4 == exactly(SBH * (34 - 3))


def test_a_gated_network_keeps_both_branches() -> None:
    size = 3 * WIDE
    network = FeedForward(size=size, gated=True)
    few, many = (
        kept(model=gpt(layers=layers, feed_forward=network), attention="flash").value(
            "saved_memory"
        )
        for layers in (4, 8)
    )
    # Of 34 bytes, 16 are those of the 4 h inner features; now two branches and a product.
    assert (many - few) / 4 == exactly(SBH * (34 - 16 + 2 * 3 * 3))


def test_devices_that_share_a_sequence_keep_their_part() -> None:
    whole, shared = (of_a_layer(attention="flash", context_parallel=c) for c in (1, 4))
    assert shared == exactly(whole / 4)


@pytest.mark.parametrize("p", [2, 4])
def test_the_first_stage_keeps_a_micro_batch_for_each_stage(p: int) -> None:
    run = kept(model=gpt(layers=8), pipeline_parallel=p)
    assert run.value("in_flight") == p
    # p micro-batches of 8/p layers: as much as all layers.
    assert run.value("activation_memory") == exactly(8 * SBH * (34 + SCORES))


@pytest.mark.parametrize(("p", "v"), [(2, 2), (2, 4), (4, 2)])
def test_parts_in_turn_keep_more(p: int, v: int) -> None:
    run = kept(model=gpt(layers=8), pipeline_parallel=p, interleaved=v)
    factor = 8 * (1 + (p - 1) / (p * v))
    assert run.value("activation_memory") == exactly(SBH * (34 + SCORES) * factor)


def test_no_more_are_kept_than_there_are() -> None:
    run = kept(model=gpt(layers=8), pipeline_parallel=4, global_batch=2 * MICRO)
    assert run.value("in_flight") == 2
    assert run.value("activation_memory") == exactly(2 * 2 * SBH * (34 + SCORES))


def test_output_keeps_its_input_and_the_loss_in_32_bits() -> None:
    alone = kept(model=gpt(layers=4)).value("saved_memory") - 4 * of_a_layer()
    assert alone == exactly(TOKENS * MICRO * (2 * WIDE + 4 * WORDS))


# ---- weights, gradients, state ----------------------------------------------------------


def test_sixteen_bytes_for_each_parameter() -> None:
    run = train()
    assert [run.value(name) / PARAMETERS for name in STATE] == [2, 2, 12]
    assert run.value("state_memory") == 16 * PARAMETERS


def test_eighteen_with_gradients_in_32_bits() -> None:
    assert train(gradients="fp32").value("state_memory") == 18 * PARAMETERS


def test_in_32_bits_there_is_no_copy_of_the_weights() -> None:
    run = train(precision="fp32")
    assert [run.value(name) / PARAMETERS for name in STATE] == [4, 4, 8]


@pytest.mark.parametrize("n", [1, 2, 8, 32])
@pytest.mark.parametrize(
    ("shard", "formula"),
    [
        ("none", lambda n: 2 + 2 + 12),
        ("zero1", lambda n: 2 + 2 + 12 / n),
        ("zero2", lambda n: 2 + (2 + 12) / n),
        ("zero3", lambda n: (2 + 2 + 12) / n),
    ],
)
def test_zero_divides_as_its_paper_says(shard: str, formula: Any, n: int) -> None:
    run = train(shard=shard, data_parallel=n)
    assert run.value("state_memory") == exactly(formula(n) * PARAMETERS)


def test_devices_that_share_sequences_divide_state_as_copies_do() -> None:
    copies, shared = (
        train(shard="zero1", data_parallel=data, context_parallel=context).value("state_memory")
        for data, context in ((8, 1), (2, 4))
    )
    assert copies == shared


@pytest.mark.parametrize("t", [2, 8])
def test_tensor_parallelism_divides_the_matrices(t: int) -> None:
    norms = (2 * LAYERS + 1) * WIDE
    found = train(tensor_parallel=t).value("device_parameters")
    assert found == exactly((PARAMETERS - norms) / t + norms)


@pytest.mark.parametrize("p", [2, 4])
def test_a_stage_holds_its_layers_and_one_table(p: int) -> None:
    found = train(pipeline_parallel=p).value("device_parameters")
    layers = LAYERS * (12 * WIDE**2 + 2 * WIDE) / p
    assert found == exactly(layers + WORDS * WIDE + WIDE / p)


def test_experts_are_divided_among_their_groups() -> None:
    expert = LAYERS * 8 * 8 * WIDE**2
    alone = train(model=MIXTURE, data_parallel=8)
    spread = train(model=MIXTURE, data_parallel=8, expert_parallel=4)
    lost = alone.value("device_parameters") - spread.value("device_parameters")
    assert lost == exactly(expert * 3 / 4)


def test_state_of_experts_is_divided_among_those_that_hold_them() -> None:
    expert = LAYERS * 8 * 8 * WIDE**2
    dense = MIXTURE.parameter_count - expert
    run = train(model=MIXTURE, data_parallel=8, expert_parallel=4, shard="zero1")
    # Eight copies of what is dense; two of each quarter of the experts.
    assert run.value("optimizer_memory") == exactly(12 * (dense / 8 + expert / 4 / 2))


def test_gathered_weights_need_room() -> None:
    free = train(data_parallel=8, shard="zero2", attention="flash").value("activation_memory")
    run = train(data_parallel=8, shard="zero3", attention="flash")
    layer = 2 * 12 * WIDE**2
    assert run.value("activation_memory") - free >= layer


# ---- what fits --------------------------------------------------------------------------


def test_required_is_the_sum_and_free_is_the_rest() -> None:
    run = train(model=gpt(), reserve=0.25)
    needed = run.value("state_memory") + run.value("activation_memory")
    assert run.value("memory_required") == exactly(needed)
    assert run.value("usable_memory") == exactly(0.75e15)
    assert run.value("memory_free") == exactly(0.75e15 - needed)
    assert run.feasible


def test_memory_holds_quantities_with_units() -> None:
    run = train()
    found = {name: value.to("B").magnitude for name, value in run.memory.items()}
    assert set(found) >= {*STATE, "activation_memory", "memory_free"}
    assert all(found[name] == exactly(run.value(name)) for name in found)


@pytest.mark.parametrize(
    "better",
    [
        {"recompute": "selective"},
        {"recompute": "full"},
        {"sequence_parallel": True},
        {"shard": "zero1"},
        {"shard": "zero2"},
        {"shard": "zero3"},
        {"attention": "flash"},
    ],
)
def test_what_saves_memory_never_takes_more(better: dict[str, Any]) -> None:
    arguments = {
        "model": "Llama3_8B",
        "hardware": "Selene",
        "devices": 64,
        "global_batch": 64,
        "tensor_parallel": 4,
        "attention": "standard",
        "recompute": "none",
    }
    worse, saved = (
        Engine.train(**{**arguments, **change}).value("memory_required") for change in ({}, better)
    )
    assert saved < worse


def test_more_in_a_micro_batch_takes_more() -> None:
    found = [kept(micro_batch=size, global_batch=8).value("saved_memory") for size in (1, 2, 4, 8)]
    assert found == [exactly(found[0] * size) for size in (1, 2, 4, 8)]
