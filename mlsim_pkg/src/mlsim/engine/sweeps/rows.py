"""The rows of a sweep: asked together where equations allow, refused one by one, put in columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlsim.engine.sweeps.question import BOTTLENECK, Axis, Question, label, named, quantity_of
from mlsim.errors import (
    DoesNotFitError,
    InvalidValueError,
    MlsimError,
    NotMeasuredError,
    UnknownNameError,
    UnreachableError,
    UnsupportedPrecisionError,
    WrongKindError,
    need,
    unknown_name,
)
from mlsim.parameters import BARE
from mlsim.quantities import term
from mlsim.solvers import question as asked_of
from mlsim.solvers.answer import COMPUTE_BOUND, DOES_NOT_FIT, MEMORY_BOUND
from mlsim.solvers.calibrated import loans_words
from mlsim.solvers.causes import DECIDING
from mlsim.solvers.serving.checks import OUTPUT_TOKENS
from mlsim.solvers.serving.service import too_long
from mlsim.solvers.training.checks import Asked, comes_out_even, parallelism_of
from mlsim.values import quantity
from mlsim.workloads.model import Network

if TYPE_CHECKING:
    import pandas

# What a combination may be refused for; what else is wrong is wrong of the whole sweep.
REFUSED = (
    DoesNotFitError,
    InvalidValueError,
    NotMeasuredError,
    UnreachableError,
    UnsupportedPrecisionError,
    WrongKindError,
)
TOO_LARGE = DOES_NOT_FIT.lower()
# Of a table: the unit of each column that has one, and whose constants were measured elsewhere.
UNITS, BORROWED = "units", "borrowed"
# Tokens of a prompt that nobody states.
_PROMPT = 512
_PARTS = ("prefill", "decode", "low", "high")


@dataclass(slots=True)
class Words:
    """A column of few words: which of them each row has; -1 is none."""

    codes: Any
    labels: list[str] = field(default_factory=list)

    def put(self, rows: Any, word: str) -> None:
        """Give rows a word."""
        if not len(rows):
            return
        if word not in self.labels:
            self.labels.append(word)
        self.codes[_place(rows)] = self.labels.index(word)


def _place(rows: Any) -> Any:
    """Return rows as a slice where they follow one another: a column is then written faster."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first + 1 == len(rows) else rows


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of a sweep that follow one another, as columns.

    Attributes
    ----------
    numbers
        Results in base units; NaN where there is none.
    words
        What binds.
    feasible
        Whether each row can run.
    reasons
        Why not, or why a result is missing; the first word is none.
    refused
        The reasons for which a door refused to answer, and the error that each was.
    """

    numbers: dict[str, Any]
    words: dict[str, Words]
    feasible: Any
    reasons: Words
    refused: dict[str, type[MlsimError]] = field(default_factory=dict)
    # By the name of the hardware, which constants were measured elsewhere, and where.
    borrowed: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.feasible)


class Rows:
    """Fills rows of one choice: numbers are asked together, and apart where that is refused."""

    def __init__(self, question: Question, block: Block, choice: Mapping[str, Any]) -> None:
        self.question, self.block, self.choice = question, block, choice

    def fill(self, numbers: Mapping[str, Any], rows: Any) -> None:
        """Answer rows, whose numbers are given for each, and write them down."""
        try:
            answer = self.ask(numbers)
        except REFUSED:
            why, kind = self._all_refused(numbers)
            if kind:
                self.refuse(rows, why, kind)
            elif len(rows) == 1:
                self.write(self.ask(numbers, alone=True), rows)
            else:
                half = len(rows) // 2
                for part in (slice(None, half), slice(half, None)):
                    self.fill({name: each[part] for name, each in numbers.items()}, rows[part])
            return
        self.write(answer, rows)

    def ask(self, numbers: Mapping[str, Any], *, alone: bool = False) -> Any:
        """Return the door's answer: one for all rows, or of one row as if it was asked alone."""
        door, alone = self.question.door, alone or self.question.together == 1
        given: dict[str, Any] = {}
        for name, values in numbers.items():
            found, unit = float(values[0]) if alone else values, self.question.units[name]
            if unit not in BARE:
                found = quantity(found, unit)
            elif alone and found.is_integer():
                found = int(found)
            given[name] = found
        memory = {"check_memory": False} if door.checks_memory else {}
        answer = door.ask(**self.choice, **given, **memory)
        _ = answer.question  # what is refused only when somebody looks is refused here
        return answer

    def _all_refused(self, numbers: Mapping[str, Any]) -> tuple[str, type[MlsimError] | None]:
        """Return why all rows are refused, and the error that it is, if they all are.

        They are if the first and the last one are, each alone and in the same words.
        """
        found = []
        for place in (slice(0, 1), slice(-1, None)):
            try:
                self.ask({name: values[place] for name, values in numbers.items()}, alone=True)
            except REFUSED as error:
                found.append((self.reason(error), type(error)))
            else:
                return "", None
        return found[0] if found[0] == found[1] else ("", None)

    def reason(self, error: MlsimError) -> str:
        """Return why a row is refused, in words; of a network as short as tables have it."""
        if self.question.door.name == "solve":
            if isinstance(error, UnsupportedPrecisionError):
                return f"no {label(self.choice['precision'])} peak on record"
            if self.choice.get("activations") == "on-chip" and "cache" in str(error):
                return "no cache on record"
        return str(error)

    def refuse(self, rows: Any, why: str, kind: type[MlsimError] = InvalidValueError) -> None:
        """Note why rows can't run, and the error that it was."""
        self.block.reasons.put(rows, why)
        self.block.refused[why] = kind

    def write(self, answer: Any, rows: Any) -> None:
        """Write the results of an answer down."""
        import numpy as np

        self._together(answer, rows)
        held: Any = True
        if self.question.door.checks_memory:
            with suppress(UnreachableError):  # nobody can say
                held = answer.feasible
        fits = np.broadcast_to(np.asarray(held), rows.shape)
        self.block.feasible[_place(rows)] = fits
        if not fits.all():
            self.block.reasons.put(rows[~fits], TOO_LARGE)
            self.block.refused[TOO_LARGE] = DoesNotFitError
        self.note_loans(answer)
        for name in self.question.results:
            try:
                self._write_one(answer, name, rows, fits)
            except UnknownNameError:
                if self.question.named:
                    raise
            except REFUSED as error:
                # It runs, but has no such result.
                why = str(error)
                self.block.reasons.put(rows[fits & (self.block.reasons.codes[rows] == 0)], why)

    def note_loans(self, answer: Any) -> None:
        """Note once whose constants answers on a piece of hardware have."""
        where = label(self.choice.get("hardware"))
        if where not in self.block.borrowed and (lent := getattr(answer, "loans", ())):
            self.block.borrowed[where] = loans_words(lent)

    def _together(self, answer: Any, rows: Any) -> None:
        """Compute the results of a network in one go, and the shares that decide what binds."""
        if self.question.door.name != "solve" or not answer.shape:
            return
        known = set(answer.names)
        asked, wanted = answer.question, [each for each in self.question.results if each in known]
        if answer.configuration.calibrated and BOTTLENECK in self.question.results:
            asked, wanted = answer._caused, [*wanted, *DECIDING.values()]
        place, columns = _place(rows), self.block.numbers
        into = {each: columns[each][place] for each in wanted if each in columns}
        into = into if isinstance(place, slice) else {}  # else these are copies
        answer._values |= asked.evaluate(*wanted, "memory_free", into=into)

    def _binding(self, part: Any, rows: Any, fits: Any) -> Iterator[tuple[str, Any]]:
        """Yield each word for what binds, and the rows of which it holds."""
        import numpy as np

        # Of a network shares tell, since comparing words takes longer than computing them.
        network = self.question.door.name == "solve"
        if network and not part.configuration.calibrated:
            most = np.broadcast_to(part.value("memory_bound_share"), rows.shape) > 0.5
            yield from ((MEMORY_BOUND, most), (COMPUTE_BOUND, ~most))
        elif network and part.shape:
            shares = (np.broadcast_to(part._values[name], rows.shape) for name in DECIDING.values())
            largest = np.argmax(list(shares), axis=0)
            yield from ((word, largest == place) for place, word in enumerate(DECIDING))
        else:
            words = np.broadcast_to(np.asarray(part.bottleneck), rows.shape)
            yield from ((word, words == word) for word in dict.fromkeys(words[fits].tolist()))

    def _write_one(self, answer: Any, name: str, rows: Any, fits: Any) -> None:
        import numpy as np

        part, inner = _part(answer, name)
        if inner == BOTTLENECK:
            for word, binds in self._binding(part, rows, fits):
                self.block.words[name].put(rows[fits & binds], word)
            return
        value = part.value(inner)
        column = np.broadcast_to(_one_each(name, value, rows), rows.shape)
        if not fits.all() and not part._lasts(inner):
            column = np.where(fits, column, np.nan)
        into = self.block.numbers[name]
        if column.base is None or not np.may_share_memory(column, into):  # it may stand there
            into[_place(rows)] = column


class OneByOne(Rows):
    """Asks for each row alone."""

    def fill(self, numbers: Mapping[str, Any], rows: Any) -> None:
        """Answer rows one after the other."""
        for index in range(len(rows)):
            part = slice(index, index + 1)
            super().fill({name: values[part] for name, values in numbers.items()}, rows[part])


def _part(answer: Any, name: str) -> tuple[Any, str]:
    """Return the answer that a result is of, such as a phase, and its name there."""
    phase, dot, inner = name.partition(".")
    if not dot:
        return answer, name
    if phase not in _PARTS or not hasattr(type(answer), phase):
        raise unknown_name("part of this answer", phase, _PARTS)
    return getattr(answer, phase), inner


def _one_each(name: str, value: Any, rows: Any) -> Any:
    """Return a result as numbers, one for each row or one for all.

    Raises
    ------
    InvalidValueError
        If it is a range, or has a value for each operator.
    """
    import numpy as np

    if hasattr(value, "low"):
        unit = term(quantity_of(name)).unit
        raise InvalidValueError(
            f"{name} is a range, {value} {unit}: ask for results=['low.{name}', 'high.{name}']."
        )
    found = np.asarray(value, dtype=float)
    if found.ndim > 1 or (found.ndim and found.shape != rows.shape):
        raise InvalidValueError(
            f"{name} has a value for each operator, and a row has room for one: ask for a sum, "
            "or ask the door itself."
        )
    return found


class ServingRows(Rows):
    """Fills rows of a language model that is served."""

    def fill(self, numbers: Mapping[str, Any], rows: Any) -> None:
        """Answer rows; what is longer than the model reads is refused by its length."""
        import numpy as np

        model = self.choice.get("model")
        context = getattr(model, "context", None)
        if numbers and context is not None:
            prompt = numbers.get("prompt_tokens", self.choice.get("prompt_tokens") or _PROMPT)
            usual = OUTPUT_TOKENS if self.choice["model"].decoder else 0
            output = numbers.get("output_tokens", self.choice.get("output_tokens") or usual)
            total = np.broadcast_to(prompt + output, rows.shape)
            long = total > context
            if long.any():
                self._fill_too_long(_picked(numbers, long), rows[long], total[long])
                numbers, rows = _picked(numbers, ~long), rows[~long]
        if len(rows):
            super().fill(numbers, rows)

    def _fill_too_long(self, numbers: Mapping[str, Any], rows: Any, total: Any) -> None:
        """Refuse rows by their length, unless the door says something else of the first."""
        import numpy as np

        words, model = "", self.choice["model"]
        try:
            self.ask({name: values[:1] for name, values in numbers.items()}, alone=True)
        except REFUSED as error:
            words = self.reason(error)
        if words != too_long(model, float(total[0])):
            super().fill(numbers, rows)
            return
        lengths, which = np.unique(total, return_inverse=True)
        for index, length in enumerate(lengths):
            self.refuse(rows[which == index], too_long(model, float(length)))


def _picked(numbers: Mapping[str, Any], which: Any) -> dict[str, Any]:
    return {name: values[which] for name, values in numbers.items()}


def runs_as_arrays(question: Question, choice: Mapping[str, Any]) -> bool:
    """Tell whether rows of a choice can be computed together.

    Not of a network, or of a search; and what is given in place of an equation has to be
    held against each row alone.
    """
    alone = set(choice) - set(question.door.arguments)
    return not (isinstance(choice["model"], Network) or choice.get("search") or alone)


class TrainingRows(OneByOne):
    """Fills rows of a language model that is trained, with one layout."""

    def fill(self, numbers: Mapping[str, Any], rows: Any) -> None:
        """Answer rows together, but those that don't come out even, or never end."""
        import numpy as np

        if len(rows) < 2:  # one row is no array
            super().fill(numbers, rows)
            return
        own = {name: value for name, value in self.choice.items() if name != "search"}
        first = {name: float(values[0]) for name, values in numbers.items()}
        try:
            spread = parallelism_of(Asked.of(**own, **first))
        except REFUSED:
            super().fill(numbers, rows)
            return
        batch = numbers.get("global_batch", self.choice.get("global_batch"))
        micro = numbers.get("micro_batch", self.choice.get("micro_batch") or 1)
        even = np.broadcast_to(comes_out_even(spread, batch, micro), rows.shape)
        super().fill(_picked(numbers, ~even), rows[~even])
        if even.any():
            self._as_arrays(_picked(numbers, even), rows[even])

    def _as_arrays(self, numbers: Mapping[str, Any], rows: Any) -> None:
        """Answer rows that come out even, as arrays."""
        import numpy as np

        try:
            one = self.ask({name: values[:1] for name, values in numbers.items()}, alone=True)
        except REFUSED:
            super().fill(numbers, rows)
            return
        self.note_loans(one)
        arrays = {named(name): values for name, values in numbers.items()}
        whole = one.run.question
        many = asked_of.Question(
            whole.known.joined(asked_of.Known().add("given", **arrays)),
            whole.equations,
            whole.labels,
            table=whole.table,
            shape=rows.shape,
        )
        with asked_of.quiet():
            lasting = np.ones(len(rows), dtype=bool)
            if "mean_time_to_failure" in many.known:
                lasting = np.broadcast_to(many.evaluate("goodput")["goodput"], rows.shape) > 0
            free = many.evaluate("memory_free")["memory_free"]
            fits = np.broadcast_to(free, rows.shape) >= 0
            self.block.feasible[rows[lasting]] = fits[lasting]
            self.block.reasons.put(rows[lasting & ~fits], TOO_LARGE)
            for name in self.question.results:
                self._write_many(one, many, name, rows, (lasting, fits))
        super().fill(_picked(numbers, ~lasting), rows[~lasting])

    def _write_many(
        self, one: Any, many: asked_of.Question, name: str, rows: Any, which: tuple[Any, Any]
    ) -> None:
        import numpy as np

        lasting, fits = which
        try:
            if name not in many.known and lasting[0]:
                self._write_one(one, name, rows[:1], fits[:1])  # refuses what there is not
            value = many.known[name] if name in many.known else many.evaluate(name)[name]
        except UnknownNameError:
            if self.question.named:
                raise
            return
        except REFUSED as error:
            silent = self.block.reasons.codes[rows] == 0
            self.block.reasons.put(rows[lasting & fits & silent], str(error))
            return
        column = np.broadcast_to(value, rows.shape)
        if not one._lasts(name):
            column = np.where(fits, column, np.nan)
        self.block.numbers[name][rows[lasting]] = column[lasting]


def block(question: Question, start: int, stop: int) -> Block:
    """Answer the rows of a sweep from `start` to `stop`.

    Raises
    ------
    MlsimError
        If something is wrong that is not of one row, such as an unknown name.
    """
    import numpy as np

    size = stop - start
    words = [name for name in question.results if name.rpartition(".")[2] == BOTTLENECK]
    found = Block(
        {name: np.full(size, np.nan) for name in question.results if name not in words},
        {name: Words(np.full(size, -1, np.int32)) for name in words},
        np.zeros(size, dtype=bool),
        Words(np.zeros(size, np.int32), [""]),
    )
    for choice, first, last in question.parts(start, stop):
        rows = np.arange(first - start, last - start)
        fill = _FILLERS.get(question.door.name, Rows)
        if fill is TrainingRows and not runs_as_arrays(question, choice):
            fill = OneByOne
        fill(question, found, choice).fill(question.numbers(first, last), rows)
    return found


_FILLERS: Mapping[str, type[Rows]] = {"serve": ServingRows, "train": TrainingRows}


def asked(question: Question, start: int, stop: int) -> dict[str, Any]:
    """Return the columns of what was asked: arrays of numbers, or of words as `Words`."""
    return {axis.name: _column(question, axis, start, stop) for axis in question.axes}


def _column(question: Question, axis: Axis, start: int, stop: int) -> Any:
    import numpy as np

    def spread(values: Any) -> Any:
        return question.spread(axis, values, start, stop)

    if axis.array:
        values = axis.entries
        whole = values.dtype.kind == "f" and bool((values == np.floor(values)).all())
        counts = whole and (values < 2**53).all() and axis.name in question.door.whole
        return spread(values.astype(np.int64) if counts else values)
    labels = [label(each) for each in axis.entries]
    for kind, dtype in ((bool, bool), (int, np.int64), ((int, float), float)):
        if all(isinstance(each, kind) and (kind is bool or each is not True) for each in labels):
            return spread(np.array(labels, dtype=dtype))
    # Two devices may have one name.
    words = [str(each) for each in labels]
    unique = list(dict.fromkeys(words))
    codes = np.array([unique.index(each) for each in words], dtype=np.int32)
    return Words(spread(codes), unique)


def as_table(question: Question, blocks: Sequence[Block]) -> pandas.DataFrame:
    """Return all rows as a tidy table, with units and notes in `attrs`."""
    library = need("pandas", "a sweep", "arrays")
    found = {
        name: _categories(library, column) if isinstance(column, Words) else column
        for name, column in asked(question, 0, question.rows).items()
    }
    for name in question.results:
        if name in blocks[0].words:
            found[name] = _categories(library, _joined([each.words[name] for each in blocks]))
        else:
            found[name] = _below([each.numbers[name] for each in blocks])
    found["feasible"] = _below([each.feasible for each in blocks])
    found["reason"] = _categories(library, _joined([each.reasons for each in blocks]))
    table: pandas.DataFrame = library.DataFrame(found, copy=False)
    table.attrs |= {**question.notes, UNITS: question.units}
    if borrowed := {name: words for each in blocks for name, words in each.borrowed.items()}:
        table.attrs[BORROWED] = borrowed
    return table


def _below(parts: Sequence[Any]) -> Any:
    """Put columns of numbers below one another."""
    import numpy as np

    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _joined(parts: Sequence[Words]) -> Words:
    """Put columns of words below one another."""
    import numpy as np

    if len(parts) == 1:
        return parts[0]
    labels = list(dict.fromkeys(label for part in parts for label in part.labels))
    place = {label: index for index, label in enumerate(labels)}
    found = [
        np.array([*(place[label] for label in part.labels), -1], dtype=np.int32)[part.codes]
        for part in parts
    ]
    return Words(_below(found), labels)


def _categories(library: Any, words: Words) -> Any:
    kind = library.CategoricalDtype(words.labels)
    return library.Categorical.from_codes(words.codes, dtype=kind)
