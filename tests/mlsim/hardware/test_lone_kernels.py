"""Single kernels, streams and copies: by hand, whose they are, and what nobody measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mlsim import Hardware
from mlsim.errors import NotMeasuredError
from mlsim.hardware import host_link_rate, lone_kernels, turnaround
from mlsim.hardware.kernel_constants import kernel_series
from mlsim.hardware.kernel_times import PATHS, Rates, product_time
from mlsim.hardware.lone_kernels import (
    attention_seconds,
    named_attention_seconds,
    product_seconds,
    series_of,
    stream_rate,
)
from mlsim.hardware.measured_kernels import streams

SIDES = (4096.0, 8192.0, 4096.0)
CLOUD = Hardware.Cloud


def by_engine(path: str, **changed: float) -> dict[str, float]:
    """Return the time of each engine's product on an H100."""
    rates = Rates(CLOUD.H100.compute.figure(PATHS[path].peak).si, CLOUD.H100.bandwidth_si, 132.0)
    return {
        engine: product_time(*SIDES, path=PATHS[path], rates=rates, c={**series.values, **changed})
        for engine in ("trtllm", "vllm", "sglang")
        for series in [kernel_series("Cloud.H100", "product", path, engine)]
    }


def test_a_product_is_that_of_the_fastest_engine() -> None:
    found, times = product_seconds(CLOUD.H100, "bf16", *SIDES), by_engine("bf16")
    assert found.seconds == pytest.approx(min(times.values()))
    assert found.words.endswith(min(times, key=lambda each: times[each]))
    # Operands in eight bits are not brought there.
    found = product_seconds(CLOUD.H100, "fp8", *SIDES)
    assert found.seconds == pytest.approx(min(by_engine("fp8", quantized_bytes=0.0).values()))
    assert found.seconds < min(by_engine("fp8").values())
    # A sibling lends its kernels and not its rates.
    own, lent = (product_seconds(each, "bf16", *SIDES) for each in (CLOUD.A100, CLOUD.A100_PCIe))
    assert "borrowed from Cloud.A100" in lent.words
    assert lent.seconds >= own.seconds


def test_what_nobody_near_measured_has_no_time() -> None:
    for device, precision in ((CLOUD.MI300X, "bf16"), (CLOUD.H100, "fp32")):
        assert product_seconds(device, precision, *SIDES) is None
        assert attention_seconds(device, precision, 1024.0, 128.0, causal=True) is None
    assert named_attention_seconds(CLOUD.H100, "fp16", "nobody's", 1e12) is None
    assert named_attention_seconds(CLOUD.MI300X, "fp16", "FlashAttention-2", 1e12) is None


def test_products_without_a_path_name_those_that_were_measured() -> None:
    with pytest.raises(NotMeasuredError, match=r"a format that was measured: bf16, fp8, fp8_block"):
        series_of(CLOUD.H100, "")
    with pytest.raises(NotMeasuredError, match=f"measured: none on {CLOUD.MI300X.name}"):
        series_of(CLOUD.MI300X, "")
    assert [each.engine for each in series_of(CLOUD.H100, "bf16", "vllm")] == ["vllm"]


def test_attention_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,024 tokens without a mask: 2**20 pairs, eight tiles on 132 cores, and four tensors."""
    device = CLOUD.H100
    constants = {"compute_fraction": 0.5, "exponential_time": 1e-13, "task_time": 1.32e-6}
    series = [("vllm", lone_kernels.relatives(device.key, [device.key]), constants, 132.0)]
    monkeypatch.setattr(lone_kernels, "_engines", lambda *_: iter(series))
    found = attention_seconds(device, "bf16", 1024.0, 128.0, causal=False)
    pairs = 2**20 * (512 / (0.5 * device.compute.figure("bf16").si) + 1e-13)
    moved = 4 * 2 * 1024 * 128 / device.bandwidth_si
    assert found.seconds == pytest.approx(pairs + 8 * 1.32e-6 / 132 + moved, rel=1e-9)
    # With a mask 1,025 x 1,026 / 2 pairs, and nine tiles; heads of 72 are computed as 96 in steps of 32.
    constants["width_step"] = 32.0
    found = attention_seconds(device, "fp16", 1025.0, 72.0, causal=True)
    pairs = 1025 * 1026 / 2 * (4 * 96 / (0.5 * device.compute.figure("bf16").si) + 1e-13)
    moved = 4 * 2 * 1025 * 72 / device.bandwidth_si
    assert found.seconds == pytest.approx(pairs + 9 * 1.32e-6 / 132 + moved, rel=1e-9)
    # A named kernel reaches what published rows say.
    older, newer = (
        named_attention_seconds(device, "fp16", f"FlashAttention-{each}", 1e12) for each in (2, 3)
    )
    assert older.seconds > newer.seconds


def test_an_engines_kernels_come_with_the_cores_of_the_device() -> None:
    """The H200 has 132 cores on record; of who has none, the lenders' count."""
    for device, cores in ((CLOUD.H200, 132.0), (CLOUD.L4, None)):
        found = list(lone_kernels._engines(device, "product", "bf16"))
        lenders = {
            kernel_series(key, "product", "bf16", engine).cores
            for engine, kin, _, _ in found
            for key in kin.keys
        }
        assert {each[3] for each in found} == ({cores} if cores else lenders)


# ---- streams and copies ----


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One publication: an A100 copies 1.6 TB/s and reads 1.76, so that copies lose a tenth."""
    row = next(row for row in streams() if row.id == "BW-001")
    rows = [replace(row, value=1.6, kernel="copy"), replace(row, value=1.76, kernel="dot")]
    monkeypatch.setattr(lone_kernels, "streams", lambda: rows)
    turnaround.cache_clear()
    yield
    turnaround.cache_clear()


@pytest.mark.usefixtures("published")
def test_turning_around_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A triad writes a third, so it loses two thirds of a tenth of what reading reaches."""
    assert turnaround() == pytest.approx(0.1)
    found = {each: stream_rate(CLOUD.A100, each).rate for each in ("dot", "copy", "triad", "init")}
    # All writes turn as little as all reads.
    triad = 1.76e12 / (1 + 0.1 * 2 / 3)
    expected = {"dot": 1.76e12, "copy": 1.6e12, "triad": triad, "init": 1.76e12}
    assert found == pytest.approx(expected)
    # 1.76 of 2.039 TB/s is a part of 0.863; a device without streams takes it of its own.
    middle = stream_rate(CLOUD.B200, "dot")
    assert middle.rate == pytest.approx(1.76 / 2.039 * CLOUD.B200.bandwidth_si)
    assert middle.words == "the middle of published streams of 1 devices"
    # What reads faster than the memory does, from a cache, reads at the memory's rate.
    cached = replace(lone_kernels.streams()[0], value=2.2, kernel="dot")
    for rows in ((cached,), ()):
        monkeypatch.setattr(lone_kernels, "streams", lambda rows=rows: rows)
        turnaround.cache_clear()
        assert turnaround() == 0.0
        if rows:
            assert stream_rate(CLOUD.A100, "dot").rate == pytest.approx(CLOUD.A100.bandwidth_si)


def test_streams_that_do_not_fill_the_memory_are_no_measure() -> None:
    """The H200's published streams are slower than its products read weights."""
    rows = [row.rate for row in streams() if row.device == CLOUD.H200.key]
    found = stream_rate(CLOUD.H200, "copy")
    assert found.rate > 1.1 * max(rows)
    assert "middle" in found.words
    # Of 32 GB/s, 128 of 130 bits and 128 of 152 bytes are data.
    assert host_link_rate(32e9).rate == pytest.approx(32e9 * 128 / 130 * 128 / 152)
