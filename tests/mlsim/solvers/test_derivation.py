"""A small derivation written out in all four ways: 2 x 3 + 5 x 4 + 1 x 2 = 28 seconds.

`fixtures/derivation.txt` has what each way makes of it. Of seven terms the first three and the
last are shown; on a card the two operators that take longest, 20 and 6 s; sources once each.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from mlsim.quantities import term
from mlsim.solvers.derivation import as_card, as_markdown, as_note, as_text

WRITTEN = Path(__file__).parents[2] / "fixtures" / "derivation.txt"
ROOFLINE = {"key": "williams2009roofline", "text": "Williams, Roofline"}


def known(name: str, value: float, origin: str) -> dict[str, Any]:
    return {"quantity": name, "text": term(name).text(value), "origin": origin}


def step(quantity: str, formula: str, substituted: str, value: float) -> dict[str, Any]:
    named = {"quantity": quantity, "equation": quantity, "formula": f"{quantity} = {formula}"}
    return {**named, "substituted": substituted, "value": value, "example": "b", "source": ROOFLINE}


def operator(name: str, repeats: int, time: float) -> dict[str, Any]:
    work = {"flops": {"value": 5 * time}, "roofline_time": {"value": time}}
    return {"name": name, "repeats": repeats, **work}


def test_a_derivation_is_written_in_four_ways() -> None:
    sources = "a | b, williams2009roofline, p. 2"
    terms = " + ".join(f"{number} s" for number in range(1, 8))
    about = {"model": "M", "model_source": "he2016resnet", "hardware": "H", "precision": "fp16"}
    data: dict[str, Any] = {
        **about,
        "quantity": "latency",
        "value": 28.0,
        "estimate": "roofline",
        "inputs": [known("peak_flops", 2.0, "given"), known("batch_size", 3.0, sources)],
        "steps": [
            step("compute_time", "flops / peak_flops", "6 FLOP / 2 FLOP/s", 3.0),
            step("latency", "total(roofline_time, repeats)", terms, 28.0),
        ],
        "operators": [operator("a", 2, 3.0), operator("b", 5, 4.0), operator("c", 1, 2.0)],
    }
    ways = (as_text, as_markdown, partial(as_card, most=2), lambda each: "\n".join(as_note(each)))
    written = WRITTEN.read_text(encoding="utf-8").rstrip("\n").split("\n-----\n")
    assert [way(data) for way in ways] == written
    # Six terms are all shown; a band stands below the title; without operators is no table.
    short = {**data, "operators": [], "band": {"low": 20.0, "high": 35.0, "words": "of 8 rows"}}
    short["steps"] = [step("latency", "total(a, b)", terms.removesuffix(" + 7 s"), 21.0)]
    band = "Band: 20 s to 35 s, of 8 rows."
    assert as_text(short).splitlines()[1:3] == ["M on H, fp16, roofline", band]
    assert "1 s + 2 s + 3 s + 4 s + 5 s + 6 s" in as_card(short)
    assert band in as_markdown(short)
    assert "operator" not in as_markdown(short)
    assert "he2016resnet" not in as_text(short)
