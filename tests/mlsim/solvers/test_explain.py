"""Explanations: every equation, value, unit and source, and sums that add up."""

from __future__ import annotations

import json
import re

import pytest

from mlsim.equations import EQUATIONS
from mlsim.errors import UnknownNameError
from mlsim.quantities import term
from mlsim.records.references import references
from mlsim.solvers.forward.configuration import GIVABLE
from mlsim.units import text


def flat(shown: object) -> str:
    """Return a text on one line, so that it does not matter where lines are broken."""
    return " ".join(str(shown).split())


@pytest.mark.parametrize("estimate", ["roofline", "bound"])
@pytest.mark.parametrize("batch", [1, 32])
def test_rows_add_up_to_the_printed_latency(solve, estimate: str, batch: int) -> None:
    profile = solve(batch_size=batch, estimate=estimate)
    data = profile.explain().to_dict()
    rows = data["operators"]
    total = sum(row["repeats"] * row["roofline_time"]["value"] for row in rows)
    assert total == pytest.approx(data["value"], rel=1e-12)
    assert data["value"] == pytest.approx(profile.value("latency"), rel=1e-12)
    assert data["value"] == pytest.approx(profile.latency.to("s").magnitude, rel=1e-12)
    assert data["unit"] == "s"
    for row in rows:
        longer = max(row["compute_time"]["value"], row["memory_time"]["value"])
        assert row["roofline_time"]["value"] == longer
    first, _ = str(profile.explain()).split("\n", 1)
    assert first == f"latency = {text(profile.value('latency'), 's')}"


def test_every_equation_value_unit_and_source_is_named(solve) -> None:
    explanation = solve().explain()
    shown, data = flat(explanation), explanation.to_dict()
    steps = {step["equation"] for step in data["steps"]}
    times = {"compute_time", "memory_time", "roofline_time", "latency"}
    assert steps == times | {"flops", "weight_bytes", "activation_bytes", "bytes_moved"}
    for step in data["steps"]:
        equation = EQUATIONS[step["equation"]]
        assert step["formula"] == f"{equation.yields} = {equation.expression}"
        assert step["formula"] in shown
        assert step["unit"] == term(step["quantity"]).unit
        assert f"= {text(step['value'], step['unit'])} [{equation.source}]" in shown
        assert step["source"]["key"] == equation.source
        assert f"[{equation.source}] {step['source']['text']}" in shown
        if not equation.sums:
            # Each input is put in as a number with its unit; no name is left.
            assert f" = {step['substituted']} = " in shown
            assert not set(re.findall(r"[a-z_]{3,}", step["substituted"])) & set(equation.inputs)
    for known in data["inputs"]:
        assert known["unit"] == term(known["quantity"]).unit
        assert f"{known['quantity']} = {known['text']} ({known['origin']})" in shown
    # Whatever an equation needs is given, computed before, or a column of the table.
    there = {known["quantity"] for known in data["inputs"]} | set(data["operators"][0])
    for step in data["steps"]:
        assert set(EQUATIONS[step["equation"]].inputs) <= there | {"repeats"}
        there.add(step["quantity"])


def test_figures_bring_their_sources(solve, a100, resnet) -> None:
    data = solve().explain().to_dict()
    origins = {known["quantity"]: known["origin"] for known in data["inputs"]}
    bandwidth = a100.figures["memory.bandwidth"]
    assert origins["memory_bandwidth"] == f"{a100.name}: {bandwidth.origin()}"
    assert "2,039 GB/s" in origins["memory_bandwidth"]
    assert a100.figures["compute.fp16"].quote in origins["peak_flops"]
    assert origins["batch_size"] == "given"
    assert origins["bytes_per_parameter"] == "fp16, since no other was given: 16 bits"
    given = solve(precision="fp16").explain("memory_required").to_dict()["inputs"]
    origins = {known["quantity"]: known["origin"] for known in given}
    assert origins["bytes_per_parameter"] == "fp16: 16 bits"
    listed = flat(str(solve().explain()).partition("\nSources\n")[2])
    for key in (bandwidth.source, resnet.source, "williams2009roofline"):
        assert f"[{key}] {references()[key].text()}" in listed


def test_the_worked_operator_is_the_one_that_takes_longest(solve) -> None:
    data = solve().explain().to_dict()
    longest = max(data["operators"], key=lambda row: row["repeats"] * row["roofline_time"]["value"])
    for step in data["steps"]:
        assert step["example"] == longest["name"]
        if step["quantity"] in longest:
            assert step["value"] == longest[step["quantity"]]["value"]


def test_a_step_can_be_recomputed_from_its_inputs(solve) -> None:
    """With the values at hand, each equation gives the value beside it."""
    data = solve(batch_size=16).explain().to_dict()
    example = next(row for row in data["operators"] if row["name"] == data["steps"][0]["example"])
    values = {known["quantity"]: known["value"] for known in data["inputs"]}
    values |= {name: cell["value"] for name, cell in example.items() if isinstance(cell, dict)}
    for step in data["steps"]:
        equation = EQUATIONS[step["equation"]]
        if not equation.sums:
            again = equation(*(values[name] for name in equation.inputs))
            assert again == pytest.approx(step["value"], rel=1e-12)


def test_an_override_is_said_to_be_given(solve) -> None:
    explanation = solve(memory_bandwidth="3 TB/s", bytes_moved="1 MB").explain()
    data = explanation.to_dict()
    origins = {known["quantity"]: known["origin"] for known in data["inputs"]}
    assert origins["memory_bandwidth"] == origins["bytes_moved"] == "given"
    assert "weight_bytes" not in {step["quantity"] for step in data["steps"]}
    assert "memory_bandwidth = 3 TB/s (given)" in flat(explanation)


def test_a_sum_of_what_is_given_adds_up(solve) -> None:
    profile = solve(roofline_time="1 us")
    data = profile.explain().to_dict()
    assert data["value"] == pytest.approx(56e-6)
    (step,) = data["steps"]
    assert step["substituted"].count(" + ") == 26
    terms = step["substituted"].split(" + ")
    assert sum(float(each.removesuffix(" µs")) for each in terms) == pytest.approx(56)


def test_the_bound_is_explained_for_the_network_as_one(solve) -> None:
    data = solve(estimate="bound").explain().to_dict()
    assert data["estimate"] == "bound"
    (row,) = data["operators"]
    assert row["name"] == "network"
    assert row["roofline_time"]["value"] == data["value"]


@pytest.mark.parametrize("estimate", ["roofline", "bound"])
@pytest.mark.parametrize("name", GIVABLE)
def test_everything_can_be_explained(solve, name: str, estimate: str) -> None:
    profile = solve(batch_size=8, estimate=estimate)
    explanation = profile.explain(name)
    data = explanation.to_dict()
    assert data["quantity"] == name
    assert data == json.loads(explanation.to_json())
    json.dumps(data, allow_nan=False)
    value = profile.value(name)
    if not getattr(value, "ndim", 0):
        assert data["value"] == pytest.approx(float(value), rel=1e-12)
    shown = str(explanation)
    assert shown.startswith(f"{name} = {term(name).text(data['value'])}\n")
    markdown = explanation._repr_markdown_()
    for step in data["steps"]:
        assert term(step["quantity"]).symbol in markdown
        assert step["source"]["text"] in markdown
        assert step["source"]["text"] in flat(shown)


def test_markdown_is_sound(solve) -> None:
    markdown = solve().explain()._repr_markdown_()
    assert markdown.startswith("**latency = 55.48 µs** — ResNet-50 v1.5 on NVIDIA A100")
    assert r"$$t_\mathrm{mem} = \frac{D}{\beta}$$" in markdown
    assert markdown.count("$$") % 2 == 0
    tables = [line for line in markdown.splitlines() if line.startswith("|")]
    widths = {line.replace(r"\|", "").count("|") for line in tables}
    # Two tables: what is known (3 columns) and the operators (8).
    assert widths == {4, 9}


def test_an_unknown_quantity_is_refused(solve) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'latency'"):
        solve().explain("latensy")
    with pytest.raises(UnknownNameError, match="no result of a profile is called 'repeats'"):
        solve().explain("repeats")


def test_an_operator_that_waits_for_neither_is_compute_bound(solve) -> None:
    tied = solve(compute_time="1 ms", memory_time="1 ms").operators
    assert {row["bound"] for row in tied} == {"compute"}
    later = solve(compute_time="1 ms", memory_time="1.001 ms").operators
    assert {row["bound"] for row in later} == {"memory"}
