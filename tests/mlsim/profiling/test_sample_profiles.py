"""Profiles that come with the package are read, and their sources exist."""

from __future__ import annotations

import pytest

from mlsim.errors import NotMeasuredError, UnknownNameError
from mlsim.hardware.device_files import load_device
from mlsim.profiling import join, read_profile, sample_profile, sample_profiles
from mlsim.records import DATA


def test_each_has_its_file_its_source_and_its_license() -> None:
    bibliography = (DATA / "references.bib").read_text("utf-8")
    listed = sample_profiles().values()
    assert len(listed) > 3
    for each in listed:
        assert each.path.is_file()
        assert f"{{{each.source}," in bibliography
        assert each.license
    files = {path.name for path in (DATA / "profiles").iterdir()} - {"samples.toml"}
    assert files == {each.path.name for each in listed}


def test_the_published_points_of_the_graphs() -> None:
    """Their authors derived 93.07, 48.29 and 26.94 FLOP/byte, 32.0, 37.6 and 25.4 TFLOP/s."""
    kernels = read_profile(sample_profile("vllm_a100_graphs")).kernels
    points = {(round(k.intensity.magnitude, 2), round(k.rate.si / 1e12, 1)) for k in kernels}
    assert points == {(93.07, 32.0), (48.29, 37.6), (26.94, 25.4)}


def test_figures_of_a_kernel_say_which_counters_they_are_from() -> None:
    graph = read_profile(sample_profile("vllm_a100_graphs")).kernels[0]
    how = graph.intensity.origin.how
    assert "sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum" in how
    assert "dram__bytes_read.sum + dram__bytes_write.sum" in how
    assert graph.rate.si == graph.flop_count / graph.seconds
    assert "gpu__time_duration.sum" in graph.bandwidth().origin.how


def test_the_kernels_of_a_prefill_add_up() -> None:
    found = read_profile(sample_profile("llama31_8b_prefill_rtx4090"))
    assert len(found.kernels) == 15
    assert found.time.to("ns").magnitude == pytest.approx(198_511_027)


def test_work_of_one_trace_meets_the_times_of_the_other() -> None:
    counts, times = (read_profile(sample_profile(f"alexnet_a100_{k}")) for k in ("counts", "times"))
    linear = join(counts, times).kernel("ampere_sgemm_32x32_sliced1x4_tn")
    # Two passes over 128 pictures, three linear layers with 58.6 million weights, and some more.
    assert linear.flop_count == pytest.approx(2 * 128 * 2 * 58.6e6, rel=0.01)
    assert linear.calls == 6


def test_resnet50_on_a_processor_is_counted_as_the_book_counts_it() -> None:
    """Operations of one file, times of the other, by operator and shape."""
    counts, times = (
        read_profile(sample_profile(f"resnet50_xeon_{k}")) for k in ("counts", "times")
    )
    both = join(counts, times)
    # 8 x 8,178,368,512 in each of three passes.
    assert both.flops.to("FLOP").magnitude == 3 * 8 * 8_178_368_512
    shape = "[8, 256, 14, 14] x [256, 256, 3, 3]"
    (largest,) = (each for each in both.kernels if each.facts.get("shape") == shape)
    # Five such convolutions a pass, each 2 x 8 x 256 x 14 x 14 x 256 x 9 operations.
    assert largest.calls == 3 * 5
    assert largest.flop_count == 15 * 2 * 8 * 256 * 14 * 14 * 256 * 9
    machine = load_device(sample_profile("resnet50_xeon_machine"))
    assert largest.rate.si < machine.compute.figure("fp32").si
    with pytest.raises(NotMeasuredError, match="counts no bytes"):
        both.kernels[0].bytes()


def test_a_figure_of_a_measured_machine_cites_no_document() -> None:
    peak = load_device(sample_profile("resnet50_xeon_machine")).compute.peak("fp32")
    assert "mlsim measure" in peak.origin.brief
    assert "[@" not in peak.origin.brief


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="vllm_a100_graphs"):
        sample_profile("vllm_graphs")
