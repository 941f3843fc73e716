"""Explanations: every equation, value, unit and source, and sums that add up."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mlsim.equations import EQUATIONS
from mlsim.quantities import term
from mlsim.records.references import references
from mlsim.solvers.explain import as_card, as_markdown, as_note, as_origin, as_text
from mlsim.solvers.forward.configuration import GIVABLE
from mlsim.units import text


def flat(shown: object) -> str:
    """Return a text on one line, so that it does not matter where lines are broken."""
    return " ".join(str(shown).split())


@pytest.mark.parametrize("estimate", ["roofline", "bound"])
@pytest.mark.parametrize("batch", [1, 32])
def test_rows_and_steps_lead_to_the_printed_latency(solve, estimate: str, batch: int) -> None:
    """Rows add up; each equation gives the value beside it, of the operator that takes longest."""
    profile = solve(batch_size=batch, estimate=estimate)
    data = profile.explain().to_dict()
    times = [row["repeats"] * row["roofline_time"]["value"] for row in data["operators"]]
    assert sum(times) == pytest.approx(data["value"], rel=1e-12)
    assert data["value"] == pytest.approx(profile.value("latency"), rel=1e-12)
    assert data["unit"] == "s"
    shown = f"latency = {text(profile.value('latency'), 's')}\n"
    assert str(profile.explain()).startswith(shown)
    longest = data["operators"][times.index(max(times))]
    values = {known["quantity"]: known["value"] for known in data["inputs"]}
    values |= {name: cell["value"] for name, cell in longest.items() if isinstance(cell, dict)}
    for step in data["steps"]:
        equation = EQUATIONS[step["equation"]]
        assert step["example"] == longest["name"]
        if not equation.sums:
            again = equation(*(values[name] for name in equation.inputs))
            assert again == pytest.approx(step["value"], rel=1e-12)
            assert step["value"] == values[step["quantity"]]


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
    assert "latency = 55.48 µs" in str(solve().latency.origin.how)
    listed = flat(str(solve().explain()).partition("\nSources\n")[2])
    for key in (bandwidth.source, resnet.source, "williams2009roofline"):
        assert f"[{key}] {references()[key].text()}" in listed


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


def test_an_operator_that_waits_for_neither_is_compute_bound(solve) -> None:
    tied = solve(compute_time="1 ms", memory_time="1 ms").operators
    assert {row["bound"] for row in tied} == {"compute"}
    later = solve(compute_time="1 ms", memory_time="1.001 ms").operators
    assert {row["bound"] for row in later} == {"memory"}


WRITTEN = Path(__file__).parents[2] / "fixtures" / "derivation.txt"
ABOUT = {"model": "M", "hardware": "H", "precision": "fp16", "estimate": "roofline"}
ROOFLINE = {"key": "williams2009roofline", "text": "Williams, Roofline"}


def known(name: str, value: float, origin: str) -> dict[str, Any]:
    return {"quantity": name, "text": term(name).text(value), "origin": origin}


def computed(quantity: str, formula: str, substituted: str, value: float) -> dict[str, Any]:
    named = {"quantity": quantity, "equation": quantity, "formula": f"{quantity} = {formula}"}
    return {**named, "substituted": substituted, "value": value, "example": "b", "source": ROOFLINE}


def operator(name: str, repeats: int, time: float) -> dict[str, Any]:
    work = {"flops": {"value": 5 * time}, "roofline_time": {"value": time}}
    return {"name": name, "repeats": repeats, **work}


def test_a_derivation_is_written_in_four_ways() -> None:
    """2 x 3 + 20 x 1 + 1 x 2 = 28 s: `fixtures/derivation.txt` has what each way makes of it.

    Of seven terms the first three and the last are shown; on a card the two operators that take
    longest, 20 and 6 s; sources once each.
    """
    sources = "a | b, williams2009roofline, p. 2"
    terms = " + ".join(f"{number} s" for number in range(1, 8))
    data: dict[str, Any] = {
        **ABOUT,
        "model_source": "he2016resnet",
        "quantity": "latency",
        "value": 28.0,
        "inputs": [known("peak_flops", 2.0, "given"), known("batch_size", 3.0, sources)],
        "steps": [
            computed("compute_time", "1 * flops / peak_flops", "2 * 3 FLOP / 2 FLOP/s", 3.0),
            computed("latency", "total(roofline_time, repeats)", terms, 28.0),
        ],
        "operators": [operator("a", 2, 3.0), operator("b", 20, 1.0), operator("c", 1, 2.0)],
    }
    ways = (as_text, as_markdown, partial(as_card, most=2), lambda each: "\n".join(as_note(each)))
    written = WRITTEN.read_text(encoding="utf-8").rstrip("\n").split("\n-----\n")
    assert [way(data) for way in ways] == written
    # Six terms are all shown; a band stands below the title; without operators is no table.
    words = f"{60 * 'a'} {70 * 'b'} well-off {80 * 'c'}"
    short = {**data, "operators": [], "band": {"low": 20.0, "high": 35.0, "words": words}}
    short["steps"] = [computed("latency", "total(a, b)", terms.removesuffix(" + 7 s"), 21.0)]
    # Lines of 80 and 72 columns; "well-off" would end in column 81; nothing else is broken.
    band = f"Band: 20 s to 35 s, {60 * 'a'}\n  {70 * 'b'}\n  well-off\n  {80 * 'c'}."
    assert as_text(short).startswith(f"latency = 28 s\nM on H, fp16, roofline\n{band}\n\nKnown\n")
    assert "1 s + 2 s + 3 s + 4 s + 5 s + 6 s" in as_card(short)
    assert f"\n\n{flat(band)}\n\n| known" in as_markdown(short)
    assert "operator" not in as_markdown(short)
    assert "he2016resnet" not in as_text(short)
    alone = {**computed("compute_time", "1 / 2", "1 / 2", 0.5), "example": None}
    bare = {**short, "inputs": [], "steps": [alone]}
    assert not [way for way in ways if "operator" in way(bare)]


@pytest.mark.parametrize("spent", ["bytes_moved", "flops"])
def test_a_card_has_the_five_operators_that_do_most(spent: str) -> None:
    """6 x 1, 5 x 8, 4 x 27, 3 x 64, 2 x 125, 1 x 216. An equation is code without SymPy."""
    rows = [
        {"name": f"o{each}", "repeats": 7 - each, spent: {"value": float(each**3)}}
        for each in range(1, 7)
    ]
    data: dict[str, Any] = {
        **ABOUT,
        "quantity": "compute_time",
        "value": 3.0,
        "inputs": [],
        "operators": rows,
        "steps": [computed("compute_time", "flops / peak_flops", "6 FLOP / 2 FLOP/s", 3.0)],
    }
    asked = []
    origin = as_origin(lambda: asked.append(data) or data, "compute_time", "3 s")
    assert (origin.name, origin.brief, asked) == ("compute time", "compute time = 3 s", [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "sympy.printing.latex", None)
        card = origin.how.splitlines()
    assert card[2] == "`compute_time = flops / peak_flops`"
    unit = term(spent).text(1.0).removeprefix("1")
    assert card[6:8] == [f"| operator | repeats | {spent} |", "|---|---:|---:|"]
    assert card[8:13] == [f"| o{each} | {7 - each} | {each**3}{unit} |" for each in (5, 6, 4, 3, 2)]
    assert card[14] == "and 1 more kinds of operator."
    assert origin.note[1].startswith("compute_time = flops / peak_flops (for operator b) = 6 FLOP")
    assert asked == [data]
    few = as_card({**data, "operators": rows[:5]})
    assert "more kinds" not in few + as_card(data, most=0)
    assert few.index("| o1 |") < few.index("| o5 |")
