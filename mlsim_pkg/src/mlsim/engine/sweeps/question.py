"""What a sweep asks: a door, values for its arguments, and so many rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlsim.engine.sweeps.doors import Door, door_of, quantity_of
from mlsim.engine.sweeps.entries import label, listed
from mlsim.errors import InvalidValueError, UnknownArgumentError, need, unknown_name
from mlsim.precision import by_default, precision as find_precision
from mlsim.quantities import VOCABULARY, term
from mlsim.solvers.formats import formats
from mlsim.solvers.forward.profile import IN_MEMORY, USUAL
from mlsim.solvers.inputs import COUNTS, check_estimate, validate
from mlsim.workloads.model import Network
from mlsim.zoo import resolve, spaces

BOTTLENECK = "bottleneck"
# Quantities that an argument is, where it has another name.
_NAMED = {
    "tokens": "training_tokens",
    "price": "device_price",
    "batch": "weight_sets",
    "M": "layer_rows",
    "N": "layer_outputs",
    "K": "layer_inputs",
}
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

    def labels(self) -> list[Any]:
        """Return what a table shows of each value: numbers, or words."""
        return [label(each) for each in self.entries]


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

    def places(self, axis: Axis, start: int, stop: int) -> Any:
        """Return which value of an axis each row from `start` to `stop` has."""
        import numpy as np

        after = self.axes[self.axes.index(axis) + 1 :]
        stride = math.prod(len(each) for each in after)
        return np.arange(start, stop) // stride % len(axis)

    def parts(self, start: int, stop: int) -> Iterator[tuple[dict[str, Any], int, int]]:
        """Yield the choices that rows from `start` to `stop` have, and the rows of each."""
        at = start
        while at < stop:
            end = min(stop, (at // self.together + 1) * self.together)
            place = {axis: int(self.places(axis, at, at + 1)[0]) for axis in self.choices}
            yield {axis.name: axis.entries[i] for axis, i in place.items()}, at, end
            at = end

    def numbers(self, start: int, stop: int) -> dict[str, Any]:
        """Return the values of what is computed together, for each row, in base units."""
        return {axis.name: axis.entries[self.places(axis, start, stop)] for axis in self.arrays}


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
    found = _found(door, several, given)
    _check_names(found, several)
    _check_there(found, several, "sweep")
    notes = {}
    if found.name == "solve":
        _only_networks(several, all_of=isinstance(given["model"], spaces.Namespace))
        if list(several.get("precision", [None])) == [None]:
            notes["formats_assumed"] = by_default(USUAL)
            several["precision"] = [USUAL]
        several = {name: [value] for name, value in _USUAL.items()} | several
    _check_words(found, several)
    # In the order in which the door takes them; what is computed together changes fastest.
    equations = [*(each for each in found.arguments if each in several)]
    equations += [each for each in several if each not in equations]
    axes = [_axis(found, name, several[name]) for name in equations]
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
    several = {name: [value] for name, value in given.items()}
    found = _found(door, several, given)
    _check_names(found, several)
    _check_there(found, several, asker)
    return found


def _found(door: str | None, several: dict[str, Any], given: Mapping[str, Any]) -> Door:
    """Put records in place of names of models and hardware; return the door."""
    if "model" in several:
        several["model"] = [resolve.model(each) for each in several["model"]]
    if "hardware" in several:
        several["hardware"] = [resolve.cluster(each) for each in several["hardware"]]
    models = several.get("model", ())
    return door_of(door, given, language=bool(models) and not isinstance(models[0], Network))


def _check_there(door: Door, several: Mapping[str, Any], asker: str) -> None:
    """Refuse a question that lacks an argument, as Python does of a function's."""
    missing = [name for name in door.required if name not in several]
    if missing:
        raise TypeError(f"{asker}() missing 1 required keyword-only argument: {missing[0]!r}")


def _only_networks(several: dict[str, list[Any]], *, all_of: bool) -> None:
    """Refuse what is no network or no device; of a whole namespace keep the networks."""
    if all_of:
        several["model"] = [each for each in several["model"] if isinstance(each, Network)]
    several["model"] = [resolve.network(each) for each in several["model"]]
    several["hardware"] = [resolve.device(each) for each in several["hardware"]]


def named(argument: str) -> str:
    """Return the quantity that an argument is."""
    return _NAMED.get(argument, argument)


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


def _check_names(door: Door, several: Mapping[str, Any]) -> None:
    """Refuse an argument that the door does not take."""
    quantities = givable(door, several.get("estimate", ()))
    for name in several:
        if name not in door.arguments and name not in quantities:
            raise UnknownArgumentError(name, quantities, arguments=door.arguments)


def _check_words(door: Door, several: Mapping[str, Any]) -> None:
    """Refuse formats and estimates that are none, before any row is asked."""
    for each in several.get("estimate", ()):
        check_estimate(each if isinstance(each, str) else repr(each))
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
    quantity = _NAMED.get(name, name)
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
                "result", name, (*VOCABULARY, BOTTLENECK), see="The glossary lists the quantities."
            )
        if name in several:
            raise InvalidValueError(f"{name} is asked and answered: leave it out of results.")
    return tuple(dict.fromkeys(named))


def _words(result: str) -> bool:
    return result.rpartition(".")[2] == BOTTLENECK
