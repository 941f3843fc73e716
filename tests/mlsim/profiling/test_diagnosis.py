"""Where a measured kernel stands under its roof, and what each remedy buys."""

from __future__ import annotations

import pytest

from mlsim import Hardware
from mlsim.errors import InvalidValueError
from mlsim.profiling import (
    REGIONS,
    Activity,
    Launches,
    MeasuredKernel,
    MeasuredProfile,
    Transfer,
    diagnose,
)

# 1.935 TB/s and 312 TFLOP/s in bf16: a ridge at 161 FLOP/B.
DEVICE = Hardware.Cloud.A100_PCIe
BANDWIDTH, PEAK = 1.935e12, 312e12


def kernel(seconds: float, flops: float, moved: float, path: str = "tensor bf16", **more):
    return MeasuredKernel("k", 1, seconds, {path: flops}, {"dram": moved}, **more)


def finding(*kernels: MeasuredKernel):
    return diagnose(MeasuredProfile(kernels, "test"), hardware=DEVICE).findings[0]


@pytest.mark.parametrize(
    ("flops", "moved", "region", "share"),
    [
        # In 1 ms: 1.548 GB are 80 % of the bandwidth, 31.2 GFLOP are 10 % of the peak.
        (31.2e9, 1.548e9, "memory-bound", 0.8),
        (249.6e9, 0.1935e9, "compute-bound", 0.8),
        (31.2e9, 0.387e9, "far below the roof", 0.2),
        (624e9, 0.1935e9, "above the peak", 2.0),
        (31.2e9, 3.87e9, "above the slope", 2.0),
    ],
)
def test_each_region_of_the_plot(flops: float, moved: float, region: str, share: float) -> None:
    found = finding(kernel(1e-3, flops, moved))
    assert found.region == region
    assert found.region in REGIONS
    assert found.roof_share == pytest.approx(share)
    assert found.intensity == pytest.approx(flops / moved)
    assert found.rate == pytest.approx(flops / 1e-3)
    assert found.attainable == pytest.approx(min(flops / moved * BANDWIDTH, PEAK))
    assert len(found.remedies) == (0 if region.startswith("above") else 2)


def test_a_remedy_says_what_it_buys() -> None:
    found = finding(
        kernel(1e-3, 31.2e9, 1.548e9), MeasuredKernel("other", 1, 1e-3, {"fp32": 0.0}, {"dram": 1})
    )
    tiles, narrow = found.remedies
    # A quarter of the bytes at 80 % of the roof: 0.2 ms over 0.8. Half of them: 0.4 ms over 0.8.
    assert tiles.time == pytest.approx(0.25e-3)
    assert narrow.time == pytest.approx(0.5e-3)
    assert (tiles.speedup, narrow.speedup) == (pytest.approx(4), pytest.approx(2))
    # The run is 2 ms, of which 0.75 are saved.
    assert tiles.run_speedup == pytest.approx(2 / 1.25)
    assert "8 bits" in narrow.words


def test_scalar_work_is_sent_to_tensor_cores() -> None:
    # 15.6 of 19.5 TFLOP/s in fp32; TF32 is eight times as fast.
    found = finding(kernel(1e-3, 15.6e9, 1e6, "fp32"))
    assert found.region == "compute-bound"
    assert found.remedies[0].words.startswith("Compute in tf32: 8 times")
    assert found.remedies[0].speedup == pytest.approx(8)


def test_far_below_the_roof_scattered_addresses_come_first() -> None:
    found = finding(kernel(1e-3, 31.2e9, 0.387e9, facts={"sectors_per_store": 32.0}))
    assert "32 sectors" in found.remedies[0].words
    # From 20 % of the roof to 80 %, and to 50 %.
    assert [each.speedup for each in found.remedies] == [pytest.approx(4), pytest.approx(2.5)]


def test_work_on_two_paths_takes_the_slower_one() -> None:
    # 19.5 GFLOP in fp32 take 1 ms at their peak, 156 GFLOP on tensor cores 0.5 ms.
    both = MeasuredKernel("k", 1, 2e-3, {"fp32": 19.5e9, "tensor bf16": 156e9}, {"dram": 1e6})
    assert finding(both).roof_share == pytest.approx(0.5)


def test_without_work_the_bandwidth_alone_may_tell() -> None:
    busy = MeasuredKernel("k", 1, 1e-3, {}, {"dram": 1.548e9}, missing={"flops": "no counter"})
    found = finding(busy)
    assert found.region == "memory-bound"
    assert "80%" in found.limit
    idle = MeasuredKernel("k", 1, 1e-3, {}, {"dram": 0.1935e9}, missing={"flops": "no counter"})
    assert finding(idle).region == "not known"
    assert "no counter" in finding(idle).limit
    assert finding(idle).remedies == ()


def test_no_peak_on_record_is_no_roof() -> None:
    found = finding(kernel(1e-3, 1e9, 1e8, "tensor fp8"))
    assert found.region == "not known"
    assert "no peak on record for tensor fp8" in found.limit


def test_all_kernels_together_are_the_applications_point() -> None:
    one, two = kernel(1e-3, 31.2e9, 1.548e9), kernel(1e-3, 249.6e9, 0.1935e9)
    whole = diagnose(MeasuredProfile((one, two), "test"), hardware=DEVICE).whole
    assert whole.intensity == pytest.approx(280.8e9 / 1.7415e9)
    assert whole.rate == pytest.approx(280.8e9 / 2e-3)
    # One waits for memory and one for arithmetic; together they look like neither.
    assert whole.region == "far below the roof"


def test_the_run_as_a_whole() -> None:
    profile = MeasuredProfile(
        (MeasuredKernel("short", 1000, 2e-3),),
        "test",
        copies=(Transfer("host to device", 2, 0.5e-3, 10e6),),
        exchanges=(Transfer("all_reduce", 4, 1e-3, 8e6),),
        launches=Launches(1000, 5e-3),
        activity=(Activity(0, 10e-3, 4e-3, 3e-3, 1e-3, ((2e-3, 3e-3),)),),
    )
    words = " ".join(diagnose(profile, hardware=DEVICE).run)
    assert "busy 40% of 10 ms" in words
    assert "2.5 times faster" in words
    assert "The longest gap, 3 ms" in words
    # Copies and exchanges alone for 1 ms of 10: 10 / 9.
    assert "1.11 times faster" in words
    assert "A kernel runs 2 µs, less than its start" in words
    assert "all_reduce (4 times, 8 MB at 8 GB/s)" in words
    assert "host to device (2 times, 10 MB at 20 GB/s)" in words


def test_one_long_start_is_told_apart_and_moves_no_advice() -> None:
    """77 starts of 9 µs and one of 3 s have a mean of 38 ms; a kernel runs 20 µs."""
    kernels = (MeasuredKernel("short", 78, 78 * 20e-6),)

    def said(times: list[float]) -> str:
        launches = Launches.of(times, [])
        profile = MeasuredProfile(kernels, "test", launches=launches)
        return " ".join(diagnose(profile, hardware=DEVICE).run)

    words = said([9e-6] * 77 + [3.0])
    assert "78 kernels, in the median 9 µs each." in words
    assert "The longest start took 3 s, 100% of them all" in words
    assert "CUDA graphs" not in words
    words = said([30e-6] * 78)
    assert "in the median 30 µs each." in words
    assert "longest" not in words
    assert "A kernel runs 20 µs, less than its start: use CUDA graphs" in words
    assert Launches.of([], [1.0]) is None


def test_the_device_is_the_one_that_the_profile_names() -> None:
    for name, key in (
        ("NVIDIA A100 80GB PCIe", "Cloud.A100_PCIe"),
        ("NVIDIA A100-SXM4-80GB", "Cloud.A100"),
        ("NVIDIA H100 80GB HBM3", "Cloud.H100"),
        ("Tesla V100-SXM2-16GB", "Cloud.V100"),
        ("Tesla T4", "Cloud.T4"),
        ("NVIDIA GeForce RTX 4090", "Workstation.RTX4090"),
        ("NVIDIA B200", "Cloud.B200"),
        ("NVIDIA GeForce RTX 5070", "Workstation.RTX5070"),
        ("NVIDIA RTX A6000", "Workstation.RTXA6000"),
        ("NVIDIA A10G", "Cloud.A10G"),
        ("NVIDIA L40", "Cloud.L40"),
    ):
        assert diagnose(MeasuredProfile((), "test", device_name=name)).device.key == key, name
    with pytest.raises(InvalidValueError, match="'NVIDIA GeForce RTX 5050', which the zoo"):
        diagnose(MeasuredProfile((), "test", device_name="NVIDIA GeForce RTX 5050"))
    with pytest.raises(InvalidValueError, match="names no device"):
        diagnose(MeasuredProfile((), "test"))
