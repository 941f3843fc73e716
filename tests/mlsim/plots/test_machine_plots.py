"""Figures of stale updates and of peaks by format."""

from __future__ import annotations

import pytest

from mlsim import Hardware
from mlsim.errors import InvalidValueError
from mlsim.plots import data_of, plot_formats, plot_staleness
from mlsim.plots.machine_plots import grows_from
from mlsim.systems.stale_updates import largest_stable_rate


def test_staleness_shows_descent_and_limit() -> None:
    rows = data_of(plot_staleness(0.5, [0, 1], steps=4))
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
    assert ax.get_xticklabels()[0].get_text() == "FP64"


@pytest.mark.parametrize("count", [0, 5])
def test_too_few_or_many_delays_are_refused(count: int) -> None:
    with pytest.raises(InvalidValueError, match=f"one to 4 delays, not {count}"):
        plot_staleness(0.3, list(range(count)))


def test_no_device_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="one to 7 devices, not 0"):
        plot_formats([])
