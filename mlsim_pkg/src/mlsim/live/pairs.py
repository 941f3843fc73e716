"""Any language model on any device, compiled: what is the same in many pairs is kept once.

Nobody can ask about each of some hundred thousand pairs in a build. So constants are asked about
along the edges of the table: all models on a few devices, and of the models that those devices
can't tell apart one on all devices. What follows for the other pairs is compared with the package
at pairs drawn by chance, to the last digit, and refused by name where it is otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from mlsim.errors import MlsimError, UnreachableError
from mlsim.live.compiled import _start
from mlsim.live.handles import Handle

# A model with its devices, where it runs, and two formats.
Pair = tuple[str, str, str, str]
# Of each pair: what decides a constant, by place in it; the fewest first.
_DECIDING = ((), (0,), (1,), (0, 2), (1, 2), (2,), (3,))
FORM, TEXT = "form", "text"


@dataclass(frozen=True)
class Table:
    """What is asked about.

    Attributes
    ----------
    ask
        Takes a pair, an estimate and the handles' values; returns an answer of `Engine.serve`
        that does not check memory.
    told
        Takes why a pair is refused, and the pair; returns it as a page has it, without its names.
    also
        What else a page shows of an answer: texts and numbers by name.
    blocks
        Models and places that go together: those of one device, of two of a node, and so on; with
        the few places on which all models are asked about.
    weights, caches
        Names of formats.
    results
        Names of results, by estimate. The first estimate has all constants.
    apart
        Estimates that have other columns than the first.
    sizes
        Those that hold where memory is too small.
    handles
        What moves, in whole numbers.
    """

    ask: Callable[..., Any]
    told: Callable[[str, Pair], str]
    also: Callable[[Any], Mapping[str, Any]]
    blocks: Sequence[tuple[Sequence[str], Sequence[str], Sequence[str]]]
    weights: Sequence[str]
    caches: Sequence[str]
    results: Mapping[str, Sequence[str]]
    apart: Sequence[str]
    sizes: Sequence[str]
    handles: Sequence[Handle]

    @property
    def start(self) -> dict[str, float]:
        """Where the handles stand while constants are asked about."""
        return {each.name: _start(each) for each in self.handles}

    def formats(self) -> Iterator[tuple[str, str]]:
        """Yield all formats of weights and cache."""
        yield from product(self.weights, self.caches)


@dataclass(frozen=True)
class Asked:
    """What the package knows of a pair: numbers, and columns with a value for each operator."""

    constants: Mapping[str, Any]
    equations: Any
    also: Mapping[str, Any]


def asked_of(table: Table, pair: Pair, *, all_: bool = False) -> Asked | str:
    """Ask about a pair; what an estimate has otherwise than the first stands under its own name."""
    first, *others = table.results
    try:
        answer = table.ask(pair, first, **table.start)
    except MlsimError as error:
        return table.told(str(error), pair)
    found = _numbers(table, answer)
    equations = _equations(answer)
    for estimate in others if all_ else table.apart:
        other = table.ask(pair, estimate, **table.start)
        for name, value in _numbers(table, other).items():
            apart = isinstance(value, tuple) or isinstance(found.get(name), tuple)
            if estimate in table.apart:
                same = isinstance(value, tuple) and len(set(value)) == 1
                found[f"{estimate}_{name}"] = value[0] if same else value
            elif name in found and not apart:
                same_or_refuse(f"{name} of the {estimate}", value, found[name], pair)
    return Asked(found, equations, table.also(answer))


def _equations(answer: Any) -> Any:
    question = answer._asked("memory_free")[0]
    names = frozenset((*question.known, *question.table.names))
    return (question.equations, names)


def _numbers(table: Table, answer: Any) -> dict[str, Any]:
    """Return what is known of an answer before the handles: numbers and columns."""
    question = answer._asked("time_to_first_token")[0]
    found: dict[str, Any] = {}
    for name, value in question.known.items():
        if name not in (*table.start, "new_tokens", "cached_tokens"):
            found[name] = float(value)
    for name in question.table.names:
        if name not in question.known:
            found[name] = tuple(map(float, question.table.columns[name]))
    model = answer.service.model
    return found | {
        "of_context": float(model.context),
        "of_attention_window": float(model.window),
    }


class Block:
    """Constants of the models and places that go together."""

    def __init__(self, table: Table, block: tuple[Any, ...], forms: dict[Any, Pair]) -> None:
        self.table, self.forms = table, forms
        self.entities, self.places, few = block
        self.pairs: dict[Pair, Asked | str] = {}
        self._values: dict[str, dict[tuple[str, ...], Any]] = {}
        self.dropped: set[str] = set()
        for entity, place, formats in product(self.entities, few, table.formats()):
            self._ask((entity, place, *formats))
        self._sort()
        self._group()
        firsts = (each[0][0] for each in self.of_kind.values())
        chosen = dict.fromkeys((*self.of_class.values(), *firsts))
        for entity, place, formats in product(chosen, self.places, table.formats()):
            self._ask((entity, place, *formats))

    def _ask(self, pair: Pair) -> None:
        if pair not in self.pairs:
            self.pairs[pair] = found = asked_of(self.table, pair)
            if not isinstance(found, str):
                self.pairs[pair] = self.without(found)
                self.forms.setdefault(found.equations, pair)

    @property
    def good(self) -> dict[Pair, Asked]:
        """Pairs that the package does not refuse."""
        return {pair: each for pair, each in self.pairs.items() if not isinstance(each, str)}

    def _sort(self) -> None:
        """Sort constants by what decides them."""
        self._drop()
        good = self.good
        self.wide = dict.fromkeys(
            name
            for each in good.values()
            for name, value in each.constants.items()
            if isinstance(value, tuple)
        )
        names = dict.fromkeys(name for each in good.values() for name in each.constants)
        self.decided: dict[str, tuple[int, ...]] = {}
        self.shared: list[str] = []
        for name in names:
            able = [by for by in _DECIDING if name not in self.wide or 0 in by]
            by = next((by for by in able if _decides(by, name, good)), None)
            if by is None:
                self.shared.append(name)
            else:
                self.decided[name] = by
        self.lengths = {
            pair[0]: max(len(x) for x in each.constants.values() if isinstance(x, tuple))
            for pair, each in good.items()
        }
        # Of operators, each has its own: a number is one that all of them have.
        self.columns = [name for name in self.shared if name in self.wide]
        self.masked = [name for name in self.columns if self._is_masked(name)]
        self.base = {
            (entity, name): self._base(entity, name)
            for entity in self.lengths
            for name in self.masked
        }

    def _drop(self) -> None:
        """Leave out what an estimate has in no other way than the first."""
        good = self.good
        self.apart: dict[str, list[str]] = {each: [] for each in self.table.apart}
        for estimate, kept in self.apart.items():
            names = {n for each in good.values() for n in each.constants}
            for name in sorted(n for n in names if n.startswith(f"{estimate}_")):
                bare = name.removeprefix(f"{estimate}_")
                pairs = ((e.constants.get(bare), e.constants.get(name)) for e in good.values())
                if all(own is None or equal(own, of) for of, own in pairs):
                    self.dropped.add(name)
                else:
                    kept.append(bare)
        for pair in good:
            self.pairs[pair] = self.without(good[pair])

    def without(self, found: Asked) -> Asked:
        """Return what is known without what was dropped."""
        kept = {n: value for n, value in found.constants.items() if n not in self.dropped}
        return replace(found, constants=kept)

    def column(self, pair: Pair, name: str) -> tuple[float, ...]:
        """Return a constant as a column; what a pair has none of is 0."""
        value = self.good_of(pair).constants.get(name, 0.0)
        return value if isinstance(value, tuple) else (value,) * self.lengths[pair[0]]

    def good_of(self, pair: Pair) -> Asked:
        """Return what the package knows of a pair that it does not refuse."""
        found = self.pairs[pair]
        assert not isinstance(found, str)
        return found

    def _base(self, entity: str, name: str) -> tuple[float, ...]:
        columns = [self.column(pair, name) for pair in self.good if pair[0] == entity]
        return tuple(map(max, zip(*columns, strict=True)))

    def _is_masked(self, name: str) -> bool:
        """Tell whether a column is the model's own, or 0 where another way is measured."""
        seen: dict[tuple[str, int], float] = {}
        for pair in self.good:
            for place, value in enumerate(self.column(pair, name)):
                if value and seen.setdefault((pair[0], place), value) != value:
                    return False
        return True

    def operator(self, pair: Pair, place: int) -> tuple[float, ...]:
        """Return what an operator has of all columns that a device changes."""
        return tuple(
            float(self.column(pair, name)[place] != 0)
            if name in self.masked
            else self.column(pair, name)[place]
            for name in self.columns
        )

    def whole(self, pair: Pair) -> dict[str, Any]:
        """Return what a pair has that is no column, and that both decide."""
        found = self.pairs[pair]
        if isinstance(found, str):
            return {TEXT: found}
        kept = {n: found.constants.get(n) for n in self.shared if n not in self.columns}
        kept = {name: value for name, value in kept.items() if value is not None}
        return {FORM: list(self.forms).index(found.equations), **kept, **found.also}

    def _group(self) -> None:
        """Group models, and operators, that the few places can't tell apart."""
        classes: dict[str, str] = {}
        kinds: dict[Any, list[tuple[str, int]]] = {}
        self.of_class = classes
        self.class_of: dict[str, int] = {}
        self.kinds_of: dict[str, list[int]] = {}
        for entity in self.entities:
            pairs = [pair for pair in self.pairs if pair[0] == entity]
            key = json.dumps([self.whole(pair) for pair in pairs], sort_keys=True)
            classes.setdefault(key, entity)
            self.class_of[entity] = list(classes).index(key)
            able = [pair for pair in pairs if not isinstance(self.pairs[pair], str)]
            found = []
            for place in range(self.lengths.get(entity, 0)):
                mark = (
                    tuple(pair[1:] for pair in able),
                    tuple(self.operator(pair, place) for pair in able),
                )
                kinds.setdefault(mark, []).append((entity, place))
                found.append(list(kinds).index(mark))
            self.kinds_of[entity] = found
        self.of_kind = dict(enumerate(kinds.values()))

    def known(self, pair: Pair) -> dict[str, Any]:
        """Return what follows for a pair from those that were asked about."""
        entity = pair[0]
        like = list(self.of_class.values())[self.class_of[entity]]
        found = self.whole((like, *pair[1:]))
        if TEXT in found:
            return found
        for name, by in self.decided.items():
            value = self.values[name].get(tuple(pair[each] for each in by))
            if value is not None:
                found[name] = value
        rows = [self.of(kind, pair[1:]) for kind in self.kinds_of[entity]]
        for name, column in zip(self.columns, zip(*rows, strict=True), strict=True):
            of = self.base.get((entity, name))
            found[name] = tuple(a * b for a, b in zip(column, of, strict=True)) if of else column
        return found

    def of(self, kind: int, where: tuple[str, ...]) -> tuple[float, ...]:
        """Return what a kind of operators has at a place, in formats."""
        for entity, at in self.of_kind[kind]:
            pair: Any = (entity, *where)
            self._ask(pair)
            if not isinstance(self.pairs[pair], str):
                return self.operator(pair, at)
        return (0.0,) * len(self.columns)

    @property
    def values(self) -> dict[str, dict[tuple[str, ...], Any]]:
        """Constants that one or two parts of a pair decide, by these."""
        if not self._values:
            self._values = {name: {} for name in self.decided}
            for pair, each in self.good.items():
                for name, by in self.decided.items():
                    if name in each.constants:
                        key = tuple(pair[place] for place in by)
                        self._values[name][key] = each.constants[name]
        return self._values


def _decides(by: tuple[int, ...], name: str, good: Mapping[Pair, Asked]) -> bool:
    seen: dict[tuple[str, ...], Any] = {}
    for pair, each in good.items():
        value = each.constants.get(name)
        if value is not None and seen.setdefault(tuple(pair[i] for i in by), value) != value:
            return False
    return True


def equal(one: Any, other: Any) -> bool:
    """Tell whether two constants are the same; a number is a column of it."""
    if isinstance(one, tuple) and not isinstance(other, tuple):
        return set(one) <= {other}
    if isinstance(other, tuple) and not isinstance(one, tuple):
        return set(other) <= {one}
    return bool(one == other)


def same_or_refuse(name: str, value: Any, known: Any, pair: Pair) -> None:
    """Refuse a constant that a program has otherwise than the table."""
    if not equal(value, known):
        raise UnreachableError(f"{name} of {', '.join(pair)} is {value}, not {known}.")
