"""What a sweep asks: a door, values for its arguments, and so many rows."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from inspect import signature
from typing import Any

from mlsim.errors import InvalidValueError, UnknownArgumentError, nearest, need, unknown_name
from mlsim.parameters import COUNTS, check, validate
from mlsim.precision import by_default, precision as find_precision
from mlsim.quantities import VOCABULARY, term
from mlsim.records import DATA
from mlsim.solvers.formats import formats
from mlsim.solvers.forward.profile import IN_MEMORY, USUAL
from mlsim.workloads.model import Network
from mlsim.zoo import resolve, spaces

# Of a door's arguments, what a sweep has no use for: it keeps what does not fit as a row.
_NOT_SWEPT = "check_memory"
_PERCENTILES = ("_p50", "_p90", "_p99")


@dataclass(frozen=True)
class Door:
    """A question of `Engine` that can be asked for many configurations at once.

    `data/sweeps.toml` has a row for each, and says what each field is.
    """

    name: str
    results: tuple[str, ...]
    arrays: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def ask(self) -> Callable[..., Any]:
        """The function behind the door."""
        found: Callable[..., Any] = getattr(import_module(f"mlsim.engine.{self.name}"), self.name)
        return found

    @cached_property
    def _parameters(self) -> dict[str, bool]:
        """What it takes by name, and whether it can't do without."""
        return {
            each.name: each.default is each.empty
            for each in signature(self.ask).parameters.values()
            if each.kind is not each.VAR_KEYWORD
        }

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """What it takes by name, and a sweep has a use for."""
        return tuple(name for name in self._parameters if name != _NOT_SWEPT)

    @property
    def checks_memory(self) -> bool:
        """Whether it refuses times of what does not fit, unless told otherwise."""
        return _NOT_SWEPT in self._parameters

    @property
    def required(self) -> tuple[str, ...]:
        """What it can't do without."""
        return tuple(name for name, needed in self._parameters.items() if needed)

    def columns(self, networks: Collection[bool], given: Iterable[str]) -> tuple[str, ...]:
        """Return the results that a table has, if nobody names any.

        `networks` says of each kind of model whether it is a network; one that is trained
        has samples, and no tokens.
        """
        further = [name for each in given for name in self.more.get(each, ())]
        found = [*self.results, *further]
        if self.name == "train" and True in networks:
            found.insert(found.index("token_rate"), "throughput")
            if False not in networks:
                found.remove("token_rate")
        return tuple(dict.fromkeys(found))


_DATA = tomllib.loads((DATA / "sweeps.toml").read_text(encoding="utf-8"))
DOORS = {
    name: Door(
        name,
        **{key: tuple(each.split()) for key, each in row.items() if isinstance(each, str)},
        more={key: tuple(each.split()) for key, each in row.get("more", {}).items()},
    )
    for name, row in _DATA["doors"].items()
}
# How far a search looks for what is counted.
COUNTED: Mapping[str, int] = _DATA["counted"]


def quantity_of(result: str) -> str:
    """Return the quantity of the vocabulary that a result is: of which phase or share it is aside.

    >>> quantity_of("decode.latency"), quantity_of("time_to_first_token_p90")
    ('latency', 'time_to_first_token')
    """
    name = result.rpartition(".")[2]
    for ending in _PERCENTILES:
        name = name.removesuffix(ending)
    return name


# Of arguments that are no quantities, those of which one value may be a list, or a pair.
_LISTS, _PAIRS = ("groups",), ("pue", "wue", "carbon_intensity", "water_intensity", "embodied")


def listed(name: str, value: Any) -> Any:
    """Return the values of an argument: the entries of a list, or the one that was given.

    Long arrays and ranges stay what they are.

    Raises
    ------
    InvalidValueError
        If it is an empty list.
    """
    entries: Any
    if hasattr(value, "tolist") and bool(getattr(value, "ndim", 0)):
        import numpy as np

        # Of any shape, in its order; numbers stay an array.
        entries = value.reshape(-1) if hasattr(value, "units") else np.asarray(value).reshape(-1)
        if not hasattr(value, "units") and entries.dtype.kind not in "iuf":
            entries = entries.tolist()
    elif isinstance(value, range):
        entries = value
    elif name in _LISTS and isinstance(value, (list, tuple)):
        entries = list(value) if value and isinstance(value[0], (list, tuple)) else [value]
    elif isinstance(value, (set, frozenset)):
        # A set has no order of its own, and a row has to have a place.
        entries = sorted(value, key=lambda each: (type(each).__name__, str(label(each)), str(each)))
    elif isinstance(value, tuple) and name in _PAIRS:
        entries = [value]
    elif isinstance(value, (list, tuple, spaces.Namespace, Iterator)):
        entries = list(value)
        if entries and all(isinstance(each, (list, tuple)) for each in entries) and name in _DEEP:
            entries = [part for each in entries for part in each]
    else:
        return [value]
    if len(entries) == 0:
        raise InvalidValueError(f"{name} is an empty list; give at least one entry.")
    return entries


# Of these a table of numbers may be given, which is read row by row.
_DEEP = ("batch_size", "prompt_tokens", "output_tokens")


def label(value: Any) -> Any:
    """Return what a table shows of a value: a number, or words.

    >>> label(8), label(None), label("bf16")
    (8, 'default', 'bf16')
    """
    if value is None:
        return "default"
    if isinstance(value, (bool, int, float, str)):
        return value
    name = getattr(value, "name", None) or getattr(value, "about", None)
    return name if isinstance(name, str) else str(value)


BOTTLENECK = "bottleneck"
# What a sweep of networks is asked if nobody says otherwise.
_USUAL = {"batch_size": 1, "estimate": "roofline", "activations": IN_MEMORY}
_FORMATS = ("precision", "weights", "activations", "kv_cache")


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One argument with its values.

    Attributes
    ----------
    name
        Of the argument.
    entries
        What the door is given: a list; or numbers in base units, as an array.
    unit
        Of the numbers.
    """

    name: str
    entries: Any
    unit: str | None = None

    @property
    def array(self) -> bool:
        """Whether all its values are computed together."""
        return self.unit is not None

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, eq=False)
class Question:
    """A sweep: every combination of the values, the last axis changing fastest."""

    door: Door
    axes: tuple[Axis, ...]
    results: tuple[str, ...]
    # What the table says of all its rows, such as formats that nobody asked for.
    notes: Mapping[str, str] = field(default_factory=dict)
    # Whether somebody named the results; of the usual ones an answer may lack some.
    named: bool = True

    @cached_property
    def rows(self) -> int:
        """Combinations."""
        return math.prod(len(axis) for axis in self.axes)

    @cached_property
    def choices(self) -> tuple[Axis, ...]:
        """Axes whose values are asked one by one."""
        return tuple(axis for axis in self.axes if not axis.array)

    @cached_property
    def arrays(self) -> tuple[Axis, ...]:
        """Axes whose values are computed together."""
        return tuple(axis for axis in self.axes if axis.array)

    @cached_property
    def together(self) -> int:
        """Rows of one choice."""
        return math.prod(len(axis) for axis in self.arrays)

    @cached_property
    def units(self) -> dict[str, str]:
        """The unit of each column that has one."""
        own = {axis.name: axis.unit for axis in self.axes if axis.unit is not None}
        found = {name: term(quantity_of(name)).unit for name in self.results if not _words(name)}
        return {**own, **found}

    def spread(self, axis: Axis, values: Any, start: int, stop: int) -> Any:
        """Return the value of each row, of an array with one for each value of an axis.

        Laid out, not looked up: that would take longer than most of an answer.
        """
        import numpy as np

        after = self.axes[self.axes.index(axis) + 1 :]
        stride, count, size = math.prod(len(each) for each in after), len(axis), stop - start
        if stride > 1:
            first = start // stride
            found = values[np.arange(first, -(-stop // stride)) % count]
            every = np.broadcast_to(found[:, None], (len(found), stride)).reshape(-1)
            return every[start - first * stride :][:size]
        low = start % count
        return np.tile(values, -(-(low + size) // count))[low:][:size]

    def parts(self, start: int, stop: int) -> Iterator[tuple[dict[str, Any], int, int]]:
        """Yield the choices that rows from `start` to `stop` have, and the rows of each."""
        for choice in range(start // self.together, -(-stop // self.together)):
            place, chosen = choice, {}
            for axis in reversed(self.choices):  # the last changes fastest
                place, at = divmod(place, len(axis))
                chosen[axis.name] = axis.entries[at]
            first = choice * self.together
            yield chosen, max(start, first), min(stop, first + self.together)

    def numbers(self, start: int, stop: int) -> dict[str, Any]:
        """Return the values of what is computed together, for each row, in base units."""
        return {axis.name: self.spread(axis, axis.entries, start, stop) for axis in self.arrays}


def question(door: str | None, given: Mapping[str, Any], results: Any = None) -> Question:
    """Return what a sweep asks; refuse what no row could answer.

    Parameters
    ----------
    door
        Its name, or None: the one that the arguments belong to.
    given
        Its arguments by name: one value each, or several.
    results
        Columns of the answer, or None: those that the door has.

    Raises
    ------
    MlsimError
        If an argument is unknown, empty, or holds a value that can't be.
    """
    need("numpy", "a sweep", "arrays")
    several = {name: listed(name, value) for name, value in given.items()}
    found = _door(door, several, given, "sweep")
    notes = {}
    if found.name == "solve":
        if isinstance(given["model"], spaces.Namespace):  # of all models, the networks
            several["model"] = [each for each in several["model"] if isinstance(each, Network)]
        several["model"] = [resolve.network(each) for each in several["model"]]
        several["hardware"] = [resolve.device(each) for each in several["hardware"]]
        if list(several.get("precision", [None])) == [None]:
            notes["formats_assumed"] = by_default(USUAL)
            several["precision"] = [USUAL]
        several = {name: [value] for name, value in _USUAL.items()} | several
    _check_words(found, several)
    if found.name == "solve":  # a format has one name in a table, however it was written
        several["precision"] = [each and find_precision(each).name for each in several["precision"]]
    # In the order in which the door takes them; what is computed together changes fastest.
    names = [*(each for each in found.arguments if each in several)]
    names += [each for each in several if each not in names]
    axes = [_axis(found, name, several[name]) for name in names]
    ordered = sorted(axes, key=lambda axis: axis.array)
    columns = _results(found, results, several)
    return Question(found, tuple(ordered), columns, notes, named=results is not None)


def door_for(door: str | None, given: Mapping[str, Any], asker: str) -> Door:
    """Return the door that arguments of one value each belong to; refuse those that do not.

    Raises
    ------
    UnknownArgumentError, TypeError
        If the door does not take an argument, or needs one that is not there.
    """
    return _door(door, {name: [value] for name, value in given.items()}, given, asker)


def _door(name: str | None, several: dict[str, Any], given: Mapping[str, Any], asker: str) -> Door:
    """Return the door that was named, or the one that the arguments belong to.

    Puts records in place of names of models and hardware.

    Raises
    ------
    InvalidValueError
        If there is no such door.
    UnknownArgumentError, TypeError
        If the door does not take an argument, or needs one that is not there.
    """
    if "model" in several:
        several["model"] = [resolve.model(each) for each in several["model"]]
    if "hardware" in several:
        several["hardware"] = [resolve.cluster(each) for each in several["hardware"]]
    if name is None:
        models = several.get("model", ())
        usual = "serve" if models and not isinstance(models[0], Network) else "solve"
        name = next((door for door, each in DOORS.items() if given.keys() & each.tells), usual)
    elif not isinstance(name, str) or name not in DOORS:
        raise InvalidValueError(
            f"door must be one of {', '.join(DOORS)}, not {name!r}.{nearest(name, DOORS)}"
        )
    found = DOORS[name]
    quantities = givable(found, several.get("estimate", ()))
    for each in several:
        if each not in found.arguments and each not in quantities:
            raise UnknownArgumentError(each, quantities, arguments=found.arguments)
    if missing := [each for each in found.required if each not in several]:
        raise TypeError(f"{asker}() missing 1 required keyword-only argument: {missing[0]!r}")
    return found


def named(argument: str) -> str:
    """Return the quantity that an argument is."""
    return str(_DATA["quantities"].get(argument, argument))


def givable(door: Door, estimates: Sequence[Any]) -> tuple[str, ...]:
    """Return the quantities that a door takes in place of what is on record."""
    measured = "calibrated" if "calibrated" in estimates else "roofline"
    if door.name == "train":
        from mlsim.solvers.training import equations

        calibrated = measured == "calibrated"
        return equations.CALIBRATED_GIVABLE if calibrated else equations.TRAINING_GIVABLE
    if door.name in ("serve", "load"):
        from mlsim.solvers.serving import steps

        return steps.givable(measured)
    if door.name == "gemm":
        from mlsim.solvers.gemm.layer import GIVABLE

        return GIVABLE
    if door.name == "footprint":
        from mlsim.solvers.footprint.assemble import GIVABLE as OF_FOOTPRINT

        return tuple(OF_FOOTPRINT)
    from mlsim.solvers.forward.profile import kind_of

    return (*kind_of(measured, "memory").givable, "last_level_cache")


def _check_words(door: Door, several: Mapping[str, Any]) -> None:
    """Refuse formats and estimates that are none, before any row is asked."""
    for each in several.get("estimate", ()):
        check("estimate", each if isinstance(each, str) else repr(each))
    for name in _FORMATS:
        for each in several.get(name, ()):
            if each is None or (name == "activations" and door.name in ("solve", "gemm")):
                continue
            if not isinstance(each, str) and not hasattr(each, "bits"):
                raise InvalidValueError(f"{name} must be a number format by name, not {each!r}.")
            if name == "precision" and door.name in ("serve", "load"):
                formats(each)
            else:
                find_precision(each)


def _axis(door: Door, name: str, values: Any) -> Axis:
    """Return an argument with its values; those that are computed together as an array."""
    import numpy as np

    numbers: Any = values
    if isinstance(values, range):
        numbers = np.arange(values.start, values.stop, values.step)
    together = name in door.arrays or name in _quantities(door)
    if not together or (isinstance(values, list) and any(each is None for each in values)):
        return Axis(name, values if isinstance(values, list) else np.asarray(numbers).tolist())
    quantity = named(name)
    whole = name in door.whole or quantity in COUNTS
    zero = name == "output_tokens"
    given = numbers if len(numbers) > 1 else numbers[0]
    found = validate(quantity, given, whole=whole, zero=zero)
    unit = term(quantity).unit
    return Axis(name, np.atleast_1d(np.asarray(found, dtype=float)), unit)


def _quantities(door: Door) -> tuple[str, ...]:
    """Return the quantities that may be given and are computed together."""
    if door.name not in ("solve", "serve", "gemm"):
        return ()
    return tuple(each for each in givable(door, ["calibrated"]) if each not in door.arguments)


def _results(door: Door, results: Any, several: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of the answer, each once; refuse what is no result."""
    if results is None:
        networks = {isinstance(each, Network) for each in several.get("model", ())}
        given = (
            name for name, values in several.items() if len(values) > 1 or values[0] is not None
        )
        return door.columns(networks, given)
    named = [results] if isinstance(results, str) else list(results)
    if not named:
        raise InvalidValueError("results is an empty list; name at least one, or leave it out.")
    for name in named:
        if not isinstance(name, str):
            raise InvalidValueError(f"results are names, not {name!r}.")
        if not _words(name) and quantity_of(name) not in VOCABULARY:
            raise unknown_name(
                "result", name, (*VOCABULARY, BOTTLENECK), see="The book lists all quantities."
            )
        if name in several:
            raise InvalidValueError(f"{name} is asked and answered: leave it out of results.")
    return tuple(dict.fromkeys(named))


def _words(result: str) -> bool:
    return result.rpartition(".")[2] == BOTTLENECK
