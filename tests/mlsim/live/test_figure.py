"""A live figure as an object: what it offers to a page, and what it refuses."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib import pyplot

from mlsim import live
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.hardware.systolic import multiply
from mlsim.live.figure import MIME, views
from mlsim.plots import plot_systolic

INPUTS, WEIGHTS = [[1, 2], [3, 4]], [[5, 6], [7, 8]]


def array(**given: Any) -> live.Figure:
    run = multiply(INPUTS, WEIGHTS, rows=2, columns=2, trace=True)
    return live.figure("systolic", still=plot_systolic(run, cycles=[3]), **given)


def test_it_offers_the_still_figure_its_data_and_the_script() -> None:
    open_before = pyplot.get_fignums()
    made = array(
        handles=[live.Handle("cycle", 1, 6, start=3, step=1, unit="cycles")],
        choices=[live.Choice("rest", {"weights": "Weights", "inputs": "Inputs"}, label="Rests")],
        data={"inputs": INPUTS},
        label="The array",
    )
    assert pyplot.get_fignums() == open_before  # a cell shows it once
    shown = made._repr_mimebundle_()
    assert shown["image/svg+xml"].lstrip().startswith("<?xml")
    # Quarto takes any of these before an image
    assert not shown.keys() & {"application/javascript", "text/html", "text/markdown", "text/latex"}
    assert shown["text/csv"].startswith("Cycle,Row,Column 1")
    assert shown["text/plain"] == "<live figure systolic: rest, cycle>"
    script = json.loads(json.dumps(shown[MIME]))
    assert (script["entry"], script["label"]) == ("systolic.js", "The array")
    assert script["handles"] == ["cycle"]
    assert sorted(script["modules"]) == [
        "chart.js", "live.js", "systolic.js", "systolic_array.js",
    ]  # fmt: skip
    assert sorted(list(script["styles"])[:2]) == ["chart.css", "live.css"]  # a view's own is last
    assert list(script["styles"])[2:] == ["systolic.css"]
    assert script["styles"]["live.css"].startswith(".live-box {")
    assert script["data"] == {
        "inputs": INPUTS, "name": "systolic", "label": "The array",
        "handles": [{
            "name": "cycle", "label": "Cycle", "low": 1, "high": 6, "start": 3,
            "unit": "cycles", "digits": 3, "step": 1,
        }],
        "choices": [{
            "name": "rest", "label": "Rests", "start": "weights",
            "options": [["weights", "Weights"], ["inputs", "Inputs"]],
        }],
    }  # fmt: skip


def test_a_compiled_answer_stands_beside_the_view() -> None:
    answer = SimpleNamespace(script="export function answer() {}", data={"batch": [1, 2]})
    made = array(answer=answer)
    assert "answer.js" not in made.modules  # this view asks for none
    assert made.data["answer"] == {"batch": [1, 2]}


def test_a_handle_may_have_decades_or_a_few_values() -> None:
    few = live.Handle("gpus", 1, 8, start=4, values=(1, 2, 4, 8)).as_data()
    assert (few["values"], few["start"]) == ([1, 2, 4, 8], 4)
    decades = live.Handle("bytes_moved", 1, 1e9, scale="log").as_data()
    assert (decades["scale"], decades["start"], decades["label"]) == ("log", 1, "Bytes moved")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: live.Handle("n", 3, 3), "moves from 3 to 3"),
        (lambda: live.Handle("n", 0, 3, scale="log"), "no place for 0"),
        (lambda: live.Handle("n", 1, 3, start=4), "starts at 4, not in 1 to 3"),
        (lambda: live.Handle("n", 1, 4, start=3, values=(1, 2, 4)), r"starts at 3, not in \(1, 2"),
        (lambda: live.Choice("n", {"a": "A"}), "two options or more"),
        (
            lambda: array(handles=[live.Handle("n", 1, 2)], choices=[live.Choice("n", {1: 1, 2: 2})]),
            "named 'n'",
        ),
        (lambda: array(data={"x": {1, 2}}), "must be numbers, texts, lists and mappings"),
        (lambda: array(data={"x": float("nan")}), "must be numbers"),
    ],
)  # fmt: skip
def test_what_can_not_move_is_refused(ask: Any, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        ask()


def test_a_wrong_name_is_told_with_those_there_are() -> None:
    assert "live" not in views()
    drawn = pyplot.figure()
    pyplot.close(drawn)
    for ask in (
        lambda: live.figure("sistolic", still=drawn),
        lambda: live.Handle("n", 1, 2, scale="logg"),
        lambda: live.Choice("n", {"a": "A", "b": "B"}, start="c"),
    ):
        with pytest.raises(UnknownNameError):
            ask()
