"""Experts in a step take what the form of their measured kernels says."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine, Hardware
from mlsim.hardware.kernel_times import PATHS, Rates, experts_time
from mlsim.hardware.measured_experts import expert_constants, paths
from mlsim.software import software

LAYER = {"hidden": 4096.0, "width": 14336.0, "chosen": 2.0, "experts_of_layer": 8.0}
ASKED: dict[str, Any] = {"model": "Mixtral_8x7B", "output_tokens": 2, "check_memory": False}


def experts_of_step(tokens: int) -> float:
    """Seconds of one layer's experts in a step of Engine.serve, without their start."""
    found = Engine.serve(
        **ASKED, hardware="H100", precision="bf16", prompt_tokens=tokens, estimate="calibrated"
    )
    question = found.prefill.question
    times = question.evaluate("roofline_time")["roofline_time"]
    kinds = [each.kind for each in question.table]
    return sum(float(t) for t, kind in zip(times, kinds, strict=True) if kind == "experts")


@pytest.mark.parametrize("tokens", [64, 512, 4096])
def test_a_step_agrees_with_the_kernel(tokens: int) -> None:
    """One kernel for both products or a term for each: the same, but for how they overlap."""
    device = Hardware.Cloud.H100
    constants = expert_constants(device.key, "engine", "bf16", "bf16")
    assert constants is not None
    c = dict(constants[0], kernel_overhead=0.0)
    c["compute_fraction"] *= software("engine").value("product_share")
    rates = Rates(device.compute.figure("bf16").si, device.bandwidth_si, 132.0)
    alone = experts_time(float(tokens), **LAYER, devices=1.0, path=PATHS["bf16"], rates=rates, c=c)
    assert experts_of_step(tokens) == pytest.approx(float(alone), rel=0.02)


def test_formats_without_kernels_keep_the_form_of_products() -> None:
    assert paths("int8", "int8") == ()
    assert expert_constants("Cloud.H100", "vllm", "int8", "int8") is None


def test_slices_take_no_kernel_that_was_timed_on_whole_experts_only() -> None:
    """vLLM's kernel for blocks of FP8 on Hopper runs on whole experts: a slice takes another."""
    asked = ("Cloud.H200", "vllm", "fp8", "fp8")
    whole, sliced = expert_constants(*asked), expert_constants(*asked, sliced=True)
    assert whole is not None
    assert sliced is not None
    assert ("of vllm" in whole[1], "of trtllm" in sliced[1]) == (True, True)


@pytest.mark.parametrize(("expert_parallel", "words"), [(1, "of trtllm"), (8, "of vllm")])
def test_a_service_knows_whether_its_experts_are_cut(expert_parallel: int, words: str) -> None:
    asked: dict[str, Any] = {"model": "DeepSeekV3", "hardware": "HGX_H200", "precision": "fp8"}
    asked |= {"tensor_parallel": 8, "estimate": "calibrated", "software": "vllm"}
    found = Engine.serve(**asked, expert_parallel=expert_parallel)
    assert words in found.service.table.cache["routed"].words


def test_given_shares_take_the_place_of_kernels() -> None:
    asked = {**ASKED, "hardware": "H100", "prompt_tokens": 512, "estimate": "calibrated"}
    found = Engine.serve(**asked, compute_fraction=0.5, memory_fraction=0.5)
    assert found.service.table.cache["routed"] is None


def test_experts_take_no_less_than_their_weights() -> None:
    for tokens in (1, 16, 256):
        serving = Engine.serve(
            **ASKED, hardware="H100", prompt_tokens=tokens, estimate="calibrated"
        )
        bound = Engine.serve(**ASKED, hardware="H100", prompt_tokens=tokens, estimate="bound")
        assert serving.value("time_to_first_token") > bound.value("time_to_first_token")
