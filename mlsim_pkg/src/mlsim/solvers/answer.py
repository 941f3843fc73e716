"""What all answers do alike: results by name, points, what fits, why, and written out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mlsim.errors import DoesNotFitError, InvalidValueError, Suggesting, unknown_name
from mlsim.quantities import term
from mlsim.solvers.question import Question
from mlsim.units import text
from mlsim.values import Origin, counts, quantity

if TYPE_CHECKING:
    from mlsim.hardware.relatives import Loan
    from mlsim.quantities import Term
    from mlsim.solvers.explain import Explanation
    from mlsim.solvers.reports import Report
    from mlsim.values.kinds import Quantity

# What binds for most of the time, as answers name it; the last but one is of the calibrated
# estimate, whose operators take time to start.
MEMORY_BOUND, COMPUTE_BOUND, NETWORK_BOUND = "Memory Bound", "Compute Bound", "Network Bound"
OVERHEAD_BOUND, DOES_NOT_FIT = "Overhead Bound", "Does Not Fit"


@dataclass(frozen=True, slots=True)
class Band:
    """Where measured results of a kind lie around a prediction, in the result's base unit.

    `words` says how many of them it holds, and of which rows it is made.
    """

    low: Any
    high: Any
    words: str


class Answer(Suggesting):
    """A question with its results by name, and the words around them.

    A kind of answer says what its names are, which of them hold of a workload that does
    not fit, and how it is written out; the rest is here.
    """

    # What it is called in messages, and by code that asks for it.
    noun = variable = "answer"
    # What is explained and shown if nothing is named.
    first = "latency"
    # What knows the band around a result, if its door has one.
    banding: Callable[[Answer, str], Band | None] | None = None

    def __init__(self, *, check_memory: bool = False) -> None:
        self._check_memory = check_memory
        self._values: dict[str, Any] = {}

    @cached_property
    def question(self) -> Question:
        """What is asked."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""
        return self.question.shape

    # Results by name.

    _way = ".value({!r})"

    def _by_name(self) -> Iterable[str]:
        return self.names

    @property
    def names(self) -> Collection[str]:
        """What can be asked for by name."""
        raise NotImplementedError

    def _asked(self, name: str) -> tuple[Question, str]:
        """Return the question that a result belongs to, and its name there.

        Raises
        ------
        UnknownNameError
            If there is no such result.
        """
        if name not in self.names:
            raise unknown_name(f"result of a {self.noun}", name, self.names)
        return self.question, name

    def value(self, name: str) -> Any:
        """Return a result in its base unit: a float or an array.

        Points that don't fit are NaN in an array.

        Raises
        ------
        UnknownNameError
            If there is no such result.
        UnreachableError
            If no equation leads to it from what is known.
        DoesNotFitError
            If a time is asked for that needs more memory than there is.
        """
        if not self._check_memory or self._lasts(name):
            return self._value(name)
        if self.shape:
            import numpy as np

            return np.where(self.feasible, self._value(name), np.nan)
        if not self.feasible:
            question, inner = self._asked(name)
            if inner not in question.known:
                raise DoesNotFitError(self.too_large())
        return self._value(name)

    def _lasts(self, name: str) -> bool:
        """Tell whether a result holds of a workload that does not fit."""
        return True

    def _value(self, name: str) -> Any:
        """Return a result whether or not it fits, computed once."""
        if name not in self._values:
            question, inner = self._asked(name)
            known = question.known
            self._values[name] = known[inner] if inner in known else question.value(inner)
        return self._values[name]

    def quantity(self, name: str) -> Any:
        """Return a result as a value with unit, name and origin: what its attribute gives.

        Of many points it is an array with its unit; of counts and shares, without one.

        Raises
        ------
        MlsimError
            As `value`.
        """
        value, entry = self.value(name), self._term(name)
        many = isinstance(value, list) or bool(getattr(value, "ndim", 0))
        if many:
            return value if counts(entry.unit) else quantity(value, entry.unit)
        return entry.scaled(float(value), partial(self._origin_of, name))

    def by_name(self, name: str = "") -> Quantity:
        """Return a result by its name as text, of a part with the part's name before it.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        MlsimError
            As `value`.
        """
        if self.shape:
            raise InvalidValueError(f"{self!r} has many points; pick one, such as {self.picked}.")
        answer, name = self.part(name or "latency")
        found: Quantity = answer.quantity(name)
        return found

    def _term(self, name: str) -> Term:
        """Return the vocabulary's entry for a result."""
        return term(name)

    def _origin_of(self, name: str, value: Quantity) -> Origin:
        """Return how a result came to be, for the value that asks."""
        from mlsim.solvers.derivation import as_origin

        shown = f"{self._term(name).text(value.si)} ({self.about})"
        return as_origin(lambda: self.explain(name).to_dict(), name, shown)

    # Points.

    def __getitem__(self, index: int | tuple[int, ...]) -> Any:
        """Return the answer at one point of many, by its index."""
        if isinstance(index, str):
            raise InvalidValueError(
                f"an index is a whole number; a result is an attribute, such as .{index}, or by "
                f"its name in a variable, show({self.variable}, {index!r})."
            )
        point = self._point(self._pick(index))
        point.banding = self.banding
        return point

    def _point(self, pick: Callable[[Any], float]) -> Any:
        """Return the answer at one point; `pick` takes its value out of an array."""
        raise InvalidValueError(f"this {self.noun} has no index.")

    def _pick(self, index: int | tuple[int, ...]) -> Callable[[Any], float]:
        """Return what takes one point out of an array.

        Raises
        ------
        InvalidValueError
            If this is one point, or the index is none of it.
        """
        shape = self.shape
        if not shape:
            raise InvalidValueError(f"this {self.noun} is one point; only an array has an index.")
        indices = index if isinstance(index, tuple) else (index,)
        whole = all(hasattr(i, "__index__") and not isinstance(i, bool) for i in indices)
        if len(indices) != len(shape) or not whole:
            raise InvalidValueError(
                f"an index of this {self.noun} is {len(shape)} whole number(s), not {index!r}."
            )
        import numpy as np

        return lambda value: float(np.broadcast_to(value, shape)[index])

    @property
    def picked(self) -> str:
        """How code picks one point of many."""
        return f"{self.variable}[0]"

    def one_point(self, what: str) -> None:
        """Refuse to go on with many points where only one makes sense.

        Raises
        ------
        InvalidValueError
            Naming a way to pick one.
        """
        if self.shape:
            raise InvalidValueError(
                f"this {self.noun} holds many points; pick one, such as {self.picked}.{what}."
            )

    # Memory.

    @property
    def feasible(self) -> Any:
        """Whether it fits in memory; of many points, an array."""
        fits = self._value("memory_free") >= 0
        return fits if self.shape else bool(fits)

    @property
    def shows_times(self) -> bool:
        """Whether times may be asked for: it fits, or nobody minds, or points differ."""
        return not self._check_memory or bool(self.shape) or bool(self.feasible)

    def too_large(self) -> str:
        """Say by how much it does not fit, and what would help."""
        raise NotImplementedError

    # Why.

    def explain(self, name: str = "") -> Explanation:
        """Show how a result came to be: equations, values, units, sources.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        from mlsim.solvers.explain import Explanation

        self.one_point("explain()")
        name = name or self.first
        self.value(name)
        return Explanation(*self._asked(name), band=self.band(name))

    def band(self, name: str = "") -> Band | None:
        """Return where measured results of the kind lie around a result, in its base unit.

        It is made of published rows to which no constant is fitted, and holds eight in ten
        of them. None where no band is known: of other estimates than the calibrated one, of
        sizes, and where rates were given.

        >>> from mlsim import Engine
        >>> decode = Engine.serve(model="Llama3_8B", hardware="H100", estimate="calibrated")
        >>> found = decode.band("time_per_output_token")
        >>> found.low < decode.value("time_per_output_token") < found.high
        True
        """
        return None if self.banding is None else self.banding(self, name or self.first)

    def part(self, name: str) -> tuple[Answer, str]:
        """Return the answer that a name speaks of, this or a part of it, and the result's name.

        "latency" is the first result of any answer.
        """
        return self, self.first if name == "latency" else name

    @property
    def about(self) -> str:
        """What this is the answer to, in words, beside one of its numbers."""
        raise NotImplementedError

    # Beside its numbers.

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Constants of a calibrated answer that were measured on other devices, and on which."""
        return ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What nobody asked for, and changes the answer by a tenth, in words."""
        return ()

    def causes_behind(self, name: str) -> Mapping[str, Any]:
        """Return what the time goes into that decides a result, as parts by cause."""
        found: Mapping[str, Any] = getattr(self, "causes", {})
        return found

    def noted(self) -> list[tuple[str, str]]:
        """Return rows of a report: what was borrowed, and what was assumed."""
        lent = self.loans
        rows = [("borrowed", "; ".join(each.words for each in lent))] if lent else []
        return rows + [("assumed", words) for words in self.assumptions]

    def notes_for_json(self) -> dict[str, Any]:
        """Return the same for JSON."""
        from mlsim.solvers.noted import borrowed

        found = {"borrowed": borrowed(self.loans), "assumptions": list(self.assumptions)}
        return {name: each for name, each in found.items() if each}

    # Written out.

    # Results that JSON has, whatever was asked.
    reported: Sequence[str] = ()

    def _reported(self) -> Sequence[str]:
        """Return the results that JSON has."""
        return self.reported

    def to_dict(self) -> dict[str, Any]:
        """Return the answer for JSON: every value with its unit; null for what can't be."""
        found = {name: self._entry(name) for name in self._reported()}
        return {**self._inputs(), **self.notes_for_json(), **found}

    def _inputs(self) -> Mapping[str, Any]:
        """Return what was asked, and what is no quantity, for JSON."""
        raise NotImplementedError

    def _entry(self, name: str) -> Any:
        """Return a result for JSON."""
        from mlsim.solvers.reports import plain

        held = self.shows_times or self._lasts(name)
        found = {"value": plain(self.value(name)) if held else None, "unit": term(name).unit}
        if name == "memory_capacity" and self.question.known.guessed_memory():
            found["kind"] = "estimate"
        band = self.band(name) if held else None
        if band is not None:
            found |= {"low": plain(band.low), "high": plain(band.high), "band": band.words}
        return found

    def _banded(self, name: str) -> list[tuple[str, str]]:
        """Return a row of a report with the band around a result, if one is known."""
        band = self.band(name)
        if band is None:
            return []
        unit = term(name).unit
        return [("band", f"{text(band.low, unit)} to {text(band.high, unit)}: {band.words}")]

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.report().text()

    def _repr_markdown_(self) -> str:
        return self.report().markdown()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.about}>"
