"""Rows of a service: sequences that are too long for the model are refused before the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsim.engine.sweeps.rows import REFUSED, Rows
from mlsim.solvers.serving.checks import OUTPUT_TOKENS, too_long

_PROMPT = 512


class ServingRows(Rows):
    """Fills rows of a language model that is served."""

    def fill(self, numbers: Mapping[str, Any], rows: Any) -> None:
        """Answer rows; what is longer than the model reads is refused by its length."""
        import numpy as np

        model = self.choice.get("model")
        context = getattr(model, "context", None)
        if not numbers or context is None:
            super().fill(numbers, rows)
            return
        output = OUTPUT_TOKENS if self.choice["model"].decoder else 0
        asked = numbers.get("prompt_tokens", self.choice.get("prompt_tokens") or _PROMPT)
        written = numbers.get("output_tokens", self.choice.get("output_tokens") or output)
        total = np.broadcast_to(asked + written, rows.shape)
        long = total > context
        if long.all() or not long.any():
            self._split(numbers, rows, total, long)
            return
        self._split(_picked(numbers, long), rows[long], total[long], long[long])
        self._split(_picked(numbers, ~long), rows[~long], total[~long], long[~long])

    def _split(self, numbers: Mapping[str, Any], rows: Any, total: Any, long: Any) -> None:
        if not long.any():
            super().fill(numbers, rows)
            return
        import numpy as np

        # Whatever else is wrong of all of them, the door says first.
        first = {name: values[:1] for name, values in numbers.items()}
        words = self._refusal(first)
        if words != too_long(self.choice["model"], float(total[0])):
            super().fill(numbers, rows)
            return
        lengths, which = np.unique(total, return_inverse=True)
        for index, length in enumerate(lengths):
            self.refuse(rows[which == index], too_long(self.choice["model"], float(length)))

    def _refusal(self, numbers: Mapping[str, Any]) -> str:
        try:
            self.ask(numbers, alone=True)
        except REFUSED as error:
            return self.reason(error)
        return ""


def _picked(numbers: Mapping[str, Any], which: Any) -> dict[str, Any]:
    return {name: values[which] for name, values in numbers.items()}
