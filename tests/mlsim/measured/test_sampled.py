"""Attention and experts between measured shapes: bands that hold, refusals, measured rows."""

from __future__ import annotations

from math import exp, expm1
from statistics import median

import pytest

from mlsim.errors import NotMeasuredError
from mlsim.hardware.kernel_constants import measured_devices
from mlsim.measured.sampled import KINDS, sample
from mlsim.measured.shelf import SHAPES, shelf

SERIES = [
    (device, kind, path)
    for device in measured_devices("prefill")
    for kind in KINDS
    for path in sorted({row.path for row in shelf(device) if row.kind == kind})
]
GDDR = ("Cloud.L40S", "Cloud.RTXPRO6000_Server")


def test_a_measured_shape_has_its_own_time() -> None:
    found = sample("Cloud.H100", "decode", "bf16")
    row = found.rows[7]
    reading = found.read(row.shape)
    assert (reading.seconds, reading.interpolated) == (row.seconds, False)
    assert reading.low == reading.high == row.seconds


@pytest.mark.parametrize(("device", "kind", "path"), SERIES)
def test_rows_left_out_are_met(device: str, kind: str, path: str) -> None:
    """By the nearest others: 15 % in the median; experts 25 %; cards with GDDR memory 30 %."""
    found = sample(device, kind, path)
    off = [own - found._ratio(shape)[0] for shape, own in found.ratios.items()]
    most = 0.30 if device in GDDR else 0.25 if kind == "experts" else 0.15
    assert median(abs(expm1(each)) for each in off) < most
    low, high = found.between
    assert low < 1 < high
    assert sum(low <= exp(each) <= high for each in off) / len(off) >= 0.79


def test_longer_contexts_and_more_tokens_take_longer() -> None:
    decode = sample("Cloud.H100", "decode", "bf16")
    times = [decode.read((n, 16, 32, 8, 128, 0)).seconds for n in (512, 2048, 8192)]
    assert times == sorted(times)
    experts = sample("Cloud.H100", "experts", "bf16")
    times = [experts.read((n, 4096, 14336, 2, 8, 1, 1, 0)).seconds for n in (16, 256, 4096)]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("kind", "sizes", "words"),
    [
        ("decode", (512, 16, 32, 8, 100, 0), "head_size 100 was not measured"),
        ("decode", (10**8, 16, 32, 8, 128, 0), "cached_tokens 100,000,000 lies outside"),
        ("prefill", (512, 10**6, 32, 8, 128, 0), "sequences 1,000,000 lies outside"),
        ("experts", (16, 64, 14336, 2, 8, 1, 1, 0), "hidden 64 lies outside"),
    ],
)
def test_outside_of_what_was_measured_nothing_is_answered(
    kind: str, sizes: tuple[int, ...], words: str
) -> None:
    found = sample("Cloud.H100", kind, "bf16")
    assert len(sizes) == len(SHAPES[kind])
    with pytest.raises(NotMeasuredError, match=words):
        found.read(sizes)


def test_what_was_not_measured_is_refused_with_what_was() -> None:
    with pytest.raises(NotMeasuredError, match="bf16 of vllm"):
        sample("Cloud.A100", "decode", "fp8")
    with pytest.raises(NotMeasuredError, match="of 'trtllm'"):
        sample("Cloud.A100", "decode", "bf16", "trtllm")
