"""Figures of growth: what is drawn, and what can't be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest
from matplotlib.colors import to_rgba

from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.measured import language_models
from mlsim.measured.growth import accelerators, growth_of, records
from mlsim.plots import COLOURS, data_of, plot_growth
from mlsim.plots.published import COLUMNS, doubling_words

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
    words = axes.get_ylabel().split(" (")[1].rstrip(")")
    unit = {"billion": 1e9, "trillion": 1e12, "10²¹ FLOP": 1e21, "TFLOP/s": 1e12}.get(words, 1e9)
    highest = max(y for each in offsets for _, y in each)
    assert highest == pytest.approx(known[column].max() / unit)


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


def test_a_small_table_by_hand() -> None:
    """1, 2 and 4 billion in three years, and a jump: the span ends before its last year."""
    table = pandas.DataFrame(
        {"name": ["A (x)", "B, y", "C", "D"], "year": [2000, 2001, 2002, 2010],
         "parameters": [1e9, 2e9, 4e9, 1e12], "form": "dense", "weights": ["open"] * 3 + ["closed"]},
        index=list("abcd"),
    )  # fmt: skip
    figure, ax = plot_growth(table, "parameters", spans=[(2000.5, 2010.5)], named=list("abcd"))
    assert ax.lines[0].get_xydata() == pytest.approx(np.array([[2000.5, 1], [2002.5, 4]]))
    assert ax.lines[0].get_label() == "doubles in 12 months"
    points = [tuple(each) for dots in ax.collections for each in dots.get_offsets()]
    assert points == [(2000.5, 1), (2001.5, 2), (2002.5, 4), (2010.5, 1000)]
    assert [(t.get_text(), t.xy, t.get_ha()) for t in ax.texts] == [
        (word, at, side) for word, at, side in zip("ABCD", points, ["left"] * 3 + ["right"], strict=True)
    ]  # fmt: skip
    assert [row["Parameters (billion)"] for row in data_of(figure)] == [1, 2, 4, 1000]
    four = plot_growth(table, "parameters", spans=[(2000, 2003)] * 4)[1].lines
    assert [line.get_linestyle() for line in four] == ["-", "--", ":", "-"]
    # A name has room from 3.5 of the ten years on, or from 0.165 of the three decades.
    near = table.assign(parameters=[1e9, 3e9, 4e9, 1e12])
    assert [t.get_text() for t in plot_growth(near, "parameters")[1].texts] == ["D", "C", "A"]


def test_doublings_are_told_in_months_or_years() -> None:
    times = (-0.5, 9.9 / 12, 10 / 12, 1.99, 2, 99, 100)
    assert [doubling_words(SimpleNamespace(doubling_time=each)) for each in times] == [
        "halves in 6.0 months", "doubles in 9.9 months", "doubles in 10 months",
        "doubles in 24 months", "doubles in 2.0 years", "doubles in 99.0 years", "stands still",
    ]  # fmt: skip


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
