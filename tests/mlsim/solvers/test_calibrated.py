"""`estimate="calibrated"`: never faster than the roofline, by hand, and in its own words."""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from own_chips import chip
from refusals import answered

from mlsim import Device, Engine, Hardware, Models, System, Systems
from mlsim.errors import NotMeasuredError, UnknownNameError
from mlsim.hardware.device_calibration import calibrated_devices, calibration, tiling
from mlsim.hardware.kernel_constants import kernel_series
from mlsim.software import software
from mlsim.solvers.answer import OVERHEAD_BOUND
from mlsim.solvers.calibrated import (
    expert_start,
    in_program,
    sent,
    start_of,
    streamed,
    weight_rate,
)
from mlsim.systems.link_calibration import exchange_constants

CALIBRATED = [Hardware.get(key) for key in calibrated_devices()]
ESTIMATES = ("bound", "roofline", "calibrated")
# Rounding, where all three say the same.
EXACT = 1 - 1e-12


KERNELS = {"estimate": "calibrated", "software": "kernels"}
GIVEN = {"compute_fraction": 0.5, "memory_fraction": 0.5, "kernel_overhead": "1 ms"}


# Never faster.


def answers(ask: Any, **asked: Any) -> list[Any]:
    """Return a bound, a roofline and a calibrated answer to one question."""
    return [ask(**asked, estimate=each, check_memory=False) for each in ESTIMATES]


@pytest.mark.parametrize("device", CALIBRATED, ids=lambda device: device.key)
def test_all_takes_longer_than_the_roofline_and_that_than_the_bound(device: Device) -> None:
    serve = partial(Engine.serve, prompt_tokens=700)
    both = ("time_to_first_token", "time_per_output_token")
    for door, models, times in (
        (Engine.solve, ("ResNet50", "MobileNet_V2", "VGG16", "LeNet5"), ("latency",)),
        (serve, ("Llama3_8B", "Mixtral_8x7B", "DeepSeek_V3", "Gemma2_9B"), both),
    ):
        for model in models:
            found = answers(door, model=model, hardware=device, batch_size=[1, 3, 64, 500])
            for name in times:
                bound, roofline, measured = (each.value(name) for each in found)
                assert (measured >= roofline * EXACT).all()
                assert (roofline >= bound * EXACT).all()


# By hand.


def test_a_network_by_hand() -> None:
    """Half of both rates and no cores: twice the roofline, and 1 ms for each of 55 kernels."""
    asked: dict[str, Any] = {"model": Models.ResNet50, "hardware": chip(fp16="100 TFLOP/s")}
    asked["batch_size"] = 8
    roofline = Engine.solve(**asked)
    measured = Engine.solve(**asked, estimate="calibrated", **GIVEN)
    kernels = len(Models.ResNet50.operators)
    expected = 2 * roofline.value("latency") + kernels * 1e-3
    assert measured.value("latency") == pytest.approx(expected)
    assert measured.value("total_overhead_time") == pytest.approx(kernels * 1e-3)
    assert measured.bottleneck == OVERHEAD_BOUND
    assert measured.value("overhead_share") > 0.9


def test_a_convolution_by_hand() -> None:
    """conv2.1.a of ResNet-50 at batch 1: 56 x 56 pixels by 64 channels, 12.8 M MAC.

    25 tiles of 128 x 64 leave most of 108 cores idle; 49 of 64 x 64 fill 49 of them, at a
    part of the rate.
    """
    profile = Engine.solve(model="ResNet50", hardware="A100", **KERNELS)
    row = next(row for row in profile.operators if row["name"] == "conv2.1.a")
    part = calibration(Hardware.Cloud.A100, "fp16").compute_fraction
    flops = 2 * 56 * 56 * 64 * 64
    assert row["flops"] == flops
    filled = tiling("Cloud.A100")[1] * 49 / 108
    assert row["compute_time"] == pytest.approx(flops / (312e12 * part * filled))


def test_a_decode_step_by_hand() -> None:
    """Llama 2 7B, batch 1, A100: the down matrix is 11,008 x 4,096.

    Its 90.2 MB take 53.0 us at 1.70 TB/s; padded to 16 rows, the arithmetic takes less.
    """
    serving = Engine.serve(model="Llama2_7B", hardware="A100", **KERNELS)
    row = next(row for row in serving.decode.operators if row["name"] == "feed-forward, down")
    traffic = 2 * (11008 * 4096 + 11008 + 2 * 4096)
    assert row["bytes_moved"] == pytest.approx(traffic)
    assert row["memory_time"] == pytest.approx(traffic / 1.70e12)
    part = calibration(Hardware.Cloud.A100, "bf16").compute_fraction
    # 64 tiles of 16 x 64, and a depth of 11,008 that cores share: all have work, in one
    # row of 16.
    filled = tiling("Cloud.A100")[1] / 16
    computing = 2 * 11008 * 4096 / (312e12 * part * filled)
    assert row["compute_time"] == pytest.approx(computing)
    assert computing < row["memory_time"]


def test_all_reduces_by_hand() -> None:
    """Llama 2 7B on 8 A100: 65 all-reduces of 7/4 x 4,096 numbers, and the scores gathered."""
    asked = {"model": "Llama2_7B", "hardware": Systems.HGX_A100, "tensor_parallel": 8}
    serving = Engine.serve(**asked, **KERNELS)
    # 14 kB: each reads 8 kB of each of 7 others, one start.
    c = exchange_constants(Systems.HGX_A100, 8, "all-reduce")
    one = c.link_latency + 6 * c.peer_start + 7 * 8192 / (c.direct_fraction * 300e9)
    # A library gathers 56 kB: an own part, and the ramp of so few bytes.
    c = exchange_constants(Systems.HGX_A100, 8, "gather of the output")
    sent = 32000 * 7 / 8 * 2
    scores = c.link_latency + 6 * c.peer_start + sent / (c.link_fraction * 300e9)
    scores += c.own_steps * sent / 7 / 300e9
    scores += c.ramp_start * math.sqrt(sent / (sent + c.ramp_bytes))
    found = serving.decode.value("total_network_time")
    assert found == pytest.approx(65 * one + scores)
    # Sending starts in its own time, and not as a kernel that computes.
    kernels = sum(row["repeats"] for row in serving.decode.operators if row["bound"] != "network")
    assert serving.decode.value("total_overhead_time") == pytest.approx(kernels * 2e-6)


def test_experts_lie_side_by_side() -> None:
    """Mixtral: each token meets two experts, so the up product is twice as wide."""
    # With a share of the peak that is given, it holds for all products.
    asked = {"model": "Mixtral_8x7B", "hardware": "H200", "estimate": "calibrated"}
    serving = Engine.serve(**asked, compute_fraction=0.7)
    table = serving.service.table
    widths = dict(zip((each.name for each in table), table.extra["outputs"], strict=True))
    assert widths["experts, up"] == 2 * 2 * 14336
    assert widths["experts, down"] == 2 * 4096
    assert widths["attention"] == widths["norms"] == 0


def test_what_a_kind_of_operator_reaches_inside_a_program() -> None:
    """Its share of the peak; a convolution's addresses are worked out by general units besides."""
    eager, a100 = software("eager"), Hardware.Cloud.A100
    shares = {"linear": "product_share", "attention": "attention_share"}
    for kind, share in shares.items():
        reached = in_program(0.8, eager, kind, a100, "fp16")
        assert reached == pytest.approx(0.8 * eager.value(share))
    general = 19.5e12 * calibration(a100, "fp32").compute_fraction
    waits = 1 / (0.8 * eager.value("product_share"))
    waits += eager.value("side_work") * 312e12 / general
    assert eager.value("side_work") > 0
    reached = in_program(0.8, eager, "convolution", a100, "fp16")
    assert reached == pytest.approx(1 / waits)

    # Starts, 2 us each of three kernels a convolution, and all the time beyond the operators'.
    profile = Engine.solve(model="ResNet50", hardware="A100", estimate="calibrated",
                           software="eager")  # fmt: skip
    waits = profile.value("latency") - profile.question.value("operators_time")
    assert profile.value("total_overhead_time") == pytest.approx((3 * 53 + 3) * 2e-6 + waits)


def test_a_program_chooses_its_equations() -> None:
    """Its host starts kernels one by one, or works ahead; its kernels may be fused or not."""
    solve = partial(Engine.solve, model="ResNet50", hardware="A100", estimate="calibrated")
    serve = partial(Engine.serve, model="Llama3_8B", hardware="HGX_H100", estimate="calibrated")
    starts, lost = ("step_latency", "total_overhead_time"), "hosted_overhead_time"
    for answer, names in (
        (solve(software="eager"), ("hosted_latency", lost, "unfused_activation_bytes", "launch_count")),
        (solve(software="kernels"), (*starts, "activation_bytes", "started_time", "convolution_rows")),
        (serve(software="eager").decode, ("hosted_step_latency", "unfused_token_bytes")),
        (serve(software="vllm").decode, ("hosted_step_latency", lost, "step_launch_count")),
        (serve(software="vllm_async").decode, ("ahead_step_latency", "token_activation_bytes")),
        (serve(software="kernels", tensor_parallel=8).decode,
         (*starts, "started_and_sent_time", "ramped_network_time", "product_rows")),
    ):  # fmt: skip
        parts = [answer.explain(each).to_dict()["steps"] for each in ("latency", "overhead_share")]
        assert set(names) <= {step["equation"] for steps in parts for step in steps}


def test_experts_start_as_half_of_what_was_measured() -> None:
    """By the engine of the program or another's, in the format of the weights; of a sibling too.

    An H100 turns over 66.9 TFLOP/s by 128 lanes of two: 0.26 T cycles of all cores, of 26 weights.
    """
    h100, engine = Hardware.Cloud.H100, software("engine")
    for program, weights, path, key in (
        *(("vllm", "fp8", "fp8_block", "vllm"), ("engine", "fp8", "fp8_block", "trtllm")),
        *(("vllm", "int4", "int4_weights", "vllm"), ("vllm", "bf16", "bf16", "vllm")),
    ):
        measured = kernel_series("Cloud.H100", "experts", path, key).values["kernel_overhead"]
        assert expert_start(h100, software(program), weights) == pytest.approx(measured / 2)
    for device, weights in ((h100, "mxfp4"), (Hardware.Cloud.MI300X, "bf16")):
        assert expert_start(device, engine, weights) is None
    assert weight_rate(h100, engine, narrow=True) == pytest.approx(66.9e12 / 128 / 2 * 26)
    bare = chip(fp16="1 TFLOP/s")
    assert (
        weight_rate(bare, engine, narrow=True)
        == math.inf
        == weight_rate(h100, engine, narrow=False)
    )


# What is shown.


def told(answer: Any) -> dict[str, str]:
    """Return where each input of an answer comes from."""
    return {row["quantity"]: row["origin"] for row in answer.explain().to_dict()["inputs"]}


def test_an_answer_explains_where_its_constants_come_from() -> None:
    asked = {"model": "Llama3_8B", "hardware": Systems.HGX_H100, "tensor_parallel": 2}
    profile = Engine.solve(model="ResNet50", hardware="A100", estimate="calibrated")
    serving = Engine.serve(**asked, precision="fp8", estimate="calibrated")
    eager = Engine.serve(**asked, estimate="calibrated", software="eager").decode
    for answer, name, *words in (
        (profile, "compute_fraction", "over 11 products", "azure2024a100", "; for attention "),
        (profile, "memory_fraction", "median over 5 streams"),
        (profile, "kernel_overhead", "measured on Cloud.H100, assumed here"),
        (profile, "cores", "nvidia2020ampere"),
        (eager, "compute_fraction", "; times 0.775 of software eager"),
        (serving.decode, "kernel_overhead", "; replaced by 6.15e-06 of software engine"),
        # Matrices in fp8, the output layer in 16 bits: two origins.
        (serving.decode, "compute_fraction", "in fp8: measured", "in bf16: measured"),
        (serving.decode, "link_latency", "graph_all_reduce kernels"),
        (serving.decode, "outputs", "columns of each matrix product"),
    ):
        assert all(each in told(answer)[name] for each in words), name
        assert "calibrated" in str(answer)
    assert "for attention" not in told(profile)["memory_fraction"]
    assert profile.to_dict()["estimate"] == "calibrated"


def test_without_cores_products_fill_the_device() -> None:
    profile = Engine.solve(model="ResNet50", hardware="L4", estimate="calibrated")
    assert profile.value("filled_share") == 1.0
    inputs = told(profile)
    assert "no number of cores of NVIDIA L4 is on record" in inputs["filled_share"]


def test_a_search_knows_all_three_limits() -> None:
    """Where a twentieth of the time is lost, a batch less loses more."""
    asked: dict[str, Any] = {"model": "ResNet50", "hardware": "A100", "estimate": "calibrated"}
    at = Engine.find(vary="batch_size", target="overhead_share", value=0.05, **asked)
    before, there = Engine.solve(**asked, batch_size=[at - 1, at]).value("overhead_share")
    assert before > 0.05 >= there


# What is given, and what is refused.


def test_what_is_given_takes_the_place_of_measurements() -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": chip(fp16="100 TFLOP/s")}
    asked["precision"] = "fp16"
    with pytest.raises(NotMeasuredError):
        Engine.serve(**asked, estimate="calibrated")
    given = Engine.serve(**asked, estimate="calibrated", **GIVEN)
    assert math.isfinite(given.prefill.value("latency"))
    asked = {"model": "ResNet50", "hardware": chip(fp16="100 TFLOP/s")}
    full = {"compute_fraction": 1.0, "memory_fraction": 1.0, "kernel_overhead": "1e-30 s"}
    whole = Engine.solve(**asked, **full, estimate="calibrated")
    roofline = Engine.solve(**asked)
    assert whole.value("latency") == pytest.approx(roofline.value("latency"))


def test_given_links_take_the_place_of_measurements() -> None:
    node = System("Four L4", Hardware.Cloud.L4, devices=4, link_bandwidth="16 GB/s")
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": node, "tensor_parallel": 4}
    asked["estimate"] = "calibrated"
    # 16 GB/s is no link of an L4, so nobody's measurements stand in: it counts at its full rate,
    # and all else as it was measured.
    alone = Engine.serve(**asked)
    assert [each.kin.level for each in alone.loans if each.constant == "exchange"] == ["roofline"]
    sent = alone.decode.value("total_network_time")
    roofline = Engine.serve(**{**asked, "estimate": "roofline"}).decode
    assert sent == pytest.approx(roofline.value("total_network_time"))
    assert alone.decode.value("latency") > roofline.value("latency")
    found = Engine.serve(link_fraction=0.8, link_latency="20 us", **asked)
    assert "exchange" not in {each.constant for each in found.loans}
    # One sequence: 65 all-reduces and a gather, 20 us each to start.
    assert found.decode.value("total_network_time") > 66 * 20e-6


def test_a_part_is_at_most_the_whole_and_other_estimates_have_no_constants() -> None:
    for door, model in ((Engine.solve, "ResNet50"), (Engine.serve, "Llama3_8B")):
        ask = partial(door, model=model, hardware="A100", estimate="calibrated")
        assert answered(ask, "calibrated", door.__name__) == []
    with pytest.raises(UnknownNameError, match="overhead_share"):
        Engine.solve(model="ResNet50", hardware="A100").value("overhead_share")


def test_every_accelerator_is_answered_and_says_by_whose_measurements() -> None:
    for name, words in (
        *(("A100_40GB", "of the same chip"), ("V100_PCIe", "of the same chip")),
        *(("TPUv4", "of a class"), ("B200", "kernels of trtllm 1.3.0rc20 on Cloud.B200")),
    ):
        device = getattr(Hardware.Cloud, name)
        precision = "fp16" if "fp16" in device.compute.figures else "bf16"
        asked: dict[str, Any] = {"hardware": device, "precision": precision}
        passes = answers(Engine.solve, model="ResNet50", **asked)
        prompts = [each.prefill for each in answers(Engine.serve, model="Llama3_8B", **asked)]
        for _, slow, part in (passes, prompts):
            assert part.value("latency") > slow.value("latency")
            origins = told(part)
            assert words in origins["compute_fraction"] + origins["memory_fraction"]


def test_what_a_program_makes_of_a_measured_constant() -> None:
    """Units for matrices are wide from three times the general ones on; who starts names a time."""
    eager, engine = software("eager"), software("engine")
    peaks: tuple[dict[str, str], ...] = ({"fp32": "1 TFLOP/s"}, {"fp32": "1.4 TFLOP/s"}, {})
    for peak, share in zip(peaks, ("product_share", "plain_share", "product_share"), strict=True):
        own = chip(fp16="3 TFLOP/s", **peak)
        assert in_program(0.8, eager, "linear", own, "fp16") == pytest.approx(
            0.8 * eager.value(share)
        )
    reached = 0.8 * eager.value("product_share")
    assert in_program(0.8, eager, "convolution", own, "fp16") == pytest.approx(reached)
    a100 = Hardware.Cloud.A100
    assert in_program(0.8, software("kernels"), "convolution", a100, "fp16") == pytest.approx(0.8)
    shares: Any = SimpleNamespace(value={"sending_share": 0.7, "stream_share": 0.3}.__getitem__)
    assert (sent(0.8, None), sent(0.8, shares)) == (0.8, pytest.approx(0.56))
    assert streamed(0.8, shares) == pytest.approx(0.24)
    assert start_of(2e-6, eager, "convolution") == pytest.approx(3 * 2e-6)
    assert start_of(2e-6, engine, "linear") == pytest.approx(engine.value("kernel_start"))
