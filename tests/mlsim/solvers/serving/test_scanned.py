"""Layers with the gated delta rule take what their measured kernels took."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine, Hardware
from mlsim.hardware.measured_states import state_constants
from mlsim.solvers.serving.scanned import STATE

ASKED: dict[str, Any] = {"model": "Qwen3_Next_80B_A3B", "output_tokens": 2, "check_memory": False}


def states_of_step(hardware: str, tokens: int, **asked: Any) -> float:
    """Seconds of one layer's states in a step of Engine.serve, without their start."""
    found = Engine.serve(
        **ASKED, hardware=hardware, prompt_tokens=tokens, estimate="calibrated", **asked
    )
    question = found.prefill.question
    times = question.evaluate("roofline_time")["roofline_time"]
    kinds = [each.kind for each in question.table]
    return next(float(t) for t, kind in zip(times, kinds, strict=True) if kind == STATE)


@pytest.mark.parametrize("tensor_parallel", [1, 8])
def test_a_prompt_waits_for_chunks_or_computes_by_hand(tensor_parallel: int) -> None:
    """32 heads of 128 by 128, three multiply-adds each; a convolution of 4 is next to nothing."""
    found = state_constants("Cloud.B200", "engine")
    assert found is not None
    heads, peak = 32 / tensor_parallel, Hardware.Cloud.B200.compute.figure("bf16").si
    computing = 8192 * heads * 128 * 128 * 6 / (peak * found[0]["compute_fraction"])
    waiting = 8192 / 64 * found[0]["scan_step_time"]
    took = states_of_step("HGX_B200", 8192, precision="bf16", tensor_parallel=tensor_parallel)
    assert took == pytest.approx(max(computing, waiting), rel=0.03)


def test_one_token_waits_for_no_chunk() -> None:
    """A decode step reads and writes the state: memory decides, as without the kernels."""
    asked = {**ASKED, "hardware": "B200", "prompt_tokens": 64, "batch_size": 64}
    found = Engine.serve(**asked, estimate="calibrated").decode.question
    names = ("roofline_time", "bytes_moved", "memory_fraction", "memory_bandwidth")
    values = found.evaluate(*names)
    n = [each.kind for each in found.table].index(STATE)
    share = values["memory_fraction"]
    streamed = values["bytes_moved"][n] / (values["memory_bandwidth"] * _of(share, n))
    assert values["roofline_time"][n] == pytest.approx(streamed)


def _of(value: Any, n: int) -> float:
    return float(value[n]) if getattr(value, "ndim", 0) else float(value)


def test_a_device_without_relatives_keeps_its_roofline() -> None:
    assert state_constants("Cloud.TPUv4", "engine") is None


def test_an_engine_takes_its_own_kernels() -> None:
    own, other = (state_constants("Cloud.H100", each) for each in ("vllm_async", "torch_engine"))
    assert own is not None
    assert other is not None
    assert ("of vllm" in own[1], "of sglang" in other[1]) == (True, True)
    assert own[0]["compute_fraction"] > 3 * other[0]["compute_fraction"]
