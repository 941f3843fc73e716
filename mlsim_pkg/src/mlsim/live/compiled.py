"""Questions compiled for a page: the equations behind an answer, as one script that runs alone.

Handles are numbers that move, choices are differences that are baked. What else a question knows
becomes a constant. That is only true if nothing else changes with a handle, so the compiler asks
the package at many values of each, and refuses by name what changed and comes from no equation.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from mlsim.errors import InvalidValueError, MlsimError, UnreachableError
from mlsim.live.chains import REFUSALS, Chain, chain_of, code_of
from mlsim.live.handles import Choice, Handle
from mlsim.live.programs import Program
from mlsim.live.proofs import programmed
from mlsim.live.scripts import script_of
from mlsim.parameters import BARE
from mlsim.quantities import VOCABULARY
from mlsim.solvers.answer import Answer
from mlsim.units import factor

Asked = Mapping[str, float]
# Points inside the ranges of all handles at which the package is asked, beside the ends.
_INSIDE = 6
# Two ways to one number differ by no more than rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Compiled:
    """A question as a script with its data, and the same question to the package.

    Attributes
    ----------
    script
        The text of a module that exports `answer(handles, choices, data)`: an object with each
        result by its name, in base units, or with `refusal` and what holds all the same.
    data
        Its constants, as JSON has them; infinity is the text "Infinity".

    >>> from functools import partial
    >>> from mlsim import Engine
    >>> question = partial(Engine.solve, "ResNet50", "A100")
    >>> image = compiled(question, results=["latency"], handles=[Handle("batch_size", 1, 256)])
    >>> "export const answer" in image.script, image.ask({"batch_size": 1})
    (True, {'latency': 5.5...e-05})
    """

    question: Callable[..., Answer]
    results: tuple[str, ...]
    handles: tuple[Handle, ...]
    choices: tuple[Choice, ...]
    programs: Mapping[tuple[str, ...], Program | str]
    whole: frozenset[str]

    @cached_property
    def script(self) -> str:
        """The text of the module."""
        return self._written[0]

    @cached_property
    def data(self) -> dict[str, Any]:
        """Its constants, as JSON has them."""
        return self._written[1]

    @cached_property
    def _written(self) -> tuple[str, dict[str, Any]]:
        units = {each.name: _factor(each) for each in self.handles}
        names = [each.name for each in self.choices]
        script, data = script_of(self.programs, names, self.handles, self.whole, units)
        told = {code: each.words for code, each in REFUSALS.items()}
        return script, {**data, "refusals": told}

    def ask(self, handles: Asked, choices: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return what the package answers, in the form in which the script does.

        Raises
        ------
        InvalidValueError
            If a handle or a choice has no value, or one that it can't have.
        """
        picked = tuple(_picked(each, choices or {}) for each in self.choices)
        if isinstance(self.programs[picked], str):
            return {"refusal": "unsupported"}
        for each in self.handles:
            if each.name not in handles:
                raise InvalidValueError(f"handle '{each.name}' has no value here: give one.")
            if not each.low <= handles[each.name] <= each.high:
                return {"refusal": "out_of_range", "handle": each.name}
            if each.name in self.whole and _between(each, handles[each.name]):
                return {"refusal": "between_steps", "handle": each.name}
        broken = [each for each in sorted(self.whole) if handles[each] % 1]
        try:
            chain = _chain(self, handles, picked)
        except MlsimError as error:
            if broken:
                return {"refusal": "not_whole", "handle": broken[0]}
            return {"refusal": code_of(error)}
        found = chain.values()
        return found if len(found) == len(chain.results) else {"refusal": "does_not_fit", **found}


def compiled(
    question: Callable[..., Answer],
    *,
    results: Sequence[str],
    handles: Sequence[Handle],
    choices: Sequence[Choice] = (),
) -> Compiled:
    """Compile a question for a page, and prove that it is what the package answers.

    Parameters
    ----------
    question
        What takes handles and choices by their names and returns an answer: a door of `Engine`
        with all else put in, such as `partial(Engine.serve, "Llama3_8B", "H100")`.
    results
        Names of results, such as "latency" or "decode.total_bytes"; "causes" stands for the
        share of each cause.
    handles
        Numbers that move. A rate or a size has a unit, in which its values are.
    choices
        Differences that are baked. Options that the package refuses are refused by the script.

    Raises
    ------
    UnreachableError
        If anything else changes with a handle: a constant, a column of the operators, or which
        equations hold; names it.
    InvalidValueError
        If a handle changes nothing.
    MlsimError
        As the question, if it has no answer at all.

    >>> from functools import partial
    >>> from mlsim import Engine
    >>> serve = partial(Engine.serve, "Llama3_8B", "H100", prompt_tokens=2048, output_tokens=256)
    >>> users = Handle("batch_size", 1, 400)
    >>> token = compiled(serve, results=["time_per_output_token"], handles=[users])
    >>> token.ask({"batch_size": 200})["refusal"]
    'does_not_fit'
    """
    handles, choices = tuple(handles), tuple(choices)
    made = Compiled(question, tuple(results), handles, choices, {}, frozenset())
    combinations = list(product(*(each.options for each in choices)))
    first: MlsimError | None = None
    programs: dict[tuple[str, ...], Program | str] = {}
    whole: frozenset[str] | None = None
    start = {each.name: _start(each) for each in handles}
    for picked in combinations:
        try:
            base = _chain(made, start, picked)
        except MlsimError as error:
            first, programs[picked] = first or error, str(error)
            continue
        whole = _whole(made, start, picked) if whole is None else whole
        programs[picked] = _proven(made, base, picked, whole)
    if whole is None:
        assert first is not None
        raise first
    moved = {name for each in programs.values() if isinstance(each, Program) for name in each.moved}
    if still := [each.name for each in handles if each.name not in moved]:
        raise InvalidValueError(
            f"handle '{still[0]}' changes none of {', '.join(results)}: leave it out."
        )
    return Compiled(question, made.results, handles, choices, programs, whole)


def _picked(choice: Choice, choices: Mapping[str, str]) -> str:
    key = choices.get(choice.name, "")
    if key not in choice.options:
        raise InvalidValueError(
            f"choice '{choice.name}' is one of {', '.join(choice.options)}, not {key!r}."
        )
    return key


def _between(handle: Handle, value: float) -> bool:
    """Tell whether a whole number is left out by a handle's steps."""
    return handle.stepped and value % 1 == 0 and (value - handle.low) % (handle.step or 1) != 0


def _start(handle: Handle) -> float:
    return float(handle.low if handle.start is None else handle.start)


def _factor(handle: Handle) -> float:
    """Return what one unit of a handle is in base units; what is counted has none."""
    entry = VOCABULARY.get(handle.name)
    if entry is None or entry.unit in BARE:
        return 1.0
    return factor(handle.unit or "1", entry.unit)


def _given(handle: Handle, value: float) -> Any:
    """Return a handle's value as a door takes it."""
    entry = VOCABULARY.get(handle.name)
    if entry is not None and entry.unit not in BARE:
        return f"{value!r} {handle.unit}".strip()
    return int(value) if float(value).is_integer() else float(value)


def _chain(made: Compiled, handles: Asked, picked: Sequence[str]) -> Chain:
    """Ask the package at one point."""
    asked = {each.name: _given(each, float(handles[each.name])) for each in made.handles}
    asked |= {each.name: key for each, key in zip(made.choices, picked, strict=True)}
    return chain_of(made.question(**asked), made.results)


def _whole(made: Compiled, start: Asked, picked: Sequence[str]) -> frozenset[str]:
    """Return the handles of which the package takes whole numbers only."""
    found = []
    for each in made.handles:
        between = int(each.low) + 0.5
        if not each.low <= between <= each.high:
            continue
        try:
            _chain(made, {**start, each.name: between}, picked)
        except InvalidValueError:
            found.append(each.name)
    return frozenset(found)


def _proven(made: Compiled, base: Chain, picked: Sequence[str], whole: frozenset[str]) -> Program:
    """Return a combination's program, whose answers were those of the package at all probes."""
    points: list[Asked] = []
    chains: list[Chain] = []
    refused: list[tuple[Asked, MlsimError]] = []

    def accepted(handles: Asked) -> bool:
        try:
            chains.append(_chain(made, handles, picked))
        except MlsimError as error:
            refused.append((handles, error))
            return False
        points.append(handles)
        return True

    for handles in _probes(made.handles, whole):
        beyond: Asked = handles
        if accepted(handles):
            continue
        # The last points that the package answers lie near those which it refuses.
        near = points[0]
        for _ in range(_NEARER):
            middle = _halfway(made.handles, near, beyond, whole)
            near, beyond = (middle, beyond) if accepted(middle) else (near, middle)
    units = {each.name: _factor(each) for each in made.handles}
    asked = [{name: value * units[name] for name, value in each.items()} for each in points]
    program = programmed(chains, asked)
    for point, told in refused:
        code = program.refusal({name: value * units[name] for name, value in point.items()})
        if code != code_of(told):
            raise UnreachableError(
                f"{_shown(point)}: the package refuses this, and no condition that could be "
                f"compiled tells why. {told}"
            )
    for point, chain, moved in zip(points, chains, asked, strict=True):
        _compare(point, chain.values(), program.replay(moved))
    return program


def _compare(handles: Asked, true: Mapping[str, Any], replayed: Mapping[str, Any]) -> None:
    """Refuse a program that gives another answer than the package."""
    kept = {name: value for name, value in replayed.items() if name != "refusal"}
    for name in {**true, **kept}:
        if name not in true or name not in kept or not _close(true[name], kept[name]):
            raise UnreachableError(
                f"{_shown(handles)}: {name} is {true.get(name, 'refused')}, and the equations "
                f"that were compiled give {kept.get(name, 'a refusal')}. It is not made by "
                "equations alone."
            )


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_close, a, b))
    return bool(a == b or abs(a - b) <= _ROUNDING * max(abs(a), abs(b)) or (a != a and b != b))  # noqa: PLR0124


def _shown(handles: Asked) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in handles.items())


def _probes(handles: Sequence[Handle], whole: frozenset[str]) -> Iterator[dict[str, float]]:
    """Yield values of all handles: the starts, each end alone, all ends, and points inside."""
    start = {each.name: _start(each) for each in handles}
    yield start
    for each in handles:
        for value in (*((each.low, each.high) if not each.values else each.values),):
            yield {**start, each.name: float(value)}
    yield {each.name: float(each.low) for each in handles}
    yield {each.name: float(each.high) for each in handles}
    of = random.Random(1)  # noqa: S311
    for _ in range(_INSIDE):
        yield {each.name: inside(each, of, whole=each.name in whole) for each in handles}


# So often a point that is refused is brought nearer to the start.
_NEARER = 5


def _halfway(
    handles: Sequence[Handle], near: Asked, beyond: Asked, whole: frozenset[str]
) -> dict[str, float]:
    """Return the point between two, of values that handles may have."""
    found = {}
    for each in handles:
        low, high = sorted((near[each.name], beyond[each.name]))
        between = [value for value in each.values if low <= value <= high]
        middle = float(between[len(between) // 2]) if between else (low + high) / 2
        found[each.name] = _stepped(each, middle) if each.name in whole else middle
    return found


def _stepped(handle: Handle, value: float) -> float:
    """Return the nearest whole number that a handle may have."""
    step = (handle.step or 1.0) if handle.stepped else 1.0
    low = float(handle.low)
    return min(float(handle.high), low + step * round((value - low) / step))


def inside(handle: Handle, of: random.Random, *, whole: bool) -> float:
    """Draw a value of a handle: one it may have, over decades where its range has several.

    >>> inside(Handle("batch_size", 1, 256), random.Random(1), whole=True)
    2.0
    """
    if handle.values:
        return float(of.choice(handle.values))
    low, high = float(handle.low), float(handle.high)
    wide = low > 0 and high / low > 10
    drawn = low * (high / low) ** of.random() if wide else of.uniform(low, high)
    return _stepped(handle, drawn) if whole else drawn
