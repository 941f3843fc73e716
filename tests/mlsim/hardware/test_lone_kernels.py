"""Single kernels by the atlas: by hand, whose constants, and what nobody measured."""

from __future__ import annotations

import pytest

from mlsim import Hardware
from mlsim.hardware import lone_kernels
from mlsim.hardware.kernel_constants import kernel_series
from mlsim.hardware.kernel_times import PATHS, Rates, product_time
from mlsim.hardware.lone_kernels import (
    attention_seconds,
    named_attention_seconds,
    product_seconds,
)

SIDES = (4096.0, 8192.0, 4096.0)


def by_engine(engine: str, path: str, **changed: float) -> float:
    series = kernel_series("Cloud.H100", "product", path, engine)
    peak = Hardware.Cloud.H100.compute.figure(PATHS[path].peak).si
    rates = Rates(peak, Hardware.Cloud.H100.bandwidth_si, 132.0)
    return product_time(*SIDES, path=PATHS[path], rates=rates, c={**series.values, **changed})


def test_a_product_is_that_of_the_fastest_engine() -> None:
    found = product_seconds(Hardware.Cloud.H100, "bf16", *SIDES)
    assert found is not None
    times = {engine: by_engine(engine, "bf16") for engine in ("trtllm", "vllm", "sglang")}
    fastest = min(times, key=lambda each: times[each])
    assert found.seconds == pytest.approx(times[fastest])
    assert found.words.endswith(fastest)


def test_operands_in_eight_bits_are_not_brought_there() -> None:
    found = product_seconds(Hardware.Cloud.H100, "fp8", *SIDES)
    assert found is not None
    assert found.seconds == pytest.approx(
        min(
            by_engine(engine, "fp8", quantized_bytes=0.0) for engine in ("trtllm", "vllm", "sglang")
        )
    )
    assert found.seconds < min(by_engine(engine, "fp8") for engine in ("trtllm", "vllm", "sglang"))


def test_a_sibling_lends_its_kernels_and_not_its_rates() -> None:
    own = product_seconds(Hardware.Cloud.A100, "bf16", *SIDES)
    found = product_seconds(Hardware.Cloud.A100_PCIe, "bf16", *SIDES)
    assert own is not None
    assert found is not None
    assert "borrowed from Cloud.A100" in found.words
    assert found.seconds >= own.seconds


@pytest.mark.parametrize(("device", "precision"), [("MI300X", "bf16"), ("H100", "fp32")])
def test_what_nobody_near_measured_has_no_time(device: str, precision: str) -> None:
    there = getattr(Hardware.Cloud, device)
    assert product_seconds(there, precision, *SIDES) is None
    assert attention_seconds(there, precision, 1024.0, 128.0, causal=True) is None


def test_attention_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,024 tokens without a mask: 2**20 pairs, eight tiles on 132 cores, and four tensors."""
    device = Hardware.Cloud.H100
    constants = {"compute_fraction": 0.5, "exponential_time": 1e-13, "task_time": 1.32e-6}
    series = [("vllm", lone_kernels.relatives(device.key, [device.key]), constants, 132.0)]
    monkeypatch.setattr(lone_kernels, "_engines", lambda *_: iter(series))
    found = attention_seconds(device, "bf16", 1024.0, 128.0, causal=False)
    assert found is not None
    peak = device.compute.figure("bf16").si
    pairs = 2**20 * (512 / (0.5 * peak) + 1e-13)
    moved = 4 * 2 * 1024 * 128 / device.bandwidth_si
    assert found.seconds == pytest.approx(pairs + 8 * 1.32e-6 / 132 + moved)


def test_a_named_kernel_reaches_what_published_rows_say() -> None:
    older = named_attention_seconds(Hardware.Cloud.H100, "fp16", "FlashAttention-2", 1e12)
    newer = named_attention_seconds(Hardware.Cloud.H100, "fp16", "FlashAttention-3", 1e12)
    assert older is not None
    assert newer is not None
    assert older.seconds > newer.seconds
    assert named_attention_seconds(Hardware.Cloud.H100, "fp16", "nobody's", 1e12) is None
    assert named_attention_seconds(Hardware.Cloud.MI300X, "fp16", "FlashAttention-2", 1e12) is None
