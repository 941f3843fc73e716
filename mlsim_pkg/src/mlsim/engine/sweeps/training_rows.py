"""Rows of a training run: batches, tokens, prices and failures are computed together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsim.engine.sweeps.question import Question
from mlsim.engine.sweeps.rows import REFUSED, TOO_LARGE, OneByOne
from mlsim.errors import UnknownNameError
from mlsim.solvers import question as asked_of
from mlsim.solvers.training.checks import Asked, comes_out_even, parallelism_of
from mlsim.workloads.model import Network

_KNOWN_AS = {"tokens": "training_tokens", "price": "device_price"}
_FAILURES = "mean_time_to_failure"


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
        arrays = {_KNOWN_AS.get(name, name): values for name, values in numbers.items()}
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
            if _FAILURES in many.known:
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


def _picked(numbers: Mapping[str, Any], which: Any) -> dict[str, Any]:
    return {name: values[which] for name, values in numbers.items()}
