"""A figure's number and unit against its quote: a wrong power of ten is found, and no other."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

from told import rows

from mlsim import CloudOperators, Clusters, DataCentres, Embodied, Hardware, Models, Systems
from mlsim.records import Figure
from mlsim.units import factor
from mlsim.workloads.announced_models import announced
from mlsim.zoo.review.second_readings import quotes, scales

ZOO = (*Hardware, *Systems, *Clusters, *Models, *announced())
PLACES = (*DataCentres, *CloudOperators, *Embodied)


def figure(value: float, unit: str, base: str, quote: str, **fields: str) -> Figure:
    """Make a figure as a data file would."""
    kind = fields.pop("kind", "datasheet")
    si = value * factor(unit, base)
    return Figure("it", value, unit, si, base, kind=kind, quote=quote, **fields)


def said(one: Figure) -> list[str]:
    return [each.message for each in scales(SimpleNamespace(key="Mine", figures={"it": one}))]


def test_each_figure_stands_in_its_quote_or_its_note_with_its_power_of_ten() -> None:
    """And one that was changed does not, whatever else its note says."""
    wrong, passed = [], []
    for record in (*ZOO, *PLACES):
        for check in (quotes, scales):
            wrong += [(record.key, each.figure) for each in check(record)]
        figures = {
            name: dataclasses.replace(each, value=each.value * 1.4615, si=each.si * 1.4615)
            for name, each in record.figures.items()
            if each.kind != "given"
        }
        changed = SimpleNamespace(key=record.key, figures=figures)
        noticed = {each.figure for each in quotes(changed)}
        passed += [(record.key, name) for name in figures if name not in noticed]
    assert wrong == passed == []


def test_a_wrong_power_of_ten_is_refused_and_no_other_spelling() -> None:
    broken = []
    for value, unit, base, quote, note, finds in rows("figures_and_quotes"):
        spelled = quote.replace("\\|", "|")
        one = figure(float(value), unit, base, spelled, note="" if note == "-" else note)
        messages = said(one)
        wanted = [] if finds in ("same", "other", "absent") else [f" is {finds}", f'"{spelled}"']
        if bool(messages) != bool(wanted) or not all(each in messages[0] for each in wanted):
            broken.append(f"{value} {unit}, {quote}: {messages}")
        stands = not any(quotes(SimpleNamespace(key="Mine", figures={"it": one})))
        if finds == ("absent" if stands else "same"):
            broken.append(f"{value} {unit}, {quote}: {stands}")
    assert broken == []


def test_a_computed_figure_has_digits_of_its_own() -> None:
    """Four links of 10 GB/s are 40 GB/s, which is no misprint of 4."""
    four = {"quote": "4 links of 10 GB/s", "note": "Four times 10."}
    assert said(figure(40, "GB/s", "B/s", kind="derived", **four)) == []
    assert said(figure(40, "GB/s", "B/s", **four)) == []
    assert said(figure(100, "GB/s", "B/s", **four)) != []
