"""Columns of many models' operators as formulas: what follows from other columns is not stored.

A matrix has as many parameters as multiply-adds, and on two devices half as many. Such formulas
are tried, the same text in Python here and as JavaScript on a page. Of each operator a page
keeps which formula gives each of its columns, and the numbers that none gives.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

# `x` is an operator; `y`, `z` and `u` stand before it, `f` and `s` are the first two; `q` is `x` on
# one device. `m` is what its model has, `n` how many devices, and `@` the column's own name.
_FORMULAS = (
    *("0", "1", "q.@", "q.@/n", "y.@", "z.@", "u.@", "m.of_context", "m.logits", "m.experts"),
    *("x.product_depth", "x.token_elements", "x.token_multiply_adds", "x.repeats", "x.parameters"),
    *("x.cached_elements", "x.product_depth*x.outputs", "x.product_depth+x.outputs"),
    *("x.product_depth+2*x.outputs", "x.product_depth+x.outputs/2", "x.token_elements/4"),
    *("x.token_multiply_adds+x.outputs", "x.product_depth*x.outputs*m.experts_per_token"),
    *("y.outputs", "z.outputs", "y.outputs/2", "z.outputs/2", "y.product_depth", "y.@/2"),
    *("z.product_depth", "u.product_depth", "y.token_elements/2", "f.token_elements"),
    *("f.token_elements/2", "x.token_elements/2*m.logits", "s.repeats", "(s.repeats-1)/2"),
    *("m.logits*(n-1)", "f.token_elements*(n-1)/n", "m.bound_bytes_per_parameter", "2"),
    "x.token_multiply_adds+q.parameters-q.token_multiply_adds",
    "x.token_multiply_adds+(q.parameters-q.token_multiply_adds)/n",
    "x.token_multiply_adds/m.experts_per_token*m.experts",
    "x.product_depth+(q.token_elements-q.product_depth)/n",
    *("f.token_elements/2+(q.@-f.token_elements/2)/n", "f.token_elements+(q.@-f.token_elements)/n"),
    "(m.bound_bytes_per_parameter*x.token_multiply_adds+2*(x.parameters-x.token_multiply_adds))/x.parameters",
)
_CODES = "".join(chr(code) for code in range(35, 127) if chr(code) not in "\\<")
_NAMES = "x,y,z,u,f,s,q,m,n,k"
_OWN = "!"  # a number of the operator's own
_MODELED = """\
const modeled=(shapes,k,m,at,alone)=>{
const n=shapes.counts[at],own=shapes.numbers[k.e][at],names=shapes.columns,rows=[];
const zero=Object.fromEntries(names.map(name=>[name,0]));
let next=0;
shapes.lists[k.e].forEach((id,place)=>{
const codes=shapes.vectors[id].substr(at?names.length:0,names.length);
if(codes[0]===" ")return;
const x={place},[y,z,u]=[1,2,3].map(back=>rows[rows.length-back]??zero);
const [f=zero,s=zero]=rows,q=alone.find(each=>each.place===place)??zero;
names.forEach((name,i)=>{
const found=codes[i]==="!"?own[next++]:rules[codes[i]](x,y,z,u,f,s,q,m,n,name);
x[name]=Array.isArray(found)?found[k.w]:found;});
rows.push(x);});
return rows;};
"""


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_plain, value))
    return int(value) if value == int(value) else value


class Shapes:
    """Rows of columns by model, number of devices and name of a row: formulas, and numbers.

    Parameters
    ----------
    columns
        Names of columns, in the order in which formulas may read them.
    rows
        By model and number of devices, in order: a row's name and its columns, where each is a
        number, or a tuple with one for each format.
    whole
        What a model has by name, by model, number of devices and place of a format.
    formats
        How many formats there are.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Mapping[tuple[str, int], Mapping[str, Mapping[str, Any]]],
        whole: Mapping[tuple[str, int, int], Mapping[str, float]],
        formats: int,
    ) -> None:
        self.columns, self.rows, self.whole, self.formats = columns, rows, whole, formats
        self.counts = sorted({count for _, count in rows})
        self.wide = [
            name
            for name in columns
            if any(isinstance(each[name], tuple) for of in rows.values() for each in of.values())
        ]
        self.compiled = {
            (text, name): compile(text.replace("@", name), text, "eval")
            for text in _FORMULAS
            for name in columns
        }
        self.allowed = {
            (name, several): self._allowed(name, several=several)
            for name in columns
            for several in (False, True)
        }
        holding = {
            (model, label): self._holding(model, label)
            for model in dict.fromkeys(model for model, _ in rows)
            for label in self.labels(model)
        }
        common = Counter(
            (label, name, way, text)
            for (_, label), ways in holding.items()
            for (name, way), texts in ways.items()
            for text in texts
        )
        self.vectors: dict[str, int] = {}
        self.lists: list[list[int]] = []
        self.numbers: list[list[list[Any]]] = []
        for model in dict.fromkeys(model for model, _ in rows):
            self._write(model, holding, common)

    def _allowed(self, name: str, *, several: bool) -> set[str]:
        """Return the formulas that read only what is known before a column."""
        later = [f"x.{each}" for each in self.columns[self.columns.index(name) :]]
        return {
            text
            for text in _FORMULAS
            if not any(re.search(rf"{re.escape(each)}\b", text) for each in later)
            and (several or not re.search(r"\bq\.|\bn\b", text))
            and (name in self.wide or "bytes_per_parameter" not in text)
        }

    def labels(self, model: str) -> list[str]:
        """Return the names of a model's rows, in an order that all numbers of devices have."""
        found: list[str] = []
        for count in reversed(self.counts):
            for label in self.rows.get((model, count), ()):
                if label not in found:
                    found.append(label)
        return found

    def _near(self, model: str, count: int, label: str, place: int) -> dict[str, Any]:
        """Return the rows that a formula may read, with numbers of one format."""
        rows = self.rows[model, count]
        labels = list(rows)
        at = labels.index(label)
        before = [labels[at - back] if at >= back else "" for back in (1, 2, 3)]
        of = {"x": label, **dict(zip("yzu", before, strict=True)), "f": labels[0] if at else ""}
        of["s"] = labels[1] if at > 1 else ""
        found = {name: self._of(rows.get(its), place) for name, its in of.items()}
        found["q"] = self._of(self.rows[model, 1].get(label), place)
        found["m"] = SimpleNamespace(**self.whole[model, count, place])
        return {**found, "n": count}

    def _of(self, row: Mapping[str, Any] | None, place: int) -> SimpleNamespace:
        row = row or dict.fromkeys(self.columns, 0.0)
        return SimpleNamespace(
            **{n: x[place] if isinstance(x, tuple) else x for n, x in row.items()}
        )

    def _holding(self, model: str, label: str) -> dict[tuple[str, bool], set[str]]:
        """Return which formulas give a column of a row: on one device, and on several."""
        found: dict[tuple[str, bool], set[str]] = {}
        for count in self.counts:
            row = self.rows.get((model, count), {}).get(label)
            for place in range(self.formats) if row else ():
                near = self._near(model, count, label, place)
                for name in self.columns if not place else self.wide:
                    key = (name, count > 1)
                    kept = found.get(key, self.allowed[key])
                    value = getattr(near["x"], name)
                    found[key] = {text for text in kept if self._made(text, name, near) == value}
        return found

    def _made(self, text: str, name: str, near: dict[str, Any]) -> float | None:
        try:
            return float(eval(self.compiled[text, name], near))  # noqa: S307
        except ZeroDivisionError:
            return None

    def _write(self, model: str, holding: Any, common: Counter[Any]) -> None:
        chosen: dict[str, str] = {}
        ids = []
        for label in self.labels(model):
            vector = ""
            for several in (False, True):
                for name in self.columns:
                    texts = holding[model, label].get((name, several))
                    best = max(
                        sorted(texts or (), key=_FORMULAS.index),
                        key=lambda text: common[label, name, several, text],
                        default=None,
                    )
                    vector += _OWN if best is None else _CODES[_FORMULAS.index(best)]
                    if texts is None:
                        vector = vector[:-1] + " "
            chosen[label] = vector
            ids.append(self.vectors.setdefault(vector, len(self.vectors)))
        self.lists.append(ids)
        numbers: list[list[Any]] = []
        for count in self.counts:
            own: list[Any] = []
            for label, row in self.rows.get((model, count), {}).items():
                half = chosen[label][len(self.columns) * (count > 1) :]
                own += [
                    _plain(row[n])
                    for n, code in zip(self.columns, half, strict=False)
                    if code == _OWN
                ]
            numbers.append(own)
        self.numbers.append(numbers)

    def script(self) -> str:
        """Return the source of the formulas that are used, and of what makes rows of them."""
        used = {code for vector in self.vectors for code in vector}
        rules = ",\n".join(
            f"{json.dumps(code)}:({_NAMES})=>{text.replace('.@', '[k]')}"
            for code, text in zip(_CODES, _FORMULAS, strict=False)
            if code in used
        )
        return f"const rules={{{rules}}};\n{_MODELED}"

    def as_data(self) -> dict[str, Any]:
        """Return what the script reads."""
        return {
            "columns": list(self.columns),
            "counts": self.counts,
            "vectors": list(self.vectors),
            "lists": self.lists,
            "numbers": self.numbers,
        }
