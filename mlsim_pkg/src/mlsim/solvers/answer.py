"""What all answers do alike: results by name, points, what fits, why, and written out.

A kind of answer declares its `Form`, as data: the title, the rows of its report, the columns of
a table of many points, and what JSON has beside its results.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from mlsim.errors import DoesNotFitError, InvalidValueError, Suggesting, unknown_name
from mlsim.quantities import term
from mlsim.solvers.question import Question
from mlsim.units import held, text
from mlsim.values import Origin, counts, quantity

if TYPE_CHECKING:
    from mlsim.hardware.kernel_constants import Loan
    from mlsim.solvers.explain import Explanation
    from mlsim.values.kinds import Quantity


# Of more points than this, a report shows the ends.
MOST_POINTS = 20


def plain(value: Any) -> Any:
    """Turn NumPy values into what JSON knows; NaN, which it doesn't, into None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def listed(rows: Iterable[tuple[str, str]], label: int, width: int = 66) -> list[str]:
    """Write names and values as lines; a long value goes on below its beginning.

    >>> listed([("time", "1 s"), ("used for", "this and that")], 10, 9)
    ['  time      1 s', '  used for  this and', '            that']
    """
    lines = []
    for name, value in rows:
        parts = textwrap.wrap(value, width, break_long_words=False, break_on_hyphens=False)
        for index, part in enumerate(parts or [""]):
            lines.append(f"  {'' if index else name:<{label}}{part}")
    return lines


@dataclass(frozen=True)
class Report:
    """A title, and rows of a name and a value; of many points, a row for each.

    `label` is the room for a name; `width`, that for a value before it is wrapped.

    >>> print(Report("A lamp", [("power", "60 W")], label=7).text())
    A lamp
      power  60 W
    """

    title: str
    rows: Sequence[tuple[str, ...]]
    label: int = 12
    width: int = 66
    # Of many points: the head of each column, and its width; what holds of all of them.
    heads: Sequence[tuple[str, int]] = ()
    notes: Sequence[tuple[str, str]] = ()

    def text(self) -> str:
        """Write it for a terminal."""
        if not self.heads:
            pairs = [(name, value) for name, value in self.rows]
            return "\n".join([self.title, *listed(pairs, self.label, self.width)])
        lines = [self.title, self._line([head for head, _ in self.heads])]
        lines += [self._line(row) for row in shown(self.rows, ("...",))]
        lines += listed(self.notes, self.label, self.width)
        return "\n".join(lines)

    def _line(self, cells: Sequence[str]) -> str:
        padded = (f"{cell:>{width}}" for cell, (_, width) in zip(cells, self.heads, strict=False))
        return "  " + "  ".join(padded)

    def markdown(self) -> str:
        """Write it for a notebook."""
        heads = [head for head, _ in self.heads] or ["", ""]
        lines = [f"**{_cell(self.title)}**", "", f"| {' | '.join(heads)} |"]
        lines.append("|---" * len(heads) + "|")
        dots = ("...",) * len(heads)
        rows = shown(self.rows, dots) if self.heads else self.rows
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
        lines += [f"\n{_cell(name)}: {_cell(words)}" for name, words in self.notes]
        return "\n".join(lines)


Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a report, or several of them.

    Attributes
    ----------
    label
        The name before the value.
    content
        A result's name; or what writes the value of an answer, where "" leaves the row out; or
        what returns pairs of a label and a value.
    timed
        Whether it needs times, which are left out of what does not fit in memory.
    note
        Whether it also stands below a table of many points.
    """

    label: str
    content: str | Callable[[Any], str | Pairs]
    timed: bool = False
    note: bool = False

    def written(self, answer: Any) -> Pairs:
        """Return its pairs of a label and a value."""
        if isinstance(self.content, str):
            name = self.content
            return [(self.label, term(name).text(float(answer.value(name))))]
        found = self.content(answer)
        if not isinstance(found, str):
            return found
        return [(self.label, found)] if found else []


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of many points.

    `content` is a result's name, or what returns values of an answer: None leaves the column
    out. What is NaN, of a point that does not fit, is a dash.
    """

    head: str
    width: int
    content: str | Callable[[Any], Any]
    write: Callable[[Any], str] = "{:,.0f}".format

    def values(self, answer: Any) -> Any:
        """Return the values of all points, or one that holds for all."""
        by_name = isinstance(self.content, str)
        return answer.value(self.content) if by_name else self.content(answer)  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class Form:
    """How answers of a kind are written out.

    Attributes
    ----------
    title
        What writes the title; by default it is what the answer is about.
    rows, columns
        Rows of a report about one point; columns of one about many.
    inputs
        What JSON has before the results, by name: what was asked, and what is no quantity. A
        value of "" is left out.
    label, width
        Room for a row's name; for its value, before it is wrapped.

    >>> class Lamp(Written):
    ...     power = 60
    ...     form = Form(lambda lamp: "A lamp", (Row("power", lambda lamp: f"{lamp.power} W"),))
    >>> print(Lamp())
    A lamp
      power       60 W
    """

    title: Callable[[Any], str] | None = None
    rows: Sequence[Row] = ()
    columns: Sequence[Column] = ()
    inputs: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    label: int = 12
    width: int = 66

    def report(self, answer: Any) -> Report:
        """Return an answer as a title and rows; of many points, a row for each."""
        many = bool(getattr(answer, "shape", ()))
        if many and not self.columns:
            answer.one_point("report()")
        kept = (each for each in self.rows if each.note or not many)
        timed = getattr(answer, "shows_times", True)
        rows = [pair for each in kept if timed or not each.timed for pair in each.written(answer)]
        title = self.title(answer) if self.title else answer.about
        if not many:
            return Report(title, rows, label=self.label, width=self.width)
        columns = [(each, each.values(answer)) for each in self.columns]
        columns = [pair for pair in columns if pair[1] is not None]
        heads = [(each.head, each.width) for each, _ in columns]
        return Report(title, _points(columns, answer.shape), heads=heads, notes=rows)

    def asked(self, answer: Any) -> dict[str, Any]:
        """Return what was asked, and what is no quantity, for JSON."""
        found = {name: write(answer) for name, write in self.inputs.items()}
        # Arrays can't be compared with text.
        return {n: each for n, each in found.items() if not isinstance(each, str) or each}


def _points(columns: Iterable[tuple[Column, Any]], shape: tuple[int, ...]) -> list[tuple[str, ...]]:
    """Write the cells of all points, a row for each."""
    import numpy as np

    def written(column: Column, values: Any) -> list[str]:
        flat = np.broadcast_to(values, shape).reshape(-1).tolist()
        # NaN alone differs from itself.
        return ["-" if each != each else column.write(each) for each in flat]  # noqa: PLR0124

    return list(zip(*(written(*each) for each in columns), strict=True))


class Written:
    """What is written by its form: a title and rows, for a terminal or a notebook."""

    form: ClassVar[Form]

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        return self.form.report(self)

    def to_dict(self) -> dict[str, Any]:
        """Return what was asked and what was found, for JSON: every value with its unit."""
        return self.form.asked(self)

    def __str__(self) -> str:
        return self.report().text()

    def _repr_markdown_(self) -> str:
        return self.report().markdown()


def with_unit(value: Any, unit: str) -> dict[str, Any]:
    """Return a value with its unit for JSON."""
    return {"value": plain(value), "unit": unit}


def noted(answer: Any) -> Pairs:
    """Return rows with what an answer borrowed, and what it assumed."""
    found: Pairs = answer.noted()
    return found


def doubts(answer: Any) -> Pairs:
    """Return rows with figures of the device that nobody read or measured well."""
    found: Pairs = answer.question.known.doubts()
    return found


def short(answer: Any) -> str:
    """Say that an answer's workload does not fit, and by how much; nothing if it does."""
    if answer.feasible:
        return ""
    return f"no: {held(-float(answer.value('memory_free')))} too much"


def memory_used(answer: Any, whole: str) -> str:
    """Say how much memory is needed, of how much."""
    required, there = (held(float(answer.value(name))) for name in ("memory_required", whole))
    return f"{required} of {there}"


def seconds(value: float) -> str:
    """Write a time."""
    return text(value, "s")


def banded(name: str) -> Row:
    """Return the row with the band around a result, where one is known."""
    return Row("band", lambda answer: answer._banded(name), timed=True)


def shown(rows: Sequence[Any], dots: Any) -> list[Any]:
    """Return rows, or of many the ends of them with dots between.

    >>> shown(range(30), "...")[8:13]
    [8, 9, '...', 20, 21]
    """
    if len(rows) <= MOST_POINTS:
        return list(rows)
    half = MOST_POINTS // 2
    return [*rows[:half], dots, *rows[-half:]]


def _cell(words: str) -> str:
    """Keep what stands in a cell of a Markdown table in it."""
    return words.replace("|", r"\|").replace("*", r"\*")


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


class Answer(Suggesting, Written):
    """A question with its results by name, and the words around them.

    A kind of answer declares its results, which of them need that it fits in memory, and the
    form in which it is written out; the rest is here.

    Parameters
    ----------
    scenario
        What is asked about: it has the `question`, and may have `loans` and `assumptions`.
    check_memory
        Whether to refuse times of what does not fit in memory.
    """

    # What it is called in messages, and by code that asks for it.
    noun = variable = "answer"
    # What is explained and shown if nothing is named.
    first = "latency"
    # What can be asked for by name, beside what is known; what of it has no meaning for a
    # workload that memory does not hold; and what JSON has, whatever was asked.
    results: Sequence[str] = ()
    needs_memory: Collection[str] = ()
    reported: Sequence[str] = ()
    form: ClassVar[Form] = Form()
    # What a roofline's report says to expect: results, and the words behind each.
    main: ClassVar[Mapping[str, str]] = {}
    # What knows the band around a result, if its door has one.
    banding: Callable[[Answer, str], Band | None] | None = None

    def __init__(self, scenario: Any = None, *, check_memory: bool = False) -> None:
        self._scenario, self._check_memory = scenario, check_memory
        self._values: dict[str, Any] = {}

    @cached_property
    def question(self) -> Question:
        """What is asked."""
        found: Question = self._scenario.question
        return found

    @property
    def estimate(self) -> str:
        """Which answer this is: "roofline", "bound" or "calibrated"; "" where there is one."""
        return getattr(self._scenario, "estimate", "")

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
        if not self.results:
            raise NotImplementedError
        return tuple(dict.fromkeys((*self.results, *self.question.known)))

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
        return name not in self.needs_memory

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
        value, entry = self.value(name), term(name)
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

    def _origin_of(self, name: str, value: Quantity) -> Origin:
        """Return how a result came to be, for the value that asks."""
        from mlsim.solvers.explain import as_origin

        shown = f"{term(name).text(value.si)} ({self.about})"
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
        return getattr(self._scenario, "loans", ())

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What nobody asked for, and changes the answer by a tenth, in words."""
        return getattr(self._scenario, "assumptions", ())

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
        from mlsim.solvers.calibrated import borrowed

        found = {"borrowed": borrowed(self.loans), "assumptions": list(self.assumptions)}
        return {name: each for name, each in found.items() if each}

    # Written out.

    def as_calibrated(self) -> Answer | None:
        """Return the calibrated answer to a roofline's question; None of other estimates.

        Raises
        ------
        NotMeasuredError
            If nobody measured the device.
        """
        found = self._calibrated() if self.estimate == "roofline" else None
        if found is not None:
            found.banding = self.banding
        return found

    def _calibrated(self) -> Answer | None:
        """Return the calibrated answer to the question of this one, which is a roofline's."""
        return None

    def report(self) -> Report:
        """Return the answer as a title and rows; a roofline's ends with what to expect."""
        found = super().report()
        if self.shape or not self.main or not self.shows_times:
            return found
        expected = self.expected
        return replace(found, rows=[*found.rows, ("expect", expected)]) if expected else found

    @cached_property
    def expected(self) -> str:
        """What the calibrated estimate expects, in a line; "" where nobody knows, or asked it."""
        from mlsim.solvers.expected import line

        return line(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer for JSON: every value with its unit; null for what can't be."""
        found = {name: self._entry(name) for name in self.reported}
        return {**self.form.asked(self), **self.notes_for_json(), **found}

    def _entry(self, name: str) -> Any:
        """Return a result for JSON."""
        held = self.shows_times or self._lasts(name)
        found = with_unit(self.value(name) if held else None, term(name).unit)
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.about}>"
