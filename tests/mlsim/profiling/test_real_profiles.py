"""Files that profilers wrote: each gives its figures, or a refusal that names what is missing."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from mlsim.errors import DataFileError, NotMeasuredError
from mlsim.profiling import MeasuredProfile, join, read_profile

FOLDER = Path(os.environ.get("MLSIM_REFERENCE", "/nowhere")) / "data" / "profiles"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the reference data")


def profile(name: str) -> MeasuredProfile:
    return read_profile(next(FOLDER.glob(name)))


@pytest.mark.parametrize(
    "name", ["a100pcie_ncu_details_tensor_counters.csv", "a100pcie_ncu_raw_wide_column_subset.csv"]
)
def test_tensor_work_of_an_a100_gives_the_points_that_its_owner_derived(name: str) -> None:
    with (FOLDER / "a100pcie_expected_points.csv").open() as file:
        expected = {row["bf16_dense_tensor_ops"]: row for row in csv.DictReader(file)}
    kernels = profile(name).kernels
    assert len(kernels) == len(expected) == 3
    for each in kernels:
        row = expected[f"{each.flop_count:.0f}"]
        assert each.byte_count() == float(row["dram_bytes"])
        assert each.intensity.to("FLOP/B").magnitude == pytest.approx(
            float(row["tensor_ops_per_dram_byte"])
        )
        assert each.rate.to("TFLOP/s").magnitude == pytest.approx(float(row["tensor_tops"]))
        assert each.time.to("us").magnitude == pytest.approx(float(row["duration_us"]))
        assert each.operations.keys() == {"tensor bf16"}


def test_the_seeds_formula_gives_its_figure_and_tensor_work_is_refused() -> None:
    counted = profile("hta_benchmark_result_924719*")
    # 2 x 39,142,369,720 fused + 964,651,656 + 430,063,616.
    assert counted.total.operations["fp32"] == 79_679_454_712
    assert counted.counted_flops.to("FLOP").magnitude == 79_679_454_712
    # Six launches of an implicit product on tensor cores: the formula does not see them.
    with pytest.raises(NotMeasuredError, match="sm__ops_path_tensor_src_bf16_dst_fp32"):
        _ = counted.flops
    # 77 ranges of equal length are replays.
    with pytest.raises(NotMeasuredError, match="runs kernels several times"):
        _ = counted.time
    assert sum(each.calls for each in counted.kernels) == 77


def test_a_trace_gives_times_copies_launches_and_how_busy_the_device_was() -> None:
    trace = profile("hta_benchmark_result_2869224*")
    assert sum(each.calls for each in trace.kernels) == 79
    # Durations of the 79 kernels: 10,692 microseconds in all. Two streams overlap for 62 of them.
    assert trace.time.to("us").magnitude == pytest.approx(10_692)
    (activity,) = trace.activity
    assert activity.computing == pytest.approx(10_630e-6)
    assert activity.busy == pytest.approx(activity.computing + activity.exposed)
    assert 0.004 < activity.share < 0.006
    assert trace.launches is not None
    assert trace.launches.calls == 79
    assert trace.launches.usual == pytest.approx(9e-6)
    assert trace.launches.longest == pytest.approx(3.06, rel=0.01)
    assert {each.name: each.calls for each in trace.copies} == {"host to device": 16, "fill": 3}
    assert trace.device_name == "NVIDIA A100-PG509-200"
    with pytest.raises(NotMeasuredError, match="Join it with a file of Nsight Compute"):
        _ = trace.flops


def test_counters_of_one_run_join_times_of_another() -> None:
    counted, trace = profile("hta_benchmark_result_924719*"), profile("hta_*_2869224*")
    both = join(counted, trace)
    sgemm = both.kernel("ampere_sgemm_32x32")
    # 30.16 GFLOP in 2.62 ms, below the 19.5 TFLOP/s of an A100's CUDA cores.
    assert sgemm.calls == 6
    assert 10 < sgemm.rate.to("TFLOP/s").magnitude < 19.5
    assert "flops" in both.kernel("sm80_xmma_fprop").missing


def test_a_trace_of_a_cpu_alone_has_its_exchange() -> None:
    trace = profile("hta_rank-34*")
    (exchange,) = trace.exchanges
    # 11 events of gloo, some within others, each with the elements of its input.
    assert exchange.name.startswith("gloo:")
    assert any("no kernel of a GPU" in note for note in trace.notes)
    assert trace.activity == ()


def test_a_summary_of_nsight_systems_has_time_alone() -> None:
    summary = profile("nsys_cuda_gpu_kern_sum*")
    assert len(summary.kernels) == 15
    assert summary.time.to("ns").magnitude == pytest.approx(198_511_027)
    assert summary.kernels[0].name == "flash_attention_prefill_f16"
    assert summary.kernels[0].calls == 32
    with pytest.raises(NotMeasuredError, match="Nsight Systems counts no operations"):
        _ = summary.flops


@pytest.mark.parametrize(
    ("name", "launches", "nanoseconds"),
    [("b200_*flashinfer*", 64, 20_636_608), ("b200_*sdpa*", 16, 3_262_944)],
)
def test_files_of_a_b200_have_time_alone(name: str, launches: int, nanoseconds: int) -> None:
    found = profile(name)
    assert sum(each.calls for each in found.kernels) == launches
    assert found.time.to("ns").magnitude == pytest.approx(nanoseconds)
    assert found.device_name == "NVIDIA B200"
    for each in found.kernels:
        with pytest.raises(NotMeasuredError, match="sm__ops_path_tensor"):
            _ = each.flops
        with pytest.raises(NotMeasuredError, match="dram__bytes_read"):
            each.bytes()


def test_a_kernel_that_used_tensor_cores_says_which_metric_shows_it() -> None:
    flash = profile("b200_*sdpa*").kernel("flash_fwd_splitkv_kernel")
    assert "subpipe_hmma" in flash.missing["flops"]
    assert "65.89" in flash.missing["flops"]


def test_thousands_separators_a_mark_of_bytes_and_other_output_are_read() -> None:
    naive = profile("rtx5070_ncu_long_gemm_naive.csv").kernels[0]
    assert naive.byte_count() == 54_207_744 + 26_601_216
    assert naive.byte_count("l1") == (1_342_177_280 + 524_288) * 32
    assert naive.seconds == pytest.approx(9_589_248e-9)
    assert naive.facts["cc"] == "12.0"
    saxpy = profile("rtx5070_ncu_long_saxpy.csv").kernels[0]
    # Three vectors of 16,777,216 numbers; the cache keeps part of what is written.
    assert saxpy.bandwidth().to("GB/s").magnitude == pytest.approx(607.2, abs=0.1)


def test_an_older_spelling_of_nanoseconds_is_read() -> None:
    found = profile("rtx30xx*").kernels[0]
    assert found.seconds == pytest.approx(284_512e-9)
    assert found.byte_count() == 24_880_256
    assert found.facts["dram_throughput"] == 24.98


def test_operators_of_a_cpu_are_counted_from_shapes() -> None:
    trace = profile("own_cpu*trace.json")
    # AlexNet as torchvision has it: 714,188,480 multiply-adds a sample, by its layers.
    assert trace.flops.to("FLOP").magnitude == 8 * 2 * 714_188_480
    first = trace.kernels[0]
    assert first.name == "aten::conv2d"
    # 8 x 192 x 27 x 27 results, each of 64 x 5 x 5 multiply-adds.
    assert first.flop_count == 2 * 8 * 192 * 27 * 27 * 64 * 25


def test_a_table_that_leaves_rows_out_gives_no_total() -> None:
    table = profile("own_cpu*key_averages.txt")
    assert table.time.to("ms").magnitude == pytest.approx(357.189)
    with pytest.raises(NotMeasuredError, match="row_limit=-1"):
        _ = table.flops
    shown = next(each for each in table.operators if each.name == "aten::conv2d")
    assert shown.flop_count == pytest.approx(3583.181e6)
    # With the time of all that it calls, not with its own 13 microseconds.
    assert shown.seconds == pytest.approx(55.905e-3)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a100pcie_expected_points.csv", "the columns id, name, duration_us"),
        ("rtx5070_timing.csv", "the columns kernel, variant"),
        ("rtx5070_metrics_used.txt", "a list of metrics without values"),
        ("rtx5070_ncu_version.txt", "ncu --version"),
        ("SOURCES.md", "begins with '# Real profiler samples"),
    ],
)
def test_what_is_no_profile_says_what_it_is(name: str, why: str) -> None:
    with pytest.raises(DataFileError, match=why):
        profile(name)


def test_no_file_is_passed_over() -> None:
    """Each file but those five that are no profiles is read."""
    refused = {"a100pcie_expected_points.csv", "rtx5070_timing.csv", "rtx5070_metrics_used.txt"}
    refused |= {"rtx5070_ncu_version.txt", "rtx5070_peaks.csv", "SOURCES.md"}
    for path in sorted(FOLDER.iterdir()):
        if path.name not in refused:
            assert read_profile(path).kernels, path.name
