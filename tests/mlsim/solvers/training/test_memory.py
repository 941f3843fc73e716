"""What training holds: the formulas of ZeRO and of Korthikanti et al., by hand."""

from __future__ import annotations

from typing import Any

from training_runs import HEADS, LAYERS, MIXTURE, SMALL, TOKENS, WIDE, WORDS, exactly, gpt, train

from mlsim import Training
from mlsim.workloads.blocks import Attention, FeedForward

MICRO = 2
# s b h of one micro-batch, in elements; 5 a s / h of the formulas.
SBH = TOKENS * MICRO * WIDE
SCORES = 5 * HEADS * TOKENS / WIDE
STATE = ("weight_memory", "gradient_memory", "optimizer_memory")
PARAMETERS = SMALL.parameter_count


def kept(**changes: Any) -> Training:
    """Train as Korthikanti et al. did: scores in memory, dropout, micro-batches of 2."""
    return train(**{"attention": "standard", "dropout": True, "micro_batch": MICRO, **changes})


def of_a_layer(model: dict[str, Any] | None = None, **changes: Any) -> float:
    """Return bytes kept for each layer, over s b h: the difference of four more layers."""
    few, many = (
        kept(model=gpt(layers=layers, **(model or {})), **changes).value("saved_memory")
        for layers in (4, 8)
    )
    return (many - few) / 4 / SBH


# ---- activations ------------------------------------------------------------------------


def test_a_layer_keeps_34_bytes_and_its_scores() -> None:
    """Tensors divide all but ten of the 34, sequences all; a recomputed layer keeps its input."""
    for t in (1, 2, 4, 8):
        split = {"tensor_parallel": t}
        assert of_a_layer(**split) == exactly(10 + 24 / t + SCORES / t)
        if t > 1:
            found = of_a_layer(**split, sequence_parallel=True)
            assert found == exactly((34 + SCORES) / t)
        assert of_a_layer(**split, recompute="full") == exactly(2)
    for layout, bytes_ in (
        *(({}, 34), ({"tensor_parallel": 4}, 10 + 24 / 4)),
        ({"tensor_parallel": 4, "sequence_parallel": True}, 34 / 4),
    ):
        assert of_a_layer(recompute="selective", **layout) == exactly(bytes_)
    assert of_a_layer(attention="flash") == exactly(34)
    # Two masks of the block outputs; of the scores, mask and dropped copy.
    assert of_a_layer(dropout=False) == exactly(32 + 2 * HEADS * TOKENS / WIDE)
    # Devices that share a sequence keep their part of it.
    assert of_a_layer(attention="flash", context_parallel=4) == exactly(34 / 4)


def test_another_architecture_keeps_other_bytes() -> None:
    # Shared keys and values are a quarter of 4 bytes a feature.
    attention = {"attention": Attention(heads=8, kv_heads=2, head_size=8)}
    assert of_a_layer(attention, attention="flash") == exactly(34 - 3)
    # Of 34 bytes, 16 are those of the 4 h inner features; now two branches and a product.
    network = {"feed_forward": FeedForward(size=3 * WIDE, gated=True)}
    assert of_a_layer(network, attention="flash") == exactly(34 - 16 + 2 * 3 * 3)


def test_what_is_computed_again_is_alive_meanwhile() -> None:
    for recompute, alive in (("full", 34 + SCORES), ("selective", SCORES), ("none", 0)):
        assert kept(recompute=recompute).value("working_memory") == exactly(SBH * alive)


def test_the_first_stage_keeps_a_micro_batch_for_each_stage() -> None:
    """p micro-batches of 8/p layers: as much as all layers; parts in turn keep more of them."""
    for p, v in ((2, 1), (4, 1), (2, 2), (2, 4), (4, 2)):
        run = kept(model=gpt(layers=8), pipeline_parallel=p, interleaved=v)
        factor = 8 * (1 + (p - 1) / (p * v)) if v > 1 else 8
        assert run.value("activation_memory") == exactly(SBH * (34 + SCORES) * factor)
        assert v > 1 or run.value("in_flight") == p
    # No more are kept than there are.
    run = kept(model=gpt(layers=8), pipeline_parallel=4, global_batch=2 * MICRO)
    assert run.value("in_flight") == 2
    assert run.value("activation_memory") == exactly(2 * 2 * SBH * (34 + SCORES))


def test_output_keeps_its_input_and_the_loss_in_32_bits() -> None:
    alone = kept(model=gpt(layers=4)).value("saved_memory") - 4 * SBH * of_a_layer()
    assert alone == exactly(TOKENS * MICRO * (2 * WIDE + 4 * WORDS))
    found = [kept(micro_batch=size, global_batch=8).value("saved_memory") for size in (1, 2, 4, 8)]
    assert found == [exactly(found[0] * size) for size in (1, 2, 4, 8)]


# ---- weights, gradients, state ----------------------------------------------------------


def test_sixteen_bytes_for_each_parameter() -> None:
    """Eighteen with gradients in 32 bits; and in 32 bits there is no copy of the weights."""
    for given, each in (
        *(({}, [2, 2, 12]), ({"gradients": "fp32"}, [2, 4, 12])),
        ({"precision": "fp32"}, [4, 4, 8]),
    ):
        run = train(**given)
        assert [run.value(name) / PARAMETERS for name in STATE] == each
        assert run.value("state_memory") == sum(each) * PARAMETERS


def test_zero_divides_as_its_paper_says() -> None:
    for n in (1, 2, 8, 32):
        for shard, bytes_ in (
            *(("none", 2 + 2 + 12), ("zero1", 2 + 2 + 12 / n)),
            *(("zero2", 2 + (2 + 12) / n), ("zero3", (2 + 2 + 12) / n)),
        ):
            found = train(shard=shard, data_parallel=n).value("state_memory")
            assert found == exactly(bytes_ * PARAMETERS), (shard, n)
    # Devices that share sequences divide state as copies do.
    shared = train(shard="zero1", data_parallel=2, context_parallel=4).value("state_memory")
    assert shared == exactly((2 + 2 + 12 / 8) * PARAMETERS)


def test_devices_divide_the_parameters() -> None:
    norms = (2 * LAYERS + 1) * WIDE
    for t in (2, 8):
        found = train(tensor_parallel=t).value("device_parameters")
        assert found == exactly((PARAMETERS - norms) / t + norms)
    # A stage holds its layers and one table.
    for p in (2, 4):
        found = train(pipeline_parallel=p).value("device_parameters")
        layers = LAYERS * (12 * WIDE**2 + 2 * WIDE) / p
        assert found == exactly(layers + WORDS * WIDE + WIDE / p)


def test_experts_are_divided_among_their_groups() -> None:
    expert = LAYERS * 8 * 8 * WIDE**2
    asked: dict[str, Any] = {"model": MIXTURE, "data_parallel": 8}
    alone, spread = (train(**asked, expert_parallel=groups) for groups in (1, 4))
    lost = alone.value("device_parameters") - spread.value("device_parameters")
    assert lost == exactly(expert * 3 / 4)
    # Eight copies of what is dense; two of each quarter of the experts.
    dense = MIXTURE.parameter_count - expert
    run = train(**asked, expert_parallel=4, shard="zero1")
    assert run.value("optimizer_memory") == exactly(12 * (dense / 8 + expert / 4 / 2))


def test_gathered_weights_need_room() -> None:
    """Of two layers at a time: the one that computes, and the next; each of an equal part."""
    free, run = (
        train(data_parallel=8, shard=shard, attention="flash").value("activation_memory")
        for shard in ("zero2", "zero3")
    )
    assert run - free == exactly(2 * 2 * PARAMETERS / LAYERS)


# ---- what fits --------------------------------------------------------------------------


def test_required_is_the_sum_and_free_is_the_rest() -> None:
    assert train().value("usable_memory") == exactly(0.9e15)
    run = train(model=gpt(), reserve=0.25)
    needed = run.value("state_memory") + run.value("activation_memory")
    assert run.value("memory_required") == exactly(needed)
    assert run.value("memory_free") == exactly(0.75e15 - needed)
    found = {name: value.to("B").magnitude for name, value in run.memory.items()}
    assert set(found) >= {*STATE, "activation_memory", "memory_free"}
    assert all(found[name] == exactly(run.value(name)) for name in found)
