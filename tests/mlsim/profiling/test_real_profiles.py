"""Files that profilers wrote, of the reference data and of the package: figures and refusals."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from mlsim.errors import DataFileError, NotMeasuredError, UnknownNameError
from mlsim.hardware.device import load_device
from mlsim.profiling import (
    MeasuredProfile,
    join,
    read_profile,
    sample_profile,
    sample_profiles,
)
from mlsim.records import DATA

FOLDER = Path(os.environ.get("MLSIM_REFERENCE", "/nowhere")) / "data" / "profiles"
needs_reference = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the reference data")


def profile(name: str) -> MeasuredProfile:
    return read_profile(next(FOLDER.glob(name)))


def samples(*names: str) -> list[MeasuredProfile]:
    return [read_profile(sample_profile(name)) for name in names]


# ---- of the reference data ----


@needs_reference
def test_tensor_work_of_an_a100_gives_the_points_that_its_owner_derived() -> None:
    with (FOLDER / "a100pcie_expected_points.csv").open() as file:
        expected = {row["bf16_dense_tensor_ops"]: row for row in csv.DictReader(file)}
    for name in ("ncu_details_tensor_counters", "ncu_raw_wide_column_subset"):
        kernels = profile(f"a100pcie_{name}.csv").kernels
        assert len(kernels) == len(expected) == 3
        for each in kernels:
            row = expected[f"{each.flop_count:.0f}"]
            found = (each.byte_count(), each.intensity.si, each.rate.si / 1e12, each.time.si * 1e6)
            names = ("dram_bytes", "tensor_ops_per_dram_byte", "tensor_tops", "duration_us")
            assert found == pytest.approx([float(row[name]) for name in names])
            assert each.operations.keys() == {"tensor bf16"}


@needs_reference
def test_the_seeds_formula_gives_its_figure_and_tensor_work_is_refused() -> None:
    counted, trace = profile("hta_benchmark_result_924719*"), profile("hta_*_2869224*")
    # 2 x 39,142,369,720 fused + 964,651,656 + 430,063,616.
    assert counted.total.operations["fp32"] == counted.counted_flops.si == 79_679_454_712
    # Six launches of an implicit product on tensor cores: the formula does not see them.
    with pytest.raises(NotMeasuredError, match="sm__ops_path_tensor_src_bf16_dst_fp32"):
        _ = counted.flops
    # 77 ranges of equal length are replays.
    with pytest.raises(NotMeasuredError, match="runs kernels several times"):
        _ = counted.time
    assert sum(each.calls for each in counted.kernels) == 77
    # 30.16 GFLOP in 2.62 ms, below the 19.5 TFLOP/s of an A100's CUDA cores.
    both = join(counted, trace)
    sgemm = both.kernel("ampere_sgemm_32x32")
    assert sgemm.calls == 6
    assert 10e12 < sgemm.rate.si < 19.5e12
    assert "flops" in both.kernel("sm80_xmma_fprop").missing


@needs_reference
def test_a_trace_gives_times_copies_launches_and_how_busy_the_device_was() -> None:
    trace = profile("hta_benchmark_result_2869224*")
    assert sum(each.calls for each in trace.kernels) == 79
    # Durations of the 79 kernels: 10,692 microseconds in all. Two streams overlap for 62 of them.
    assert trace.time.si == pytest.approx(10_692e-6)
    (activity,) = trace.activity
    assert activity.computing == pytest.approx(10_630e-6)
    assert activity.busy == pytest.approx(activity.computing + activity.exposed)
    assert 0.004 < activity.share < 0.006
    assert trace.launches is not None
    assert (trace.launches.calls, trace.launches.usual) == (79, pytest.approx(9e-6))
    assert trace.launches.longest == pytest.approx(3.06, rel=0.01)
    assert {each.name: each.calls for each in trace.copies} == {"host to device": 16, "fill": 3}
    assert trace.device_name == "NVIDIA A100-PG509-200"
    with pytest.raises(NotMeasuredError, match="Join it with a file of Nsight Compute"):
        _ = trace.flops
    # Of a CPU alone: 11 events of gloo, some within others, each with the elements of its input.
    alone = profile("hta_rank-34*")
    (exchange,) = alone.exchanges
    assert exchange.name.startswith("gloo:")
    assert any("no kernel of a GPU" in note for note in alone.notes)
    assert alone.activity == ()


def test_a_full_set_of_an_h100_has_units_gaps_and_shares_below_zero() -> None:
    """Counts "thread", says "no data", and the least of all units is -0.16 %: product 2 x 4096^3."""
    found = read_profile(Path(__file__).parents[2] / "fixtures/profiles/h100_ncu_raw_full_set.csv")
    product = found.kernel("nvjet_sm90")
    assert product.flops.si == 2 * 2 * 4096**3
    assert product.time.si == pytest.approx(429.984e-6)
    assert found.device_name == "NVIDIA H100 80GB HBM3"


@needs_reference
def test_files_of_a_b200_have_time_alone() -> None:
    for name, launches, nanoseconds in (
        ("b200_*flashinfer*", 64, 20_636_608),
        ("b200_*sdpa*", 16, 3_262_944),
    ):
        found = profile(name)
        assert sum(each.calls for each in found.kernels) == launches
        assert found.time.si == pytest.approx(nanoseconds * 1e-9)
        assert found.device_name == "NVIDIA B200"
        for each in found.kernels:
            with pytest.raises(NotMeasuredError, match="sm__ops_path_tensor"):
                _ = each.flops
            with pytest.raises(NotMeasuredError, match="dram__bytes_read"):
                each.bytes()
    # What used the tensor cores says which metric shows it.
    flash = profile("b200_*sdpa*").kernel("flash_fwd_splitkv_kernel").missing["flops"]
    assert "subpipe_hmma" in flash
    assert "65.89" in flash


@needs_reference
def test_thousands_separators_a_mark_of_bytes_and_older_spellings_are_read() -> None:
    naive = profile("rtx5070_ncu_long_gemm_naive.csv").kernels[0]
    assert naive.byte_count() == 54_207_744 + 26_601_216
    assert naive.byte_count("l1") == (1_342_177_280 + 524_288) * 32
    assert (naive.seconds, naive.facts["cc"]) == (pytest.approx(9_589_248e-9), "12.0")
    # Three vectors of 16,777,216 numbers; the cache keeps part of what is written.
    saxpy = profile("rtx5070_ncu_long_saxpy.csv").kernels[0]
    assert saxpy.bandwidth().si == pytest.approx(607.2e9, abs=0.1e9)
    older = profile("rtx30xx*").kernels[0]
    assert (older.seconds, older.byte_count()) == (pytest.approx(284_512e-9), 24_880_256)
    assert older.facts["dram_throughput"] == 24.98


@needs_reference
def test_operators_of_a_cpu_are_counted_from_shapes() -> None:
    trace, table = profile("own_cpu*trace.json"), profile("own_cpu*key_averages.txt")
    # AlexNet as torchvision has it: 714,188,480 multiply-adds a sample, by its layers.
    assert trace.flops.si == 8 * 2 * 714_188_480
    # 8 x 192 x 27 x 27 results, each of 64 x 5 x 5 multiply-adds.
    first = trace.kernels[0]
    assert (first.name, first.flop_count) == ("aten::conv2d", 2 * 8 * 192 * 27 * 27 * 64 * 25)
    # A table that leaves rows out gives no total.
    assert table.time.si == pytest.approx(0.357189)
    with pytest.raises(NotMeasuredError, match="row_limit=-1"):
        _ = table.flops
    shown = next(each for each in table.operators if each.name == "aten::conv2d")
    # With the time of all that it calls, not with its own 13 microseconds.
    assert (shown.flop_count, shown.seconds) == pytest.approx((3583.181e6, 55.905e-3))


@needs_reference
def test_no_file_is_passed_over() -> None:
    """Each file but those that are no profiles is read; these say what they are."""
    refused = {
        "a100pcie_expected_points.csv": "the columns id, name, duration_us",
        "rtx5070_timing.csv": "the columns kernel, variant",
        "rtx5070_metrics_used.txt": "a list of metrics without values",
        "rtx5070_ncu_version.txt": "ncu --version",
        "SOURCES.md": "begins with '# Real profiler samples",
        "rtx5070_peaks.csv": "the columns",
    }
    for path in sorted(FOLDER.iterdir()):
        if path.name in refused:
            with pytest.raises(DataFileError, match=refused[path.name]):
                read_profile(path)
        else:
            assert read_profile(path).kernels, path.name


# ---- of the package ----


def test_each_sample_has_its_file_its_source_and_its_license() -> None:
    bibliography = (DATA / "references.bib").read_text("utf-8")
    listed = sample_profiles().values()
    odd = [each for each in listed if f"{{{each.source}," not in bibliography or not each.license]
    assert odd == []
    files = {path.name for path in (DATA / "profiles").iterdir()} - {"samples.toml"}
    assert files == {each.path.name for each in listed}
    with pytest.raises(UnknownNameError, match="vllm_a100_graphs"):
        sample_profile("vllm_graphs")


def test_the_published_points_say_which_counters_they_are_from() -> None:
    """Their authors derived 93.07, 48.29 and 26.94 FLOP/byte, 32.0, 37.6 and 25.4 TFLOP/s."""
    (graphs,) = samples("vllm_a100_graphs")
    points = {(round(k.intensity.magnitude, 2), round(k.rate.si / 1e12, 1)) for k in graphs.kernels}
    assert points == {(93.07, 32.0), (48.29, 37.6), (26.94, 25.4)}
    graph = graphs.kernels[0]
    how = graph.intensity.origin.how
    assert "sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum" in how
    assert "dram__bytes_read.sum + dram__bytes_write.sum" in how
    assert graph.rate.si == graph.flop_count / graph.seconds
    assert "gpu__time_duration.sum" in graph.bandwidth().origin.how


def test_the_kernels_of_a_prefill_add_up_to_time_alone() -> None:
    (found,) = samples("llama31_8b_prefill_rtx4090")
    assert len(found.kernels) == 15
    assert found.time.si == pytest.approx(198_511_027e-9)
    assert (found.kernels[0].name, found.kernels[0].calls) == ("flash_attention_prefill_f16", 32)
    with pytest.raises(NotMeasuredError, match="Nsight Systems counts no operations"):
        _ = found.flops


def test_work_of_one_file_meets_the_times_of_the_other() -> None:
    """By kernel; on a processor by operator and shape, as the book counts ResNet-50."""
    linear = join(*samples("alexnet_a100_counts", "alexnet_a100_times")).kernel(
        "ampere_sgemm_32x32_sliced1x4_tn"
    )
    # Two passes over 128 pictures, three linear layers with 58.6 million weights, and some more.
    assert linear.flop_count == pytest.approx(2 * 128 * 2 * 58.6e6, rel=0.01)
    assert linear.calls == 6
    both = join(*samples("resnet50_xeon_counts", "resnet50_xeon_times"))
    # 8 x 8,178,368,512 in each of three passes.
    assert both.flops.si == 3 * 8 * 8_178_368_512
    shape = "[8, 256, 14, 14] x [256, 256, 3, 3]"
    (largest,) = (each for each in both.kernels if each.facts.get("shape") == shape)
    # Five such convolutions a pass, each 2 x 8 x 256 x 14 x 14 x 256 x 9 operations.
    assert (largest.calls, largest.flop_count) == (15, 15 * 2 * 8 * 256 * 14 * 14 * 256 * 9)
    peak = load_device(sample_profile("resnet50_xeon_machine")).compute.peak("fp32")
    assert largest.rate.si < peak.si
    # A figure of a measured machine cites no document.
    assert "mlsim measure" in peak.origin.brief
    assert "[@" not in peak.origin.brief
    with pytest.raises(NotMeasuredError, match="counts no bytes"):
        both.kernels[0].bytes()
