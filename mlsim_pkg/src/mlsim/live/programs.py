"""What was compiled: constants, what moves, and the order of questions; replayed, and written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlsim.equations import Plan
from mlsim.equations.javascript import Writer, helpers, number, planned
from mlsim.errors import UnreachableError
from mlsim.live.chains import Call, Chain
from mlsim.live.handles import Handle
from mlsim.solvers.question import ARRAYS, Question, quiet

Asked = Mapping[str, float]
# What a moving quantity is: a handle, a call, a result of another part, or a constant of its own.
Source = tuple[str, ...]
_MEMORY = "memory_free"


@dataclass(frozen=True)
class Step:
    """A part of a program: a plan, and what its moving quantities are."""

    name: str
    plan: Plan
    moving: Mapping[str, Source]
    columns: tuple[str, ...]
    # What it can't know of another part with the same equations.
    own: Mapping[str, Any]

    @property
    def signature(self) -> tuple[Any, ...]:
        """What decides how it is written."""
        moving = tuple(self.moving.items())
        return (self.name, self.plan.wanted, self.plan.steps, moving, self.columns)


@dataclass(frozen=True)
class Program:
    """What leads from handles to results, with all constants.

    `results` are those of the chain; `context` the source of the tokens of a sequence, and how
    many the model reads.
    """

    steps: tuple[Step, ...]
    calls: Mapping[str, Call]
    results: Mapping[str, tuple[str, str, bool]]
    constants: Mapping[str, Any]
    sources: Mapping[str, Source]
    operators: tuple[str, ...] = ()
    limited: bool = False

    @property
    def signature(self) -> tuple[Any, ...]:
        """What decides how it is written; all else are constants."""
        calls = tuple((name, each.equation, each.inputs) for name, each in self.calls.items())
        steps = tuple(each.signature for each in self.steps)
        sources = tuple(sorted(self.sources.items()))
        keys = tuple(self.keys.items())
        return (steps, calls, tuple(self.results.items()), sources, keys, self.limited)

    @cached_property
    def keys(self) -> dict[tuple[int, str], str]:
        """Names of the constants of single parts, by their places; equal ones have one."""
        found: dict[tuple[int, str], str] = {}
        values: dict[str, list[Any]] = {}
        for place, step in enumerate(self.steps):
            for name, value in step.own.items():
                known = values.setdefault(name, [self.constants.get(name)])
                if value not in known:
                    known.append(value)
                number_ = known.index(value)
                found[place, name] = f"{name}_{number_}" if number_ else name
        return found

    def refusal(self, handles: Asked) -> str | None:
        """Return the code of what is refused whatever the equations give; None if nothing is."""
        if not self.limited:
            return None
        tokens = sum(self._value(name, handles, {}) for name in _LENGTHS)
        return "too_long" if tokens > self.constants["of_context"] else None

    def _value(self, name: str, handles: Asked, done: Mapping[str, Any]) -> float:
        source = self.sources[name]
        value: float = (handles if source[0] == "handle" else self.constants)[source[1]]
        return value

    def replay(self, handles: Asked) -> dict[str, Any]:
        """Return the results at values of the handles, in base units, by the same equations."""
        done: dict[str, Any] = {}
        for name, call in self.calls.items():
            values = [
                done[each] if each in done else self._value(each, handles, done)
                for each in call.inputs
            ]
            done[name] = float(call.equation.function(*values))
        for step in self.steps:
            known = {**self.constants, **step.own}
            for name, source in step.moving.items():
                known[name] = _taken(source, handles, done, step.own)
            done[step.name] = _run(step, known)
        found = {name: done[at][what] for name, (at, what, _) in self.results.items()}
        tight = [name for name, (*_, held) in self.results.items() if not held]
        fits = not tight or done["asked"][_MEMORY] >= 0
        if fits:
            return found
        return {name: value for name, value in found.items() if name not in tight}


_LENGTHS = ("prompt_tokens", "output_tokens")


def _taken(source: Source, handles: Asked, done: Mapping[str, Any], own: Mapping[str, Any]) -> Any:
    kind, *names = source
    if kind == "handle":
        return handles[names[0]]
    if kind == "call":
        return done[names[0]]
    return done[names[0]][names[1]] if kind == "result" else own[names[0]]


def _run(step: Step, known: Mapping[str, Any]) -> dict[str, Any]:
    columns = {name: known[name] for name in step.columns}
    if ARRAYS:
        import numpy as np

        columns = {name: np.array(values, dtype=float) for name, values in columns.items()}
    with quiet():
        found = step.plan.run({**known, **columns})
    return {name: _plain(found[name]) for name in step.plan.wanted}


def _plain(value: Any) -> Any:
    if isinstance(value, list) or bool(getattr(value, "ndim", 0)):
        return [float(each) for each in value]
    return float(value)


def programmed(chains: Sequence[Chain], asked: Sequence[Asked]) -> Program:
    """Return the program behind an answer that was asked at several points.

    Raises
    ------
    UnreachableError
        If a constant, a column or the plan is not the same at all points, and no equation of
        the answer, handle or result gives it; names it.
    """
    base = chains[0]
    if any(not held for *_, held in base.results.values()):
        for chain in chains:
            chain.parts["asked"].wanted[_MEMORY] = None
    called = [chain.called() for chain in chains]
    constants: dict[str, Any] = {}
    steps: list[Step] = []
    proofs = [
        _Proof(at, [each.parts[at].question for each in chains], asked, called) for at in base.parts
    ]
    for at, proof in zip(base.parts, proofs, strict=True):
        part = base.parts[at]
        alike = [
            base.parts[other]
            for other, its in zip(base.parts, proofs, strict=True)
            if its.kind == proof.kind
        ]
        wanted = dict.fromkeys(name for each in alike for name in each.wanted)
        found = proof.plan(tuple(wanted))
        needed = {name for step in found.steps for name in step.inputs} | set(wanted)
        needed -= {step.yields for step in found.steps}
        links = {name: ("result", *link) for name, link in part.links.items()}
        moving, fixed, columns = proof.sorted(sorted(needed), links)
        own = {}
        for name, value in fixed.items():
            if constants.setdefault(name, value) != value:
                moving[name], own[name] = ("own", name), value
        steps.append(Step(at, found, moving, columns, own))
    steps = _alike(steps, proofs, constants)
    sources = _sources(base, chains, asked, constants)
    if base.context is not None:
        constants["of_context"] = base.context
    lists = [at for at, what, _ in base.results.values() if _many(base, at, what)]
    names = [each.name for each in base.parts[lists[0]].question.table] if lists else []
    limited = base.context is not None and all(name in sources for name in _LENGTHS)
    return Program(
        tuple(steps), base.calls, base.results, constants, sources, tuple(names), limited
    )


def _many(chain: Chain, at: str, quantity: str) -> bool:
    value: Any = chain.parts[at].question.evaluate(quantity)[quantity]
    return isinstance(value, list) or bool(getattr(value, "ndim", 0))


def _alike(steps: Sequence[Step], proofs: Sequence[_Proof], constants: Any) -> list[Step]:
    """Let parts with the same equations take the same arguments, so that they are one function."""
    found = []
    for step, proof in zip(steps, proofs, strict=True):
        group = [each for each, its in zip(steps, proofs, strict=True) if its.kind == proof.kind]
        names = sorted({name for each in group for name in each.moving})
        moving, own = dict(step.moving), dict(step.own)
        for name in names:
            if name not in moving:
                moving[name], own[name] = ("own", name), constants[name]
        found.append(Step(step.name, step.plan, {n: moving[n] for n in names}, step.columns, own))
    return found


def _sources(
    base: Chain, chains: Sequence[Chain], asked: Sequence[Asked], constants: dict[str, Any]
) -> dict[str, Source]:
    """Return what the inputs of calls are: handles, or constants, which are added."""
    names = [name for call in base.calls.values() for name in call.inputs if name not in base.calls]
    if base.context is not None:
        names += _LENGTHS
    found: dict[str, Source] = {}
    for name in dict.fromkeys(names):
        values = [each.scalar(name) for each in chains]
        handle = _handle(values, asked)
        if handle is not None:
            found[name] = ("handle", handle)
        elif len(set(values)) == 1:
            found[name] = ("constant", f"of_{name}")
            constants[f"of_{name}"] = values[0]
        else:
            raise UnreachableError(f"{name} changes, and is no handle.")
    return found


def _handle(values: Sequence[Any], asked: Sequence[Asked]) -> str | None:
    """Return the handle that has these values at all points."""
    for name in asked[0]:
        if all(value == each[name] for value, each in zip(values, asked, strict=True)):
            return name
    return None


class _Proof:
    """One part of an answer at all points: what is the same in all of them, and what moves."""

    def __init__(
        self,
        at: str,
        questions: Sequence[Question],
        asked: Sequence[Asked],
        called: Sequence[Mapping[str, float]],
    ) -> None:
        self.at, self.questions, self.asked, self.called = at, questions, asked, called
        self.first = questions[0]

    @property
    def kind(self) -> tuple[Any, ...]:
        """What parts have in common that are one function."""
        first = self.first
        names = frozenset((*first.known, *first.table.names))
        return (first.equations, names, id(first.table))

    def plan(self, wanted: tuple[str, ...]) -> Plan:
        """Return the equations behind what is wanted.

        Raises
        ------
        UnreachableError
            If they are not the same at all points.
        """
        found = self.first.plan(*wanted)
        for question, point in zip(self.questions, self.asked, strict=True):
            other = question.plan(*wanted)
            if other.steps != found.steps:
                names = {each.name for each in found.steps} ^ {each.name for each in other.steps}
                raise self._refused("other equations hold", ", ".join(sorted(names)), point)
        return found

    def sorted(
        self, needed: Sequence[str], links: Mapping[str, Source]
    ) -> tuple[dict[str, Source], dict[str, Any], tuple[str, ...]]:
        """Return what moves, with what it is; what is fixed, and which of it are columns.

        Raises
        ------
        UnreachableError
            If a known quantity changes and is no handle, call or result; or if a column does.
        """
        moving: dict[str, Source] = {}
        fixed: dict[str, Any] = {}
        columns = []
        for name in needed:
            if name not in self.first.known:
                columns.append(name)
                fixed[name] = self._column(name)
                continue
            values = [each.known[name] for each in self.questions]
            if name in links:
                moving[name] = links[name]
            elif len(set(values)) == 1 and not self._follows(values):
                fixed[name] = values[0]
            else:
                moving[name] = self._moves(name, values)
        return moving, fixed, tuple(columns)

    def _follows(self, values: Sequence[Any]) -> bool:
        return _handle(values, self.asked) is not None

    def _moves(self, name: str, values: Sequence[Any]) -> Source:
        handle = _handle(values, self.asked)
        if handle is not None:
            return ("handle", handle)
        for call in self.called[0]:
            if all(value == each[call] for value, each in zip(values, self.called, strict=True)):
                return ("call", call)
        change = next(place for place, value in enumerate(values) if value != values[0])
        what = f"{name} changed from {values[0]:.6g} to {values[change]:.6g}"
        raise self._refused(what, "", self.asked[change])

    def _column(self, name: str) -> Any:
        first = tuple(float(each) for each in self.first.table.columns[name])
        for question, point in zip(self.questions, self.asked, strict=True):
            there = name in question.table.names and name not in question.known
            if not there or tuple(question.table.columns[name]) != first:
                raise self._refused(f"the operators' column {name} changed", "", point)
        return first

    def _refused(self, what: str, names: str, point: Asked) -> UnreachableError:
        moved = ", ".join(
            f"{name} from {self.asked[0][name]:.6g} to {value:.6g}"
            for name, value in point.items()
            if value != self.asked[0][name]
        )
        return UnreachableError(
            f"{self.at}: {what}{': ' if names else ''}{names} when a handle moved ({moved}), and "
            "no equation of the question says how, so a page would show it frozen. Move it into "
            "an equation, or make the handle a choice."
        )


_MODULE = """\
const ready=new WeakMap(),value=x=>Array.isArray(x)?x.map(value):+x;
const constants=(data,row)=>{
let c=ready.get(row);
if(!c){c={};
for(const [k,x] of Object.entries({...data.shared,...row.own}))c[k]=value(x);
ready.set(row,c);}
return c;};
export const answer=(handles,choices,data)=>{
const row=data.rows[data.choices.map(name=>choices[name]).join("|")];
if(!row||row.text)return {refusal:"unsupported"};
return plans[row.plan](handles,constants(data,row));};
"""


def script_of(
    programs: Mapping[tuple[str, ...], Program | str],
    handles: Sequence[Handle],
    whole: frozenset[str],
    units: Mapping[str, float],
) -> tuple[str, dict[str, Any]]:
    """Return programs by their choices as one module, and its data.

    A program is a text where the package refuses the choices.
    """
    used: set[str] = set()
    functions: dict[Any, str] = {}
    texts: list[str] = []
    plans: dict[Any, int] = {}
    rows: dict[str, Any] = {}
    for picked, program in programs.items():
        if isinstance(program, str):
            rows["|".join(picked)] = {"text": program}
            continue
        place = plans.get(program.signature)
        if place is None:
            place = plans[program.signature] = len(plans)
            body = _Body(program, functions, used)
            texts.append(body.text(handles, whole, units))
        row: dict[str, Any] = {"plan": place, "own": _constants(program)}
        if program.operators:
            row["operators"] = list(program.operators)
        rows["|".join(picked)] = row
    shared = _shared([row["own"] for row in rows.values() if "own" in row])
    written = "".join(f"{each}\n" for each in functions.values())
    script = f"{helpers(used)}{written}const plans=[{','.join(texts)}];\n{_MODULE}"
    return script, {"shared": shared, "rows": rows}


def _constants(program: Program) -> dict[str, Any]:
    found = {name: _json(value) for name, value in program.constants.items()}
    for (place, name), key in program.keys.items():
        found[key] = _json(program.steps[place].own[name])
    return found


def _json(value: Any) -> Any:
    """Return a number or a column as JSON has it: whole numbers without a point."""
    if isinstance(value, tuple):
        return [_json(each) for each in value]
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else number(value)
    return int(value) if value == int(value) and abs(value) < 1e15 else float(value)


def _shared(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Take out of all rows what they have in common, and return it."""
    first = dict(rows[0])
    common = {
        name: value
        for name, value in first.items()
        if all(name in row and row[name] == value for row in rows)
    }
    for row in rows:
        for name in common:
            del row[name]
    return common


class _Body:
    """A program as a function of handles and constants."""

    def __init__(self, program: Program, functions: dict[Any, str], used: set[str]) -> None:
        self.program, self.functions, self.used = program, functions, used
        self.made: dict[str, str] = {}
        self.variables: dict[str, str] = {}

    def text(
        self, handles: Sequence[Handle], whole: frozenset[str], units: Mapping[str, float]
    ) -> str:
        """Return its source."""
        program = self.program
        lines = [_checked(each, each.name in whole) for each in handles]
        lines += [
            f"const {each.name}=h.{each.name}"
            f"{'' if units[each.name] == 1 else f'*{number(units[each.name])}'};"
            for each in handles
        ]
        if program.limited:
            tokens = "+".join(self._source(program.sources[name], 0) for name in _LENGTHS)
            lines.append(f'if({tokens}>c.of_context)return {{refusal:"too_long"}};')
        lines += [f"const call_{name}={self._call(call)};" for name, call in program.calls.items()]
        for place, step in enumerate(program.steps):
            given = ",".join(("c", *(self._source(each, place) for each in step.moving.values())))
            call = f"{self._function(step)}({given})"
            # The same question under two names is asked once.
            if call not in self.made:
                self.made[call] = _named(step.name)
                lines.append(f"const {_named(step.name)}={call};")
            self.variables[step.name] = self.made[call]
        return "(h,c)=>{\n" + "\n".join((*lines, self._results())) + "}"

    def _function(self, step: Step) -> str:
        key = (step.plan.steps, tuple(step.moving), step.columns, step.plan.wanted)
        if key not in self.functions:
            name = f"f{len(self.functions)}"
            self.functions[key] = planned(
                name, step.plan.steps, tuple(step.moving), step.columns, step.plan.wanted, self.used
            )
        return self.functions[key].partition("=")[0].removeprefix("const ")

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
        import ast

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
            (held if lasts else tight).append(f"{json.dumps(name)}:{self.variables[at]}.{quantity}")
        if not tight:
            return f"return {{{','.join(held)}}};"
        kept = ",".join(('refusal:"does_not_fit"', *held))
        return (
            f"if(!({self.variables['asked']}.{_MEMORY}>=0))return {{{kept}}};\n"
            f"return {{{','.join((*held, *tight))}}};"
        )


def _named(part: str) -> str:
    return f"part_{part.replace('.', '_')}"


def _checked(handle: Handle, whole: bool) -> str:
    name, low, high = handle.name, number(handle.low), number(handle.high)
    refused = f'refusal:"out_of_range",handle:"{name}"'
    text = f"if(!(h.{name}>={low}&&h.{name}<={high}))return {{{refused}}};"
    if whole:
        text += f'if(h.{name}%1)return {{refusal:"not_whole",handle:"{name}"}};'
    return text
