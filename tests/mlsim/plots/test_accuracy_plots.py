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


def test_a_panel_for_each_kind_and_a_mark_for_each_answer() -> None:
    rows = [row(50.0, 60.0), row(20.0, None)]
    figure, _ = plot_accuracy({"one": rows, "two": rows, "three": rows})
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
