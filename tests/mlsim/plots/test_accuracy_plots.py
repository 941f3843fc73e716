"""Figures of predictions against measurements: each mark is a row, and carries its numbers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mlsim.errors import InvalidValueError
from mlsim.plots import data_of, plot_accuracy, plot_shares


def row(measured: float, calibrated: float | None) -> SimpleNamespace:
    return SimpleNamespace(
        words="a row",
        unit="tokens/s",
        measured=measured,
        bound=100.0,
        roofline=80.0,
        calibrated=calibrated,
        best=calibrated or 80.0,
    )


def test_shares_of_the_bound() -> None:
    figure, axes = plot_shares({"a": [row(50.0, 60.0), row(20.0, None)]})
    assert axes.get_xscale() == axes.get_yscale() == "log"
    found = [(each["Measured / bound"], each["Predicted / bound"]) for each in data_of(figure)]
    assert found == [(0.5, 0.6), (0.2, 0.8)]
    assert [tuple(each) for each in axes.collections[0].get_offsets()] == found
    seven = plot_shares({str(n): [row(50.0, None)] for n in range(7)})[1].collections[:7]
    looks = [(*each.get_facecolor()[0], len(each.get_paths()[0].vertices)) for each in seven]
    assert looks[6] == looks[0]
    assert len(set(looks)) == 6


def test_a_panel_for_each_kind_and_a_mark_for_each_answer() -> None:
    rows = [row(50.0, 60.0), row(20.0, None)]
    figure, axes = plot_accuracy({"one": rows, "two": rows, "three": rows})
    assert axes.shape == (2, 2)
    *marks, quarter = axes[0][0].collections
    assert [each.get_offsets().tolist() for each in marks] == [
        [[50, 100], [20, 100]], [[50, 80], [20, 80]], [[50, 60]]
    ]  # fmt: skip
    assert [len(each.get_facecolor()) for each in marks] == [0, 0, 1]
    # From four fifths of the least to five quarters of the most, and a quarter to both sides.
    assert axes[0][0].lines[0].get_xydata().tolist() == [[16, 16], [62.5, 62.5]]
    vertices = quarter.get_paths()[0].vertices
    assert {*map(tuple, vertices)} == {(16, 12), (16, 20), (62.5, 46.875), (62.5, 78.125)}
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {
        "bound", "roofline", "calibrated",
    }  # fmt: skip
    assert len(figure.axes) == 3
    found = data_of(figure)
    # Two rows have a bound and a roofline, one of them a calibrated answer.
    assert len(found) == 3 * 5
    assert {each["Estimate"] for each in found} == {"bound", "roofline", "calibrated"}


@pytest.mark.parametrize("panels", [{}, {"a": []}])
def test_nothing_to_draw_is_refused(panels: dict[str, list[SimpleNamespace]]) -> None:
    with pytest.raises(InvalidValueError, match="row"):
        plot_accuracy(panels)
    with pytest.raises(InvalidValueError, match="row"):
        plot_shares(panels)
