"""Runs a shell of a module and records each layer, by PyTorch's own names of operations.

What depends on the input has a shape only. What does not, such as a causal mask, is really
computed, so that a module may branch on it. Nothing of size is: weights have no numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from mlsim import records
from mlsim.errors import UnsupportedLayerError

# In which of a node's counts the numbers of a parameter belong.
WEIGHTS, BIASES, TABLE = "weights", "biases", "table"
# Numbers that a module holds without learning them are kept as they are up to so many.
MOST_KEPT = 2**22


@dataclass(frozen=True)
class Use:
    """A parameter that a layer reads: which, how many of its numbers, and in which role."""

    parameter: str
    size: int
    read: int
    role: str


@dataclass(frozen=True)
class Value:
    """What is known of a tensor: the record that computed it, if it depends on the input.

    `uses` are the parameters that it is made of otherwise, such as rows of a table of
    positions; `mask` is a constant that was added to it, such as minus infinity for what
    attention must not see. `order` counts what was computed.
    """

    tensor: torch.Tensor
    record: Record | None = None
    uses: tuple[Use, ...] = ()
    mask: torch.Tensor | None = None
    order: int = 0

    @property
    def is_data(self) -> bool:
        """Whether it depends on the input."""
        return self.record is not None


@dataclass(eq=False)
class Record:
    """One layer as it was seen; see `Node` for what it is made into."""

    name: str
    base: str
    path: str
    kind: str
    shape: tuple[int, ...]
    inputs: list[Record] = field(default_factory=list)
    function: str = ""
    uses: list[Use] = field(default_factory=list)
    buffers: int = 0
    multiply_adds: int = 0
    masked_multiply_adds: int = 0
    window: int = 0
    outputs: int = 0
    chosen: tuple[int, int] | None = None
    read: int | None = None
    kept_bytes: int = 0
    element_bytes: int = 0
    in_place: bool = False
    # A constant that is added or multiplied, of which attention may be made.
    mask: torch.Tensor | None = None

    @property
    def elements(self) -> int:
        """Numbers in its output."""
        return prod(self.shape)


class Names:
    """Names that are given once: a second of the same is numbered."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def unique(self, name: str) -> str:
        """Return a name, with a number if it was given before."""
        found, number = name, 1
        while found in self._given:
            number += 1
            found = f"{name}_{number}"
        self._given.add(found)
        return found

    def again(self, name: str, instead_of: Iterable[Record]) -> str:
        """Return a name for what takes the place of records, whose names are free again."""
        self._given.difference_update(each.name for each in instead_of)
        return self.unique(name)


def readers_of(records: Iterable[Record]) -> dict[Record, list[Record]]:
    """Return for each record those that read it."""
    found: dict[Record, list[Record]] = defaultdict(list)
    for record in records:
        for source in record.inputs:
            found[source].append(record)
    return found


def tensors_in(values: Any) -> list[torch.Tensor]:
    """Return the tensors in nested arguments, in their order."""
    return [each for each in tree_leaves(values) if isinstance(each, torch.Tensor)]


def stand_in(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape, layout and type that holds no numbers."""
    return torch.empty_strided(
        tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta"
    )


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

    def learned(self, *tensors: Any, bias: Any = None) -> tuple[Use, ...]:
        """Return the parameters of which matrices and an added bias are made, in these roles."""
        return (*self.uses(*tensors, role=WEIGHTS), *self.uses(bias, role=BIASES))


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


# PyTorch's operations by name, and what is done with them.
OPERATIONS = records.load(records.DATA / "pytorch.toml")
SHAPED_LIKE = frozenset(OPERATIONS.data["shaped_like"].split())
DEPENDS = frozenset(OPERATIONS.data["depends"].split())


class Call:
    """One operation that a module does: its arguments by name, and what came out."""

    def __init__(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        schema = func._schema
        given = {each.name: each.default_value for each in schema.arguments}
        given |= {each.name: arg for each, arg in zip(schema.arguments, args, strict=False)}
        self.named: dict[str, Any] = {**given, **kwargs}
        self.operation = schema.name.partition("::")[2]
        # An operation with an underscore at its end writes over its input.
        self.in_place = schema.name.endswith("_") and not schema.name.endswith("__")
        self.name = self.operation.rstrip("_") if self.in_place else self.operation
        self.func, self.out = func, out

    def __getitem__(self, name: str) -> Any:
        return self.named.get(name)

    @cached_property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors that it reads."""
        return tensors_in(list(self.named.values()))

    @property
    def first(self) -> torch.Tensor:
        """The first tensor that comes out."""
        return tensors_in(self.out)[0]


def is_view(func: Any) -> bool:
    """Tell whether an operation shows its input in another shape."""
    returned = [each.alias_info for each in func._schema.returns]
    return any(each is not None and not each.is_write for each in returned)


def is_large(func: Any, args: Any, read: list[torch.Tensor]) -> bool:
    """Tell whether a new tensor would be too large to be filled."""
    sizes = [each for each in args if isinstance(each, (list, tuple, torch.Size))]
    count = 1
    for each in sizes[0] if sizes else ():
        if not isinstance(each, int):
            return False
        count *= each
    if not sizes and read:
        count = read[0].numel()
    return count > MOST_KEPT


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
        call: Call | torch.Tensor,
        kind: str,
        function: str = "",
        *,
        inputs: Any = None,
        uses: tuple[Use, ...] = (),
        **fields: Any,
    ) -> Record:
        """Add a record of a call, or of the module that put out a tensor.

        Its inputs are the tensors that it reads, unless said.
        """
        if isinstance(call, Call):
            outs, in_place, read = tensors_in(call.out), call.in_place, call.tensors
        else:
            outs, in_place, read = [call], False, []
        out = outs[0]
        read = read if inputs is None else tensors_in(inputs)
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
            in_place=in_place,
            element_bytes=0 if out.is_floating_point() else out.element_size(),
            **fields,
        )
        self._name(record, function or kind)
        self.records.append(record)
        for each in outs:
            if in_place:
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
            place, _, last = own[0].rpartition(".")
            plain = last in ("weight", "bias")
            record.base = place if plain else own[0].removesuffix("_weight").removesuffix("_bias")
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
        if data and name not in self.handlers and not is_view(func):
            composite = "CompositeImplicitAutograd"
            if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), composite):
                with self:
                    return func.decompose(*args, **kwargs)
        out = self._run(func, args, kwargs, read, values)
        if name in SHAPED_LIKE:
            return out
        if data:
            self._record(Call(func, args, kwargs, out))
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

    def _record(self, call: Call) -> None:
        handler = self.handlers.get(call.name)
        if handler is None and is_view(call.func):
            handler = self.handlers["view"]
        elif handler is None and torch.Tag.pointwise in call.func.tags:
            handler = self.handlers["pointwise"]
        if handler is None:
            raise self.refusal(
                call.operation,
                "nobody has told what it computes",
                "Replace it by layers that are known, or leave it out and add its cost by hand.",
            )
        handler(self, call)

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
