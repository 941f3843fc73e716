"""A step of training: micro-batches, the pipeline's bubble, and how time scales."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from own_chips import chip
from training_runs import CHIP, LAYERS, SMALL, WIDE, WORDS, gpt, train

from mlsim import Engine, Hardware, System
from mlsim.errors import NotMeasuredError

EXACT = 1e-12
PARTS = (
    *("forward", "recompute", "backward", "exchange", "bubble", "pipeline", "gradients"),
    "optimizer",
)
LAYOUTS: tuple[dict[str, Any], ...] = (
    {},
    {"data_parallel": 8, "shard": "zero1"},
    {"tensor_parallel": 4, "sequence_parallel": True, "data_parallel": 2, "recompute": "full"},
    {"pipeline_parallel": 4, "data_parallel": 2, "micro_batch": 2},
    {"pipeline_parallel": 2, "interleaved": 2, "tensor_parallel": 8, "attention": "standard"},
    {"context_parallel": 4, "shard": "zero3", "overlap": 0.5},
)


def exactly(value: float) -> object:
    return pytest.approx(value, rel=EXACT)


# ---- the pipeline -----------------------------------------------------------------------


def test_bubble_is_p_less_one_of_m_times_v() -> None:
    """The last stage waits for p - 1 others, which have no output layer, in v parts each."""
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
    """And factors lead from the peak to it; whatever is faster, or moves less, never slows."""
    run = train(**layout)
    step = run.value("step_time")
    found = {name: time.to("s").magnitude for name, time in run.breakdown.items()}
    assert tuple(found) == PARTS
    assert sum(found.values()) == exactly(step)
    assert all(value >= 0 for value in found.values())
    assert sum(run.shares.values()) == exactly(1.0)
    bubble = run.shares["bubble"]
    assert bubble == exactly(run.value("bubble_time") / step)
    assert (bubble.name, bubble.text[-1]) == ("bubble time / step time", "%")
    assert run.factors["kernels"].name == "kernel step time / peak step time"
    assert prod(run.factors.values()) == exactly(1 / run.model_flops_utilization)
    passes = sum(run.value(name) for name in ("forward_time", "recompute_time", "backward_time"))
    sent = run.value("exchange_time") * (1 - run.run.overlap.exchange)
    assert run.value("stage_time") == exactly(passes + sent)
    could = step * run.devices * 100e12
    assert run.model_flops_utilization == exactly(run.value("model_flops") / could)
    assert run.hardware_flops_utilization == exactly(run.value("hardware_flops") / could)
    assert 0 < run.model_flops_utilization <= run.hardware_flops_utilization <= 1
    assert run.token_rate == exactly(32 * 128 / step)
    for faster in ({"peak_flops": "200 TFLOP/s"}, {"memory_bandwidth": "2 TB/s"}):
        assert step / 2 <= train(**layout, **faster).value("step_time") <= step
    for more in ({"dropout": True}, {"gradients": "fp32"}):
        assert train(**{**layout, **more}).value("step_time") >= step


def test_update_reads_and_writes_state() -> None:
    """Gradients are read; means and precise weights read and written; weights written."""
    moved = SMALL.parameter_count * (2 + 2 * 12 + 2)
    for copies, shard in ((1, "none"), (8, "zero1")):
        found = train(data_parallel=copies, shard=shard).value("optimizer_time")
        assert found == exactly(moved / copies / 1e12)


# ---- scaling ----------------------------------------------------------------------------


def test_more_of_a_thing_takes_as_much_more() -> None:
    """Of copies micro-batches stay as they are; only bringing gradients together takes longer."""
    few = train(data_parallel=2, global_batch=32, overlap=1.0)
    many = train(data_parallel=8, global_batch=128, overlap=1.0)
    assert many.value("steady_time") == few.value("steady_time")
    assert many.token_rate / few.token_rate == pytest.approx(4, rel=0.02)
    # What a step takes once, such as gradients and update, is shared by more tokens.
    rates = [train(data_parallel=8, global_batch=size).token_rate for size in (8, 16, 64, 256)]
    assert rates == sorted(rates)
    one, eight = (
        Engine.train(model=SMALL, hardware=CHIP, global_batch=size, sequence_tokens=128)
        for size in (1, 8)
    )
    assert eight.value("steady_time") == exactly(8 * one.value("steady_time"))
    assert eight.value("optimizer_time") == one.value("optimizer_time")


def test_time_grows_with_the_sequence_by_a_line_and_a_square() -> None:
    """Of a device that only computes, three lengths tell the square from the line."""
    fast = chip(bandwidth="1e9 TB/s", capacity="1 PB", bf16="1 TFLOP/s")
    line = 6 * (LAYERS * 12 * WIDE**2 + WIDE * WORDS)
    square = 12 * LAYERS * WIDE
    for tokens in (512, 1024, 2048):
        run = train(hardware=fast, attention="standard", sequence_tokens=tokens, global_batch=1)
        expected = (line * tokens + square * tokens**2) / 1e12
        assert run.value("stage_time") == pytest.approx(expected, rel=1e-6)


def test_calibrated_is_slower_than_roofline() -> None:
    """In every part, by less than five times; what is counted stays."""
    for model, hardware, layout in (
        ("Llama3_8B", "HGX_H100", {"tensor_parallel": 8, "sequence_parallel": True}),
        ("GPT3_175B", "Selene", {"tensor_parallel": 8, "pipeline_parallel": 8}),
        ("Llama2_13B", "HGX_A100", {"data_parallel": 8, "shard": "zero3"}),
    ):
        asked = {"model": model, "hardware": hardware, "global_batch": 64, "recompute": "full"}
        roofline, calibrated = (
            Engine.train(**asked, **layout, sequence_tokens=2048, estimate=estimate,
                         check_memory=False)
            for estimate in ("roofline", "calibrated")
        )  # fmt: skip
        for name in ("forward_time", "recompute_time", "backward_time", "exchange_time"):
            assert calibrated.value(name) >= roofline.value(name)
        steps = [each.value("step_time") for each in (roofline, calibrated)]
        assert steps[0] < steps[1] < 5 * steps[0]
        assert 0 < calibrated.model_flops_utilization < roofline.model_flops_utilization <= 1
        for name in ("memory_required", "model_flops", "hardware_flops"):
            assert calibrated.value(name) == roofline.value(name)


# ---- constants of the caller ------------------------------------------------------------


def own_chip(**asked: Any) -> Any:
    """Ask about one device of which nothing is on record, without a number of cores."""
    own = chip(bf16="100 TFLOP/s", fp16="100 TFLOP/s")
    asked |= {"hardware": own, "global_batch": 8, "sequence_tokens": 2048, "check_memory": False}
    return Engine.train(model="Llama3_8B", **asked)


def test_constants_of_the_caller_take_the_place_of_measurements() -> None:
    """Whole rates and no start are the roofline; half of both rates take twice its time."""
    roofline = own_chip().value("step_time")
    none = {"kernel_overhead": "1e-30 s", "estimate": "calibrated"}
    whole = own_chip(compute_fraction=1.0, memory_fraction=1.0, **none)
    half = own_chip(compute_fraction=0.5, memory_fraction=0.5, **none)
    assert whole.value("step_time") == pytest.approx(roofline)
    assert half.value("step_time") == pytest.approx(2 * roofline)
    with pytest.raises(NotMeasuredError, match="needs measurements of My chip"):
        own_chip(compute_fraction=0.5, **none)


def test_links_of_the_caller_take_the_place_of_measurements() -> None:
    """16 GB/s is no link of an A100: nobody measured it, but what it reaches can be given."""
    node = System("Pair", Hardware.Cloud.A100, devices=2, link_bandwidth="16 GB/s")
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": node, "global_batch": 8}
    asked |= {"tensor_parallel": 2, "estimate": "calibrated", "check_memory": False}
    alone = Engine.train(**asked)
    assert [each.kin.level for each in alone.loans] == ["roofline"]
    assert (alone.value("link_fraction"), alone.value("hop_latency")) == (1.0, 0.0)
    slow, fast = (
        Engine.train(**asked, link_fraction=part, hop_latency="1 us").value("step_time")
        for part in (0.4, 0.8)
    )
    assert slow > fast
