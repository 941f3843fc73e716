"""Any language model on any device, or several of them: what the package knows, asked sparingly.

Nobody can ask about each of some hundred thousand pairs in a build. So constants are asked about
along the edges of the table: all models on a few devices, and of the models that those devices
can't tell apart a few on all devices. What follows for the other pairs is compared with the package
at pairs drawn by chance, to the last digit, and refused by name where it is otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeVar

from mlsim.errors import MlsimError, UnreachableError
from mlsim.live.compiled import _start
from mlsim.live.handles import Handle

# A model with a device, two formats, and how many such devices share it.
Pair = tuple[str, str, str, str, int]
# Of each pair: what decides a constant, by place in it; the fewest first.
_DECIDING = ((), (0,), (1,), (4,), (0, 4), (0, 2), (1, 4), (1, 2), (2,), (3,), (0, 2, 4))
FORM, TEXT = "form", "text"
Where = tuple[str, str, str, int]
# What an operator has of all columns that a device changes; None where its form has no such.
Kind = tuple[float | None, ...]
T = TypeVar("T", bound=Hashable)


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
        What else a page shows of an answer, by name: "" where there is none.
    models
        Their names.
    places
        Devices, and how many of each are connected at most.
    few
        Those on which all models are asked about.
    weights, caches
        Names of formats.
    counts
        How many devices may share a model; 1 is the first.
    results
        Names of results, by estimate. The first estimate has all constants.
    sizes
        Those that hold where memory is too small.
    handles
        What moves, in whole numbers.
    """

    ask: Callable[..., Any]
    told: Callable[[str, Pair], str]
    also: Callable[[Any], Mapping[str, Any]]
    models: Sequence[str]
    places: Mapping[str, int]
    few: Sequence[str]
    weights: Sequence[str]
    caches: Sequence[str]
    counts: Sequence[int]
    results: Mapping[str, Sequence[str]]
    sizes: Sequence[str]
    handles: Sequence[Handle]

    @cached_property
    def start(self) -> dict[str, float]:
        """Where the handles stand while constants are asked about."""
        return {each.name: _start(each) for each in self.handles}

    @property
    def first(self) -> str:
        """The estimate that has all constants."""
        return next(iter(self.results))

    def where(self, places: Iterable[str]) -> Iterator[Where]:
        """Yield all that a pair has beside its model, on one device."""
        for place, weights, cache, count in product(places, self.weights, self.caches, self.counts):
            if count <= self.places[place]:
                yield place, weights, cache, count

    def crossing(self, places: Iterable[str]) -> Iterator[Where]:
        """Yield those with another cache or with several devices, but not with both."""
        usual = (self.caches[0], self.counts[0])
        for each in self.where(places):
            if usual[0] == each[2] or usual[1] == each[3]:
                yield each


@dataclass(frozen=True)
class Asked:
    """What the package knows of a pair: numbers, and columns with a value for each operator.

    `rows` are the operators' names; of two with one name the second has a mark.
    """

    constants: dict[str, Any]
    rows: tuple[str, ...]
    form: Hashable
    flags: frozenset[str]
    also: Mapping[str, Any]


def asked_of(table: Table, pair: Pair, estimate: str) -> Asked | str:
    """Ask about a pair; what it is refused for is a text."""
    try:
        answer = table.ask(pair, estimate, **table.start)
    except MlsimError as error:
        return table.told(str(error), pair)
    question = answer._asked("memory_free")[0]
    names = frozenset((*question.known, *question.table.names))
    columns = question.table.columns
    constants: dict[str, Any] = {
        name: tuple(map(float, columns[name])) for name in names - set(question.known)
    }
    left_out = {*table.start, "new_tokens", "cached_tokens"}
    constants |= {n: float(x) for n, x in question.known.items() if n not in left_out}
    model = answer.service.model
    constants |= {
        "of_context": float(model.context),
        "of_attention_window": float(model.window),
    }
    seen: Counter[str] = Counter()
    rows = []
    for each in question.table:
        rows.append(f"{each.name}{'*' * seen[each.name]}")
        seen[each.name] += 1
    flags = answer.service.variant | {f"has {name}" for name in names}
    return Asked(constants, tuple(rows), (question.equations, names), flags, table.also(answer))


class Constants:
    """Constants of all pairs, from those that were asked about."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.pairs: dict[Pair, Asked | str] = {}
        self.good: dict[Pair, Asked] = {}  # those that the package does not refuse
        self.forms: dict[Hashable, Pair] = {}
        several = [place for place in table.few if table.places[place] >= max(table.counts)][:2]
        several = several or list(table.few[:1])
        where = [each for each in table.where(table.few) if each[2:] == (table.caches[0], 1)]
        where += [each for each in table.crossing(several) if each not in where]
        for model, each in product(table.models, where):
            self._ask((model, *each))
        self._refuse_layouts(where)
        self._add_others(several[0])
        known = -1
        while known < len(self.forms) or not all(
            self._decides(by, name) for name, by in self.decided.items()
        ):
            known = len(self.forms)
            self._sort()
            self._group()
            for model, each in product(self.asked, table.crossing(table.places)):
                self._ask((model, *each))
            self._meet_forms()

    def _ask(self, pair: Pair) -> Asked | str:
        if pair not in self.pairs:
            self.pairs[pair] = found = asked_of(self.table, pair, self.table.first)
            if not isinstance(found, str):
                self.good[pair] = found
                self.forms.setdefault(found.form, pair)
        return self.pairs[pair]

    def _refuse_layouts(self, where: Sequence[Where]) -> None:
        """Find the models that so many devices can't share, wherever they are."""
        self.torn: dict[tuple[str, int], str] = {}
        for model, count in product(self.table.models, self.table.counts[1:]):
            asked = [self.pairs[model, *each] for each in where if each[3] == count]
            texts = {each for each in asked if isinstance(each, str)}
            if len(texts) == 1 and all(isinstance(each, str) for each in asked):
                self.torn[model, count] = texts.pop()

    def _sort(self) -> None:
        """Sort constants by what decides them."""
        good = self.good
        self.names = dict.fromkeys(name for each in good.values() for name in each.constants)
        self.wide = {
            name
            for each in good.values()
            for name, value in each.constants.items()
            if isinstance(value, tuple)
        }
        self.rows = {(pair[0], pair[4]): each.rows for pair, each in good.items()}
        self.decided: dict[str, tuple[int, ...]] = {}
        for name in self.names:
            able = _DECIDING if name not in self.wide else ((0, 4), (0, 2, 4))
            by = next((by for by in able if self._decides(by, name)), None)
            if by is not None:
                self.decided[name] = by
        self.base: dict[tuple[str, str, int], tuple[float, ...]] = {}
        self._operators: dict[tuple[Pair, str], Kind | None] = {}
        # Of operators, each has its own: a number is one that all of them have.
        self.columns = [n for n in self.names if n not in self.decided and n in self.wide]
        self.masked = [name for name in self.columns if self._is_masked(name)]
        self.numbers = [n for n in self.names if n not in self.decided and n not in self.wide]

    def _decides(self, by: tuple[int, ...], name: str) -> bool:
        seen: dict[Any, Any] = {}
        for pair, each in self.good.items():
            value = each.constants.get(name)
            if value is not None:
                known = seen.setdefault(tuple([pair[place] for place in by]), value)
                if known is not value and not equal(known, value):
                    return False
        return True

    def _given(self, pair: Pair, name: str) -> Any:
        """Return a constant, as a column where any pair has one; None where there is none."""
        asked = self.pairs[pair]
        assert not isinstance(asked, str)
        found = asked.constants.get(name)
        return found if found is None or name not in self.wide else self.column(pair, name)

    def column(self, pair: Pair, name: str) -> tuple[float, ...]:
        """Return a constant as a column; what a pair has none of is 0."""
        found = self.pairs[pair]
        assert not isinstance(found, str)
        value = found.constants.get(name, 0.0)
        return value if isinstance(value, tuple) else (value,) * len(found.rows)

    def _is_masked(self, name: str) -> bool:
        """Tell whether a column is the model's own, or 0 where another way is measured."""
        found: dict[tuple[str, str, int], list[float]] = {}
        for pair in self.good:
            column = self.column(pair, name)
            known = found.setdefault((name, pair[0], pair[4]), list(column))
            for place, value in enumerate(column):
                if value and known[place] and known[place] != value:
                    return False
                known[place] = known[place] or value
        self.base |= {key: tuple(each) for key, each in found.items()}
        return True

    def operator(self, pair: Pair, row: str) -> Kind | None:
        """Return what an operator has of all columns that a device changes."""
        key = (pair, row)
        if key not in self._operators:
            self._operators[key] = self._operator(pair, row)
        return self._operators[key]

    def _operator(self, pair: Pair, row: str) -> Kind | None:
        found = self._ask(pair)
        if isinstance(found, str) or row not in found.rows:
            return None
        at = found.rows.index(row)
        return tuple(
            None
            if name not in found.constants
            else float(self.column(pair, name)[at] != 0)
            if name in self.masked
            else self.column(pair, name)[at]
            for name in self.columns
        )

    def _single(self, pair: Pair, name: str) -> Any:
        """Return a number or a text that both parts decide; of what is refused, nothing."""
        found = self.pairs[pair]
        if isinstance(found, str):
            return found if name == TEXT else NOTHING
        if name in self.flags:
            return self.flags[name] in found.flags
        return found.also.get(name, "") if name in self.also else found.constants.get(name)

    def _group(self) -> None:
        """Group models by each constant, and operators, that the few devices can't tell apart."""
        self.flags = {f"is{at}": flag for at, flag in enumerate(self._telling())}
        self.also = _in_order(each.also for each in self.good.values())
        self.single = [TEXT, *self.flags, *self.also, *self.numbers]
        pairs: dict[str, list[Pair]] = {}
        for pair in self.pairs:
            if (pair[0], pair[4]) not in self.torn:
                pairs.setdefault(pair[0], []).append(pair)
        self.class_of: dict[str, dict[str, int]] = {}
        for name in self.single:
            seen = {
                model: {
                    pair[1:]: value
                    for pair in own
                    if (value := self._single(pair, name)) is not NOTHING
                }
                for model, own in pairs.items()
            }
            self.class_of[name] = _grouped(seen)
        operators = {
            (model, row): {
                pair[1:]: value for pair in own if (value := self.operator(pair, row)) is not None
            }
            for model, own in pairs.items()
            for row in dict.fromkeys(
                row for n in self.table.counts for row in self.rows.get((model, n), ())
            )
        }
        self.kind_of = _grouped(operators)
        self.rows_of: dict[int, list[tuple[str, str]]] = {}
        for key, kind in self.kind_of.items():
            self.rows_of.setdefault(kind, []).append(key)
        self.asked = self._few_models()
        self._chosen: dict[Any, list[str]] = {}
        self._kinds: dict[tuple[int, Where], Kind | None] = {}

    def _telling(self) -> list[str]:
        """Return the fewest flags that tell all forms apart."""
        flags = {each.form: each.flags for each in self.good.values()}
        every = sorted({flag for each in flags.values() for flag in each})
        found: list[str] = []
        while len(_split(flags, found)) < len(flags):
            best = max(every, key=lambda flag: len(_split(flags, [*found, flag])))
            if len(_split(flags, [*found, best])) == len(_split(flags, found)):
                raise UnreachableError("two forms of a question have the same flags.")
            found.append(best)
        return found

    def _meet_forms(self) -> None:
        """Ask about one pair at least of each form: flags may stand together as nowhere yet."""
        forms = list(self.forms)
        self.form_of = {
            tuple(flag in each.flags for flag in self.flags.values()): forms.index(each.form)
            for each in self.good.values()
        }
        where = list(self.table.where(self.table.places))
        kinds = {
            tuple(self.class_of[flag][model] for flag in self.flags): model
            for model in self.table.models
        }
        known = {
            (flag, group): [self.value(flag, group, each) for each in where]
            for flag in self.flags
            for group in set(self.class_of[flag].values())
        }
        for groups, model in kinds.items():
            columns = (known[each] for each in zip(self.flags, groups, strict=True))
            for each, told in zip(where, zip(*columns, strict=True), strict=True):
                if told not in self.form_of and NOTHING not in told:
                    found = self._ask((model, *each))
                    if not isinstance(found, str):
                        self.form_of[told] = list(self.forms).index(found.form)

    def _few_models(self) -> list[str]:
        """Return models of which one at least is in each group."""
        groups: dict[Any, list[str]] = {}
        for name, classes in self.class_of.items():
            for model, at in classes.items():
                groups.setdefault((name, at), []).append(model)
        for (model, _), kind in self.kind_of.items():
            groups.setdefault((None, kind), []).append(model)
        self.members = groups
        left, found = dict(groups), []
        while left:
            able = Counter(model for each in left.values() for model in set(each))
            # Of models that are in as many, one that all numbers of devices can share.
            best = max(able, key=lambda m: (able[m], -sum(m == torn for torn, _ in self.torn)))
            found.append(best)
            left = {group: each for group, each in left.items() if best not in each}
        return found

    @cached_property
    def values(self) -> dict[str, dict[tuple[Any, ...], Any]]:
        """Constants that one or two parts of a pair decide, by these."""
        found: dict[str, dict[tuple[Any, ...], Any]] = {name: {} for name in self.decided}
        for pair in self.good:
            for name, by in self.decided.items():
                value = self._given(pair, name)
                if value is not None:
                    key = tuple(pair[place] for place in by)
                    same_or_refuse(name, value, found[name].setdefault(key, value), pair)
        return found

    def _add_others(self, place: str) -> None:
        """Add what the other estimates have in another way than the first, on one device.

        Where that is the highest of a column, a page can tell by itself.
        """
        others = list(self.table.results)[1:]
        self.highest: dict[str, list[str]] = {}
        found: dict[tuple[str, str], dict[Pair, Any]] = {}
        table, good = self.table, self.good
        # Either with other weights, or on several devices.
        asked = {
            pair
            for pair in good
            if pair[3] == table.caches[0] and (pair[2] == table.weights[0] or pair[4] == 1)
        }
        for pair, first in good.items():
            for estimate in others if pair[1] == place and pair in asked else ():
                other = asked_of(self.table, pair, estimate)
                assert not isinstance(other, str)
                for name in other.constants:
                    found.setdefault((estimate, name), {})[pair] = _along(name, other, first)
        for (estimate, name), values in found.items():
            own = {pair: good[pair].constants.get(name) for pair in values}
            known = [(values[pair], own[pair]) for pair in values if own[pair] is not None]
            if all(equal(value, its) for value, its in known):
                continue
            high = all(
                value == (max(its) if isinstance(its, tuple) else its) for value, its in known
            )
            if high:
                self.highest.setdefault(estimate, []).append(name)
                continue
            for pair, value in values.items():
                good[pair].constants[f"{estimate}_{name}"] = value

    def value(self, name: str, group: int, where: Where) -> Any:
        """Return a number or a text of a group of models that are alike."""
        several, alone, other = (self._of_group(name, group, each) for each in self._crossed(where))
        return other if several == alone else several

    def _of_group(self, name: str, group: int, where: Where) -> Any:
        for model in self._able((name, group), where[3]):
            self._ask((model, *where))
            return self._single((model, *where), name)
        return NOTHING

    def of(self, kind: int, where: Where) -> Kind | None:
        """Return what a kind of operators has somewhere; None where it is nowhere."""
        key = (kind, where)
        if key not in self._kinds:
            several, alone, other = (self._of_kind(kind, each) for each in self._crossed(where))
            self._kinds[key] = several and tuple(
                its if own == one else own
                for own, one, its in zip(several, alone or several, other or several, strict=True)
            )
        return self._kinds[key]

    def _of_kind(self, kind: int, where: Where) -> Kind | None:
        for model in self._able((None, kind), where[3]):
            for its, row in self.rows_of[kind]:
                found = self.operator((model, *where), row) if its == model else None
                if found:
                    return found
        return None

    def _able(self, group: tuple[str | None, int], count: int) -> list[str]:
        """Return those of a group that were asked about everywhere, or any one of them."""
        key = (group, count)
        if key not in self._chosen:
            models = dict.fromkeys(self.members[group])
            able = [each for each in models if (each, count) not in self.torn]
            self._chosen[key] = [each for each in able if each in self.asked] or able[:1]
        return self._chosen[key]

    def _crossed(self, where: Where) -> tuple[Where, Where, Where]:
        """Return what decides: nobody was asked of another cache on several devices.

        If what several devices have is what one has, that with this cache; else the first.
        """
        place, weights, cache, count = where
        usual, one = self.table.caches[0], self.table.counts[0]
        if cache == usual or count == one:
            return where, where, where
        return (
            (place, weights, usual, count),
            (place, weights, usual, one),
            (place, weights, cache, one),
        )

    def known(self, pair: Pair) -> dict[str, Any]:
        """Return what follows for a pair from those that were asked about."""
        model, where = pair[0], pair[1:]
        found = {name: self.value(name, self.class_of[name][model], where) for name in self.single}
        if found[TEXT] not in (None, NOTHING):
            return {TEXT: found[TEXT]}
        if (model, pair[4]) in self.torn:
            return {TEXT: self.torn[model, pair[4]]}
        found[FORM] = self.form_of.get(tuple(found.pop(name) for name in self.flags))
        for name, by in self.decided.items():
            found[name] = self.values[name].get(tuple(pair[each] for each in by))
        rows = self.rows[model, pair[4]]
        empty = (0.0,) * len(self.columns)
        of = [self.of(self.kind_of[model, row], where) or empty for row in rows]
        for name, column in zip(self.columns, zip(*of, strict=True), strict=True):
            base = self.base.get((name, model, pair[4]))
            plain = tuple(each or 0.0 for each in column)
            found[name] = tuple(a * b for a, b in zip(plain, base, strict=True)) if base else plain
        return {name: value for name, value in found.items() if value is not None}


class _Nothing:
    """What is not there; equal to itself alone."""


NOTHING = _Nothing()


def _grouped(seen: Mapping[T, Mapping[Where, Any]]) -> dict[T, int]:
    """Return groups of what is never seen to differ, by number."""
    groups: list[dict[Where, Any]] = []
    found: dict[T, int] = {}
    for key, values in sorted(seen.items(), key=lambda each: -len(each[1])):
        alike = (
            at
            for at, group in enumerate(groups)
            if all(group.get(where, value) == value for where, value in values.items())
        )
        at = next(alike, len(groups))
        if at == len(groups):
            groups.append({})
        groups[at].update(values)
        found[key] = at
    return {key: found[key] for key in seen}


def _in_order(lists: Iterable[Iterable[str]]) -> list[str]:
    """Return all names in an order that all lists have.

    >>> _in_order([["a", "d"], ["a", "c", "d"], ["b", "c"]])
    ['b', 'a', 'c', 'd']
    """
    found: list[str] = []
    for names in dict.fromkeys(map(tuple, lists)):
        place = 0
        for name in names:
            if name not in found:
                found.insert(place, name)
            place = found.index(name) + 1
    return found


def _split(flags: Mapping[Hashable, frozenset[str]], by: Sequence[str]) -> set[tuple[bool, ...]]:
    return {tuple(flag in each for flag in by) for each in flags.values()}


def _along(name: str, other: Asked, first: Asked) -> Any:
    """Return a constant of another estimate along the rows of the first, which has more of them."""
    value, own = other.constants[name], first.constants.get(name, 0.0)
    if not isinstance(value, tuple) or other.rows == first.rows:
        return value
    column = own if isinstance(own, tuple) else (own,) * len(first.rows)
    known = dict(zip(other.rows, value, strict=True))
    return tuple(known.get(row, its) for row, its in zip(first.rows, column, strict=True))


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
        where = ", ".join(map(str, pair))
        raise UnreachableError(f"{name} of {where} is {value}, not {known}.")
