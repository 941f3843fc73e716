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
from mlsim.live.pairs import FORM, TEXT, Block, Pair, Table, asked_of, same_or_refuse
from mlsim.live.programs import Program
from mlsim.live.scripts import _Body, _json
from mlsim.live.shared_steps import Chosen, SharedSteps

_DRAWN, _SEED = 300, 1
_MODULE = """\
const special={Infinity,"-Infinity":-Infinity,NaN};
const value=(x,data)=>Array.isArray(x)?data.pool[x[0]].map(y=>special[y]??y):special[x]??x;
const place=(t,k)=>t.by.reduce((s,b,i)=>s*t.sizes[i]+(t.of[i]?t.of[i][k[b]]:k[b]),0);
const row=(t,k)=>t.rows[t.at[place(t,k)]]??[];
const put=(c,t,k,data)=>row(t,k).forEach((x,i)=>{if(x!==null)c[t.names[i]]=value(x,data);});
let last="",held,own={};
export const constants=(pair,data)=>{
const key=JSON.stringify(pair);
if(key===last)return held;
const b=data.blocks[pair.block],c={...data.fixed};
const k={e:pair.e,p:pair.p,w:pair.w,v:pair.v,c:b.classes[pair.e]};
for(const t of b.tables)put(c,t,k,data);
const kinds=data.pool[b.kinds[pair.e]]??[];
for(const name of data.columns)c[name]=[];
for(const kind of kinds){const o={};
for(const t of b.operators)put(o,t,{...k,k:kind},data);
for(const name of data.columns)c[name].push(o[name]??0);}
for(const t of b.bases){const o={};put(o,t,k,data);
for(const name in o)c[name]=c[name].map((x,i)=>x*o[name][i]);}
for(const name of data.wide)
if(!Array.isArray(c[name])){const x=c[name]??0;c[name]=kinds.map(()=>x);}
last=key;held=c;own={};
return c;};
const of=(estimate,pair,data)=>{
const c=constants(pair,data),names=data.blocks[pair.block].apart[estimate];
if(!names||own[estimate])return own[estimate]??c;
const all=names.map(name=>[name,c[`${estimate}_${name}`]]);
const made={...c},its=all.filter(([,x])=>x!==undefined);
const along=its.find(([,x])=>Array.isArray(x))?.[1]??c.repeats;
for(const [name,x] of its)made[name]=data.wide.includes(name)&&!Array.isArray(x)?along.map(()=>x):x;
return own[estimate]=made;};
export const answer=(handles,pair,data,estimate)=>{
const c=of(estimate,pair,data);
if(c.text!==undefined)return {refusal:"unsupported"};
const [body,...used]=plans[forms[estimate][c.form]];
return bodies[body](handles,c,used.map(each=>functions[each]));};
"""


@dataclass(frozen=True)
class Pairs:
    """All pairs as a script with its data.

    Attributes
    ----------
    script
        The text of a module that exports `answer(handles, pair, data, estimate)` and
        `constants(pair, data)`; a pair is an object of places in the data: `block`, `e` of the
        model, `p` of where it runs, `w` and `v` of the formats of weights and cache.
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
    forms: dict[Any, Pair] = {}
    blocks = [Block(table, block, forms) for block in table.blocks]
    _prove(table, blocks, list(forms))
    columns = list(dict.fromkeys(name for each in blocks for name in each.columns))
    wide = list(dict.fromkeys((*columns, *(name for each in blocks for name in each.wide))))
    used: set[str] = set()
    shared = SharedSteps(used)
    bodies: dict[str, int] = {}
    plans: dict[tuple[int, ...], int] = {}
    chosen: dict[str, list[int]] = {each: [] for each in table.results}
    fixed: dict[str, Any] = {}
    for pair in forms.values():
        known = next(each for each in blocks if pair[0] in each.entities).known(pair)
        for estimate, results in table.results.items():
            program = _program(table, pair, estimate, results, wide)
            for name, value in _constants(program).items():
                own = f"{estimate}_{name}"
                if own in known:
                    same_or_refuse(own, value, known[own], pair)
                elif name in known:
                    same_or_refuse(name, value, known[name], pair)
                elif fixed.setdefault(name, value) != value:
                    raise UnreachableError(f"{name} is {value} for {pair}, not {fixed[name]}.")
            functions = Chosen(shared)
            text = _Body(program, functions, used).text(
                table.handles, frozenset(table.start), dict.fromkeys(table.start, 1.0)
            )
            plan = (bodies.setdefault(text, len(bodies)), *functions.plans)
            chosen[estimate].append(plans.setdefault(plan, len(plans)))
    script = (
        f"{helpers(used)}{shared.text()}const bodies=[{','.join(bodies)}];\n"
        f"const plans={_short(list(plans))};\nconst forms={_short(chosen)};\n{_MODULE}"
    )
    pool: dict[str, int] = {}
    data: dict[str, Any] = {
        "columns": columns,
        "wide": wide,
        "fixed": {name: _json(value) for name, value in fixed.items()},
        "blocks": [_written(table, each, pool) for each in blocks],
    }
    data["refusals"] = {code: each.words for code, each in REFUSALS.items()}
    return Pairs(script, data | {"pool": [json.loads(text) for text in pool]})


def _program(
    table: Table, pair: Pair, estimate: str, results: Sequence[str], columns: Sequence[str]
) -> Program:
    """Return what one pair is asked, proven at many values of the handles."""

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


def _constants(program: Program) -> dict[str, Any]:
    found = dict(program.constants)
    for (place, name), key in program.keys.items():
        found[key] = program.steps[place].own[name]
    return found


def _prove(table: Table, blocks: Sequence[Block], forms: Sequence[Any]) -> None:
    """Compare what follows for pairs drawn by chance with what the package knows of them."""
    of = random.Random(_SEED)  # noqa: S311
    for _ in range(_DRAWN):
        block = of.choice(blocks)
        pair = tuple(
            of.choice(list(each))
            for each in (block.entities, block.places, table.weights, table.caches)
        )
        asked = asked_of(table, pair, all_=True)
        known = block.known(pair)
        if isinstance(asked, str):
            same_or_refuse("the refusal", asked, known.get(TEXT), pair)
            continue
        form = forms.index(asked.equations) if asked.equations in forms else None
        constants = block.without(asked).constants
        for name, value in {**constants, **asked.also, FORM: form}.items():
            same_or_refuse(name, value, known.get(name), pair)


def _written(table: Table, block: Block, pool: dict[str, int]) -> dict[str, Any]:
    """Return a block's constants as tables."""
    axes: dict[str, Sequence[Any]] = {
        "e": block.entities,
        "p": block.places,
        "w": table.weights,
        "v": table.caches,
        "c": range(len(block.of_class)),
        "k": range(len(block.of_kind)),
    }
    decided: dict[tuple[str, ...], dict[str, dict[Any, Any]]] = {}
    for name, by in block.decided.items():
        key = tuple("epwv"[place] for place in by)
        decided.setdefault(key, {})[name] = block.values[name]
    like = list(block.of_class.values())
    where = list(product(block.places, table.weights, table.caches))
    shared = {(at, *rest): block.whole((like[at], *rest)) for at in axes["c"] for rest in where}
    kinds = {
        (kind, *rest): dict(zip(block.columns, block.of(kind, rest), strict=True))
        for kind in axes["k"]
        for rest in where
    }
    bases: dict[str, dict[Any, Any]] = {}
    for (entity, name), column in block.base.items():
        bases.setdefault(name, {})[(entity,)] = column
    return {
        "apart": block.apart,
        "classes": [block.class_of[each] for each in block.entities],
        "kinds": [_pooled(block.kinds_of[each], pool) for each in block.entities],
        "tables": [
            *(x for by, columns in decided.items() for x in _tabled(by, axes, columns, pool)),
            *_fewest("cpwv", axes, shared, pool),
        ],
        "operators": _fewest("kpwv", axes, kinds, pool),
        "bases": _tabled(("e",), axes, bases, pool),
    }


def _fewest(
    letters: str,
    axes: Mapping[str, Sequence[Any]],
    rows: Mapping[tuple[Any, ...], Mapping[str, Any]],
    pool: dict[str, int],
) -> list[dict[str, Any]]:
    """Return tables, each by as few parts of a pair as decide its constants."""
    found: dict[tuple[int, ...], dict[str, dict[Any, Any]]] = {}
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        for by in (each for size in range(5) for each in combinations(range(4), size)):
            column: dict[Any, Any] = {}
            for key, row in rows.items():
                if name not in row and TEXT in row:
                    continue
                short = tuple(key[place] for place in by)
                if column.setdefault(short, row.get(name)) != row.get(name):
                    break
            else:
                found.setdefault(by, {})[name] = column
                break
    return [
        table
        for by, columns in found.items()
        for table in _tabled(tuple(letters[place] for place in by), axes, columns, pool)
    ]


def _tabled(
    by: Sequence[str],
    axes: Mapping[str, Sequence[Any]],
    columns: Mapping[str, Mapping[Any, Any]],
    pool: dict[str, int],
) -> list[dict[str, Any]]:
    """Return columns as tables: of all keys in order which row it is, and the different rows.

    Columns with the same order stand together; parts of a key that are alike are one.
    """
    together: dict[tuple[Any, ...], dict[str, list[str]]] = {}
    for name, column in columns.items():
        cells: dict[str, int] = {}
        at = tuple(
            cells.setdefault(json.dumps(_cell(column.get(key), pool)), len(cells))
            for key in product(*(axes[each] for each in by))
        )
        together.setdefault(at, {})[name] = list(cells)
    found = []
    for at, named in together.items():
        of, sizes, kept = _alike(at, [len(axes[each]) for each in by])
        rows = [list(map(json.loads, row)) for row in zip(*named.values(), strict=True)]
        table = {"by": list(by), "names": list(named), "rows": rows}
        found.append({**table, "of": of, "sizes": sizes, "at": kept})
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


def _cell(value: Any, pool: dict[str, int]) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)):
        return [_pooled(value, pool)]
    return _json(value)


def _pooled(value: Sequence[Any], pool: dict[str, int]) -> int:
    plain = [_json(each) if isinstance(each, (int, float)) else each for each in value]
    return pool.setdefault(json.dumps(plain), len(pool))
