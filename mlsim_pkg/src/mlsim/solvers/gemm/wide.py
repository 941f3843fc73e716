"""A question whose operators differ from point to point: their columns are arrays themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsim.solvers.question import Question
from mlsim.workloads.model import OperatorTable

# Points that are computed at a time: with a dozen operators, a few megabytes an array.
POINTS = 16384


class WideQuestion(Question):
    """A question with columns of the shape (operators, points) beside those of its table.

    Parameters
    ----------
    wide
        Such columns by name; points in one row, whatever the shape of the question.

    Raises
    ------
    UnreachableError
        When it is asked for what no equation leads to.
    """

    def __init__(self, *positional: Any, wide: Mapping[str, Any], **named: Any) -> None:
        super().__init__(*positional, **named)
        self.wide = wide

    def evaluate(self, *wanted: str, table: OperatorTable[Any] | None = None) -> dict[str, Any]:
        """Compute quantities, as `Question.evaluate` does."""
        if not self.wide:
            return super().evaluate(*wanted, table=table)
        import numpy as np

        steps, size = self.plan(*wanted), int(np.prod(self.shape))
        flat = {
            name: np.broadcast_to(value, self.shape).reshape(-1)
            for name, value in self.known.items()
            if getattr(value, "ndim", 0)
        }
        fixed = {**self.known, **self.table.columns_2d}
        parts: dict[str, list[Any]] = {name: [] for name in wanted}
        for start in range(0, size, POINTS):
            block = slice(start, min(size, start + POINTS))
            values = {name: value[block] for name, value in flat.items()}
            values |= {name: value[..., block] for name, value in self.wide.items()}
            known = {**fixed, **values}
            known |= steps.compute(known)
            for name in wanted:
                parts[name].append(_spread(np, known[name], block))
        joined = {name: np.concatenate(each, axis=-1) for name, each in parts.items()}
        return {name: each.reshape(*each.shape[:-1], *self.shape) for name, each in joined.items()}

    def plan(self, *wanted: str) -> Any:
        """Return the equations that lead to what is wanted, in order."""
        from mlsim.equations import plan

        return plan(self.equations, (*self.known, *self.table.names, *self.wide), wanted)


def _spread(np: Any, value: Any, block: slice) -> Any:
    """Return a value for each point of a block, where one holds for all."""
    points = block.stop - block.start
    value = np.asarray(value)
    if value.ndim and value.shape[-1] == points:
        return value
    leading = value.shape[:-1] if value.ndim > 1 else ()
    return np.broadcast_to(value, (*leading, points))
