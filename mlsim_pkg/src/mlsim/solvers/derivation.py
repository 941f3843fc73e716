"""An explanation written out: text for a terminal, Markdown for a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from mlsim.equations.registry import EQUATIONS
from mlsim.quantities import term
from mlsim.records.references import reference, references
from mlsim.units import text
from mlsim.values import Origin, literal

_TABLE = ("flops", "bytes_moved", "compute_time", "memory_time", "roofline_time")


def _title(data: Mapping[str, Any]) -> str:
    shown = term(data["quantity"]).text(data["value"])
    return (
        f"{data['quantity']} = {shown}\n"
        f"{data['model']} on {data['hardware']}, {data['precision']}, {data['estimate']}"
    )


def _band(data: Mapping[str, Any]) -> str:
    """Say where measured results lie around the value; nothing where no band is known."""
    band = data.get("band")
    if not band:
        return ""
    low, high = (term(data["quantity"]).text(band[end]) for end in ("low", "high"))
    return f"Band: {low} to {high}, {band['words']}."


def _columns(data: Mapping[str, Any]) -> list[str]:
    """Choose the operators' columns to print."""
    rows = data["operators"]
    return [name for name in _TABLE if rows and name in rows[0]]


def _cells(data: Mapping[str, Any]) -> list[list[str]]:
    """Return a header and a line of text per operator, the sum's terms last."""
    names = _columns(data)
    sums = "roofline_time" in names
    lines = [["operator", "repeats", *names, *(["repeats x time"] if sums else [])]]
    for row in data["operators"]:
        cells = [row["name"], str(row["repeats"])]
        cells += [term(name).text(row[name]["value"]) for name in names]
        if sums:
            cells.append(text(row["repeats"] * row["roofline_time"]["value"], "s"))
        lines.append(cells)
    return lines


def as_text(data: Mapping[str, Any]) -> str:
    """Write the derivation for a terminal."""
    lines = [_title(data), *_wrapped(_band(data), 0), "", "Known"]
    width = max((len(known["quantity"]) for known in data["inputs"]), default=0)
    for known in data["inputs"]:
        lines.append(f"  {known['quantity']:<{width}} = {known['text']}")
        lines += _wrapped(f"({known['origin']})", width + 5)
    lines += ["", "Equations"]
    for step in data["steps"]:
        at = f"   (for operator {step['example']})" if _worked(step) else ""
        lines.append(f"  {step['formula']}{at}")
        lines.append(f"    = {_short(step['substituted'])}")
        lines.append(
            f"    = {term(step['quantity']).text(step['value'])}   [{step['source']['key']}]"
        )
    if data["operators"]:
        lines += ["", f"Operators of {data['model']} (architecture: {data['model_source']})"]
        cells = _cells(data)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            name, *numbers = row
            padded = [f"{cell:>{w}}" for cell, w in zip(numbers, widths[1:], strict=True)]
            lines.append(f"  {name:<{widths[0]}}  " + "  ".join(padded))
    lines += ["", "Sources"]
    for source in _sources(data):
        lines += _wrapped(f"[{source['key']}] {source['text']}", 2)
    return "\n".join(lines)


def _wrapped(words: str, indent: int) -> list[str]:
    """Wrap words to 80 columns; an address stays whole."""
    return textwrap.wrap(
        words,
        width=80,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_markdown(data: Mapping[str, Any]) -> str:
    """Write the derivation for a notebook, formulas as mathematics."""
    lines = [f"**{_title(data).replace(chr(10), '** — ')}", ""]
    lines += [_band(data), ""] if data.get("band") else []
    lines += ["| known | value | from |", "|---|---:|---|"]
    for known in data["inputs"]:
        # A quote may hold a bar, which would end the cell.
        origin = known["origin"].replace("|", r"\|")
        lines.append(f"| {_named(known['quantity'])} | {known['text']} | {origin} |")
    lines.append("")
    for step in data["steps"]:
        lines += _formula(step, f"[{step['source']['key']}]")
    lines += _table(data)
    lines += [f"- [{source['key']}] {source['text']}" for source in _sources(data)]
    return "\n".join(lines)


def as_card(data: Mapping[str, Any], most: int = 5) -> str:
    """Write the derivation for a card: the result first, then what it comes from.

    Sources are citations of the book's bibliography; of the operators, those
    that take longest are listed.
    """
    lines = [f"**{_title(data).replace(chr(10), '** — ')}", ""]
    for step in reversed(data["steps"]):
        lines += _formula(step, f"[@{step['source']['key']}]")
    shown = _longest(data, most)
    lines += _table(shown)
    left = len(data["operators"]) - len(shown["operators"])
    lines += [f"and {left} more kinds of operator.", ""] if left else []
    for known in data["inputs"]:
        lines.append(f"- {_named(known['quantity'])} = {known['text']}: {_cited(known['origin'])}")
    return "\n".join(lines)


def as_note(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Write the derivation as lines for a note: the result first, then what it comes from."""
    lines = [_title(data).replace("\n", " — ")]
    for step in reversed(data["steps"]):
        at = f" (for operator {step['example']})" if _worked(step) else ""
        value, source = term(step["quantity"]).text(step["value"]), step["source"]["key"]
        worked = f"{step['formula']}{at} = {_short(step['substituted'])} = {value} [@{source}]"
        lines.append(worked.replace(" * ", " × "))
    inputs = data["inputs"]
    lines += [f"{each['quantity']} = {each['text']}: {_cited(each['origin'])}" for each in inputs]
    return tuple(lines)


def _named(name: str) -> str:
    return f"{name.replace('_', ' ')} ${term(name).symbol}$"


def _formula(step: dict[str, Any], source: str) -> list[str]:
    """Write an equation, what goes in, and what comes out."""
    at = f" (for operator {step['example']})" if _worked(step) else ""
    name = step["quantity"].replace("_", " ")
    value = term(step["quantity"]).text(step["value"])
    try:
        formula = f"$${EQUATIONS[step['equation']].tex}$$"
    except ImportError:  # without SymPy, as the code has it
        formula = f"`{step['formula']}`"
    worked = f"{name}{at} = {_short(step['substituted'])} = **{value}** {source}"
    # A lone star between spaces is no emphasis, but it is no times sign either.
    return [formula, "", worked.replace(" * ", " × "), ""]


def _table(data: Mapping[str, Any]) -> list[str]:
    """Write the operators as a table, if there are any."""
    if not data["operators"]:
        return []
    header, *rows = _cells(data)
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _longest(data: Mapping[str, Any], most: int) -> Mapping[str, Any]:
    """Keep the operators that take longest in all, or move most, or are first."""

    def spent(row: dict[str, Any]) -> float:
        for name in ("roofline_time", "bytes_moved", "flops"):
            if name in row:
                return float(row["repeats"] * row[name]["value"])
        return 0.0

    rows = data["operators"]
    if most and len(rows) > most:
        rows = sorted(rows, key=spent, reverse=True)[:most]
    return {**data, "operators": rows}


def _cited(origin: str) -> str:
    """Turn the key of a document, among the parts of an origin, into a citation."""
    parts = [f"[@{part}]" if part in references() else literal(part) for part in origin.split(", ")]
    return ", ".join(parts)


def _worked(step: dict[str, Any]) -> bool:
    return bool(step["example"]) and not EQUATIONS[step["equation"]].sums


def _short(substituted: str, most: int = 6) -> str:
    """Shorten a long sum; the table below it has every term."""
    terms = substituted.split(" + ")
    if len(terms) <= most:
        return substituted
    return " + ".join([*terms[:3], f"... ({len(terms) - 4} more)", terms[-1]])


def _sources(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return each cited document once: of the equations, the figures, the model."""
    found = {step["source"]["key"]: step["source"] for step in data["steps"]}
    model = [data["model_source"]] if data["operators"] else []
    keys = [*model, *(part for known in data["inputs"] for part in _keys(known))]
    for key in keys:
        if key in references():
            found.setdefault(key, {"key": key, "text": reference(key).text()})
    return [found[key] for key in sorted(found)]


def _keys(known: dict[str, Any]) -> list[str]:
    """Return the parts of an origin, among them the key of its document."""
    return [part.strip() for part in known["origin"].split(",")]


def as_origin(derive: Callable[[], Mapping[str, Any]], name: str, shown: str) -> Origin:
    """Return the origin of a result: `shown` is its value in words, and what was asked.

    The derivation is made when somebody opens it, once.
    """
    data, words = cache(derive), name.replace("_", " ")
    return Origin(words, f"{words} = {shown}", lambda: as_card(data()), lambda: as_note(data()))
