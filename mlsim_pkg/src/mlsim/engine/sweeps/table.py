"""Blocks of a sweep as one table of pandas, and what a table says beside its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsim.engine.sweeps.question import Axis, Question
from mlsim.engine.sweeps.rows import Block, Words
from mlsim.errors import need

if TYPE_CHECKING:
    import pandas

# Of a table: the unit of each column that has one.
UNITS = "units"
BORROWED = "borrowed"


def asked(question: Question, start: int, stop: int) -> dict[str, Any]:
    """Return the columns of what was asked: arrays of numbers, or of words as `Words`."""
    return {axis.name: _column(question, axis, start, stop) for axis in question.axes}


def _column(question: Question, axis: Axis, start: int, stop: int) -> Any:
    import numpy as np

    places = question.places(axis, start, stop)
    if axis.array:
        values = axis.entries
        whole = values.dtype.kind == "f" and bool((values == np.floor(values)).all())
        counts = whole and (values < 2**53).all() and axis.name in question.door.whole
        return (values.astype(np.int64) if counts else values)[places]
    labels = axis.labels()
    for kind, dtype in ((bool, bool), (int, np.int64), ((int, float), float)):
        if all(isinstance(each, kind) and (kind is bool or each is not True) for each in labels):
            return np.array(labels, dtype=dtype)[places]
    # Two devices may have one name.
    words = [str(each) for each in labels]
    unique = list(dict.fromkeys(words))
    codes = np.array([unique.index(each) for each in words], dtype=np.int32)
    return Words(codes[places], unique)


def as_table(question: Question, blocks: Sequence[Block]) -> pandas.DataFrame:
    """Return all rows as a tidy table, with units and notes in `attrs`."""
    library = need("pandas", "a sweep", "arrays")
    import numpy as np

    found = {
        name: _categories(library, column) if isinstance(column, Words) else column
        for name, column in asked(question, 0, question.rows).items()
    }
    for name in question.results:
        if name in blocks[0].words:
            found[name] = _categories(library, _joined([each.words[name] for each in blocks]))
        else:
            found[name] = np.concatenate([each.numbers[name] for each in blocks])
    found["feasible"] = np.concatenate([each.feasible for each in blocks])
    found["reason"] = _categories(library, _joined([each.reasons for each in blocks]))
    table: pandas.DataFrame = library.DataFrame(found, copy=False)
    table.attrs |= {**question.notes, UNITS: question.units}
    note_borrowed(table, {name: told for each in blocks for name, told in each.borrowed.items()})
    return table


def note_borrowed(table: pandas.DataFrame, found: Mapping[str, str]) -> None:
    """Note, by the name of the hardware, whose constants its rows have, where not its own."""
    if found:
        table.attrs[BORROWED] = dict(found)


def _joined(parts: Sequence[Words]) -> Words:
    """Put columns of words below one another."""
    import numpy as np

    labels = list(dict.fromkeys(label for part in parts for label in part.labels))
    place = {label: index for index, label in enumerate(labels)}
    found = [
        np.array([*(place[label] for label in part.labels), -1], dtype=np.int32)[part.codes]
        for part in parts
    ]
    return Words(np.concatenate(found), labels)


def _categories(library: Any, words: Words) -> Any:
    kind = library.CategoricalDtype(words.labels)
    return library.Categorical.from_codes(words.codes, dtype=kind)
