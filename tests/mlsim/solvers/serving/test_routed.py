"""Experts and states in a step take what the forms of their measured kernels say."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine, Hardware
from mlsim.hardware.device_calibration import expert_constants, state_constants
from mlsim.hardware.kernel_times import PATHS, Rates, experts_time
from mlsim.software import software
from mlsim.solvers.serving.measured_columns import STATE
from mlsim.solvers.serving.serving import Serving

LAYER = {"hidden": 4096.0, "width": 14336.0, "chosen": 2.0, "experts_of_layer": 8.0}


def serve(model: str = "Mixtral_8x7B", **asked: Any) -> Serving:
    asked = {"hardware": "H100", "prompt_tokens": 512, **asked}
    return Engine.serve(
        model=model, output_tokens=2, check_memory=False, estimate="calibrated", **asked
    )


def times_of(kind: str, serving: Serving) -> list[float]:
    """Seconds of a layer's operators of a kind in prefill, without their start."""
    question = serving.prefill.question
    times = question.evaluate("roofline_time")["roofline_time"]
    pairs = zip(times, question.table, strict=True)
    return [float(time) for time, each in pairs if each.kind == kind]


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
    found = sum(times_of("experts", serve(precision="bf16", prompt_tokens=tokens)))
    assert found == pytest.approx(float(alone), rel=0.02)


def test_a_service_knows_whether_its_experts_are_cut() -> None:
    """vLLM's kernel for blocks of FP8 on Hopper runs on whole experts: a slice takes another.

    Where shares are given, no kernel counts.
    """
    asked: dict[str, Any] = {"model": "DeepSeekV3", "hardware": "HGX_H200", "precision": "fp8"}
    asked |= {"tensor_parallel": 8, "software": "vllm"}
    for expert_parallel, words in ((1, "of trtllm"), (8, "of vllm")):
        found = serve(**asked, expert_parallel=expert_parallel)
        assert words in found.service.table.cache["routed"].words
    given = serve(compute_fraction=0.5, memory_fraction=0.5)
    assert given.service.table.cache["routed"] is None


def test_experts_without_kernels_of_their_own_are_one_wide_product() -> None:
    """A token's two, of 2 x 14,336 and of 4,096 columns; queries, keys and values are 48 heads.

    Kernels of their own move their tokens in passes of their own, which nobody else's do.
    """
    table = serve(hardware="MI300X").service.table
    wide = dict(zip((row.name for row in table), table.columns["outputs"], strict=True))
    assert (wide["experts, up"], wide["experts, down"]) == (4 * 14_336, 2 * 4096)
    assert (wide["queries, keys, values"], wide["router"]) == (48 * 128, 8)
    apart = [0 if row.kind == "experts" else row.token_elements for row in table]
    own = serve().service.table
    assert [row.token_elements for row in own] == apart
    passed = dict(zip((row.name for row in own), own.columns["passed_bytes"], strict=True))
    assert {name for name, each in passed.items() if each} == {"experts, up", "experts, down"}
    assert all(row.token_elements for row in table if row.kind == "experts")


# Layers with the gated delta rule.
NEXT = "Qwen3_Next_80B_A3B"


@pytest.mark.parametrize("tensor_parallel", [1, 8])
def test_a_prompt_waits_for_chunks_or_computes_by_hand(tensor_parallel: int) -> None:
    """32 heads of 128 by 128, three multiply-adds each; a convolution of 4 is next to nothing."""
    found = state_constants("Cloud.B200", "engine")
    assert found is not None
    heads, peak = 32 / tensor_parallel, Hardware.Cloud.B200.compute.figure("bf16").si
    computing = 8192 * heads * 128 * 128 * 6 / (peak * found[0]["compute_fraction"])
    waiting = 8192 / 64 * found[0]["scan_step_time"]
    asked = {"hardware": "HGX_B200", "precision": "bf16", "tensor_parallel": tensor_parallel}
    took = times_of(STATE, serve(NEXT, prompt_tokens=8192, **asked))[0]
    assert took == pytest.approx(max(computing, waiting), rel=0.03)


def test_one_token_waits_for_no_chunk() -> None:
    """A decode step reads and writes the state: memory decides, as without the kernels."""
    question = serve(NEXT, hardware="B200", prompt_tokens=64, batch_size=64).decode.question
    n = [each.kind for each in question.table].index(STATE)

    def of(name: str) -> float:
        value = question.evaluate(name)[name]
        return float(value[n]) if getattr(value, "ndim", 0) else float(value)

    streamed = of("bytes_moved") / (of("memory_bandwidth") * of("memory_fraction"))
    assert of("roofline_time") == pytest.approx(streamed)


def test_an_engine_takes_its_own_kernels() -> None:
    for name, words in (("vllm_async", "of vllm"), ("torch_engine", "of sglang")):
        assert words in (state_constants("Cloud.H100", name) or ({}, ""))[1]
