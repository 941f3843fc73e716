"""The rows of a sweep: asked together where equations allow, refused one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsim.engine.sweeps.doors import quantity_of
from mlsim.engine.sweeps.entries import label
from mlsim.engine.sweeps.question import BOTTLENECK, Question
from mlsim.errors import (
    DoesNotFitError,
    InvalidValueError,
    MlsimError,
    NotMeasuredError,
    UnknownNameError,
    UnreachableError,
    UnsupportedPrecisionError,
    WrongKindError,
    unknown_name,
)
from mlsim.quantities import term
from mlsim.solvers.answer import COMPUTE_BOUND, DOES_NOT_FIT, MEMORY_BOUND
from mlsim.solvers.inputs import BARE
from mlsim.solvers.noted import told
from mlsim.values import quantity

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
        self.codes[rows] = self.labels.index(word)


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of a sweep from `start` to `stop`, as columns.

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

    start: int
    stop: int
    numbers: dict[str, Any]
    words: dict[str, Words]
    feasible: Any
    reasons: Words
    refused: dict[str, type[MlsimError]] = field(default_factory=dict)
    # By the name of the hardware, which constants were measured elsewhere, and where.
    borrowed: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.stop - self.start


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
        given = {
            name: _given(values, self.question.units[name], alone=alone)
            for name, values in numbers.items()
        }
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
                return f"no {label_of(self.choice['precision'])} peak on record"
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

        held = fits_in_memory(answer) if self.question.door.checks_memory else True
        fits = np.broadcast_to(np.asarray(held), rows.shape)
        self.block.feasible[rows] = fits
        if not fits.all():
            self.block.reasons.put(rows[~fits], TOO_LARGE)
            self.block.refused[TOO_LARGE] = DoesNotFitError
        self._together(answer)
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
            self.block.borrowed[where] = told(lent)

    def _together(self, answer: Any) -> None:
        """Compute the results of a network in one go."""
        if self.question.door.name != "solve" or not answer.shape:
            return
        wanted = [each for each in self.question.results if each in answer.names]
        answer._values |= answer.question.evaluate(*wanted, "memory_free")

    def _shares(self, part: Any) -> bool:
        """Tell whether one share of the time says what binds."""
        return self.question.door.name == "solve" and not part.configuration.calibrated

    def _write_one(self, answer: Any, name: str, rows: Any, fits: Any) -> None:
        import numpy as np

        part, inner = _part(answer, name)
        if inner == BOTTLENECK and self._shares(part):
            # Comparing words takes longer than computing the shares.
            most = np.broadcast_to(part.value("memory_bound_share"), rows.shape) > 0.5
            self.block.words[name].put(rows[fits & most], MEMORY_BOUND)
            self.block.words[name].put(rows[fits & ~most], COMPUTE_BOUND)
            return
        if inner == BOTTLENECK:
            words = np.broadcast_to(np.asarray(part.bottleneck), rows.shape)
            for word in dict.fromkeys(words[fits].tolist()):
                self.block.words[name].put(rows[fits & (words == word)], word)
            return
        value = part.value(inner)
        column = np.broadcast_to(_one_each(name, value, rows), rows.shape)
        if not fits.all() and not part._lasts(inner):
            column = np.where(fits, column, np.nan)
        self.block.numbers[name][rows] = column


class OneByOne(Rows):
    """Asks for each row alone."""

    def fill(self, numbers: Mapping[str, Any], rows: Any) -> None:
        """Answer rows one after the other."""
        for index in range(len(rows)):
            part = slice(index, index + 1)
            super().fill({name: values[part] for name, values in numbers.items()}, rows[part])


def fits_in_memory(answer: Any) -> Any:
    """Tell whether what an answer speaks of fits in memory; True where nobody can say."""
    try:
        return answer.feasible
    except UnreachableError:
        return True


def _given(values: Any, unit: str, *, alone: bool) -> Any:
    """Return numbers as a door takes them, with their unit; alone, the first as a number."""
    found = float(values[0]) if alone else values
    if unit not in BARE:
        return quantity(found, unit)
    return int(found) if alone and found.is_integer() else found


def _part(answer: Any, name: str) -> tuple[Any, str]:
    """Return the answer that a result is of, such as a phase, and its name there."""
    phase, dot, inner = name.partition(".")
    if not dot:
        return answer, name
    if phase not in _PARTS or not hasattr(type(answer), phase):
        raise unknown_name("part of this answer", phase, _PARTS)
    return getattr(answer, phase), inner


_PARTS = ("prefill", "decode", "low", "high")


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


def label_of(precision: Any) -> str:
    """Return the name of a number format."""
    return precision if isinstance(precision, str) else str(precision.name)
