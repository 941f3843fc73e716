"""How a number came to be: the plan replayed, with values, units and sources."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from mlsim.equations import Equation
from mlsim.equations.registry import EQUATIONS
from mlsim.equations.roofline import arithmetic_intensity
from mlsim.quantities import term
from mlsim.records.references import reference, references
from mlsim.solvers.question import Question, quiet
from mlsim.units import text
from mlsim.values import Origin, literal
from mlsim.workloads.model import OperatorTable

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


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
    keys = [*model, *(part for known in data["inputs"] for part in known["origin"].split(", "))]
    for key in keys:
        if key in references():
            found.setdefault(key, {"key": key, "text": reference(key).text()})
    return [found[key] for key in sorted(found)]


def as_origin(derive: Callable[[], Mapping[str, Any]], name: str, shown: str) -> Origin:
    """Return the origin of a result: `shown` is its value in words, and what was asked.

    The derivation is made when somebody opens it, once.
    """
    data, words = cache(derive), name.replace("_", " ")
    return Origin(words, f"{words} = {shown}", lambda: as_card(data()), lambda: as_note(data()))


# What is shown of an operator, beside its name, kind and counts.
_OPERATOR_RESULTS = ("flops", "bytes_moved", "compute_time", "memory_time", "roofline_time")


def operator_rows(question: Question, table: OperatorTable[Any]) -> list[dict[str, Any]]:
    """Return a record per operator: counts, work, traffic, times, what binds it."""
    values = question.evaluate(*_OPERATOR_RESULTS, table=table)
    rows = []
    for index, operator in enumerate(table):
        row: dict[str, Any] = {
            "name": operator.name,
            "kind": operator.kind,
            "repeats": operator.repeats,
            "parameters": operator.parameters,
        }
        for name in _OPERATOR_RESULTS:
            column = values[name]
            each = column[index] if hasattr(column, "__len__") else column
            row[name] = float(each)
        # What moves nothing here, such as sending, has no intensity.
        moved = row["bytes_moved"]
        row["arithmetic_intensity"] = arithmetic_intensity(row["flops"], moved) if moved else 0.0
        waits = row["memory_time"] > row["compute_time"]
        sends = operator.kind == "network"
        row["bound"] = "network" if sends else "memory" if waits else "compute"
        rows.append(row)
    return rows


class Explanation:
    """The derivation of one quantity of a question about one point.

    `print` it in a terminal; a notebook renders it; `to_dict` is for programs.
    """

    def __init__(self, question: Question, name: str, band: Any = None) -> None:
        self.question, self.band = question, band
        self.name = name
        self.steps = question.plan(name).steps
        self._table = question.table
        known = {**question.known, **self._table.columns}
        wanted = tuple(step.yields for step in self.steps)
        # What moves nothing, such as sending, has no intensity.
        with quiet():
            self._values = {**known, **(question.evaluate(*wanted) if wanted else {})}
        self._example = self._largest()

    def _largest(self) -> int:
        """Return the row that takes the longest in all, to work as an example."""
        for name in ("operator_time", "roofline_time", "bytes_moved", "flops", "operator_cache"):
            column: Any = self._values.get(name)
            if hasattr(column, "__len__"):
                spent = [float(c) * op.repeats for c, op in zip(column, self._table, strict=True)]
                return spent.index(max(spent))
        return 0

    def _is_column(self, name: str) -> bool:
        return hasattr(self._values[name], "__len__")

    def _at(self, name: str) -> float:
        """Return a value; of an operator's quantity, that of the example."""
        value = self._values[name]
        return float(value[self._example] if hasattr(value, "__len__") else value)

    @property
    def value(self) -> float:
        """The quantity that is explained, in its base unit."""
        return self._at(self.name)

    def _step(self, step: Equation) -> dict[str, Any]:
        shown = {name: term(name).text(self._at(name)) for name in step.inputs}
        if step.sums:
            terms = self._products(*step.inputs)
            substituted = " + ".join(term(step.yields).text(each) for each in terms)
        else:
            substituted = step.with_values(shown)
        source = reference(step.source)
        return {
            "quantity": step.yields,
            "equation": step.name,
            "meaning": step.meaning,
            "formula": f"{step.yields} = {step.expression}",
            "substituted": substituted,
            "value": self._at(step.yields),
            "unit": step.unit,
            "example": list(self._table)[self._example].name
            if self._is_column(step.yields) or any(map(self._is_column, step.inputs))
            else None,
            "source": {"key": source.key, "text": source.text()},
        }

    def _products(self, column: str, repeats: str) -> list[float]:
        """Return what each row adds to a sum over operators."""
        values, counts = self._values[column], self._values[repeats]
        if not hasattr(values, "__len__"):
            values = [values] * len(self._table)
        return [float(v) * float(n) for v, n in zip(values, counts, strict=True)]

    def _inputs(self) -> list[dict[str, Any]]:
        used = {name for step in self.steps for name in step.inputs} | {self.name}
        return [
            {
                "quantity": name,
                "value": self._at(name),
                "unit": term(name).unit,
                "text": term(name).text(self._at(name)),
                "origin": self.question.origin(name),
            }
            for name in (*self.question.known, *self._table.extra)
            if name in used
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the derivation as plain data, every value with its unit."""
        used = {name for step in self.steps for name in (*step.inputs, step.yields)}
        columns = sorted(name for name in used if self._is_column(name) and name != "repeats")
        rows = [
            {
                "name": operator.name,
                "repeats": operator.repeats,
                **{name: self._cell(name, index) for name in columns},
            }
            for index, operator in enumerate(self._table)
        ]
        return {
            "quantity": self.name,
            "value": self.value,
            "unit": term(self.name).unit,
            **self.question.labels,
            "inputs": self._inputs(),
            "steps": [self._step(step) for step in self.steps],
            **self._banded(),
            "operators": rows if any(map(self._is_column, used)) else [],
        }

    def _cell(self, name: str, index: int) -> dict[str, Any]:
        value = float(self._values[name][index])
        return {"value": None if math.isnan(value) else value, "unit": term(name).unit}

    def _banded(self) -> dict[str, Any]:
        """Return the band around the quantity, if one is known."""
        if self.band is None:
            return {}
        return {"band": {"low": self.band.low, "high": self.band.high, "words": self.band.words}}

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        return as_text(self.to_dict())

    def _repr_markdown_(self) -> str:
        return as_markdown(self.to_dict())


def solved(question: Question, name: str, about: str) -> Quantity:
    """Return what a question gives as a value; its origin is the derivation, made when asked."""
    return term(name).scaled(question.value(name), partial(_origin, question, name, about))


def _origin(question: Question, name: str, about: str, value: Quantity) -> Origin:
    shown = f"{term(name).text(value.si)} ({about})"
    return as_origin(Explanation(question, name).to_dict, name, shown)
