"""A step of training: micro-batches, the pipeline's bubble, and how time scales."""

from __future__ import annotations

from typing import Any

import pytest
from training_runs import CHIP, LAYERS, SMALL, WIDE, WORDS, gpt, train

from mlsim import Device, Engine, Hardware, System
from mlsim.errors import NotMeasuredError

EXACT = 1e-12
PARTS = (
    "forward",
    "recompute",
    "backward",
    "exchange",
    "bubble",
    "pipeline",
    "gradients",
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
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


def exactly(value: float) -> object:
    return pytest.approx(value, rel=EXACT)


# ---- the pipeline -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "v", "batch"), [(1, 1, 8), (2, 1, 8), (4, 1, 8), (2, 2, 8), (4, 2, 32), (2, 4, 64)]
)
def test_bubble_is_p_less_one_of_m_times_v(p: int, v: int, batch: int) -> None:
    run = train(
        model=gpt(layers=8), pipeline_parallel=p, interleaved=v, global_batch=batch, overlap=1.0
    )
    m = run.value("micro_batches")
    assert m == batch
    # The last stage waits for p - 1 others, which have no output layer, in v parts each.
    others = m * (run.value("stage_time") - run.value("output_time"))
    assert run.value("bubble_time") / others == exactly((p - 1) / (m * v))


def test_the_output_layer_and_its_loss_by_hand() -> None:
    """A product and its two gradients, which also add to 32,768 gradients; a loss both ways."""
    tokens = 128
    run = train(pipeline_parallel=4)
    work = 2 * tokens * WIDE * WORDS / 100e12
    product = max(work, _output_bytes(tokens) / 1e12)
    # The gradient of the weights reads activations, and reads and writes gradients of 2 bytes.
    weights = max(work, 2 * (tokens * (WIDE + WORDS) + 2 * WIDE * WORDS) / 1e12)
    loss = 3 * WORDS * 2 * tokens / 1e12
    assert run.value("output_time") == exactly(2 * product + weights + 2 * loss)
    assert run.value("output_share") == exactly(run.value("output_time") / run.value("stage_time"))
    assert train().value("output_time") == exactly(run.value("output_time"))


def test_micro_batches_are_what_each_copy_gets() -> None:
    run = train(global_batch=96, data_parallel=4, micro_batch=3)
    assert run.value("micro_batches") == 8


def test_more_micro_batches_make_the_bubble_a_smaller_share() -> None:
    shares = [
        train(pipeline_parallel=4, global_batch=size).shares["bubble"] for size in (4, 8, 32, 128)
    ]
    assert shares == sorted(shares, reverse=True)


def test_a_deeper_pipeline_has_a_larger_bubble_and_shorter_stages() -> None:
    shallow, deep = (train(pipeline_parallel=p) for p in (2, 4))
    assert deep.shares["bubble"] > shallow.shares["bubble"]
    assert deep.value("stage_time") < shallow.value("stage_time")


# ---- the sum ----------------------------------------------------------------------------


@layouts
def test_parts_add_up_to_the_step(layout: dict[str, Any]) -> None:
    run = train(**layout)
    found = {name: time.to("s").magnitude for name, time in run.breakdown.items()}
    assert tuple(found) == PARTS
    assert sum(found.values()) == exactly(run.value("step_time"))
    assert all(value >= 0 for value in found.values())
    assert sum(run.shares.values()) == exactly(1.0)
    bubble = run.shares["bubble"]
    assert bubble == exactly(run.value("bubble_time") / run.value("step_time"))
    assert (bubble.name, bubble.text[-1]) == ("bubble time / step time", "%")
    assert run.factors["kernels"].name == "kernel step time / peak step time"


@layouts
def test_factors_lead_from_the_peak_to_the_run(layout: dict[str, Any]) -> None:
    run = train(**layout)
    product = 1.0
    for factor in run.factors.values():
        product *= factor
    assert product == exactly(1 / run.model_flops_utilization)


@layouts
def test_a_stage_is_its_passes_and_what_is_not_hidden(layout: dict[str, Any]) -> None:
    run = train(**layout)
    passes = sum(run.value(name) for name in ("forward_time", "recompute_time", "backward_time"))
    sent = run.value("exchange_time") * (1 - run.run.overlap.exchange)
    assert run.value("stage_time") == exactly(passes + sent)


@layouts
def test_utilization_is_work_per_peak(layout: dict[str, Any]) -> None:
    run = train(**layout)
    could = run.value("step_time") * run.devices * 100e12
    assert run.model_flops_utilization == exactly(run.value("model_flops") / could)
    assert run.hardware_flops_utilization == exactly(run.value("hardware_flops") / could)
    assert 0 < run.model_flops_utilization <= run.hardware_flops_utilization <= 1


@layouts
def test_rate_is_tokens_per_step(layout: dict[str, Any]) -> None:
    run = train(**layout)
    assert run.token_rate == exactly(32 * 128 / run.step_time.to("s").magnitude)


def test_update_reads_and_writes_state() -> None:
    run = train()
    # Gradients are read; means and precise weights read and written; weights written.
    moved = SMALL.parameter_count * (2 + 2 * 12 + 2)
    assert run.value("optimizer_time") == exactly(moved / 1e12)
    shared = train(data_parallel=8, shard="zero1").value("optimizer_time")
    assert shared == exactly(moved / 8 / 1e12)


def test_recomputation_takes_the_time_of_the_layers_again() -> None:
    plain, again = (train(recompute=kind) for kind in ("none", "full"))
    assert plain.value("recompute_time") == 0
    assert again.value("forward_time") == plain.value("forward_time")
    # The output layer, its loss and the embedding are not computed again.
    tokens = 128
    output = max(2 * tokens * WIDE * WORDS / 100e12, _output_bytes(tokens) / 1e12)
    loss = 3 * WORDS * 2 * tokens / 1e12
    table = 2 * WIDE * 2 * tokens / 1e12
    expected = plain.value("forward_time") - output - loss - table
    assert again.value("recompute_time") == pytest.approx(expected, rel=1e-9)


def _output_bytes(tokens: int) -> float:
    return 2 * (WIDE * WORDS + tokens * (WIDE + WORDS))


# ---- scaling ----------------------------------------------------------------------------


def test_as_many_more_copies_take_as_many_more_tokens() -> None:
    """Micro-batches stay as they are; only bringing gradients together takes longer."""
    few = train(data_parallel=2, global_batch=32, overlap=1.0)
    many = train(data_parallel=8, global_batch=128, overlap=1.0)
    assert many.value("steady_time") == few.value("steady_time")
    assert many.token_rate / few.token_rate == pytest.approx(4, rel=0.02)


def test_a_larger_batch_is_read_faster() -> None:
    """What a step takes once, such as gradients and update, is shared by more tokens."""
    rates = [train(data_parallel=8, global_batch=size).token_rate for size in (8, 16, 64, 256)]
    assert rates == sorted(rates)


def test_time_grows_with_the_sequence_by_a_line_and_a_square() -> None:
    """Of a device that only computes, three lengths tell the square from the line."""
    from mlsim import Device

    fast = Device(
        "Fast memory",
        peak_flops={"bf16": "1 TFLOP/s"},
        memory_bandwidth="1e9 TB/s",
        memory_capacity="1 PB",
    )
    times = [
        train(hardware=fast, attention="standard", sequence_tokens=length, global_batch=1).value(
            "stage_time"
        )
        for length in (512, 1024, 2048)
    ]
    line = 6 * (LAYERS * 12 * WIDE**2 + WIDE * WORDS)
    square = 12 * LAYERS * WIDE
    expected = [(line * s + square * s**2) / 1e12 for s in (512, 1024, 2048)]
    assert times == [pytest.approx(value, rel=1e-6) for value in expected]


@pytest.mark.parametrize("faster", ["peak_flops", "memory_bandwidth"])
@layouts
def test_a_faster_device_never_slows(layout: dict[str, Any], faster: str) -> None:
    given = {"peak_flops": "200 TFLOP/s", "memory_bandwidth": "2 TB/s"}[faster]
    assert train(**layout, **{faster: given}).value("step_time") <= train(**layout).value(
        "step_time"
    )


@pytest.mark.parametrize("change", [{"dropout": True}, {"gradients": "fp32"}])
@layouts
def test_what_moves_more_never_takes_less(layout: dict[str, Any], change: dict[str, Any]) -> None:
    assert train(**{**layout, **change}).value("step_time") >= train(**layout).value("step_time")


def test_standard_attention_takes_longer_than_flash() -> None:
    flash, standard = (
        train(attention=kind, sequence_tokens=2048).value("step_time")
        for kind in ("flash", "standard")
    )
    assert standard > flash


def test_a_device_alone_works_one_micro_batch_after_another() -> None:
    one, eight = (
        Engine.train(model=SMALL, hardware=CHIP, global_batch=size, sequence_tokens=128)
        for size in (1, 8)
    )
    assert eight.value("steady_time") == exactly(8 * one.value("steady_time"))
    assert eight.value("optimizer_time") == one.value("optimizer_time")


@pytest.mark.parametrize(
    ("model", "hardware", "layout"),
    [
        ("Llama3_8B", "HGX_H100", {"tensor_parallel": 8, "sequence_parallel": True}),
        ("GPT3_175B", "Selene", {"tensor_parallel": 8, "pipeline_parallel": 8}),
        ("Llama2_13B", "HGX_A100", {"data_parallel": 8, "shard": "zero3"}),
    ],
)
def test_calibrated_is_slower_than_roofline(
    model: str, hardware: str, layout: dict[str, Any]
) -> None:
    arguments = {
        "model": model,
        "hardware": hardware,
        "global_batch": 64,
        "sequence_tokens": 2048,
        "recompute": "full",
        **layout,
    }
    roofline, calibrated = (
        Engine.train(**arguments, estimate=estimate, check_memory=False)
        for estimate in ("roofline", "calibrated")
    )
    for name in ("forward_time", "recompute_time", "backward_time", "exchange_time"):
        assert calibrated.value(name) >= roofline.value(name)
    assert calibrated.value("step_time") > roofline.value("step_time")
    assert 0 < calibrated.model_flops_utilization < roofline.model_flops_utilization <= 1
    for name in ("memory_required", "model_flops", "hardware_flops"):
        assert calibrated.value(name) == roofline.value(name)


# ---- constants of the caller ------------------------------------------------------------


def own_chip(**asked: Any) -> Any:
    """Ask about one device of which nothing is on record, without a number of cores."""
    chip = Device(
        "My chip",
        peak_flops={"bf16": "100 TFLOP/s", "fp16": "100 TFLOP/s"},
        memory_bandwidth="1 TB/s",
        memory_capacity="800 GB",
    )
    return Engine.train(
        model="Llama3_8B",
        hardware=chip,
        global_batch=8,
        sequence_tokens=2048,
        check_memory=False,
        **asked,
    )


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
    asked: dict[str, Any] = {
        "model": "Llama3_8B",
        "hardware": node,
        "global_batch": 8,
        "tensor_parallel": 2,
        "estimate": "calibrated",
        "check_memory": False,
    }
    alone = Engine.train(**asked)
    assert [each.kin.level for each in alone.loans] == ["roofline"]
    assert (alone.value("link_fraction"), alone.value("hop_latency")) == (1.0, 0.0)
    slow, fast = (
        Engine.train(**asked, link_fraction=part, hop_latency="1 us").value("step_time")
        for part in (0.4, 0.8)
    )
    assert slow > fast
