"""What was compiled: constants, what moves, and the order of questions; run again in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlsim.equations import Plan
from mlsim.live.chains import LENGTHS, LONGEST, Call
from mlsim.live.settled import Settled
from mlsim.solvers.question import ARRAYS, quiet

Asked = Mapping[str, float]
# What a moving quantity is: a handle, a call, a result of another part, or a constant of its own.
Source = tuple[str, ...]


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

    Attributes
    ----------
    steps, calls, results, fits, settled
        As those of a chain, with what moves in each part.
    constants
        All else by name; `sources` says what inputs of calls are.
    operators
        Names of the operators, where a result has a value for each.
    limited
        Whether a sequence may be longer than the model reads.
    """

    steps: tuple[Step, ...]
    calls: Mapping[str, Call]
    results: Mapping[str, tuple[str, str, bool]]
    constants: Mapping[str, Any]
    sources: Mapping[str, Source]
    operators: tuple[str, ...] = ()
    limited: bool = False
    fits: tuple[str, str] | None = None
    settled: Settled | None = None

    @property
    def signature(self) -> tuple[Any, ...]:
        """What decides how it is written; all else are constants."""
        calls = tuple((name, each.equation, each.inputs) for name, each in self.calls.items())
        steps = tuple(each.signature for each in self.steps)
        sources = tuple(sorted(self.sources.items()))
        keys = tuple(self.keys.items())
        settled = self.settled.functions(set()) if self.settled else ""
        results = tuple(self.results.items())
        return (steps, calls, results, sources, keys, self.limited, self.fits, settled)

    @property
    def moved(self) -> frozenset[str]:
        """The handles that change anything."""
        sources = (source for step in self.steps for source in step.moving.values())
        return frozenset(
            name for kind, name, *_ in (*sources, *self.sources.values()) if kind == "handle"
        )

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
        if self.limited:
            tokens = sum(self._value(name, handles) for name in LENGTHS)
            if tokens > self.constants["of_context"]:
                return "too_long"
        if self.settled is None:
            return None
        return self.settled.refusal(self._called(handles)["load"], self.results)

    def _called(self, handles: Asked) -> dict[str, Any]:
        done: dict[str, Any] = {}
        for name, call in self.calls.items():
            values = [
                done[each] if each in done else self._value(each, handles) for each in call.inputs
            ]
            done[name] = float(call.equation.function(*values))
        return done

    def _value(self, name: str, handles: Asked) -> float:
        source = self.sources[name]
        value: float = (handles if source[0] == "handle" else self.constants)[source[1]]
        return value

    def replay(self, handles: Asked) -> dict[str, Any]:
        """Return the results at values of the handles, in base units, by the same equations."""
        done = self._called(handles)
        if self.settled is not None:
            done["settled"] = self.settled.at_rate(done["load"])
        for step in self.steps:
            done[step.name] = self._run(step, handles, done)
        if LONGEST in self.results:
            done[LONGEST] = {LONGEST: self._longest(handles)}
        found = {name: done[at][what] for name, (at, what, _) in self.results.items()}
        tight = [name for name, (*_, held) in self.results.items() if not held]
        if not tight or self.fits is None or done[self.fits[0]][self.fits[1]] >= 0:
            return found
        return {name: value for name, value in found.items() if name not in tight}

    def _run(self, step: Step, handles: Asked, done: Mapping[str, Any]) -> dict[str, Any]:
        known = {**self.constants, **step.own}
        for name, source in step.moving.items():
            known[name] = _taken(source, handles, done, step.own)
        if ARRAYS:
            import numpy as np

            known |= {name: np.array(known[name], dtype=float) for name in step.columns}
        with quiet():
            found = step.plan.run(known)
        return {name: _plain(found[name]) for name in step.plan.wanted}

    def _longest(self, handles: Asked) -> float:
        """Return the longest sequence that fits, by halving, as the package finds it."""
        assert self.fits is not None
        part, quantity = self.fits
        step = next(each for each in self.steps if each.name == part)
        low, high, output = 0.0, self.constants["of_context"], handles["output_tokens"]
        while low < high:
            middle = (low + high + 1) // 2
            prompt = max(middle - output, min(middle - 1.0, 1.0))
            lengths = dict(zip(LENGTHS, (prompt, middle - prompt), strict=True))
            asked = {**handles, **lengths}
            good = self._run(step, asked, self._called(asked))[quantity] >= 0
            low, high = (middle, high) if good else (low, middle - 1)
        return low


def _taken(source: Source, handles: Asked, done: Mapping[str, Any], own: Mapping[str, Any]) -> Any:
    kind, *names = source
    if kind == "handle":
        return handles[names[0]]
    if kind == "call":
        return done[names[0]]
    return done[names[0]][names[1]] if kind == "result" else own[names[0]]


def _plain(value: Any) -> Any:
    if isinstance(value, list) or bool(getattr(value, "ndim", 0)):
        return [float(each) for each in value]
    return float(value)
