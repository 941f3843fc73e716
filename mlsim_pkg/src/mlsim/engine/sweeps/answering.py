"""A block of a sweep, answered: each choice by what knows its door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsim.engine.sweeps.question import BOTTLENECK, Question
from mlsim.engine.sweeps.rows import Block, OneByOne, Rows, Words
from mlsim.engine.sweeps.serving_rows import ServingRows
from mlsim.engine.sweeps.training_rows import TrainingRows, runs_as_arrays


def block(question: Question, start: int, stop: int) -> Block:
    """Answer the rows of a sweep from `start` to `stop`.

    Raises
    ------
    MlsimError
        If something is wrong that is not of one row, such as an unknown name.
    """
    import numpy as np

    size = stop - start
    named = {name: name.rpartition(".")[2] == BOTTLENECK for name in question.results}
    found = Block(
        start,
        stop,
        {name: np.full(size, np.nan) for name, words in named.items() if not words},
        {name: Words(np.full(size, -1, np.int32)) for name, words in named.items() if words},
        np.zeros(size, dtype=bool),
        Words(np.zeros(size, np.int32), [""]),
    )
    for choice, first, last in question.parts(start, stop):
        rows = np.arange(first - start, last - start)
        _filler(question, choice)(question, found, choice).fill(question.numbers(first, last), rows)
    return found


def _filler(question: Question, choice: Mapping[str, Any]) -> type[Rows]:
    """Return what answers the rows of a choice."""
    if question.door.name == "train":
        return TrainingRows if runs_as_arrays(question, choice) else OneByOne
    if question.door.name == "serve":
        return ServingRows
    return Rows
