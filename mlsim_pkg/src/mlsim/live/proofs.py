"""The proof of a compiled question: what changes with a handle, and what is the same at all points.

Whatever a part of an answer knows is either the same wherever the package was asked, or a handle,
or follows by equations. What is none of these would stand still on a page, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlsim.equations import Plan
from mlsim.errors import InvalidValueError, UnreachableError
from mlsim.live.chains import LENGTHS, LONGEST, Chain
from mlsim.live.programs import Asked, Program, Source, Step
from mlsim.solvers.question import Question


def programmed(chains: Sequence[Chain], asked: Sequence[Asked]) -> Program:
    """Return the program behind an answer that was asked at several points.

    Raises
    ------
    UnreachableError
        If a constant, a column or the plan is not the same at all points, and no equation of
        the answer, handle or result gives it; names it.
    """
    base = chains[0]
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
        moving, fixed, columns = proof.sorted(sorted(needed), part.links)
        own = {n: value for n, value in fixed.items() if constants.setdefault(n, value) != value}
        steps.append(Step(at, found, moving, columns, own))
    steps = _alike(steps, proofs, constants)
    sources = _sources(base, chains, asked, constants)
    if base.settled is not None:
        constants["load"] = base.settled.constants()
        for chain, point in zip(chains, asked, strict=True):
            other = chain.settled.constants() if chain.settled else {}
            changed = [name for name, value in constants["load"].items() if other[name] != value]
            if changed:
                raise proofs[0].refused(f"of the steps of the service {changed[0]} changed", point)
    if base.context is not None:
        constants["of_context"] = base.context
    kept = [(at, what) for at, what, _ in base.results.values() if at in base.parts]
    lists = [at for at, what in kept if _many(base, at, what)]
    if LONGEST in base.results and not all(name in asked[0] for name in LENGTHS):
        raise InvalidValueError(f"{LONGEST} needs two handles, {' and '.join(LENGTHS)}.")
    names = [each.name for each in base.parts[lists[0]].question.table] if lists else []
    limited = base.context is not None and all(name in sources for name in LENGTHS)
    return Program(
        *(tuple(steps), base.calls, base.results, constants, sources, tuple(names), limited),
        fits=base.fits,
        settled=base.settled,
    )


def _many(chain: Chain, at: str, quantity: str) -> bool:
    value: Any = chain.parts[at].question.evaluate(quantity)[quantity]
    return isinstance(value, list) or bool(getattr(value, "ndim", 0))


def _alike(steps: Sequence[Step], proofs: Sequence[_Proof], constants: Any) -> list[Step]:
    """Let parts with the same equations take the same arguments, so that they are one function."""
    found = []
    for step, proof in zip(steps, proofs, strict=True):
        group = [each for each, its in zip(steps, proofs, strict=True) if its.kind == proof.kind]
        fixed = {name: {**constants, **step.own}[name] for each in group for name in each.own}
        names = {name for each in group for name in each.moving}
        # What all of them have has another name among the constants, and is no argument.
        names |= {
            name for name in fixed if any(each.own.get(name) != fixed[name] for each in group)
        }
        moving = {name: step.moving.get(name, ("own", name)) for name in sorted(names)}
        own = {name: constants[name] for name in moving if moving[name] == ("own", name)}
        found.append(Step(step.name, step.plan, moving, step.columns, own | dict(step.own)))
    return found


def _sources(
    base: Chain, chains: Sequence[Chain], asked: Sequence[Asked], constants: dict[str, Any]
) -> dict[str, Source]:
    """Return what the inputs of calls are: handles, or constants, which are added."""
    names = [name for call in base.calls.values() for name in call.inputs if name not in base.calls]
    if base.context is not None:
        names += LENGTHS
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
                raise self.refused(f"other equations hold: {', '.join(sorted(names))}", point)
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
                moving[name] = self._linked(name, values, links[name])
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
        change = next(place for place, value in enumerate(values) if value != values[0])
        what = f"{name} changed from {values[0]:.6g} to {values[change]:.6g}"
        raise self.refused(what, self.asked[change])

    def _linked(self, name: str, values: Sequence[Any], link: Source) -> Source:
        """Return a link; results of other parts are compared when all is run again."""
        for value, called, point in zip(values, self.called, self.asked, strict=True):
            if link[0] == "call" and value != called[link[1]]:
                what = f"{name} is {value:.6g}, and {link[1]} {called[link[1]]:.6g}"
                raise self.refused(what, point)
        return link

    def _column(self, name: str) -> Any:
        first = tuple(float(each) for each in self.first.table.columns[name])
        for question, point in zip(self.questions, self.asked, strict=True):
            there = name in question.table.names and name not in question.known
            if not there or tuple(question.table.columns[name]) != first:
                raise self.refused(f"the operators' column {name} changed", point)
        return first

    def refused(self, what: str, point: Asked) -> UnreachableError:
        """Return the error that says what changed, and which handles had moved."""
        moved = ", ".join(
            f"{name} from {self.asked[0][name]:.6g} to {value:.6g}"
            for name, value in point.items()
            if value != self.asked[0][name]
        )
        return UnreachableError(
            f"{self.at}: {what} when a handle moved ({moved}), and "
            "no equation of the question says how, so a page would show it frozen. Move it into "
            "an equation, or make the handle a choice."
        )
