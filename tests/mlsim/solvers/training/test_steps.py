"""A step of training: layouts, work counted by hand, the bubble, and how its time is made up."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import pytest
from own_chips import chip
from training_runs import (
    CHIP,
    HEADS,
    LAYERS,
    MIXTURE,
    NODE,
    SMALL,
    TOKENS,
    WIDE,
    WORDS,
    exactly,
    gpt,
    spent,
    train,
)

from mlsim import Clusters, Engine, Models
from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError
from mlsim.workloads.blocks import Attention

PARTS = (
    *("forward", "recompute", "backward", "exchange", "bubble", "pipeline", "gradients"),
    "optimizer",
)
LAYOUTS: tuple[dict[str, Any], ...] = (
    {},
    {"tensor_parallel": 4, "sequence_parallel": True, "data_parallel": 2, "recompute": "full"},
    {"pipeline_parallel": 2, "interleaved": 2, "tensor_parallel": 8, "attention": "standard"},
    {"context_parallel": 4, "shard": "zero3", "overlap": 0.5},
)


# ---- the pipeline -----------------------------------------------------------------------


def test_bubble_is_p_less_one_of_m_times_v() -> None:
    """The last stage waits for p - 1 others, which have no output layer, in v parts each.

    Two stages and two micro-batches, forward 1 and backward 2, in the last stage 2 and 4. It starts
    at 1 and does F1 to 3, B1 to 7, F2 to 9, B2 to 13; the first does B2 from 13 to 15, so that three
    of 15 are idle.
    """
    assert EQUATIONS["bubble_time"](2, 2 + 4, 3, 1) == 15 - 2 * (2 + 4)
    for p, v, batch in ((1, 1, 8), (2, 1, 8), (4, 1, 8), (2, 2, 8), (4, 2, 32), (2, 4, 64)):
        layout = {"pipeline_parallel": p, "interleaved": v, "global_batch": batch}
        run = train(model=gpt(layers=8), overlap=1.0, **layout)
        m = run.value("micro_batches")
        assert m == batch
        others = m * (run.value("stage_time") - run.value("output_time"))
        assert run.value("bubble_time") / others == exactly((p - 1) / (m * v))
    assert train(global_batch=96, data_parallel=4, micro_batch=3).value("micro_batches") == 8


def test_the_output_layer_and_its_loss_by_hand() -> None:
    """A product and its two gradients, which also add to 32,768 gradients; a loss both ways.

    With full recomputation the layers' forward pass takes its time again, all but these and the
    embedding.
    """
    tokens = 128
    run = train(pipeline_parallel=4)
    work = 2 * tokens * WIDE * WORDS / 100e12
    product = max(work, 2 * (WIDE * WORDS + tokens * (WIDE + WORDS)) / 1e12)
    # The gradient of the weights reads activations, and reads and writes gradients of 2 bytes.
    weights = max(work, 2 * (tokens * (WIDE + WORDS) + 2 * WIDE * WORDS) / 1e12)
    loss = 3 * WORDS * 2 * tokens / 1e12
    assert run.value("output_time") == exactly(2 * product + weights + 2 * loss)
    assert run.value("output_share") == exactly(run.value("output_time") / run.value("stage_time"))
    plain, again = (train(recompute=kind) for kind in ("none", "full"))
    assert plain.value("output_time") == exactly(run.value("output_time"))
    assert plain.value("recompute_time") == 0
    assert again.value("forward_time") == plain.value("forward_time")
    table = 2 * WIDE * 2 * tokens / 1e12
    expected = plain.value("forward_time") - product - loss - table
    assert again.value("recompute_time") == pytest.approx(expected, rel=1e-9)


# ---- the sum ----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_parts_add_up_to_the_step(layout: dict[str, Any]) -> None:
    """And factors lead from the peak to it; whatever moves more is slower."""
    run = train(**layout)
    step = run.value("step_time")
    found = {name: time.to("s").magnitude for name, time in run.breakdown.items()}
    assert tuple(found) == PARTS
    assert sum(found.values()) == exactly(step)
    assert all(value >= 0 for value in found.values())
    assert sum(run.shares.values()) == exactly(1.0)
    bubble = run.shares["bubble"]
    assert bubble == exactly(run.value("bubble_time") / step)
    assert bubble.name == "bubble time / step time"
    assert prod(run.factors.values()) == exactly(1 / run.model_flops_utilization)
    passes = sum(run.value(name) for name in ("forward_time", "recompute_time", "backward_time"))
    sent = run.value("exchange_time") * (1 - run.run.overlap["exchange"])
    assert run.value("stage_time") == exactly(passes + sent)
    could = step * run.devices * 100e12
    assert run.model_flops_utilization == exactly(run.value("model_flops") / could)
    assert run.hardware_flops_utilization == exactly(run.value("hardware_flops") / could)
    assert run.token_rate == exactly(32 * 128 / step)
    for more in ({"dropout": True}, {"gradients": "fp32"}):
        assert train(**layout, **more).value("step_time") >= step


def test_update_reads_and_writes_state() -> None:
    """Gradients are read; means and precise weights read and written; weights written."""
    moved = SMALL.parameter_count * (2 + 2 * 12 + 2)
    for copies, shard in ((1, "none"), (8, "zero1")):
        found = train(data_parallel=copies, shard=shard).value("optimizer_time")
        assert found == exactly(moved / copies / 1e12)


# ---- scaling ----------------------------------------------------------------------------


def test_time_grows_with_the_sequence_by_a_line_and_a_square() -> None:
    """Of a device that only computes, three lengths tell the square from the line."""
    fast = chip(bandwidth="1e9 TB/s", capacity="1 PB", bf16="1 TFLOP/s")
    line = 6 * (LAYERS * 12 * WIDE**2 + WIDE * WORDS)
    square = 12 * LAYERS * WIDE
    for tokens in (512, 1024, 2048):
        run = train(hardware=fast, attention="standard", sequence_tokens=tokens, global_batch=1)
        expected = (line * tokens + square * tokens**2) / 1e12
        assert run.value("stage_time") == pytest.approx(expected, rel=1e-6)


# ---- constants of the caller ------------------------------------------------------------


BASE: dict[str, Any] = {
    "model": "Llama3_8B",
    "hardware": "DGX_A100_SuperPOD",
    "global_batch": 64,
    "tensor_parallel": 8,
}


def test_copies_are_what_the_devices_leave_and_devices_what_the_sizes_make() -> None:
    run = Engine.train(**BASE, devices=64, pipeline_parallel=2)
    assert (run.run.parallelism.data, run.devices) == (4, 64)
    assert train(hardware=NODE).devices == 1
    of_each = {"tensor_parallel": 2, "pipeline_parallel": 2, "context_parallel": 4}
    assert train(**of_each, data_parallel=2).devices == 32
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
    # Layers of several kinds: 61 on four stages are 16 in the fullest.
    kinds = {"model": "DeepSeek_V3", "pipeline_parallel": 4, "check_memory": False}
    assert Engine.train(**BASE | kinds).value("stage_layers") == 16
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


BATCH = 32
LAYER = 12 * WIDE**2


def work(name: str = "model_flops", **changes: object) -> float:
    return float(train(**{"attention": "standard", **changes}).value(name))


def test_six_for_each_parameter_and_token_and_twelve_for_each_pair() -> None:
    """A mixture's token meets two of eight experts of 8 h**2, and a router of 8.

    Of a causal mask flash attention skips half, and of a window all but its width: the first 32
    tokens see 1, 2, ... 32; the others 32 each.
    """
    pairs = 12 * LAYERS * WIDE
    each_token = 6 * (LAYERS * LAYER + WORDS * WIDE) + pairs * TOKENS
    assert work() == exactly(BATCH * TOKENS * each_token)
    layer = 4 * WIDE**2 + 8 * WIDE + 2 * 8 * WIDE**2
    of_experts = 6 * (LAYERS * layer + WORDS * WIDE) + pairs * TOKENS
    assert work(model=MIXTURE) == exactly(BATCH * TOKENS * of_experts)
    masked = BATCH * pairs * TOKENS * (TOKENS - 1) / 2
    assert work() - work(attention="flash") == exactly(masked)
    window = Attention(heads=8, kv_heads=8, head_size=8, window=32)
    seen = 32 * 33 / 2 + (TOKENS - 32) * 32
    each = 6 * (LAYERS * LAYER + WORDS * WIDE) * TOKENS + pairs * seen
    assert work(model=gpt(attention=window), attention="flash") == exactly(BATCH * each)
    # An encoder attends both ways with flash attention too.
    asked = {"model": "BERT_Large", "sequence_tokens": 512, "check_memory": False}
    forward = Models.BERT_Large.flop_count(512, causal=False, all_logits=True)
    assert work(**asked, attention="flash") == work(**asked) == exactly(3 * BATCH * forward)
    # By the rule of six a run of so many tokens needs:
    found = train(tokens=1e9).value("training_flops")
    assert found == exactly(6 * SMALL.parameter_count * 1e9)


def test_what_is_recomputed_is_done_again() -> None:
    """In full the forward pass of the layers; selectively the two products of attention."""
    products = 4 * WIDE * TOKENS**2
    for recompute, again in (
        *(("none", 0), ("selective", products)),
        ("full", 2 * LAYER * TOKENS + products),
    ):
        run = train(attention="standard", recompute=recompute)
        more = run.value("hardware_flops") - run.value("model_flops")
        assert more == exactly(BATCH * LAYERS * again)
    flash = train(attention="flash", recompute="none")
    assert flash.value("hardware_flops") == flash.value("model_flops")
    assert flash.model_flops_utilization == flash.hardware_flops_utilization


def test_formulas_of_the_megatron_papers() -> None:
    """96 B L s h**2 (1 + s/6h + V/16Lh) with full recomputation, of Narayanan et al. 2021.

    And without, 72 B L s h**2 (1 + s/6h + V/12hL), of Korthikanti et al. 2022.
    """
    asked = {"sequence_tokens": 2048, "global_batch": 4, "check_memory": False}
    for name in ("Megatron_22B", "GPT3_175B", "MT_NLG_530B", "Megatron_1T"):
        model = getattr(Models, name)
        layers, wide, words = model.layers, model.hidden, model.vocabulary
        once = 4 * layers * 2048 * wide**2
        share = 1 + 2048 / (6 * wide)
        full = work("hardware_flops", model=model, recompute="full", **asked)
        assert full == exactly(96 * once * (share + words / (16 * layers * wide)))
        plain = work(model=model, **asked)
        assert plain == exactly(72 * once * (share + words / (12 * layers * wide)))


def test_kernels_do_what_is_counted_in_any_layout() -> None:
    """Standard attention computes the whole square and masks it, window or not."""
    window = gpt(attention=Attention(heads=8, kv_heads=8, head_size=8, window=32))
    layouts = {"tensor_parallel": 8}, {"data_parallel": 4}, {"model": window}
    for layout, recompute in product(layouts, ("none", "selective", "full")):
        run = train(attention="standard", recompute=recompute, **layout)
        rows = zip(run.value("flops"), run.run.table.operators, strict=True)
        done = sum(each * row.all_repeats for each, row in rows)
        done *= run.value("micro_batches") * run.devices
        assert done == exactly(run.value("hardware_flops"))


def test_attention_forward_and_backward_by_hand() -> None:
    """Of 128 tokens, 64 wide, one array of the width is 128 x 64 x 2 = 16,384 B.

    Flash attention reads three and writes one; on the way back it reads five (the output and its
    gradient too) and writes three, and does five products for two: 4 and 10 operations for each
    of 64 features and each of 128 x 129 / 2 pairs. Standard attention also writes and reads
    scores, 8 x 128 x 128 x 2 = 262,144 B: once each around two products, a softmax reads and
    writes them, and its gradient reads two of them and writes one. Four products go back, each
    with scores once and with two arrays. All of it waits for memory, at 1 TB/s.
    """
    array, scores = 2 * TOKENS * WIDE, 2 * HEADS * TOKENS**2
    seen, square = WIDE * TOKENS * (TOKENS + 1) / 2, WIDE * TOKENS**2
    by_hand = {
        "flash": {
            "attention": (4 * seen, 4 * array),
            "attention: gradient": (10 * seen, 8 * array),
        },
        "standard": {
            "attention, products": (4 * square, 4 * array + 2 * scores),
            "attention, softmax": (0, 2 * scores),
            "attention, softmax: gradient": (0, 3 * scores),
            "attention, products: gradient": (8 * square, 8 * array + 4 * scores),
        },
    }
    for kind, expected in by_hand.items():
        run = train(attention=kind)
        names = [row.name for row in run.run.table.operators]
        for name, (flops, moved) in expected.items():
            at = names.index(name)
            assert run.value("flops")[at] == exactly(flops)
            assert run.value("bytes_moved")[at] == exactly(moved)
            assert run.value("kernel_time")[at] == exactly(moved / 1e12)
            assert run.run.table.operators[at].all_repeats == LAYERS


def test_a_stage_is_not_shorter_than_its_output_layer() -> None:
    output = spent("output_time", pipeline_parallel=4)
    assert spent("bubble_time", pipeline_parallel=4, stage_time=f"{1.1 * output} s") > 0
    with pytest.raises(InvalidValueError, match=r"stage_time = .* output_share would be 1\.1"):
        train(pipeline_parallel=4, stage_time=f"{output / 1.1} s")
