"""Where a measured kernel stands under its roof, and what each remedy buys."""

from __future__ import annotations

from functools import partial

import pytest
from kept import FIXTURES
from own_chips import chip

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
from mlsim.profiling.diagnosis import main_precision, roof_of

# 1.935 TB/s and 312 TFLOP/s in bf16: a ridge at 161 FLOP/B.
DEVICE = Hardware.Cloud.A100_PCIe
BANDWIDTH, PEAK = 1.935e12, 312e12
# Nobody counted its work.
uncounted = partial(MeasuredKernel, "k", 1, 1e-3, {}, missing={"flops": "no counter"})


def kernel(seconds: float, flops: float, moved: float, path: str = "tensor bf16", **more):
    name, calls = more.pop("name", "k"), more.pop("calls", 1)
    return MeasuredKernel(name, calls, seconds, {path: flops}, {"dram": moved}, **more)


def finding(*kernels: MeasuredKernel):
    return diagnose(MeasuredProfile(kernels, "test"), hardware=DEVICE).findings[0]


def test_each_region_of_the_plot() -> None:
    """In 1 ms 1.548 GB are 80 % of the bandwidth, 31.2 GFLOP are 10 % of the peak."""
    for flops, moved, region, share in (
        (31.2e9, 1.548e9, "memory-bound", 0.8),
        (249.6e9, 0.1935e9, "compute-bound", 0.8),
        (31.2e9, 0.387e9, "far below the roof", 0.2),
        (624e9, 0.1935e9, "above the peak", 2.0),
        (31.2e9, 3.87e9, "above the slope", 2.0),
    ):
        found = finding(kernel(1e-3, flops, moved))
        assert found.region == region
        assert found.region in REGIONS
        assert found.roof_share == pytest.approx(share)
        assert found.intensity == pytest.approx(flops / moved)
        assert found.rate == pytest.approx(flops / 1e-3)
        assert found.attainable == pytest.approx(min(flops / moved * BANDWIDTH, PEAK))
        assert len(found.remedies) == (0 if region.startswith("above") else 2)
    # What computes nothing is limited by memory alone.
    idle = finding(kernel(1e-3, 0, 1.548e9))
    assert (idle.region, idle.roof_share) == ("memory-bound", pytest.approx(0.8))
    # 19.5 GFLOP in fp32 take 1 ms at their peak, 156 GFLOP on tensor cores 0.5 ms.
    both = MeasuredKernel("k", 1, 2e-3, {"fp32": 19.5e9, "tensor bf16": 156e9}, {"dram": 1e6})
    assert finding(both).roof_share == pytest.approx(0.5)


def test_a_remedy_says_what_it_buys() -> None:
    """A quarter of the bytes at 80 % of the roof: 0.2 ms over 0.8. Half of them: 0.4 over 0.8."""
    one = kernel(1e-3, 31.2e9, 1.548e9)
    found = finding(one, MeasuredKernel("other", 1, 1e-3, {"fp32": 0.0}, {"dram": 1}))
    tiles, narrow = found.remedies
    assert (tiles.time, narrow.time) == pytest.approx((0.25e-3, 0.5e-3))
    assert (tiles.speedup, narrow.speedup) == pytest.approx((4, 2))
    # The run is 2 ms, of which 0.75 are saved.
    assert tiles.run_speedup == pytest.approx(2 / 1.25)
    assert "8 bits" in narrow.words
    assert "4 times faster, the run 1.6 times (" in str(found)
    # Of 301 ms it saves less than anybody sees; of 76 ms one in a hundred.
    for rest, said in ((0.3, False), (0.075, True)):
        assert (", the run " in str(finding(one, MeasuredKernel("other", 1, rest)))) is said
    # 15.6 of 19.5 TFLOP/s in fp32; TF32 is eight times as fast.
    scalar = finding(kernel(1e-3, 15.6e9, 1e6, "fp32"))
    assert scalar.region == "compute-bound"
    assert scalar.remedies[0].words.startswith("Compute in tf32: 8 times")
    assert scalar.remedies[0].speedup == pytest.approx(8)
    # Half of arithmetic at the same 80 % of the roof, or twice its rate: 0.4 ms over 0.8.
    prune, less = finding(kernel(1e-3, 249.6e9, 0.1935e9)).remedies
    assert prune.words == "Prune weights to 2:4 sparsity: 2 times the peak rate"
    assert less.words.startswith("Compute less")
    assert (prune.time, less.time) == pytest.approx((0.5e-3, 0.5e-3))
    # What an elementwise kernel reads may be its neighbor's: half of its bytes.
    _, fuse = finding(kernel(1e-3, 1e9, 1.548e9, "fp32", name="elementwise_kernel")).remedies
    assert (fuse.words[:4], fuse.time) == ("Fuse", pytest.approx(0.5e-3))


def test_units_that_are_hardly_faster_are_no_remedy() -> None:
    """From 1.05 times the rate up; 240 of 300 GFLOP in 1 ms are 80 % of the peak."""
    for faster, first in ((315, "Compute less"), (316, "Compute in fp16: 1.05 times")):
        device = chip(bf16="300 TFLOP/s", fp16=f"{faster} TFLOP/s")
        for moved, unsure in (({"dram": 1e6}, False), ({}, True)):
            one = MeasuredKernel("k", 1, 1e-3, {"tensor bf16": 240e9}, moved)
            found = diagnose(MeasuredProfile((one,), "test"), hardware=device).findings[0]
            assert found.region == "compute-bound"
            assert any(each.words.startswith(first) for each in found.remedies)
            assert len(found.remedies) == faster - 314
            told = {"if memory keeps up" in each.basis for each in found.remedies}
            assert told == {unsure}


def test_the_precision_of_most_work_titles_the_figure() -> None:
    """An operator computes in what its type may: 5 operations in fp16 and 7 in TF32."""
    of = partial(MeasuredKernel, "k", 1, 1e-3)
    some = [of({"any": 5.0}, facts={"type": "c10::Half"}), of({"any": 7.0})]
    assert main_precision(some, DEVICE) == "tf32"
    assert main_precision([*some, of({"tensor fp16": 3.0})], DEVICE) == "fp16"
    assert main_precision([], DEVICE) == "fp16"
    assert main_precision([], chip(fp32="2 TFLOP/s")) == "fp32"
    for kind, peak in (("double", "fp64"), ("c10::BFloat16", "bf16"), ("float", "tf32")):
        roof = roof_of(of({"any": 5.0}, facts={"type": kind}), DEVICE)
        assert roof.paths == {"any": peak}
        assert roof.peak == pytest.approx(DEVICE.compute.figure(peak).si)
    # Of 6 in TF32 at 156 and 1 in fp64 at 9.7 TFLOP/s the second takes longer: 7 in its time.
    mixed = roof_of(of({"tensor tf32": 6.0, "fp64": 1.0}), DEVICE)
    assert mixed.peak == pytest.approx(7 * 9.7e12)


def test_far_below_the_roof_it_says_what_to_look_for() -> None:
    """From 20 % of the roof to 80 %, and to 50 %."""
    for facts, of, words in (
        ({"sectors_per_store": 32.0}, {}, ("a store takes 32 sectors", "larger batch")),
        ({"sectors_per_load": 9.0}, {}, ("a load takes 9 sectors", "larger batch")),
        ({"sectors_per_load": 8.0, "occupancy": 49}, {}, ("occupancy is 49 %", "larger batch")),
        ({"occupancy": 50}, {}, ("WarpStateStats", "larger batch")),
        ({}, {"kind": "graph"}, ("kernels of the graph one by one", "Enlarge the batch")),
        ({"occupancy": 9}, {"calls": 1000}, ("Give each launch more work", "a CUDA graph")),
    ):
        far = finding(kernel(1e-3, 31.2e9, 0.387e9, facts=facts, **of))
        assert [each.speedup for each in far.remedies] == pytest.approx([4, 2.5])
        for each, said in zip(far.remedies, words, strict=True):
            assert said in each.words


def test_what_was_not_counted_has_no_place_unless_the_rest_tells() -> None:
    found = finding(uncounted({"dram": 1.548e9}))
    assert found.region == "memory-bound"
    assert "80%" in found.limit
    idle = finding(uncounted({"dram": 0.1935e9}))
    assert (idle.region, idle.remedies) == ("not known", ())
    assert "uses 10% of the memory bandwidth" in idle.limit
    assert "no counter" in idle.limit
    found = finding(kernel(1e-3, 1e9, 1e8, "tensor fp8"))
    assert found.region == "not known"
    assert "no peak on record for tensor fp8" in found.limit
    for flops, region, words in (
        (249.6e9, "compute-bound", "80% of the peak. Its bytes are not known"),
        (31.2e9, "not known", "It uses 10% of the peak"),
    ):
        found = finding(MeasuredKernel("k", 1, 1e-3, {"tensor bf16": flops}, {}))
        assert found.region == region
        assert words in found.limit


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
    assert "The host started 1,000 kernels, on average 5 µs each." in words
    # Copies and exchanges alone for 1 ms of 10: 10 / 9.
    assert "1.11 times faster" in words
    assert "A kernel runs 2 µs, less than its start" in words
    assert "all_reduce (4 times, 8 MB at 8 GB/s)" in words
    assert "host to device (2 times, 10 MB at 20 GB/s)" in words
    # One waits for memory and one for arithmetic; together they look like neither.
    one, two = kernel(1e-3, 31.2e9, 1.548e9), kernel(1e-3, 249.6e9, 0.1935e9)
    whole = diagnose(MeasuredProfile((one, two), "test"), hardware=DEVICE).whole
    assert whole.intensity == pytest.approx(280.8e9 / 1.7415e9)
    assert whole.rate == pytest.approx(280.8e9 / 2e-3)
    assert whole.region == "far below the roof"


def test_one_long_start_is_told_apart_and_moves_no_advice() -> None:
    """77 starts of 9 µs and one of 3 s have a mean of 38 ms; a kernel runs 20 µs."""
    kernels = (MeasuredKernel("short", 78, 78 * 20e-6),)

    def said(times: list[float]) -> str:
        profile = MeasuredProfile(kernels, "test", launches=Launches.of(times, []))
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
    names = (FIXTURES / "texts" / "names_in_profiles.txt").read_text("utf-8").splitlines()
    for name, key in (line.split(" | ") for line in names):
        assert diagnose(MeasuredProfile((), "test", device_name=name)).device.key == key, name
    with pytest.raises(InvalidValueError, match="'NVIDIA GeForce RTX 5050', which the zoo"):
        diagnose(MeasuredProfile((), "test", device_name="NVIDIA GeForce RTX 5050"))
    with pytest.raises(InvalidValueError, match="names no device"):
        diagnose(MeasuredProfile((), "test"))
