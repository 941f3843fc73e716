"""How a number came to be: the plan replayed, with values, units and sources."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from mlsim.equations import Equation
from mlsim.equations.roofline import arithmetic_intensity
from mlsim.quantities import term
from mlsim.records.references import reference
from mlsim.solvers.derivation import as_markdown, as_origin, as_text
from mlsim.solvers.question import Question, quiet
from mlsim.solvers.reports import plain
from mlsim.workloads.operators import OperatorTable

if TYPE_CHECKING:
    from mlsim.values import Origin
    from mlsim.values.kinds import Quantity

# What is shown of an operator, beside its name, kind and counts.
_OPERATOR_RESULTS = (
    "flops",
    "bytes_moved",
    "compute_time",
    "memory_time",
    "roofline_time",
)


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
        columns = [name for name in used if self._is_column(name)]
        rows = [
            {
                "name": operator.name,
                "repeats": operator.repeats,
                **{
                    name: {
                        "value": plain(float(self._values[name][index])),
                        "unit": term(name).unit,
                    }
                    for name in sorted(columns)
                    if name != "repeats"
                },
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
            "operators": rows if columns else [],
        }

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
