"""Folding: a plan with all but the batch put in gives what the plan gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlsim.equations import EQUATIONS, functions, graph, plan
from mlsim.equations.graph import Line, Plan, fold
from mlsim.equations.inline import inlined, library

COLUMN = np.array([[1.0], [2.0], [4.0]])
KNOWN = {
    "flops_per_multiply_add": 2.0,
    "multiply_adds": 1e9 * COLUMN,
    "parameters": 1e6 * COLUMN,
    "activations_read": 1e5 * COLUMN,
    "activations_written": 3e5 * COLUMN,
    "repeats": np.array([[1.0], [2.0], [1.0]]),
    "bytes_per_parameter": 2.0,
    "bytes_per_element": 2.0,
    "peak_flops": 1e14,
    "memory_bandwidth": 1e12,
    "memory_capacity": 1e9,
    "activations_live": 1e6,
}
WANTED = ("latency", "memory_bound_share", "memory_free", "throughput", "total_flops")


def solver():
    from mlsim.solvers.forward.configuration import SOLVER

    return SOLVER


def test_a_folded_plan_gives_what_the_plan_gives() -> None:
    found = plan(solver(), (*KNOWN, "batch_size"), WANTED)
    batch = np.array([1.0, 7.0, 300.0, 40000.0])
    folded = fold(found, KNOWN, ["batch_size"])({"batch_size": batch})
    whole = found.run({**KNOWN, "batch_size": batch})
    assert set(folded) == set(WANTED)
    for name in WANTED:
        np.testing.assert_allclose(folded[name], whole[name], rtol=1e-14)


def test_of_two_that_change_neither_is_folded_away() -> None:
    known = {name: value for name, value in KNOWN.items() if name != "memory_bandwidth"}
    changing = {"batch_size": np.array([1.0, 64.0]), "memory_bandwidth": np.array([1e12, 2e12])}
    found = plan(solver(), (*known, *changing), ("latency",))
    folded = fold(found, known, changing)(changing)
    np.testing.assert_allclose(folded["latency"], found.run({**known, **changing})["latency"])


def test_few_steps_are_written_into_one_another_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = plan(solver(), (*KNOWN, "batch_size"), ("latency",))
    called = fold(found, KNOWN, ["batch_size"])({"batch_size": 7.0})
    monkeypatch.setattr(graph, "_called", None)
    written = fold(found, KNOWN, ["batch_size"], written=True)({"batch_size": 7.0})
    assert float(written["latency"][0]) == float(called["latency"][0])


def test_what_nothing_changes_is_a_constant() -> None:
    found = plan(solver(), (*KNOWN, "batch_size"), ("ridge_point", "weight_memory"))
    assert fold(found, KNOWN, ["batch_size"])({"batch_size": 5.0}) == {
        "ridge_point": 100.0,
        "weight_memory": pytest.approx(18e6),
    }


def test_a_line_adds_up_over_operators() -> None:
    repeats = np.array([1.0, 2.0, 1.0])
    line = repeats @ (Line(10.0, COLUMN) - 4.0)
    assert (line.constant, line.slope.tolist()) == (24.0, [9.0])
    assert (5.0 - Line(2.0, 3.0)).slope == -3.0


def test_the_constant_of_a_line_is_added_whatever_it_is() -> None:
    known, moves = ["weight_bytes", "activation_bytes"], [EQUATIONS["bytes_moved"]]
    found = plan(moves, known, ["bytes_moved"])
    for weights in (0.0, 1.0, 5.0, np.array([0.0, 3.0]), np.array([1.0, 1.0])):
        run = fold(found, {"weight_bytes": weights}, ["activation_bytes"])
        for moved in (7.0, np.array([2.0, 3.0])):
            assert np.all(run({"activation_bytes": moved})["bytes_moved"] == weights + moved)


@pytest.mark.parametrize(
    "no_line",
    [
        lambda line: line * line,
        lambda line: 1.0 / line,
        lambda line: line / line,
        lambda line: max(line, 1.0),
        lambda line: np.maximum(line, COLUMN),
        lambda line: line**0.5,
        bool,
    ],
)
def test_what_is_no_line_is_refused(no_line) -> None:
    with pytest.raises(TypeError):
        no_line(Line(1.0, 2.0))


def test_equations_of_lines_are_run_once() -> None:
    """A folded plan calls those equations only whose result is no line."""
    found = plan(EQUATIONS.values(), ["flops", "peak_flops", "memory_time"], ["roofline_time"])
    run = fold(found, {"peak_flops": 2.0, "memory_time": 1.0}, ["flops"])
    called = [name for name in run.__globals__ if name.startswith("do_")]
    assert called == ["do_roofline_time"]
    assert [run({"flops": each})["roofline_time"] for each in (1.0, 8.0)] == [1.0, 4.0]


def test_what_two_equations_share_and_what_nothing_changes_is_computed_once() -> None:
    """Tiles of a product: their sides stand in two equations, and one side never changes."""
    steps = tuple(EQUATIONS[name] for name in ("waves", "filled_share"))
    fixed = frozenset(("outputs", "tile_size", "cores"))
    found = inlined(steps, fixed, ("waves", "filled_share"))
    assert found is not None
    code = "\n".join(found.lines)
    assert code.count("(product_rows / ") == 2  # by 16 for the side, by the side for tiles
    assert "at_outputs /" not in code
    assert any(name.startswith("fixed_") for name, _ in found.before)


@pytest.mark.parametrize("rows", [1.0, 100.0, np.array([1.0, 100.0, 5e4])])
def test_equations_written_into_one_another_give_what_they_gave(
    rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "_FEW", 0)
    known = {"outputs": np.array([[0.0], [1.0], [1000.0]]), "tile_size": 128.0, "cores": 108.0}
    found = plan(
        [EQUATIONS[name] for name in ("waves", "filled_share")],
        (*known, "product_rows"),
        ("waves", "filled_share"),
    )
    changing = {"product_rows": rows * np.ones((3, 1))}
    folded = fold(found, known, changing)(changing)
    whole = found.run({**known, **changing})
    for name in found.wanted:
        np.testing.assert_array_equal(folded[name], np.asarray(whole[name], dtype=float))


def test_functions_are_those_of_numpy_where_one_value_is_an_array() -> None:
    assert library({"peak_flops": 2.0, "flops": COLUMN})["ceil"] is np.ceil
    alone = library({"peak_flops": 2.0})
    assert (alone["ceil"], type(alone["number"](2.0))) == (functions.ceil, float)


def test_what_is_fixed_or_a_line_and_wanted_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "_FEW", 0)
    found = plan(solver(), (*KNOWN, "batch_size"), ("peak_flops", "batch_size", "latency", "flops"))
    given = {"batch_size": np.array([1.0, 2.0])}
    folded = fold(found, KNOWN, ["batch_size"])(given)
    assert folded["peak_flops"] == 1e14
    np.testing.assert_array_equal(folded["batch_size"], given["batch_size"])
    np.testing.assert_allclose(folded["flops"], 2e9 * COLUMN * given["batch_size"])


def test_an_equation_written_otherwise_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose body is more than an expression can't be written into another."""
    monkeypatch.setattr(graph, "_FEW", 0)

    def twice(flops: float) -> float:
        return sum([flops, flops])

    odd = replace(EQUATIONS["compute_time"], function=twice, inputs=("flops",), yields="latency")
    folded = fold(Plan(("latency",), (odd,)), {}, ["flops", "batch_size"])
    assert folded({"flops": 3.0, "batch_size": 1.0}) == {"latency": 6.0}
