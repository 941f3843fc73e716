"""The numbers that a figure carries are those that it shows."""

from __future__ import annotations

import csv
import io
import pickle

import pytest
from matplotlib import pyplot

from mlsim import Device, Engine, Model, plot_roofline
from mlsim.plots import plot_memory, plot_pipeline
from mlsim.plots.diagrams import _places, leading_to, plot_equations
from mlsim.plots.drawing import data_of


def test_a_roofline_carries_its_points(a100: Device, resnet: Model) -> None:
    figure, ax = plot_roofline(a100, workloads=[resnet], batch_size=[1, 32])
    ridge, one, many = data_of(figure)
    assert ridge["Rate (TFLOP/s)"] == pytest.approx(312)
    drawn = [tuple(map(float, dots.get_offsets()[0])) for dots in ax.collections]
    assert drawn == [(each[ax.get_xlabel()], each[ax.get_ylabel()]) for each in (one, many)]
    assert many["Point"] == ax.collections[1].get_label()


def test_operators_are_among_them(a100: Device, resnet: Model) -> None:
    figure, ax = plot_roofline(a100, workloads=[resnet], operators=True)
    dots = ax.collections[0].get_offsets()
    assert [[*row.values()][1:] for row in data_of(figure)[2:]] == dots.tolist()


def test_panels_are_named_when_the_figure_is_shown(a100: Device) -> None:
    figure, axes = pyplot.subplots(1, 2)
    for ax, title in zip(axes, ["Left", "Right"], strict=True):
        plot_roofline(a100, ax=ax)
        ax.set_title(title)
    assert [row["Panel"] for row in data_of(figure)] == ["Left", "Right"]


def test_drawing_again_on_the_same_axes_replaces_the_numbers(a100: Device) -> None:
    figure, ax = plot_roofline(a100)
    plot_roofline(a100, ax=ax)
    assert len(data_of(figure)) == 1


def test_memory_and_equations_carry_theirs() -> None:
    run = Engine.train(model="BERT_Large", hardware="A100", global_batch=8)
    (row,) = data_of(plot_memory({"one": run})[0])
    assert row["weights (GB)"] == pytest.approx(run.value("weight_memory") / 1e9)
    assert row["may be used (GB)"] == pytest.approx(run.value("usable_memory") / 1e9)
    rows = data_of(plot_equations("ridge_point"))
    assert rows == [{"Quantity": "ridge point", "Computed from": "peak flops, memory bandwidth"}]
    # A quantity below all that it is made of; what is known just above its first use.
    equations = leading_to("latency")
    at = _places(equations)
    rows = {"batch_size": 0, "peak_flops": 1, "memory_bandwidth": 2, "repeats": 4, "latency": 5}
    assert {name: at[name][1] for name in rows} == rows
    # Eight are known at the top: what is alone in its row stands in the middle, others at the ends.
    across = {"flops": 0, "activation_bytes": 7, "memory_time": 3.5, "repeats": 7, "latency": 3.5}
    assert {name: at[name][0] for name in across} == across
    assert len(set(at.values())) == len(at)
    (ax,) = plot_equations("latency").axes
    *arrows, _ = [text for text in ax.texts if hasattr(text, "xy")] + [None]
    assert [(each.xyann, each.xy) for each in arrows] == [
        ((at[name][0], -at[name][1] - 0.22), (at[e.yields][0], -at[e.yields][1] + 0.22))
        for e in equations for name in e.inputs
    ]  # fmt: skip
    boxes = [each for each in ax.texts if not hasattr(each, "xy")]
    assert [each.get_position() for each in boxes] == [(x, -row) for x, row in at.values()]
    made = [each.get_bbox_patch().get_facecolor() == (1, 1, 1, 1) for each in boxes]
    assert made == [name in {e.yields for e in equations} for name in at]
    assert ax.get_xlim()[0] < 0 < 7 < ax.get_xlim()[1]
    assert ax.get_ylim()[0] < -5 < 0 < ax.get_ylim()[1]


def test_notebooks_are_offered_them_as_csv() -> None:
    figure, _ = plot_pipeline(2, 2)
    offered = figure._repr_mimebundle_(include=None, exclude=None)
    assert list(offered) == ["text/csv"]
    rows = list(csv.DictReader(io.StringIO(offered["text/csv"])))
    assert rows[0] == {
        "Stage": "1", "Pass": "forward", "Micro-batch": "1", "Start": "0", "End": "1",
    }  # fmt: skip
    assert len(rows) == 8


def test_a_figure_with_data_can_be_pickled(a100: Device) -> None:
    figure, _ = plot_roofline(a100)
    assert data_of(pickle.loads(pickle.dumps(figure))) == data_of(figure)


def test_a_figure_of_somebody_else_carries_none() -> None:
    assert data_of(pyplot.figure()) == []
