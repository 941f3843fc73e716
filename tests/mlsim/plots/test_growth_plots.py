"""Figures of growth: what is drawn, and what can't be."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_rgba

from mlsim import language_models, plot_growth
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.measured.growth import accelerators, growth_of, records
from mlsim.plots import COLOURS, data_of
from mlsim.plots.growth_plots import COLUMNS, doubling_words

MODELS: Any = language_models()
DEVICES: Any = accelerators()


@pytest.mark.parametrize("column", COLUMNS)
def test_every_known_value_is_a_point(column: str) -> None:
    table = MODELS if column in MODELS else DEVICES
    known = table[table[column].notna()]
    if "year" in known:
        known = known[known.year.notna()]
    figure, axes = plot_growth(table, column)
    offsets: Any = [each.get_offsets() for each in axes.collections]
    drawn = sum(len(each) for each in offsets)
    assert drawn == len(known) == len(data_of(figure))
    assert axes.get_yscale() == "log"
    assert not axes.get_lines()


def test_dense_and_experts_open_and_closed_differ_without_color() -> None:
    figure, axes = plot_growth(MODELS, "parameters")
    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["dense", "dense, closed", "mixture of experts", "mixture of experts, closed"]
    marks: Any = axes.collections
    dense, closed, experts, _ = marks
    assert len(dense.get_paths()[0].vertices) != len(experts.get_paths()[0].vertices)
    assert tuple(dense.get_facecolor()[0]) == to_rgba(COLOURS[0])
    assert len(closed.get_facecolor()) == 0
    row = next(each for each in data_of(figure) if each["Name"] == "Chinchilla")
    assert row == {
        "Name": "Chinchilla",
        "Year": "2022.2",
        "Form": "dense",
        "Weights": "closed",
        "Parameters (billion)": 70,
    }


def test_a_line_is_the_fit_of_its_span() -> None:
    _, axes = plot_growth(MODELS, "tokens", spans=[(2022, 2027)])
    line: Any = axes.get_lines()[0]
    fit = growth_of(MODELS, "tokens", since=2022, until=2027)
    start, end = line.get_xdata()
    assert 2022 <= start < end < 2027
    assert list(line.get_ydata()) == [fit.at(start) / 1e12, fit.at(end) / 1e12]
    assert line.get_label() == doubling_words(fit)


def test_records_are_named_where_there_is_room_unless_others_are() -> None:
    _, axes = plot_growth(MODELS, "parameters")
    names = {each.get_text() for each in axes.texts}
    best = {each.split(" (")[0] for each in records(MODELS, "parameters")["name"]}
    assert 4 < len(names) < len(best)
    assert names < best
    assert "DeepSeek-V4-Pro" in names
    _, axes = plot_growth(MODELS, "parameters", named=["Llama4_Scout"])
    assert [each.get_text() for each in axes.texts] == ["Llama 4 Scout"]


def test_axes_that_are_given_are_drawn_on() -> None:
    _, axes = plt.subplots()
    assert plot_growth(DEVICES, "capacity", ax=axes)[1] is axes


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'tokens'"):
        plot_growth(MODELS, "token")
    with pytest.raises(UnknownNameError, match="column"):
        plot_growth(MODELS, "capacity")
    with pytest.raises(UnknownNameError, match="row of the table"):
        plot_growth(MODELS, "tokens", named=["GPT5"])
    with pytest.raises(InvalidValueError, match="too few"):
        plot_growth(MODELS, "tokens", spans=[(2030, 2040)])
