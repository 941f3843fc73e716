"""What is known of tensors while a module runs: which layer computed them, of which weights."""

from __future__ import annotations

from typing import Any

import torch

from mlsim.workloads.pytorch.records import Record, Use, Value


class Known:
    """What is known of each tensor, and of memory that was written over.

    Parameters
    ----------
    batch
        Samples in the input.
    """

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.batch = batch
        self._values: dict[int, Value] = {}
        self._written: dict[int, Value] = {}
        self._order = 0

    def know(
        self,
        tensor: torch.Tensor,
        record: Record | None = None,
        uses: tuple[Use, ...] = (),
        mask: torch.Tensor | None = None,
    ) -> None:
        """Keep what is known of a tensor."""
        self._order += 1
        self._values[id(tensor)] = Value(tensor, record, uses, mask, self._order)

    def value(self, tensor: torch.Tensor) -> Value:
        """Return what is known of a tensor; a constant, if nothing is."""
        found = self._values.get(id(tensor)) or Value(tensor)
        over = self._written.get(_storage(tensor))
        if over is not None and over.order > found.order:
            return Value(tensor, over.record, found.uses, found.mask, over.order)
        return found

    def wrote_over(self, tensor: torch.Tensor, record: Record) -> None:
        """Note that all that shares a tensor's memory now holds what a record computed."""
        self.know(tensor, record)
        self._written[_storage(tensor)] = self._values[id(tensor)]

    def is_data(self, *tensors: Any) -> bool:
        """Tell whether any of these is a tensor that depends on the input."""
        return any(isinstance(each, torch.Tensor) and self.value(each).is_data for each in tensors)

    def elements_once(self, tensor: torch.Tensor) -> int:
        """Return a tensor's elements for one sample, if they grow with the batch."""
        return int(tensor.numel()) // self.batch

    def uses(self, *tensors: Any, role: str = "") -> tuple[Use, ...]:
        """Return the parameters that tensors are made of, in one role if it is named."""
        found = [
            use
            for each in tensors
            if isinstance(each, torch.Tensor)
            for use in self.value(each).uses
        ]
        if role:
            found = [Use(use.parameter, use.size, use.read, role) for use in found]
        return tuple(found)


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
