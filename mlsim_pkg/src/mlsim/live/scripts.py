"""Programs written as one module of JavaScript, with their constants as data beside it."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from mlsim.equations.javascript import Writer, helpers, number, planned
from mlsim.equations.registry import Equation
from mlsim.live.chains import LENGTHS, LONGEST, Call
from mlsim.live.handles import Handle
from mlsim.live.programs import Program, Source, Step

# What `planned` takes: equations, what moves, which are columns, what is wanted.
Given = tuple[Sequence[Equation], Sequence[str], Collection[str], Sequence[str]]
_LONGEST = """\
const longest=(most,output,fits)=>{let low=0,high=most;
while(low<high){const m=Math.floor((low+high+1)/2),p=Math.max(m-output,Math.min(m-1,1));
if(fits(p,m-p))low=m;else high=m-1;}
return low;};
"""
# An object to which names are added one by one is read ten times as slowly.
_MODULE = """\
const special={Infinity,"-Infinity":-Infinity,NaN};
const each=x=>Object.fromEntries(Object.entries(x).map(([k,y])=>[k,value(y)]));
const value=x=>Array.isArray(x)?x.map(value):typeof x==="object"?each(x):special[x]??x;
const ready=new WeakMap();
const constants=(choices,data)=>{
if(!ready.has(data))ready.set(data,new Map());
const of=ready.get(data),key=data.choices.map(name=>choices[name]).join("|");
if(!of.has(key))of.set(key,Object.fromEntries(data.tables.flatMap(t=>
(t.rows[t.by.map(name=>choices[name]).join("|")]??[]).map((x,i)=>
[t.names[i],value(i<t.numbers?x:data.pool[x])]))));
return of.get(key);};
export const operators=(choices,data)=>constants(choices,data).operators;
export const answer=(handles,choices,data)=>{
const c=constants(choices,data);
if(c.text||!plans[c.plan])return {refusal:"unsupported"};
return plans[c.plan](handles,c);};
"""


def script_of(
    programs: Mapping[tuple[str, ...], Program | str],
    choices: Sequence[str],
    handles: Sequence[Handle],
    whole: frozenset[str],
    units: Mapping[str, float],
) -> tuple[str, dict[str, Any]]:
    """Return programs by their choices as one module, and its data.

    A program is a text where the package refuses the choices.
    """
    used: set[str] = set()
    functions = Functions(used)
    texts: list[str] = []
    plans: dict[Any, int] = {}
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for picked, program in programs.items():
        if isinstance(program, str):
            rows[picked] = {"text": program}
            continue
        place = plans.get(program.signature)
        if place is None:
            place = plans[program.signature] = len(plans)
            body = _Body(program, functions, used)
            texts.append(body.text(handles, whole, units))
        rows[picked] = {"plan": place, **_constants(program)}
        if program.operators:
            rows[picked]["operators"] = list(program.operators)
    written = "".join(f"{each}\n" for each in functions.texts.values())
    halving = _LONGEST if any("=longest(" in each for each in texts) else ""
    script = f"{helpers(used)}{halving}{written}const plans=[{','.join(texts)}];\n{_MODULE}"
    return script, {"choices": list(choices), **_tables(choices, rows)}


def _tables(
    choices: Sequence[str], rows: Mapping[tuple[str, ...], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return constants in tables, each by as few choices as decide its constants.

    Rows hold numbers, and then places in a pool of what is no number: columns of operators are
    often the same in many rows.

    >>> rows = {("a", "x"): {"n": 1, "m": [3, 4]}, ("b", "x"): {"n": 2, "m": [3, 4]}}
    >>> made = _tables(["one", "two"], rows)
    >>> made["tables"][0]
    {'by': [], 'names': ['m'], 'numbers': 0, 'rows': {'': [0]}}
    >>> made["tables"][1]
    {'by': ['one'], 'names': ['n'], 'numbers': 1, 'rows': {'a': [1], 'b': [2]}}
    >>> made["pool"]
    [[3, 4]]
    """
    left = dict.fromkeys(name for row in rows.values() for name in row)
    pool: dict[str, int] = {}
    tables = []
    for size in range(len(choices) + 1):
        for by in combinations(range(len(choices)), size):
            found = {name: _column(name, by, rows) for name in left}
            decided = {name: column for name, column in found.items() if column is not None}
            left = {name: None for name in left if name not in decided}
            # Those that the same rows have stand together: other plans have other constants.
            for keys in dict.fromkeys(tuple(column) for column in decided.values()):
                several = {n: column for n, column in decided.items() if tuple(column) == keys}
                called = [choices[place] for place in by]
                tables.append(_table(called, several, pool))
    return {"tables": tables, "pool": [json.loads(text) for text in pool]}


def _table(
    by: list[str], columns: Mapping[str, Mapping[tuple[str, ...], Any]], pool: dict[str, int]
) -> dict[str, Any]:
    plain = [name for name, column in columns.items() if all(map(_plain, column.values()))]
    names = [*plain, *(name for name in columns if name not in plain)]
    rows = {
        "|".join(key): [
            columns[name][key]
            if name in plain
            else pool.setdefault(json.dumps(columns[name][key]), len(pool))
            for name in names
        ]
        for key in next(iter(columns.values()))
    }
    return {"by": by, "names": names, "numbers": len(plain), "rows": rows}


def _plain(value: Any) -> bool:
    return isinstance(value, (int, float))


def _column(
    name: str, by: Sequence[int], rows: Mapping[tuple[str, ...], Mapping[str, Any]]
) -> dict[tuple[str, ...], Any] | None:
    """Return a constant by some of the choices; None where they don't decide it."""
    found: dict[tuple[str, ...], Any] = {}
    for picked, row in rows.items():
        key = tuple(picked[place] for place in by)
        # What the package refuses has no constants, and whatever stands there is not read.
        if name in row or (name == "text" or "text" not in row):
            value = row.get(name)
            if key in found and found[key] != value:
                return None
            found[key] = value
    return {key: value for key, value in found.items() if value is not None}


def _constants(program: Program) -> dict[str, Any]:
    found = {name: _json(value) for name, value in program.constants.items()}
    for (place, name), key in program.keys.items():
        found[key] = _json(program.steps[place].own[name])
    return found


def _json(value: Any) -> Any:
    """Return a number or a column as JSON has it: whole numbers without a point."""
    if isinstance(value, dict):
        return {name: _json(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_json(each) for each in value]
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else number(value)
    return int(value) if value == int(value) and abs(value) < 1e15 else float(value)


class Functions:
    """Functions of programs, each written whole, and calls of them."""

    arguments = "h,c"

    def __init__(self, used: set[str]) -> None:
        self.used = used
        self.texts: dict[Any, str] = {}

    def call(self, given: Given, called: Mapping[str, str], sources: list[str]) -> str:
        """Return a call of a function of what `planned` takes; `sources` is what moves."""
        key = (given, tuple(called.items()))
        if key not in self.texts:
            name = f"f{len(self.texts)}"
            self.texts[key] = planned(name, *given, self.used, called)
        name = self.texts[key].partition("=")[0].removeprefix("const ")
        return f"{name}({','.join(('c', *sources))})"


class _Body:
    """A program as a function of handles and constants."""

    def __init__(self, program: Program, functions: Any, used: set[str]) -> None:
        self.program, self.functions, self.used = program, functions, used
        # Calls by their text: the part that was asked so.
        self.made: dict[str, str] = {}
        self.variables: dict[str, str] = {}

    def text(
        self, handles: Sequence[Handle], whole: frozenset[str], units: Mapping[str, float]
    ) -> str:
        """Return its source."""
        program = self.program
        lines = [*_checked(handles, whole)]
        lines += [
            f"const {each.name}=h.{each.name}"
            f"{'' if units[each.name] == 1 else f'*{number(units[each.name])}'};"
            for each in handles
        ]
        if program.limited:
            tokens = "+".join(self._source(program.sources[name], 0) for name in LENGTHS)
            lines.append(f'if({tokens}>c.of_context)return {{refusal:"too_long"}};')
        lines += [f"const call_{name}={self._call(call)};" for name, call in program.calls.items()]
        if program.settled is not None:
            self.variables["settled"] = "part_settled"
            lines += program.settled.lines("call_load", program.results)
        for place, step in enumerate(program.steps):
            call = self._asked(step, place)
            # The same question under two names is asked once.
            if call not in self.made:
                self.made[call] = _named(step.name)
                lines.append(f"const {_named(step.name)}={call};")
            self.variables[step.name] = self.made[call]
            if LONGEST in program.results and (step.name, _free(program)) == program.fits:
                lines.append(self._longest(call))
        body = f"({self.functions.arguments})=>{{\n" + "\n".join((*lines, self._results())) + "}"
        if program.settled is None:
            return body
        return f"(()=>{{{program.settled.functions(self.used)}return {body};}})()"

    def _longest(self, call: str) -> str:
        """Return the source of what halves a range of lengths; `call` asks about one of them."""
        program = self.program
        inner = "".join(f"const call_{n}={self._call(each)};" for n, each in program.calls.items())
        self.variables[LONGEST] = "part_longest"
        fits = f"({','.join(LENGTHS)})=>{{{inner}return {call}.{_free(program)}>=0;}}"
        return f"const part_longest=longest(c.of_context,output_tokens,{fits});"

    def _asked(self, step: Step, place: int) -> str:
        keys = {name: self.program.keys[place, name] for name in step.own}
        called = {name: key for name, key in keys.items() if name not in step.moving}
        given = (step.plan.steps, tuple(step.moving), step.columns, step.plan.wanted)
        sources = [self._source(each, place) for each in step.moving.values()]
        return str(self.functions.call(given, called, sources))

    def _source(self, source: Source, place: int) -> str:
        kind, *names = source
        if kind == "handle":
            return names[0]
        if kind == "call":
            return f"call_{names[0]}"
        if kind == "result":
            return f"{self.variables[names[0]]}.{names[1]}"
        return f"c.{self.program.keys[place, names[0]] if kind == 'own' else names[0]}"

    def _call(self, call: Call) -> str:
        named = {
            name: f"call_{given}"
            if given in self.program.calls
            else self._source(self.program.sources[given], 0)
            for name, given in zip(call.equation.inputs, call.inputs, strict=True)
        }
        tree = ast.parse(call.equation.expression, mode="eval").body
        return Writer(named, self.used).text(tree)

    def _results(self) -> str:
        held: list[str] = []
        tight: list[str] = []
        for name, (at, quantity, lasts) in self.program.results.items():
            text = self.variables[at] if at == LONGEST else f"{self.variables[at]}.{quantity}"
            (held if lasts else tight).append(f"{json.dumps(name)}:{text}")
        if not tight or self.program.fits is None:
            return f"return {{{','.join(held)}}};"
        free = ".".join((self.variables[self.program.fits[0]], self.program.fits[1]))
        kept = ",".join(('refusal:"does_not_fit"', *held))
        return f"if(!({free}>=0))return {{{kept}}};\nreturn {{{','.join((*held, *tight))}}};"


def _free(program: Program) -> str:
    return program.fits[1] if program.fits else ""


def _named(part: str) -> str:
    return f"part_{part.replace('.', '_')}"


def _checked(handles: Sequence[Handle], whole: frozenset[str]) -> Iterator[str]:
    """Yield the lines that refuse values of handles, in the order of `Compiled.ask`."""
    for each in handles:
        name, low, high = f"h.{each.name}", number(each.low), number(each.high)
        yield _refusing(f"!({name}>={low}&&{name}<={high})", "out_of_range", each)
        if each.name in whole and each.stepped:
            off = f"({name}-{low})%{number(each.step or 1)}"
            yield _refusing(f"{name}%1===0&&{off}", "between_steps", each)
    for each in sorted(handles, key=lambda handle: handle.name):
        if each.name in whole:
            yield _refusing(f"h.{each.name}%1", "not_whole", each)


def _refusing(condition: str, code: str, handle: Handle) -> str:
    return f'if({condition})return {{refusal:"{code}",handle:"{handle.name}"}};'
