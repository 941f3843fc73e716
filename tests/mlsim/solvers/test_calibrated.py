"""`estimate="calibrated"`: never faster than the roofline, by hand, and in its own words."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from own_chips import chip
from refusals import answered

from mlsim import Device, Engine, Hardware, Models, System, Systems
from mlsim.errors import NotMeasuredError, UnknownNameError
from mlsim.hardware.device_calibration import calibrated_devices, calibration
from mlsim.hardware.measured_shares import tiling
from mlsim.software import software
from mlsim.solvers.answer import OVERHEAD_BOUND
from mlsim.solvers.calibrated import in_program
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
    for name in ("ResNet50", "MobileNet_V2", "VGG16", "LeNet5"):
        asked = {"model": name, "hardware": device, "batch_size": [1, 7, 64, 300]}
        bound, roofline, measured = (x.value("latency") for x in answers(Engine.solve, **asked))
        assert (measured >= roofline * EXACT).all()
        assert (roofline >= bound * EXACT).all()
    for name in ("Llama3_8B", "Mixtral_8x7B", "DeepSeek_V3", "Gemma2_9B"):
        asked = {"model": name, "hardware": device, "batch_size": [1, 3, 64, 500]}
        found = answers(Engine.serve, **asked, prompt_tokens=700)
        for time in ("time_to_first_token", "time_per_output_token"):
            bound, roofline, measured = (x.value(time) for x in found)
            assert (measured >= roofline * EXACT).all()
            assert (roofline >= bound * EXACT).all()


def test_so_do_services_on_several_devices() -> None:
    for system in (Systems.HGX_A100, Systems.HGX_H100, Systems.HGX_H200):
        for layout in ({"tensor_parallel": 8}, {"pipeline_parallel": 4}):
            asked = {"model": "Llama3_70B", "hardware": system, "batch_size": [1, 16, 256]}
            _, roofline, measured = answers(Engine.serve, **asked, **layout)
            for time in ("time_to_first_token", "time_per_output_token"):
                assert (measured.value(time) > roofline.value(time)).all()


# By hand.


def test_a_network_by_hand() -> None:
    """Half of both rates and no cores: twice the roofline, and 1 ms for each of 55 kernels."""
    asked: dict[str, Any] = {
        "model": Models.ResNet50,
        "hardware": chip(fp16="100 TFLOP/s"),
        "batch_size": 8,
    }
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


# What is shown.


def test_shares_add_up() -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": Systems.HGX_H100}
    for layout in ({}, {"tensor_parallel": 8}):
        serving = Engine.serve(**asked, **layout, batch_size=[1, 64], estimate="calibrated")
        for step in (serving.prefill, serving.decode):
            assert np.allclose(sum(step.shares.values()), 1)
            assert OVERHEAD_BOUND in step.shares
            assert all((share > -1e-9).all() for share in map(np.asarray, step.shares.values()))
    # The roofline has no share of starting.
    assert OVERHEAD_BOUND not in Engine.serve(**asked).decode.shares


def told(answer: Any) -> dict[str, str]:
    """Return where each input of an answer comes from."""
    return {row["quantity"]: row["origin"] for row in answer.explain().to_dict()["inputs"]}


def test_a_profile_explains_where_its_constants_come_from() -> None:
    profile = Engine.solve(model="ResNet50", hardware="A100", estimate="calibrated")
    inputs = told(profile)
    assert "median over 11 products" in inputs["compute_fraction"]
    assert "azure2024a100" in inputs["compute_fraction"]
    assert "median over 5 streams" in inputs["memory_fraction"]
    assert "; for attention " in inputs["compute_fraction"]
    assert "for attention" not in inputs["memory_fraction"]
    assert "measured on Cloud.H100, assumed here" in inputs["kernel_overhead"]
    assert "nvidia2020ampere" in inputs["cores"]
    assert "calibrated" in str(profile)
    assert profile.estimate == profile.to_dict()["estimate"] == "calibrated"


def test_a_service_explains_where_its_constants_come_from() -> None:
    asked = {"model": "Llama3_8B", "hardware": Systems.HGX_H100, "tensor_parallel": 2}
    serving = Engine.serve(**asked, precision="fp8", estimate="calibrated")
    inputs = told(serving.decode)
    # Matrices in fp8, the output layer in 16 bits: two origins.
    assert "in fp8: measured" in inputs["compute_fraction"]
    assert "in bf16: measured" in inputs["compute_fraction"]
    assert "graph_all_reduce kernels" in inputs["link_latency"]
    assert "columns of each matrix product" in inputs["outputs"]
    assert "calibrated" in str(serving)


def test_without_cores_products_fill_the_device() -> None:
    profile = Engine.solve(model="ResNet50", hardware="L4", estimate="calibrated")
    assert profile.value("filled_share") == 1.0
    inputs = told(profile)
    assert "no number of cores of NVIDIA L4 is on record" in inputs["filled_share"]


def test_a_sweep_and_a_search_know_all_three_limits() -> None:
    asked: dict[str, Any] = {"hardware": "A100", "estimate": "calibrated"}
    batches, names = [1, 512], ["ResNet50", "LeNet5"]
    table = Engine.sweep(model=names, batch_size=batches, **asked)
    alone = [Engine.solve(model=name, batch_size=batches, **asked).bottleneck for name in names]
    assert list(table.bottleneck) == [each for several in alone for each in several]
    assert OVERHEAD_BOUND in set(table.bottleneck)
    # And where a twentieth of the time is lost, a batch less loses more.
    search = {"vary": "batch_size", "target": "overhead_share", "value": 0.05}
    at = Engine.find(**search, model="ResNet50", **asked)
    before, there = (
        Engine.solve(model="ResNet50", batch_size=batch, **asked).value("overhead_share")
        for batch in (at - 1, at)
    )
    assert before > 0.05 >= there


# What is given, and what is refused.


def test_what_is_given_takes_the_place_of_measurements() -> None:
    asked: dict[str, Any] = {
        "model": "Llama3_8B",
        "hardware": chip(fp16="100 TFLOP/s"),
        "precision": "fp16",
    }
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
