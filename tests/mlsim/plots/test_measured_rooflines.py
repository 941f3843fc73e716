"""Measured runs by hand: kernels under a roof, tasks over time, regions, and a report."""

from __future__ import annotations

import re
from math import log, sqrt

import pytest

from mlsim import Device, Hardware, plot_roofline
from mlsim.errors import InvalidValueError, NotMeasuredError, UnknownNameError
from mlsim.plots import data_of, plot_regions, plot_tasks, report
from mlsim.plots.drawing import draw_ceilings
from mlsim.plots.profiles import _MOST_ROWS, roofline_svg
from mlsim.profiling import MeasuredKernel, MeasuredProfile, Task, diagnose
from mlsim.profiling.diagnosis import points_of

PROFILE = MeasuredProfile(
    (
        MeasuredKernel("gemm", 1, 3e-3, {"tensor bf16": 300e9}, {"dram": 1e9, "l2": 4e9}),
        MeasuredKernel("add", 1, 1e-3, {"fp32": 0.1e9}, {"dram": 1.2e9, "l2": 1.2e9}),
        MeasuredKernel("copy", 1, 1e-3, {"fp32": 0.0}, {"dram": 1.2e9}),
    ),
    "test",
    device_name="NVIDIA A100 80GB PCIe",
)
MINE = Device(
    "Mine", peak_flops={"fp32": "100 TFLOP/s"}, memory_bandwidth="1 TB/s", memory_capacity="16 GB"
)


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


def test_tasks_lie_in_their_lanes_from_their_beginning() -> None:
    tasks = [
        Task("a", 2, (), "x", 3.0), Task("b", 5, ("a",), "y", 7.0), Task("c", 1, (), "y", 0.0)
    ]  # fmt: skip
    figure, ax = plot_tasks(tasks)
    bars = [(p.get_x(), p.get_y() + p.get_height() / 2, p.get_width()) for p in ax.patches]
    assert bars == [(3, 0, 2), (7, 1, 5), (0, 1, 1)]
    assert [p.get_hatch() or "" for p in ax.patches] == ["//", "//", ""]
    assert [t.get_position()[0] for t in ax.texts] == [4, 9.5, 0.5]
    assert [t.get_position()[1] for t in ax.texts] == pytest.approx([-0.42, 0.58, 0.58])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["x", "y"]
    assert (ax.get_ylim()[0], ax.get_ylim()[1] < -0.42) == (1.5, True)
    assert [row["Begins (s)"] for row in data_of(figure)] == [3, 7, 0]


def test_each_region_has_its_name_within_it() -> None:
    """6 TFLOP/s over 200 GB/s: the ridge is 30, and two points stand beyond a hundredth of it."""
    points = {"p": (0.15, 6e8), "q": (7000.0, 5e12)}
    figure, ax = plot_regions(6e12, 2e11, points)
    assert ax.get_xlim() == pytest.approx((0.05, 21000))
    assert ax.get_ylim() == pytest.approx((2e8, 3.6e13))
    roof, ridge, p, q = (list(zip(*line.get_data(), strict=True)) for line in ax.lines)
    assert sum(roof, ()) == pytest.approx((0.05, 1e10, 30, 6e12, 21000, 6e12))
    assert (ridge, p, q) == ([(30, 2e8), (30, 6e12)], [points["p"]], [points["q"]])
    near = ax.collections[0].get_paths()[0].vertices  # from half of the roof to the roof
    assert {round(y) for _, y in near} == {5e9, 3e12, 1e10, 6e12}
    found = {}
    for each in ax.texts:
        x, y = each.xy if hasattr(each, "xy") else each.get_position()
        found[each.get_text().replace("\n", " ")] = (x > 30, y / min(6e12, x * 2e11))
    assert [words for words, (right, _) in found.items() if right] == [
        "above the peak", "compute-bound", "far below the roof",
    ]  # fmt: skip
    of_roof = {words: share for words, (_, share) in found.items()}
    assert min(of_roof["above the peak"], of_roof["above the slope"]) > 1
    assert all(0.5 < of_roof[each] < 1 for each in ("compute-bound", "memory-bound"))
    assert of_roof["far below the roof"] < 0.5
    assert [tuple(row.values())[1:] for row in data_of(figure)] == [
        (0.15, 6e8, 3e10), (7000, 5e12, 6e12),
    ]  # fmt: skip
    six = plot_regions(6e12, 2e11, dict.fromkeys("abcdef", (1.0, 1e9)))[1].lines[2:]
    assert [line.get_marker() for line in six] == list("os^Dvo")
    figure, ax = plot_regions(6e12, 2e11)
    assert (ax.get_xlim(), ax.get_ylim()) == (
        pytest.approx((0.3, 3000)),
        pytest.approx((2e9, 3.6e13)),
    )
    assert (ax.get_legend(), [*data_of(figure)[0].values()]) == (None, [30, 6e12])


def profile(*more: MeasuredKernel) -> MeasuredProfile:
    """64 s at half a FLOP per byte, 25 s at 500 of them, and 11 s of nothing but copies."""
    kernels = (
        MeasuredKernel("slow", 2, 64.0, {"fp32": 6.4e12}, {"dram": 12.8e12}),
        MeasuredKernel("fast<float>(int)", 3, 25.0, {"fp32": 5e15}, {"dram": 1e13}),
        MeasuredKernel("copy", 1500, 11.0, {"fp32": 0.0}, {"dram": 1e12}),
    )
    return MeasuredProfile((*kernels, *more), "a tool", files=("/far/away/run.csv",))


def test_a_drawn_roofline_has_its_points_where_a_ruler_finds_them() -> None:
    """From a third of the least to thrice the most: 1/6 to 1500 FLOP/byte, 1/30 to 600 TFLOP/s."""
    points = points_of(diagnose(profile(), hardware=MINE))
    svg = roofline_svg(points, MINE, 1e14, {"half": 5e13, "none": 1e10})
    wide, high = 760 - 70 - 16, 460 - 24 - 52

    def at(x: float, y: float) -> list[float]:
        return [70 + wide * log(6 * x) / log(9000), 408 - high * log(30e-12 * y) / log(18000)]

    circles = re.findall(r'class="(\w)" cx="(.*?)" cy="(.*?)" r="(.*?)"', svg)
    assert [each[0] for each in circles] == ["f", "u"]
    numbers = [float(each) for circle in circles for each in circle[1:]]
    assert numbers == pytest.approx(
        [*at(0.5, 1e11), 5 + 17 * sqrt(0.64), *at(500, 2e14), 5 + 17 * sqrt(0.25)], abs=0.06
    )
    lines = dict(re.findall(r'polyline class="(\w+)" points="(.*?)"', svg))
    roof = [float(each) for each in re.split("[ ,]", lines["roof"])]
    assert roof == pytest.approx([*at(1 / 6, 1e12 / 6), *at(100, 1e14), *at(1500, 1e14)], abs=0.06)
    ceiling = [float(each) for each in re.split("[ ,]", lines["ceiling"])]
    assert ceiling == pytest.approx([*at(50, 5e13), *at(1500, 5e13)], abs=0.06)
    grid = re.findall(r'class="grid" x1="(.*?)" x2="(.*?)" y1="(.*?)" y2="(.*?)"', svg)
    expected = [(x, x, 24, 408) for x in (at(10.0**n, 1)[0] for n in range(4))]
    expected += [(70, 744, y, y) for y in (at(1, 10.0**n)[1] for n in range(11, 15))]
    assert [tuple(map(float, each)) for each in grid] == [
        pytest.approx(each, abs=0.06) for each in expected
    ]
    words = {w: (float(x), float(y)) for x, y, w in re.findall(
        r'<text[^>]*? x="(.*?)" y="(.*?)".*?>(.*?)<', svg
    )}  # fmt: skip
    near = {
        "1": at(0.5, 1e11), "2": at(500, 2e14), "half": at(1500, 5e13), "peak 100 TFLOP/s":
        at(100, 1e14), "1 TB/s": at(0.5, 5e11), "100 GFLOP/s": (70, at(1, 1e11)[1]),
        "1 TFLOP/s": (70, at(1, 1e12)[1]), "1000": (at(1000, 1)[0], 422),
        "Arithmetic intensity (FLOP/byte)": (407, 448),
    }  # fmt: skip
    for name, (x, y) in near.items():
        assert words[name] == (pytest.approx(x, abs=12.1), pytest.approx(y, abs=8.1)), name
    assert "none" not in words
    assert "with 2 measured points" in svg
    # Without such points the roof itself sets an end: a 300th of the ridge, or ten times.
    for some, wide, high in (
        (points[1:], log(300) / log(4500), log(300) / log(1800)),
        (points[:1], log(600) / log(6000), log(3000) / log(9000)),
    ):
        drawn = re.findall(
            'class="roof" points=".*? (.*?),(.*?) ', roofline_svg(some, MINE, 1e14, {})
        )
        bend = [float(each) for each in drawn[0]]
        assert bend == pytest.approx([70 + 674 * wide, 408 - 384 * high], abs=0.06)


def test_a_report_lists_each_kernel_with_its_number() -> None:
    page = report(diagnose(profile(), hardware=MINE))
    rows = [re.sub("<.*?>", "|", each) for each in re.findall("<tr>(.*?)</tr>", page)]
    told = [[cell for cell in row.split("|") if cell] for row in rows]
    assert told[0] == ["Kernels", "1,505 launches"]
    assert [row[1] for row in told[1:4]] == ["100 s", "5.006 PFLOP", "23.8 TB"]
    assert told[4][0] == "All together"
    assert told[6][:6] == ["1", "slow", "2", "64 s (64%)", "6.4 TFLOP", "0.5"]
    assert told[7][:2] == ["2", "fast"]
    assert told[8][:2] == ["-", "copy"]
    assert "run.csv" in page
    assert "away" not in page
    assert "left out" not in page
    extra = [MeasuredKernel(f"k{n}", 1, 1e-3) for n in range(_MOST_ROWS)]
    page = report(profile(*extra))
    assert "3 shorter ones are left out" in page
    assert page.count("<tr>") == 4 + 1 + _MOST_ROWS
    assert page.count("The device is not known, so there is no roof") == 1


def test_a_roof_is_drawn_from_a_third_of_the_least_to_thrice_the_most() -> None:
    """100 TFLOP/s over 1 TB/s bend at 100 FLOP/byte; points may widen what is shown."""
    _, ax = plot_roofline(MINE, precision="fp32")
    roof = [1 / 3, 1 / 3, 100, 100, 1000, 100]
    assert ax.lines[0].get_xydata().ravel() == pytest.approx(roof)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (*ax.get_xlim(), *ax.get_ylim()) == pytest.approx((1 / 3, 1000, 1 / 3, 600))
    at = {text.get_text(): pytest.approx(text.xy) for text in ax.texts}
    assert at == {
        "peak 100 TFLOP/s": (100, 100), "ridge 100 FLOP/byte": (100, 1 / 3), "1 TB/s": (4 / 3, 4 / 3)
    }  # fmt: skip
    draw_ceilings(ax, {"half": 5e13, "little": 1e11}, 1e12)
    assert [line.get_xydata().ravel().tolist() for line in ax.lines[2:]] == [
        pytest.approx([50, 50, 1000, 50]), pytest.approx([0.1, 0.1, 1000, 0.1])
    ]  # fmt: skip
    assert [text.xy for text in ax.texts[3:]] == [(1000, 50), (1000, 0.1)]
    assert ax.get_ylim() == pytest.approx((0.05, 600))
    figure, ax = plot_roofline(
        MINE, measured=profile(), levels=["dram", "l2"], bandwidths={"l2": "5 TB/s"}
    )
    assert (*ax.get_xlim(), *ax.get_ylim()) == pytest.approx((1 / 6, 1500, 1 / 30, 600))
    slope, star = ax.lines[2], ax.lines[-1]
    assert slope.get_xydata().ravel() == pytest.approx([1 / 6, 5 / 6, 20, 100])
    assert star.get_xydata().ravel() == pytest.approx([5006.4 / 23.8, 50.064])
    dots = [each for each in ax.collections if len(each.get_offsets())]
    assert [each.get_offsets()[0].tolist() for each in dots] == [
        pytest.approx([0.5, 0.1]), pytest.approx([500, 200])
    ]  # fmt: skip
    sizes = [each.get_sizes()[0] for each in dots]
    assert sizes == pytest.approx([25 + 475 * 0.64, 25 + 475 * 0.25])
    at = {text.get_text(): pytest.approx(text.xy) for text in ax.texts if hasattr(text, "xy")}
    assert (at["1"], at["2"], at["L2 5 TB/s"]) == ((0.5, 0.1), (500, 200), (1 / 3, 5 / 3))
    # What moves bytes and computes nothing has no place on two logarithmic axes.
    assert "1 kernels (11% of the time) have no place" in [text.get_text() for text in ax.texts]
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words[:2] == ["1 slow: far below the roof", "2 fast: above the peak"]
    assert words[2] == "all kernels together"
    assert len(words) == 5
    ridge, whole, slow, fast = (list(row.values())[1:3] for row in data_of(figure))
    assert [ridge, slow, fast] == [pytest.approx(p) for p in ([100, 100], [0.5, 0.1], [500, 200])]
    assert whole == pytest.approx([5006.4 / 23.8, 50.064])
    assert [row.get("Part of the time") for row in data_of(figure)] == [None, None, 0.64, 0.25]
    first, ax = plot_roofline(measured=PROFILE)
    assert len(ax.get_legend().get_texts()) == 3  # of one level no marker is explained
    advice = {row["Point"]: row for row in data_of(first)}["add"]
    assert (advice["Region"], bool(advice["First"] and advice["Second"])) == ("memory-bound", True)
