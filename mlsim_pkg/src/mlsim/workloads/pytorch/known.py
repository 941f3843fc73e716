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
        # Of memory that was written over in parts: what each part holds, by where it lies.
        self._parts: dict[int, dict[tuple[int, int], Value]] = {}
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
        found = self._before_parts(tensor)
        parts = self.parts(tensor)
        if parts:
            newest = max(parts, key=lambda each: each.order)
            return Value(tensor, newest.record, found.uses, found.mask, newest.order)
        return found

    def _before_parts(self, tensor: torch.Tensor) -> Value:
        found = self._values.get(id(tensor)) or Value(tensor)
        over = self._written.get(_storage(tensor))
        if over is not None and over.order > found.order:
            return Value(tensor, over.record, found.uses, found.mask, over.order)
        return found

    def parts(self, tensor: torch.Tensor) -> list[Value]:
        """Return what was written over parts of a tensor's memory since it was computed."""
        start, end = _span(tensor)
        since = self._before_parts(tensor).order
        return [
            each
            for (first, last), each in self._parts.get(_storage(tensor), {}).items()
            if each.order > since and first < end and start < last
        ]

    def know_view(self, view: torch.Tensor, source: torch.Tensor) -> None:
        """Keep of a view what is known of the tensor whose memory it shows, or a part of it."""
        if not self.parts(source) or _storage(view) != _storage(source):
            value = self.value(source)
            self.know(view, value.record, value.uses, value.mask)
            return
        # It is as old as what was there before, so that it shows what was written since.
        value = self._before_parts(source)
        self._values[id(view)] = Value(view, value.record, value.uses, value.mask, value.order)

    def rest(self, tensor: torch.Tensor) -> tuple[Record | None, int]:
        """Return what computed a tensor's numbers that were not written over, and how many."""
        written = sum(each.tensor.numel() for each in self.parts(tensor))
        return self._before_parts(tensor).record, max(int(tensor.numel()) - written, 0)

    def wrote_over(self, tensor: torch.Tensor, record: Record) -> None:
        """Note that all that shares a tensor's memory now holds what a record computed.

        If it is a part of what another record computed, the rest is left as it was.
        """
        before = self.value(tensor).record
        self.know(tensor, record)
        place, value = _storage(tensor), self._values[id(tensor)]
        memory = tensor.untyped_storage().nbytes() // tensor.element_size()
        if before is not None and memory > tensor.numel():
            self._parts.setdefault(place, {})[_span(tensor)] = value
        else:
            self._written[place] = value

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


def is_same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tell whether two tensors are the same numbers in the same place."""
    return (
        _storage(one) == _storage(other)
        and one.storage_offset() == other.storage_offset()
        and one.shape == other.shape
        and one.stride() == other.stride()
    )


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Return where in its memory a tensor's numbers begin and end."""
    start = int(tensor.storage_offset())
    sides = zip(tensor.shape, tensor.stride(), strict=True)
    return start, start + 1 + sum((size - 1) * stride for size, stride in sides)


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
