"""The numbers that a figure carries are those that it shows."""

from __future__ import annotations

import csv
import io
import pickle

import pytest
from matplotlib import pyplot

from mlsim import Device, Engine, Model, plot_memory, plot_pipeline, plot_roofline
from mlsim.plots.diagrams import plot_equations
from mlsim.plots.plot_data import data_of


def test_a_roofline_carries_its_points(a100: Device, resnet: Model) -> None:
    figure, ax = plot_roofline(a100, workloads=[resnet], batch_size=[1, 32])
    ridge, one, many = data_of(figure)
    assert ridge["Rate (TFLOP/s)"] == pytest.approx(312)
    drawn = [tuple(map(float, dots.get_offsets()[0])) for dots in ax.collections]
    assert drawn == [(each[ax.get_xlabel()], each[ax.get_ylabel()]) for each in (one, many)]
    assert many["Point"] == ax.collections[1].get_label()


def test_operators_are_among_them(a100: Device, resnet: Model) -> None:
    figure, ax = plot_roofline(a100, workloads=[resnet], operators=True)
    assert len(data_of(figure)) == 2 + len(ax.collections[0].get_offsets())


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
