"""Measured points on a roofline: units, and a mark that can be seen."""

from __future__ import annotations

import re

import pytest

from mlsim import plot_roofline
from mlsim.errors import InvalidValueError, UnitError
from mlsim.plots import data_of
from mlsim.profiling.stopwatch import Run, Timing

# By hand: 8 GFLOP and 4 GB in 2 s are 2 FLOP/byte and 4 GFLOP/s.
TIMING = Timing(tuple(Run(wall, 0.0, 0.0) for wall in (2.0, 4.0, 1.0)))
WORK, MOVED = 8e9, 4e9


def places(points, hardware="EPYC9654", **more) -> list[tuple[float, float]]:
    """Return where marks are, and make sure that each can be seen."""
    figure, ax = plot_roofline(hardware, points=points, precision="fp32", **more)
    figure.canvas.draw()
    marks = [tuple(map(float, dots.get_offsets()[0])) for dots in ax.collections]
    for mark in marks:
        across, up = ax.transAxes.inverted().transform(ax.transData.transform(mark))
        assert 0 < across < 1, mark
        assert 0 < up < 1, mark
    return marks


@pytest.mark.parametrize(
    "point",
    [
        (2, "4 GFLOP/s"),
        (2.0, "0.004 TFLOP/s"),
        ("2 FLOP/B", "4e9 FLOP/s"),
        (WORK, MOVED, 2.0),
        ("8 GFLOP", "4 GB", "2000 ms"),
        (WORK, MOVED, TIMING),
    ],
)
def test_a_point_in_any_unit_lies_at_the_same_place_inside_the_axes(point) -> None:
    assert places({"mine": point}) == [pytest.approx((2, 0.004))]


@pytest.mark.parametrize("rate", ["1 kFLOP/s", "30 PFLOP/s"])
def test_a_point_far_from_the_roof_is_inside_the_axes(rate: str) -> None:
    assert len(places({"mine": (1e-3, rate), "other": (1e5, rate)})) == 2


def test_a_rate_without_a_unit_is_refused_and_says_why() -> None:
    with pytest.raises(UnitError, match=r"rate of mine needs a unit.*factor of 10\^12"):
        plot_roofline("A100", points={"mine": (2.0, 4e9)})
    with pytest.raises(UnitError, match="rate of mine"):
        plot_roofline("A100", points={"mine": (2.0, "4 GB/s")})


@pytest.mark.parametrize("points", ["mine", {"mine": 4e9}, [(2.0, "4 GFLOP/s")], 3.0])
def test_what_is_no_point_is_refused_and_the_forms_are_named(points) -> None:
    with pytest.raises(InvalidValueError, match=re.escape("(operations, bytes, seconds)")):
        plot_roofline("A100", points=points)


def test_no_point_has_a_time_of_zero() -> None:
    with pytest.raises(InvalidValueError, match="seconds of mine must be positive"):
        plot_roofline("A100", points={"mine": (WORK, MOVED, 0.0)})


def test_its_interval_is_drawn_and_a_point_above_its_roof_says_so() -> None:
    figure, ax = plot_roofline(
        "A100", points={"mine": (WORK, MOVED, TIMING), "wrong": (2.0, "9 PFLOP/s")}
    )
    bar = next(line for line in ax.lines if list(line.get_xdata()) == [2.0, 2.0])
    assert list(bar.get_ydata()) == pytest.approx([0.002, 0.008])
    labels = [each.get_text() for each in ax.get_legend().get_texts()]
    assert labels == ["mine, measured", "wrong, measured (above its roof)"]
    assert [row["Point"] for row in data_of(figure)[1:]] == ["mine, measured", "wrong, measured"]
