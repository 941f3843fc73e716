"""`Engine.find`: backwards, from a result to the input that gives it, through any door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlsim.engine.sweeps.question import (
    COUNTED,
    DOORS,
    Axis,
    Door,
    Question,
    door_for,
    givable,
    named,
    quantity_of,
    question,
)
from mlsim.engine.sweeps.rows import block
from mlsim.errors import InvalidValueError, UnreachableError, need, unknown_name
from mlsim.parameters import BARE, validate
from mlsim.precision import Precision
from mlsim.quantities import VOCABULARY, term
from mlsim.solvers.arrays import SCAN, STEPS, scan
from mlsim.solvers.training.checks import Asked, parallelism_of
from mlsim.units import text
from mlsim.values import quantity, scaled


def find(
    model: Any = ...,
    hardware: Any = ...,
    *,
    vary: str,
    target: str,
    value: Any,
    door: str | None = None,
    batch_size: Any = ...,
    precision: str | Precision | None = None,
    estimate: str = "roofline",
    between: tuple[Any, Any] | None = None,
    **given: Any,
) -> Any:
    """Find the value of an input that gives a wanted result.

    Parameters
    ----------
    vary
        The input to find: a number among the door's arguments, such as "batch_size",
        "devices" or "rate", or a quantity, such as "memory_bandwidth".
    target, value
        The wanted result, and its value (with a unit, unless it is a count
        or a share).
    between
        Where to look: two values with units. By default from a thousandth to
        a thousand times the known value; for a batch from 1 to a million; for what else is
        counted as far as it can be.
    door, model, hardware, batch_size, precision, estimate, **given
        The door and its arguments, as for `sweep`, each with one value: a network is solved, a
        language model served, or trained with `global_batch`, or under load with `rate` or
        `users`, `activations` included. The precision of a network is "fp16" if left out,
        which the number that comes back can't say; a refusal does.

    Returns
    -------
    Quantity or int
        The smallest value that reaches the result and fits in memory; what is counted is an
        int. Where the result jumps, the place of the jump.

    Raises
    ------
    UnreachableError
        If no value in the range gives the result; says which results it
        covers, and what stops it.
    MlsimError
        As the door.

    >>> from mlsim import Engine, Hardware, Models
    >>> found = Engine.find(vary="memory_bandwidth", target="memory_bound_share",
    ...                     value=0.5, model=Models.ResNet50,
    ...                     hardware=Hardware.Cloud.A100, batch_size=256)
    >>> found > Hardware.Cloud.A100.memory.bandwidth
    True
    >>> Engine.find(vary="batch_size", target="time_per_output_token", value="8 ms",
    ...             model="Llama3_8B", hardware="H100", prompt_tokens=2048)
    42
    """
    named = {
        "model": model,
        "hardware": hardware,
        "batch_size": batch_size,
        "precision": ... if precision is None else precision,
        "estimate": ... if estimate == "roofline" else estimate,
        **given,
    }
    asked = {name: each for name, each in named.items() if each is not ...}
    # What is to be found tells the door, too.
    through = door_for(door, {vary: None, **asked}, "find")
    need("numpy", "a search", "arrays")
    search = _search(through, asked, vary, target)
    known = None
    if between is None and search.unit and vary not in _NUMBERS:
        known = _known(through, asked, vary)
    wanted = float(validate(quantity_of(target), value))
    points = _points(search, *_range(search, asked, known, between))
    results, reasons = search.at(points)
    found = _first(search, points, results, wanted)
    if found is None:
        why = search.asked.notes.get("formats_assumed", "")
        words = _not_reached(search, wanted, points, results, reasons)
        raise UnreachableError(f"{words} In {why}." if why else words)
    return int(found) if search.whole else scaled(found, search.unit)


# Points that are tried where each is asked alone, and where each is a run of a scheduler.
ALONE, RUNS = 201, 25
# A search among these ends once it is as narrow as this share, since each step takes its time.
NARROW = 1e-3
# Numbers that are no count.
_NUMBERS = ("rate", "tokens", "price")
# From a moment's training to more than anybody has.
_TOKENS = (1e6, 1e16)


@dataclass(frozen=True, slots=True)
class Search:
    """A sweep over one argument, whose values are numbers in base units.

    Attributes
    ----------
    asked
        With the argument's axis, of one value.
    vary, unit
        The argument, and the unit of its numbers; "" of what is counted.
    step
        What it is a multiple of.
    """

    asked: Question
    vary: str
    unit: str
    step: int

    @property
    def whole(self) -> bool:
        """Whether it is counted."""
        return not self.unit

    def at(self, points: Any) -> tuple[Any, list[str]]:
        """Return the result at each point, NaN where it is refused, and why it is."""
        axes = []
        for axis in self.asked.axes:
            if axis.name != self.vary:
                axes.append(axis)
            elif axis.array:
                axes.append(replace(axis, entries=points))
            else:
                axes.append(replace(axis, entries=[self.given(each) for each in points]))
        found = block(replace(self.asked, axes=tuple(axes)), 0, len(points))
        reasons = [found.reasons.labels[code] for code in found.reasons.codes]
        return found.numbers[self.asked.results[0]], reasons

    def given(self, point: float) -> Any:
        """Return a point as the door takes it."""
        if self.whole:
            return int(point)
        return float(point) if self.unit in BARE else quantity(float(point), self.unit)


def _search(door: Door, asked: Mapping[str, Any], vary: str, target: str) -> Search:
    """Return the sweep to search."""
    quantities = givable(door, [asked.get("estimate")])
    numbers = [
        each for each in door.arguments if each in (*COUNTED, *_NUMBERS) or each in VOCABULARY
    ]
    if vary not in (*numbers, *quantities):
        raise unknown_name("number to vary", vary, (*numbers, *quantities))
    unit = "" if vary in COUNTED and vary in numbers else term(named(vary)).unit
    step = _multiple(door, asked) if vary == "global_batch" else 1
    start: Any = step if not unit else 1.0 if unit in BARE else f"1 {unit}"
    many = question(door.name, {**asked, vary: [start]}, [target])
    long = [axis.name for axis in many.axes if len(axis) > 1]
    if long:
        one = "batch" if long[0] == "batch_size" else long[0]
        raise InvalidValueError(f"find looks for one value: give one {one}, not several.")
    # Its values are computed together wherever they can be, and it changes fastest.
    return Search(many, vary, unit, step)


def _known(door: Door, asked: Mapping[str, Any], vary: str) -> float | None:
    """Return what an answer knows of a quantity, or None where operators differ."""
    own = {name: value for name, value in asked.items() if name != vary}
    answer = door.ask(**own)
    question = answer.service if door.name == "load" else answer.question
    value = question.known.get(vary)
    return float(value) if value is not None and not getattr(value, "ndim", 0) else None


def _multiple(door: Door, asked: Mapping[str, Any]) -> int:
    """Return what a global batch is a multiple of."""
    own = {name: value for name, value in asked.items() if name != "search"}
    one = question(door.name, {**own, "global_batch": 1}, None)
    first = {axis.name: axis.entries[0] for axis in one.axes if not axis.array}
    spread = parallelism_of(Asked.of(**{**first, "global_batch": 1}))
    each = spread.data * int(asked.get("micro_batch") or 1)
    return each * spread.pipeline if spread.interleaved > 1 else each


def _range(
    search: Search, asked: Mapping[str, Any], known: float | None, between: Any
) -> tuple[float, float]:
    """Return where to look, in base units."""
    name = named(search.vary)
    if between is not None:
        if not isinstance(between, (list, tuple)) or len(between) != 2:  # a pair
            raise InvalidValueError(f"between must be two values in order, not {between!r}.")
        if search.whole:
            if not all(type(each) is int and each >= 1 for each in between):
                raise InvalidValueError(
                    f"between must be whole numbers from 1 up of {search.vary}."
                )
            low, high = map(float, between)
        else:
            low, high = (float(validate(name, each)) for each in between)
        if not 0 < low < high:
            raise InvalidValueError(
                f"between must be two positive values in order, not {between[0]}, {between[1]}."
            )
        return low, high
    if search.whole:
        return float(search.step), float(COUNTED[search.vary])
    if search.vary == "rate":
        others = {name: value for name, value in asked.items() if name not in DOORS["load"].tells}
        full = DOORS["load"].ask(**others, burst=1).value("saturation_rate")
        return full / 1000, full * (1 - NARROW)
    if search.vary == "tokens":
        return _TOKENS
    if known is None:
        raise InvalidValueError(
            f"{search.vary} is not known beforehand: say between which two values to look, such "
            f"as between=('1 {search.unit}', '100 {search.unit}')."
        )
    return known / 1000, known * 1000


def _points(search: Search, low: float, high: float) -> Any:
    """Return points over a range: all whole numbers of a short one, else evenly spread."""
    import numpy as np

    axis: Axis = next(each for each in search.asked.axes if each.name == search.vary)
    alone = RUNS if search.asked.door.name == "load" else ALONE
    if not search.whole:
        return scan(low, high, whole=False) if axis.array else np.geomspace(low, high, alone)
    first, last = int(-(-low // search.step)), int(high // search.step)
    if last < first:
        raise InvalidValueError(
            f"no multiple of {search.step} lies between {low:,.0f} and {high:,.0f}."
        )
    if axis.array and search.asked.door.name != "train":
        short = last - first < SCAN
        counts = np.arange(first, last + 1.0) if short else scan(first, last, whole=True)
    else:
        counts = np.array([each for each in _ROUND if first <= each <= last] or [first], float)
        if search.asked.door.name == "load":
            counts = counts[np.unique(np.linspace(0, len(counts) - 1, RUNS).astype(int))]
    return search.step * counts


# What people count in, and what divides models and machines.
_ROUND = sorted({*range(1, 33), *(odd << power for odd in (1, 3, 5, 7, 9) for power in range(24))})


def _first(search: Search, points: Any, results: Any, wanted: float) -> float | None:
    """Return the first point at which the result is there, or None."""
    import numpy as np

    there = np.flatnonzero(~np.isnan(results))
    if not len(there):
        return None
    if results[there[0]] == wanted:
        return float(points[there[0]])
    beyond = results[there] > wanted
    reached = results[there] == wanted
    changes = np.flatnonzero((beyond[1:] != beyond[:-1]) | reached[1:])
    if not len(changes):
        return None
    first = int(changes[0])
    low, high = (float(points[there[first + i]]) for i in (0, 1))
    return _halved(search, wanted, low, high, start=bool(beyond[first]))


def _halved(search: Search, wanted: float, low: float, high: float, *, start: bool) -> float:
    """Halve a bracket; what is refused in it counts as not there yet."""
    import numpy as np

    loads = search.asked.door.name == "load"
    for _ in range(STEPS):
        middle = (low + high) / 2
        if search.whole:
            middle = search.step * float(int(middle / search.step))
        if middle in (low, high) or (loads and high - low <= NARROW * high):
            break
        result = search.at(np.array([middle]))[0][0]
        gone = not np.isnan(result) and (result == wanted or bool(result > wanted) != start)
        low, high = (low, middle) if gone else (middle, high)
    return high


def _not_reached(
    search: Search, wanted: float, points: Any, results: Any, reasons: list[str]
) -> str:
    """Say that a result does not reach a value, which it has, and what stops it."""
    import numpy as np

    target = search.asked.results[0]
    unit = term(quantity_of(target)).printed

    def word(point: float) -> str:
        return f"{point:,.0f}" if search.whole else text(float(point), search.unit)

    there = ~np.isnan(results)
    start = f"{target} does not reach {text(wanted, unit)}: "
    if not there.any():
        return (
            f"{start}nothing from {search.vary} = {word(points[0])} to {word(points[-1])} can run. "
            f"The first is refused: {reasons[0]}"
        )
    values = results[there]
    found = (
        f"{start}for {search.vary} from {word(points[there][0])} to {word(points[there][-1])} it "
        f"runs from {text(float(values.min()), unit)} to {text(float(values.max()), unit)}."
    )
    last = int(np.flatnonzero(there)[-1])
    if last < len(points) - 1:
        found += f" {search.vary} = {word(points[last + 1])} is refused: {reasons[last + 1]}"
    return found
