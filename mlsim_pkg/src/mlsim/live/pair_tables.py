"""All pairs as one script with its data: programs, and tables by as few parts as decide them."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from mlsim.equations.javascript import helpers
from mlsim.errors import UnreachableError
from mlsim.live.chains import REFUSALS, chain_of
from mlsim.live.compiled import Compiled, _proven
from mlsim.live.pairs import FORM, NOTHING, TEXT, Constants, Pair, Table, asked_of, same_or_refuse
from mlsim.live.programs import Program
from mlsim.live.scripts import _Body, _json
from mlsim.live.shapes import Shapes
from mlsim.live.shared_steps import Chosen, SharedSteps

_DRAWN, _SEED = 1000, 1
# What formulas of columns read of a model.
_OF_MODEL = ("of_context", "logits", "bound_bytes_per_parameter", "experts", "experts_per_token")
# Columns that formulas read come first.
_EARLY = ("outputs", "product_depth", "token_multiply_adds", "token_elements", "parameters")
_AXES = "epwvn"
_MODULE = """\
const special={Infinity,"-Infinity":-Infinity,NaN};
const value=(x,data)=>Array.isArray(x)?data.pool[x[0]]:special[x]??x;
const listed=new WeakMap();
const list=steps=>{
if(!listed.has(steps)){
let top=-1,last=0;
listed.set(steps,steps.map(x=>{last=x<0?top+1:x?x-1:last;top=Math.max(top,last);return last;}));}
return listed.get(steps);};
const place=(t,k)=>[...t.by].reduce((s,b,i)=>s*t.sizes[i]+(t.of[i]?list(t.of[i])[k[b]]:k[b]),0);
const put=(c,t,k,data)=>{
const row=t.rows[list(t.at)[place(t,k)]];
t.names.forEach((name,i)=>{if(row[i]!==null)c[name]=value(row[i],data);});};
const numbers=(k,data)=>{const c={};for(const t of data.tables)put(c,t,k,data);return c;};
let last="",held,own={};
export const constants=(k,data)=>{
const key=JSON.stringify(k);
if(key===last)return held;
const c={...data.fixed,...numbers(k,data)};
last=key;held=c;own={};
c.text??=data.torn[k.n][k.e];
if(c.text)return c;
let rows=modeled(data.shapes,k,k.n?numbers({...k,n:0},data):c,0,[]);
if(k.n)rows=modeled(data.shapes,k,c,k.n,rows);
for(const name of [...data.shapes.columns,...data.columns])c[name]=[];
for(const x of rows){
const o={};
for(const t of data.operators)put(o,t,{...k,k:data.kinds[k.e][x.place]},data);
for(const name of data.shapes.columns)c[name].push(name in o?x[name]*o[name]:x[name]);
for(const name of data.columns)c[name].push(o[name]??0);}
for(const name of data.wide)
if(!Array.isArray(c[name])){const x=c[name]??0;c[name]=rows.map(()=>x);}
c.form=data.forms[data.flags.map(name=>c[name]).join("")];
return c;};
const of=(estimate,c,data)=>{
if(own[estimate])return own[estimate];
const made={...c};
for(const name of data.highest[estimate]??[])made[name]=c[name].map(()=>Math.max(...c[name]));
for(const name in c){
const [its,bare]=[name.slice(0,estimate.length+1),name.slice(estimate.length+1)];
const all=Array.isArray(c[bare])&&!Array.isArray(c[name]);
if(its===estimate+"_")made[bare]=all?c[bare].map(()=>c[name]):c[name];}
return own[estimate]=made;};
export const answer=(handles,k,data,estimate)=>{
const c=constants(k,data);
if(c.text)return {refusal:"unsupported"};
const [body,...used]=plans[forms[estimate][c.form]];
return bodies[body](handles,of(estimate,c,data),used.map(each=>functions[each]));};
"""


@dataclass(frozen=True)
class Pairs:
    """All pairs as a script with its data.

    Attributes
    ----------
    script
        The text of a module that exports `answer(handles, pair, data, estimate)` and
        `constants(pair, data)`; a pair is an object of places in the data: `e` of the model, `p`
        of the device, `w` and `v` of the formats of weights and cache, `n` of how many devices.
    data
        Its constants, as JSON has them; infinity is the text "Infinity".
    """

    script: str
    data: dict[str, Any]


def compiled_pairs(table: Table) -> Pairs:
    """Compile questions about all pairs, and prove them at pairs drawn by chance.

    Raises
    ------
    UnreachableError
        If a pair has a constant that does not follow from others.
    """
    known = Constants(table)
    _prove(table, known)
    shapes = _shapes(table, known)
    script, fixed = _written(table, known, shapes)
    return Pairs(script, {**_tables(table, known, shapes), "fixed": fixed})


def _written(table: Table, known: Constants, shapes: Shapes) -> tuple[str, dict[str, Any]]:
    """Return the script, and the constants that all programs have."""
    used: set[str] = set()
    shared = SharedSteps(used)
    bodies: dict[str, int] = {}
    plans: dict[tuple[int, ...], int] = {}
    chosen: dict[str, list[int]] = {each: [] for each in table.results}
    fixed: dict[str, Any] = {}
    done: dict[Any, int] = {}
    for pair in known.forms.values():
        its = known.known(pair)
        for estimate in table.results:
            asked = asked_of(table, pair, estimate)
            assert not isinstance(asked, str)
            key = (estimate, asked.form)
            if key not in done:
                program = _program(table, pair, estimate, sorted(known.wide))
                for name, value in _constants(program).items():
                    like = _of_estimate(name, estimate, its, known)
                    if like is not None:
                        same_or_refuse(name, value, like, pair)
                    elif fixed.setdefault(name, value) != value:
                        raise UnreachableError(f"{name} is {value} for {pair}, not {fixed[name]}.")
                functions = Chosen(shared)
                text = _Body(program, functions, used).text(
                    table.handles, frozenset(table.start), dict.fromkeys(table.start, 1.0)
                )
                plan = (bodies.setdefault(text, len(bodies)), *functions.plans)
                done[key] = plans.setdefault(plan, len(plans))
            chosen[estimate].append(done[key])
    script = (
        f"{helpers(used)}{shared.text()}const bodies=[{','.join(bodies)}];\n"
        f"const plans={_short(list(plans))};\nconst forms={_short(chosen)};\n"
        f"{shapes.script()}{_MODULE}"
    )
    return script, {name: _json(value) for name, value in fixed.items()}


def _constants(program: Program) -> dict[str, Any]:
    found = dict(program.constants)
    for (place, name), key in program.keys.items():
        found[key] = program.steps[place].own[name]
    return found


def _of_estimate(name: str, estimate: str, its: Mapping[str, Any], known: Constants) -> Any:
    """Return what an estimate has of a constant."""
    own = its.get(f"{estimate}_{name}", its.get(name))
    high = name in known.highest.get(estimate, ())
    return max(own) if high and isinstance(own, tuple) else own


def _program(table: Table, pair: Pair, estimate: str, columns: Sequence[str]) -> Program:
    """Return what one pair is asked, proven at many values of the handles."""
    results = table.results[estimate]

    def question(**handles: Any) -> Any:
        return table.ask(pair, estimate, **handles)

    made = Compiled(question, tuple(results), tuple(table.handles), (), {}, frozenset())
    chain = chain_of(question(**table.start), results)
    program = _proven(made, chain, (), frozenset(table.start))
    steps = []
    for step in program.steps:
        inputs = {name for each in step.plan.steps for name in each.inputs}
        wide = tuple(name for name in columns if name in inputs and name not in step.columns)
        steps.append(replace(step, columns=(*step.columns, *wide)))
    held = {
        name: (at, quantity, name in table.sizes or "memory_free" not in results)
        for name, (at, quantity, _) in program.results.items()
    }
    fits = held.get("memory_free")
    return replace(
        program, steps=tuple(steps), results=held, fits=fits[:2] if fits else program.fits
    )


def _short(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _prove(table: Table, known: Constants) -> None:
    """Compare what follows for pairs drawn by chance with what the package knows of them."""
    of = random.Random(_SEED)  # noqa: S311
    where = list(table.where(table.places))
    for _ in range(_DRAWN):
        pair: Pair = (of.choice(list(table.models)), *of.choice(where))
        its = known.known(pair)
        for estimate in table.results:
            asked = asked_of(table, pair, estimate)
            told = asked if isinstance(asked, str) else None
            same_or_refuse("the refusal", told, its.get(TEXT), pair)
            if isinstance(asked, str):
                break  # a page asks the first estimate, and no other where that is refused
            for name, value in asked.constants.items():
                like = _of_estimate(name, estimate, its, known)
                rows = known.rows[pair[0], pair[4]]
                if isinstance(value, tuple) and len(value) < len(rows):
                    kept = [row in asked.rows for row in rows]
                    like = tuple(x for x, there in zip(like, kept, strict=True) if there)
                same_or_refuse(f"{name} of the {estimate}", value, like, pair)
            if estimate == table.first:
                form = list(known.forms).index(asked.form) if asked.form in known.forms else None
                also = {**dict.fromkeys(known.also, ""), **asked.also}
                for name, value in {**also, FORM: form}.items():
                    same_or_refuse(name, value, its.get(name), pair)


def _shapes(table: Table, known: Constants) -> Shapes:
    """Return the columns that a model has whatever the device, as formulas."""
    values = {
        (name, model, count, place): value
        for name in known.decided
        if name in known.wide
        for key, value in known.values[name].items()
        for model, count in [(key[0], key[-1])]
        for place, weights in enumerate(table.weights)
        if len(key) < 3 or key[1] == weights
    }
    values |= {
        (name, model, count, place): value
        for (name, model, count), value in known.base.items()
        for place in range(len(table.weights))
    }
    names = list(dict.fromkeys(name for name, *_ in values))
    columns = [*(each for each in _EARLY if each in names), *(n for n in names if n not in _EARLY)]
    rows: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for model, count in product(table.models, table.counts):
        for at, row in enumerate(known.rows.get((model, count), ())):
            found: dict[str, Any] = {}
            for name in columns:
                each = [
                    values.get((name, model, count, place), ())
                    for place in range(len(table.weights))
                ]
                own = tuple(column[at] if column else 0.0 for column in each)
                found[name] = own if len(known.decided.get(name, ())) > 2 else own[0]
            rows.setdefault((model, count), {})[row] = found
    return Shapes(columns, rows, _whole(table, known), len(table.weights))


def _whole(table: Table, known: Constants) -> dict[tuple[str, int, int], dict[str, float]]:
    """Return what formulas read of a model, by model, number of devices and format of weights.

    What it does not have is no number, with which no formula gives anything.
    """
    found = {}
    for (model, count), (place, weights) in product(known.rows, enumerate(table.weights)):
        parts: dict[int, Any] = {0: model, 2: weights, 4: count}
        found[model, count, place] = {
            name: known.values[name].get(tuple(map(parts.get, known.decided[name])), math.nan)
            if name in known.decided
            else math.nan
            for name in _OF_MODEL
        }
    return found


def _tables(table: Table, known: Constants, shapes: Shapes) -> dict[str, Any]:
    """Return all constants as tables."""
    axes: dict[str, Sequence[Any]] = {
        "e": table.models,
        "p": list(table.places),
        "w": table.weights,
        "v": table.caches,
        "n": table.counts,
    }
    pool: dict[str, int] = {}
    tables = _Tables(axes, pool)
    for name, by in known.decided.items():
        if name not in known.wide:
            tables.add(name, [_AXES[place] for place in by], known.values[name])
    where = list(table.where(table.places))
    for name in known.single:
        classes = [known.class_of[name][model] for model in table.models]
        column = {
            (group, *each): known.value(name, group, each)
            for group in range(max(classes) + 1)
            for each in where
        }
        tables.add_fewest(name, "e", classes, column)
    operators = _Tables(axes, pool)
    found = {
        (kind, *each): values
        for kind in known.rows_of
        for each in where
        if (values := known.of(kind, each))
    }
    for at, name in enumerate(known.columns):
        column = {key: values[at] for key, values in found.items()}
        operators.add_fewest(name, "k", range(len(known.rows_of)), column)
    masked = set(known.masked)
    return {
        "tables": tables.as_data(),
        "operators": operators.as_data(),
        "kinds": [
            [known.kind_of[model, row] for row in shapes.labels(model)] for model in table.models
        ],
        "columns": [name for name in known.columns if name not in masked],
        "wide": sorted(known.wide),
        "flags": list(known.flags),
        "also": known.also,
        "forms": {"".join(map(str, map(int, key))): form for key, form in known.form_of.items()},
        "highest": known.highest,
        "torn": [
            {
                at: known.torn[model, count]
                for at, model in enumerate(table.models)
                if (model, count) in known.torn
            }
            for count in table.counts
        ],
        "shapes": shapes.as_data(),
        "refusals": {code: each.words for code, each in REFUSALS.items()},
        "pool": [json.loads(text) for text in pool],
    }


class _Tables:
    """Columns by parts of a pair: of all keys in order which row it is, and the different rows."""

    def __init__(self, axes: Mapping[str, Sequence[Any]], pool: dict[str, int]) -> None:
        self.axes, self.pool = axes, pool
        self.together: dict[str, dict[str, list[Any]]] = {}

    def add_fewest(
        self, name: str, first: str, groups: Sequence[int], column: Mapping[Any, Any]
    ) -> None:
        """Add a column by as few parts as decide it; `groups` are those along the first axis."""
        known = {key: value for key, value in column.items() if value is not NOTHING}
        # What a form lacks is not read; that nothing is refused is.
        known = {key: x for key, x in known.items() if x is not None or name == TEXT}
        for by in (each for size in range(6) for each in combinations(range(5), size)):
            found: dict[Any, Any] = {}
            if all(
                found.setdefault(tuple(key[place] for place in by), value) == value
                for key, value in known.items()
            ):
                self.add(name, [(first + _AXES[1:])[place] for place in by], found, groups)
                return

    def add(
        self,
        name: str,
        by: Sequence[str],
        column: Mapping[Any, Any],
        groups: Sequence[int] | None = None,
    ) -> None:
        """Add a column by some parts of a pair."""
        axes = dict(self.axes)
        if groups is not None and by[:1] in (["e"], ["k"]):
            axes[by[0]] = range(max(groups) + 1)
        cells: dict[str, int] = {}
        at: list[int] = []
        for key in product(*(axes[each] for each in by)):
            # What is not there is not read: it is as with another number of devices, or the last.
            others = [
                tuple(count if each == "n" else x for x, each in zip(key, by, strict=True))
                for count in self.axes["n"]
            ]
            there = next((each for each in (key, *others) if each in column), None)
            if there is None:
                at.append(at[-1] if at else 0)
            else:
                cell = _short(self._cell(column[there]))
                at.append(cells.setdefault(cell, len(cells)))
        of, sizes, kept = _alike(at, [len(axes[each]) for each in by])
        if groups is not None and by[:1] == ["e"]:
            of[0] = [of[0][each] for each in groups] if of[0] else list(groups)
        axis = {"by": "".join(by), "sizes": sizes, "at": _steps(kept)}
        axis["of"] = [each and _steps(each) for each in of]
        self.together.setdefault(_short(axis), {})[name] = list(map(json.loads, cells))

    def _cell(self, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, tuple):
            return [self.pool.setdefault(_short(value), len(self.pool))]
        return _json(value)

    def as_data(self) -> list[dict[str, Any]]:
        """Return tables, in which columns with the same order stand together."""
        return [
            {
                **json.loads(axis),
                "names": list(named),
                "rows": list(map(list, zip(*named.values(), strict=True))),
            }
            for axis, named in self.together.items()
        ]


def _steps(places: Sequence[int]) -> list[int]:
    """Return a list of places as steps: -1 for the next new one, 0 for the last again, or 1 + it.

    >>> _steps([0, 0, 1, 0, 2, 2])
    [-1, 0, -1, 1, -1, 0]
    """
    found, top, last = [], -1, -1
    for each in places:
        new = each == top + 1
        found.append(-1 if new else 0 if each == last else each + 1)
        top, last = max(top, each), each
    return found


def _alike(
    at: Sequence[int], sizes: Sequence[int]
) -> tuple[list[list[int] | None], list[int], list[int]]:
    """Merge what is alike along each axis: which is which, the sizes left, and what is left.

    >>> _alike([0, 1, 0, 1, 2, 3], [3, 2])
    ([[0, 0, 1], None], [2, 2], [0, 1, 2, 3])
    """
    kept, left, of = list(at), list(sizes), []
    for axis, size in enumerate(sizes):
        inner = math.prod(left[axis + 1 :])
        slices: dict[tuple[int, ...], int] = {}
        which = []
        for place in range(size):
            part = tuple(
                kept[start + i]
                for start in range(place * inner, len(kept), size * inner)
                for i in range(inner)
            )
            which.append(slices.setdefault(part, len(slices)))
        firsts = [which.index(each) for each in range(len(slices))]
        kept = [
            kept[(outer * size + place) * inner + i]
            for outer in range(len(kept) // (size * inner))
            for place in firsts
            for i in range(inner)
        ]
        left[axis] = len(slices)
        of.append(None if len(slices) == size else which)
    return of, left, kept
