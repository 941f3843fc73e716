"""Measured kernels under a roof: where they stand, how large they are, what they are called."""

from __future__ import annotations

import pytest

from mlsim import Hardware, plot_roofline
from mlsim.errors import InvalidValueError, NotMeasuredError, UnknownNameError
from mlsim.plots import data_of
from mlsim.profiling import MeasuredKernel, MeasuredProfile

PROFILE = MeasuredProfile(
    (
        MeasuredKernel("gemm", 1, 3e-3, {"tensor bf16": 300e9}, {"dram": 1e9, "l2": 4e9}),
        MeasuredKernel("add", 1, 1e-3, {"fp32": 0.1e9}, {"dram": 1.2e9, "l2": 1.2e9}),
        MeasuredKernel("copy", 1, 1e-3, {"fp32": 0.0}, {"dram": 1.2e9}),
    ),
    "test",
    device_name="NVIDIA A100 80GB PCIe",
)


def test_points_stand_at_what_was_measured_and_are_as_large_as_their_time() -> None:
    figure, ax = plot_roofline(measured=PROFILE)
    large, small = (dots for dots in ax.collections if len(dots.get_offsets()) == 1)
    assert tuple(large.get_offsets()[0]) == (pytest.approx(300), pytest.approx(100))
    assert tuple(small.get_offsets()[0]) == (pytest.approx(0.1e9 / 1.2e9), pytest.approx(0.1))
    assert large.get_sizes()[0] > 2 * small.get_sizes()[0]
    rows = {row["Point"]: row for row in data_of(figure)}
    assert rows["gemm"]["Region"] == "far below the roof"
    assert rows["add"]["Region"] == "memory-bound"
    assert rows["add"]["First"]
    assert rows["add"]["Second"]
    # 300.1 GFLOP for 3.4 GB in 5 ms.
    assert rows["all kernels together"]["Rate (TFLOP/s)"] == pytest.approx(300.1 / 5)
    assert rows["all kernels together"]["Arithmetic intensity (FLOP/byte)"] == pytest.approx(
        300.1 / 3.4
    )
    # What moves bytes and computes nothing has no place on two logarithmic axes.
    assert "1 kernels (20% of the time) have no place" in [text.get_text() for text in ax.texts]
    for dots in (large, small):
        x, y = dots.get_offsets()[0]
        assert ax.get_xlim()[0] < x < ax.get_xlim()[1]
        assert ax.get_ylim()[0] < y < ax.get_ylim()[1]


def test_levels_and_ceilings_are_drawn() -> None:
    _, ax = plot_roofline(measured=PROFILE, levels=["dram", "l2"], bandwidths={"l2": "5 TB/s"})
    offsets = [tuple(d.get_offsets()[0]) for d in ax.collections if len(d.get_offsets())]
    assert sorted(x for x, _ in offsets) == pytest.approx([0.1 / 1.2, 0.1 / 1.2, 75, 300])
    words = [text.get_text() for text in ax.texts]
    assert "L2 5 TB/s" in words
    assert "no tensor cores (fp32)" in words
    assert "one core of 108" in words
    _, bare = plot_roofline(measured=PROFILE, ceilings=False)
    assert "no tensor cores (fp32)" not in [text.get_text() for text in bare.texts]
    _, predicted = plot_roofline(Hardware.Cloud.A100, ceilings=True)
    assert "one core of 108" in [text.get_text() for text in predicted.texts]


def test_what_can_not_be_drawn_is_refused() -> None:
    timed = MeasuredProfile((MeasuredKernel("k", 1, 1e-3, missing={"flops": "add m"}),), "test")
    with pytest.raises(NotMeasuredError, match="add m"):
        plot_roofline("A100", measured=timed)
    with pytest.raises(UnknownNameError, match="no level of memory is called 'l3'"):
        plot_roofline(measured=PROFILE, levels=["l3"])
    with pytest.raises(InvalidValueError, match="needs hardware"):
        plot_roofline()
    with pytest.raises(InvalidValueError, match="one after the other"):
        plot_roofline("A100", measured=PROFILE, workloads=["ResNet50"])
