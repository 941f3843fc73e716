"""Figures of stale updates and of number formats: peaks, bits, stairs and maps."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mlsim import Hardware
from mlsim.errors import InvalidValueError
from mlsim.measured.surfaces import MeasuredProduct
from mlsim.plots import data_of, plot_formats, plot_staleness
from mlsim.plots.formats import BITS, plot_bits, plot_format_map, plot_stairs
from mlsim.plots.machines import grows_from
from mlsim.systems.in_steps import largest_stable_rate


def test_staleness_shows_descent_and_limit() -> None:
    figure = plot_staleness(0.5, [0, 1], steps=4)
    rows = data_of(figure)
    drawn = [line.get_ydata()[0] for line in figure.axes[0].lines]
    assert (drawn, len(figure.axes[0].lines[0].get_ydata())) == ([1, 1], 5)
    formula, tried = (line.get_xydata() for line in figure.axes[1].lines)
    assert tried[:, 0].tolist() == [0, 1, 2, 4, 7, 15, 31]
    assert tried[:, 1] == pytest.approx(formula[tried[:, 0].astype(int), 1], rel=0.02)
    descent = [row for row in rows if row["Panel"] == "Descent" and row["Updates old"] == 0]
    assert [row["Distance"] for row in descent] == [1, 0.5, 0.25, 0.125, 0.0625]
    limits = [row["Limit"] for row in rows if row["Panel"] == "Limit"]
    assert limits[:2] == pytest.approx([2, 1])


@pytest.mark.parametrize("delay", [0, 1, 7, 31])
def test_the_simulation_grows_where_the_formula_says(delay: int) -> None:
    assert grows_from(delay) == pytest.approx(largest_stable_rate(delay), rel=0.02)


def test_formats_shows_the_zoos_peaks() -> None:
    figure, ax = plot_formats([Hardware.Cloud.A100, Hardware.Cloud.H100])
    rows = {(row["Device"], row["Format"]): row["Dense peak (TFLOP/s)"] for row in data_of(figure)}
    assert rows["NVIDIA A100 SXM 80 GB", "fp16"] == 312
    assert ("NVIDIA A100 SXM 80 GB", "fp8") not in rows
    names = [label.get_text().lower() for label in ax.get_xticklabels()]
    assert names == ["fp64", "fp32", "tf32", "fp16", "fp8", "fp4"]
    for line in ax.lines:
        peaks = {name: peak for (device, name), peak in rows.items() if device == line.get_label()}
        assert {names[int(x)]: y for x, y in line.get_xydata()} == peaks


@pytest.mark.parametrize("count", [0, 5])
def test_too_few_or_many_delays_are_refused(count: int) -> None:
    with pytest.raises(InvalidValueError, match=f"one to 4 delays, not {count}"):
        plot_staleness(0.3, list(range(count)))


def test_no_device_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="one to 7 devices, not 0"):
        plot_formats([])


def test_bits_add_up_to_what_a_format_is_called() -> None:
    figure, ax = plot_bits()
    rows, sides = data_of(figure), [(p.get_x(), p.get_width()) for p in ax.patches]
    assert sides[:3] == [(0, 1), (1, 8), (9, 23)]
    for name, row, label in zip(BITS, rows, ax.texts, strict=True):
        bits = int(re.search(r"\d+", name)[0])
        assert (row["Format"], sum([*row.values()][1:4])) == (name, bits)
        assert bits < label.get_position()[0] < bits + 1
        shares = {"M": (32, "+ 8 for 32"), "N": (16, "+ 8 for 16")}.get(name[0], (0, ""))
        assert (row["share a scale"], label.get_text()) == shares
    exponents = [row["exponent"] for row in rows]
    assert exponents == [8, 8, 5, 4, 5, 4, 2, 2, 0]
    assert ax.get_xlim()[0] == 0 < 32 <= ax.get_xlim()[1]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["sign", "exponent", "mantissa"]


def product(rows: int, bf16: float, **other: float) -> MeasuredProduct:
    return MeasuredProduct("Cloud.H100", rows, 11, 13, {"bf16": bf16, **other})


def test_stairs_and_maps_stand_at_their_rows() -> None:
    measured = [product(3, 7e-6), product(5, 1.1e-5)]
    figure, ax = plot_stairs(measured, {"roofline": [2e-6, 3e-6]}, at=[2, 5])
    lines = [np.round(line.get_data(), 9).tolist() for line in ax.lines]
    assert lines == [[[2, 5], [2, 3]], [[3, 5], [7, 11]]]
    assert data_of(figure) == [
        {"Rows": 3, "Measured (us)": 7}, {"Rows": 5, "Measured (us)": 11, "roofline (us)": 3}
    ]  # fmt: skip
    tried = [product(2, 6e-6, fp8=4e-6), product(3, 5e-6, fp8=5e-6)]
    figure, ax = plot_format_map(
        [2, 3], [7, 17], np.array([[0.6, 0.9], [1.2, 3.0]]), measured=tried, name="fp8",
        layers={"a layer": (3, 17)},
    )  # fmt: skip
    marks = [(*line.get_data(), line.get_markerfacecolor() == "white") for line in ax.lines]
    assert marks == [([2], [11], False), ([3], [11], True), ([3], [17], False)]
    assert [tuple(row.values()) for row in data_of(figure)] == [
        (2, 7, 0.6), (3, 7, 0.9), (2, 17, 1.2), (3, 17, 3.0), (2, 11, 1.5), (3, 11, 1.0),
    ]  # fmt: skip
    assert (ax.texts[0].get_text(), ax.texts[0].xy) == ("a layer", (3, 17))
