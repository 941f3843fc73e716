"""Cases of single kernels, worked by hand from data sheets.

An A100 computes 312 TFLOP/s in fp16 and moves 2,039 GB/s; NVLink carries 600 GB/s both ways,
PCI Express 64 GB/s both ways. An element has 2 bytes.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlsim import Engine, Hardware, Systems
from mlsim.engine.predict import QUESTIONS, Prediction, predict
from mlsim.engine.predict.case import Case
from mlsim.engine.predict.inference import _product
from mlsim.errors import InvalidValueError
from mlsim.hardware.device_calibration import calibration
from mlsim.hardware.lone_kernels import (
    attention_seconds,
    named_attention_seconds,
    product_seconds,
    stream_rate,
)
from mlsim.systems.link_calibration import all_reduce_seconds

PEAK, MEMORY, NVLINK, PCIE = 312e12, 2039e9, 300e9, 32e9
A100 = Hardware.Cloud.A100


def case(device: str = "A100", cells: dict[str, str] | None = None, **extra: Any) -> Case:
    words = {"device": device, "a_dtype": "fp16", "extra": json.dumps(extra), **(cells or {})}
    return Case(words)


def asked(kind: str, estimate: str, found: Case) -> float:
    """Return the answer to a kind that has one metric, or to its first."""
    return float(next(iter(QUESTIONS[kind].values()))(found, estimate))


def row(kind: str, metric: str, **cells: Any) -> Prediction:
    extra = json.dumps(cells.pop("extra", {}))
    fields = {"device": "A100", "a_dtype": "fp16", **cells, "extra": extra}
    return next(predict([{"case_id": "x", "kind": kind, "metric_kind": metric, **fields}]))


# PCI Express and others, one way: half of what both ways carry; and what of it is data in
# packets of 128 bytes with 24 around them, 128 bits in 130.
DATA = 128 / 130 * 128 / 152


def test_a_link_carries_half_of_both_ways() -> None:
    for device, link, rate in (
        ("A100", "pcie", 32e9),
        ("A100", "PCIe4", 32e9),
        ("V100_PCIe", "pcie3", 16e9),
        ("H100", "pcie5", 64e9),
        # On record one way, so nothing is halved.
        ("A100_40GB", "pcie", 31.5e9),
        ("T4", "pcie", 15.75e9),
        ("A100", "nvlink", 300e9),
        ("MI300X", "infinity_fabric", 448e9),
    ):
        found = row("linkbw", "memcpy_B_per_s", device=device, extra={"link": link})
        assert float(found.bound) == pytest.approx(rate, rel=1e-6), link
        data = DATA if "pcie" in link.lower() else 1
        assert float(found.predicted) == pytest.approx(rate * data, rel=1e-5)
        assert ("packets of 128 bytes with 24 around" in found.note) == (data < 1)
        assert found.source == ("calibrated" if data < 1 else "roofline")
    found = row("linkbw", "memcpy_B_per_s", extra={"link": "cxl"})
    assert "no link 'cxl' of NVIDIA A100" in found.note
    assert "there are links.nvlink, links.pcie" in found.note


def test_products_by_hand() -> None:
    """Large ones compute; of 3 rows, what is read is nearly all of the time.

    2 x 4096^3 / 312e12 = 440.5 us; 2 (3 x 5120 + 5120 x 7168 + 3 x 7168) / 2.039e12 = 36.03 us.
    """
    large = dict.fromkeys("MNK", 4096)
    for sizes, seconds in (
        (large, 2 * 4096**3 / PEAK),
        ({"M": 3, "N": 7168, "K": 5120}, 2 * (3 * 5120 + 5120 * 7168 + 3 * 7168) / MEMORY),
    ):
        rate, time = QUESTIONS["gemm"].values()
        flops = 2 * sizes["M"] * sizes["N"] * sizes["K"]
        for estimate in ("roofline", "bound"):
            assert time(case(**sizes), estimate) == pytest.approx(seconds, rel=1e-9)
            assert rate(case(**sizes), estimate) == pytest.approx(flops / seconds, rel=1e-9)
        alone = product_seconds(A100, "fp16", *(float(sizes[each]) for each in "MNK"))
        assert alone is not None
        measured = case(**sizes)
        assert time(measured, "calibrated") == alone.seconds > seconds
        assert measured.notes == [f"by {alone.words}, with operands in their format"]


def test_products_that_nobody_timed_alone_are_those_of_the_engine() -> None:
    """In fp32 nothing was; so it is a layer in a program that starts kernels ahead."""
    sizes = {"M": 512, "N": 768, "K": 1024}
    assert product_seconds(A100, "fp32", 512.0, 768.0, 1024.0) is None
    found = asked("gemm", "roofline", case(cells={"a_dtype": "fp32"}, **sizes))
    # 19.5 TFLOP/s.
    assert found == pytest.approx(19.5e12, rel=1e-9)
    asked_of = {"precision": "fp32", "estimate": "calibrated", "software": "kernels"}
    layer = Engine.solve(_product(1024, 768), "A100", batch_size=512, **asked_of)
    time = layer.value("latency")
    found = asked("gemm", "calibrated", case(cells={"a_dtype": "fp32"}, **sizes))
    assert found == pytest.approx(2 * 512 * 768 * 1024 / time, rel=1e-12)


def attention(tokens: int, estimate: str, **extra: Any) -> float:
    return asked("attention", estimate, case(cells={"input_len": str(tokens)}, hd=64, **extra))


def test_attention_by_hand() -> None:
    """Two products of 2 T^2 d, back and forth five more; an element of T d is far less to move."""
    square, linear = 2048**2 * 64, 2048 * 64
    for tokens, extra, flops, seconds in (
        (2048, {}, 4 * square, 4 * square / PEAK),
        # Behind a mask is half of it, and nobody computes that.
        (2048, {"causal": 1}, 2 * square, 2 * square / PEAK),
        (2048, {"fwdbwd": 1}, 14 * square, 14 * square / PEAK),
        # Short sequences wait for four operands of T d elements; thrice as many there and back.
        (100, {}, 4 * 100**2 * 64, 4 * 100 * 64 * 2 / MEMORY),
        (100, {"fwdbwd": 1}, 14 * 100**2 * 64, 12 * 100 * 64 * 2 / MEMORY),
        # The standard one moves its scores four times, ten times there and back.
        (2048, {"alg": "std"}, 4 * square, (4 * linear + 4 * 2048**2) * 2 / MEMORY),
        (2048, {"alg": "std", "fwdbwd": 1}, 14 * square, (12 * linear + 10 * 2048**2) * 2 / MEMORY),
        # It computes what a mask hides, and only half of it counts.
        (2048, {"alg": "std", "causal": 1}, 2 * square, (4 * linear + 4 * 2048**2) * 2 / MEMORY),
    ):
        rate = pytest.approx(flops / seconds, rel=1e-9)
        assert attention(tokens, "roofline", **extra) == rate, extra
        # The bound writes no scores, whatever was run.
        assert "alg" in extra or attention(tokens, "bound", alg="std", **extra) == rate, extra


def test_measured_attention_is_that_of_kernels() -> None:
    """By itself a kernel's own time; what nobody timed alone by shares of the two roofs."""
    own = attention_seconds(A100, "fp16", 2048.0, 64.0, causal=False)
    flops = 4 * 2048**2 * 64
    assert own is not None
    assert attention(2048, "calibrated") == pytest.approx(flops / own.seconds, rel=1e-12)
    named = named_attention_seconds(A100, "fp16", "FlashAttention-2", float(flops))
    assert named is not None
    assert named.seconds != own.seconds
    assert attention(2048, "calibrated", alg="fa2") == pytest.approx(flops / named.seconds)
    known = calibration(A100, "fp16")
    # Back and forth: 14 T^2 d at the share of attention; of 100 tokens, what is moved.
    back = 14 * 2048**2 * 64
    assert attention(2048, "calibrated", fwdbwd=1) == pytest.approx(PEAK * known.attention_fraction)
    moved = 12 * 100 * 64 * 2 / (MEMORY * known.memory_fraction)
    assert attention(100, "calibrated", fwdbwd=1) == pytest.approx(14 * 100**2 * 64 / moved)
    # The standard one computes first and writes then.
    scores = (12 * 2048 * 64 + 10 * 2048**2) * 2 / (MEMORY * known.memory_fraction)
    alone = back / (PEAK * known.compute_fraction) + scores
    assert attention(2048, "calibrated", fwdbwd=1, alg="std") == pytest.approx(back / alone)


def test_streams_reach_what_was_measured_of_their_kind() -> None:
    for operation in ("copy", "triad", "read"):
        found = row("membw", "memcpy_B_per_s", extra={"op": operation.upper()})
        assert float(found.bound) == MEMORY
        assert float(found.predicted) == pytest.approx(stream_rate(A100, operation).rate, rel=1e-5)
        assert "published streams of the device" in found.note
    # A copy, where nobody says.
    assert asked("membw", "calibrated", case()) == stream_rate(A100, "copy").rate
    wrong = row("membw", "memcpy_B_per_s", extra={"op": "swap"})
    assert "extra op must be one of copy, memcpy" in wrong.note


def test_an_exchange_by_hand() -> None:
    """Eight devices pass 2 x 7/8 of a message over NVLink, 300 GB/s one way; at least all once."""
    message = 2**28
    rate, time = QUESTIONS["allreduce"].values()
    eight = {"count": "8"}
    for estimate, seconds in (
        ("bound", message / NVLINK),
        ("roofline", 2 * 7 / 8 * message / NVLINK),
        ("calibrated", all_reduce_seconds(Systems.HGX_A100, 8, float(message)).seconds),
    ):
        given = case(cells=eight, bytes=message)
        assert time(given, estimate) == pytest.approx(seconds, rel=1e-9)
        assert rate(given, estimate) == pytest.approx(2 * 7 / 8 * message / seconds, rel=1e-9)
    # Of two, each sends its half and the half that it has added up: the message once.
    assert time(case(cells={"count": "2"}, bytes=message), "roofline") == message / NVLINK
    with pytest.raises(InvalidValueError, match="from 2 up for an all-reduce, not 1"):
        time(case(bytes=message), "bound")
    found = row("allreduce", "allreduce_time_s", count="8", extra={"bytes": message})
    assert "by the atlas's exchanges" in found.note
