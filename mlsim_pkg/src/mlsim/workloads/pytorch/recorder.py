"""Runs a shell of a module and records each layer, by PyTorch's own names of operations.

What depends on the input has a shape only. What does not, such as a causal mask, is really
computed, so that a module may branch on it. Nothing of size is: weights have no numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from mlsim.errors import UnsupportedLayerError
from mlsim.workloads.pytorch.calls import DEPENDS, SHAPED_LIKE, Call, is_composite, is_large
from mlsim.workloads.pytorch.known import Known
from mlsim.workloads.pytorch.records import WEIGHTS, Names, Record, Use, Value, tensors_in
from mlsim.workloads.pytorch.shell import stand_in

Handler = Callable[["Recorder", Call], None]


class Recorder(Known, TorchDispatchMode):  # type: ignore[misc]
    """Records what a shell of a module does.

    Parameters
    ----------
    module
        The shell.
    batch
        Samples in its input.
    handlers
        What counts which operation, by its name.
    products
        Those that are products even of what does not depend on the input.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        batch: int,
        handlers: dict[str, Handler],
        products: frozenset[str],
    ) -> None:
        super().__init__(batch)
        self.module = module
        self.handlers, self.products = handlers, products
        self.records: list[Record] = []
        # What is left of a record whose memory was written over in part, by how much it is.
        self._rests: dict[tuple[Record, int], Record] = {}
        self.names = Names()
        # Modules that run, each with how much was recorded before.
        self.path: list[tuple[str, torch.nn.Module, int]] = [("", module, 0)]
        self.buffers = {id(each) for _, each in module.named_buffers()}
        self.parameters: dict[str, int] = {}
        for name, parameter in module.named_parameters():
            self.parameters[name] = parameter.numel()
            use = Use(name, parameter.numel(), parameter.numel(), WEIGHTS)
            self.know(parameter, uses=(use,))

    # Recording.

    @property
    def place(self) -> str:
        """Path of the module that runs."""
        return self.path[-1][0]

    def add(
        self,
        call: Call,
        kind: str,
        function: str = "",
        *,
        inputs: Any = None,
        out: torch.Tensor | None = None,
        uses: tuple[Use, ...] = (),
        name: str = "",
        **told: Any,
    ) -> Record:
        """Add a record of a call; its inputs are the tensors that it reads, unless said."""
        out = call.first if out is None else out
        read = tensors_in(list(call.named.values()) if inputs is None else inputs)
        sources = [one for each in read for one in self._sources(each)]
        record = Record(
            name="",
            base="",
            path=self.place,
            kind=kind,
            function=function,
            shape=tuple(out.shape),
            inputs=list(dict.fromkeys(sources)),
            uses=list(uses),
            in_place=call.in_place,
            element_bytes=0 if out.is_floating_point() else out.element_size(),
            **told,
        )
        self._name(record, name or function or kind)
        self.records.append(record)
        for each in tensors_in(call.out):
            if call.in_place:
                self.wrote_over(each, record)
            else:
                self.know(each, record)
        return record

    def _sources(self, tensor: torch.Tensor) -> list[Record]:
        """Return the record that a tensor is, if any; several, if parts were written over."""
        if not self.value(tensor).is_data:
            return []
        written = [self._source(each.tensor) for each in self.parts(tensor)]
        if not written:
            return [self._source(tensor)]
        if max(each.elements for each in written) > tensor.numel():
            return [self._source(tensor)]  # it is a part of what was written
        record, left = self.rest(tensor)
        if record is None or not left:
            return written
        if (record, left) not in self._rests:
            self._rests[record, left] = self._part(record, (left,))
        return [self._rests[record, left], *written]

    def _source(self, tensor: torch.Tensor) -> Record:
        """Return the record that a tensor is, or a part of one as a shape of its own."""
        record = self.value(tensor).record
        assert record is not None
        if tensor.numel() >= record.elements:
            return record
        part = self._part(record, tuple(tensor.shape))
        self.know(tensor, part)
        return part

    def _part(self, record: Record, shape: tuple[int, ...]) -> Record:
        """Record a part of what a record computed, which is no layer."""
        part = Record(
            name=self.names.unique(f"{record.name}_part"),
            base=record.base,
            path=self.place,
            kind="reshape",
            function="part",
            shape=shape,
            inputs=[record],
            element_bytes=record.element_bytes,
        )
        self.records.append(part)
        return part

    def _name(self, record: Record, what: str) -> None:
        """Name a record after its module, its parameter, or what it reads."""
        place, module, start = self.path[-1]
        own = [use.parameter for use in record.uses if use.parameter.rpartition(".")[0] == place]
        alone = place and not any(True for _ in module.children())
        started = any(each.kind != "reshape" for each in self.records[start:])
        if record.kind == "attention":
            record.base = f"{place}.attention" if place else "attention"
        elif alone and not started:
            record.base = place
        elif own and not alone:
            record.base = _parameter_name(own[0])
        else:
            before = record.inputs[0].base if record.inputs else place
            inside = not place or before == place or before.startswith(f"{place}.")
            record.base = before if inside else place
            named = f"{record.base}_{what}" if record.base else what
            record.name = self.names.unique(named.replace(" ", "_"))
            return
        record.name = self.names.unique(record.base)

    # Running.

    @contextmanager
    def inside(self, path: str, module: torch.nn.Module) -> Iterator[None]:
        """Record as being within a module."""
        self.path.append((path, module, len(self.records)))
        yield
        # Not after an error, so that it is known where it was.
        self.path.pop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        read = tensors_in((args, kwargs))
        values = [self.value(each) for each in read]
        data = any(each.is_data for each in values)
        operation = func._schema.name.partition("::")[2]
        if data and (operation in DEPENDS or self._chooses(operation, args)):
            raise self.refusal(
                operation,
                "its result depends on numbers that only the input has",
                "Give the module without that branch, or as layers that always run.",
            )
        name = operation.rstrip("_")
        if data and name not in self.handlers and is_composite(func):
            with self:
                return func.decompose(*args, **kwargs)
        out = self._run(func, args, kwargs, read, values)
        if name in SHAPED_LIKE:
            return out
        if data:
            self._record(Call(func, args, kwargs, out), values)
        elif any(each.uses for each in values):
            self._learned(Call(func, args, kwargs, out), values)
        return out

    def _chooses(self, operation: str, args: Any) -> bool:
        """Tell whether an operation chooses by a mask that is made of the input."""
        if not operation.startswith("index"):
            return False
        masks = [each for each in tensors_in(args[1:2]) if each.dtype is torch.bool]
        return self.is_data(*masks)

    def _run(
        self, func: Any, args: Any, kwargs: Any, read: list[torch.Tensor], values: list[Value]
    ) -> Any:
        """Run an operation: for its shape, if anything that it reads has a shape only."""
        name = func._schema.name.partition("::")[2]
        shaped = any(each.is_meta for each in read) or any(each.is_data for each in values)
        if name in SHAPED_LIKE or not read:
            shaped = False
        device = torch.device("meta" if shaped else "cpu")

        def moved(each: Any) -> Any:
            if isinstance(each, torch.device):
                return device
            if shaped and isinstance(each, torch.Tensor) and not each.is_meta:
                return self._index(func, each)
            return each

        args, kwargs = tree_map(moved, (args, kwargs))
        if name in SHAPED_LIKE or not read:
            if any(each.name == "device" for each in func._schema.arguments):
                kwargs["device"] = device
            if is_large(func, args, read):
                kwargs["device"] = torch.device("meta")
        try:
            out = func(*args, **kwargs)
        except NotImplementedError as error:
            why = "PyTorch can't tell its shape without running it"
            raise self.refusal(name, why, "Replace it by layers that are known.") from error
        if shaped and any(each.alias_info is not None for each in func._schema.returns):
            # What is written over stays the tensor that it was.
            write = func._schema.returns[0].alias_info
            if write is not None and write.is_write and read and not read[0].is_meta:
                return read[0]
        return out

    def _index(self, func: Any, tensor: torch.Tensor) -> torch.Tensor:
        """Return a stand-in; of a constant mask by which is chosen, one as long as its choice."""
        if func._schema.name.startswith("aten::index") and tensor.dtype is torch.bool:
            if self.value(tensor).is_data or tensor.dim() != 1:
                raise self.refusal("index", "what it chooses depends on numbers", "")
            return torch.empty(int(tensor.sum()), dtype=torch.int64, device="meta")
        return stand_in(tensor)

    def _record(self, call: Call, values: list[Value]) -> None:
        handler = self.handlers.get(call.name)
        if handler is None:
            handler = self._other(call)
        if handler is None:
            raise self.refusal(
                call.operation,
                "nobody has told what it computes",
                "Replace it by layers that are known, or leave it out and add its cost by hand.",
            )
        handler(self, call)

    def _other(self, call: Call) -> Handler | None:
        """Return what counts an operation of which only the sort is known."""
        returned = [each.alias_info for each in call.func._schema.returns]
        if any(each is not None and not each.is_write for each in returned):
            return self.handlers["view"]
        if torch.Tag.pointwise in call.func.tags:
            return self.handlers["pointwise"]
        return None

    def _learned(self, call: Call, values: list[Value]) -> None:
        """Follow what is made of parameters alone, such as a slice of a table of positions."""
        if call.name in self.products:
            self.handlers[call.name](self, call)
            return
        masks = [each.mask for each in values if each.mask is not None]
        masks += [
            each.tensor
            for each in values
            if not each.uses and not each.tensor.is_meta and call.name in ("add", "where")
        ]
        uses = dict.fromkeys(use for each in values for use in each.uses)
        for out in tensors_in(call.out):
            size = out.numel()
            cut = tuple(Use(use.parameter, use.size, min(use.read, size), use.role) for use in uses)
            self.know(out, uses=cut, mask=masks[0] if masks else None)

    def refusal(self, operation: str, why: str, advice: str) -> UnsupportedLayerError:
        """Make the error for what can't be counted."""
        place, module, _ = self.path[-1]
        where = f"{place} ({type(module).__name__})" if place else type(module).__name__
        return UnsupportedLayerError(
            f"{where}: the operation {operation!r} can't be counted: {why}. {advice}".rstrip()
        )


def _parameter_name(parameter: str) -> str:
    place, _, last = parameter.rpartition(".")
    if last in ("weight", "bias"):
        return place
    return parameter.removesuffix("_weight").removesuffix("_bias")
