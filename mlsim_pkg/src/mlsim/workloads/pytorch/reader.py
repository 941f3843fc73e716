"""Reads a PyTorch module: makes its input, runs its shell twice, and assembles the graph."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from mlsim.errors import InvalidValueError, MlsimError
from mlsim.workloads.graph.nodes import Graph
from mlsim.workloads.pytorch import layers, products
from mlsim.workloads.pytorch.assemble import assemble
from mlsim.workloads.pytorch.modules import listen
from mlsim.workloads.pytorch.patterns import join_attention
from mlsim.workloads.pytorch.recorder import Recorder
from mlsim.workloads.pytorch.records import Record, tensors_in
from mlsim.workloads.pytorch.shell import shell_of, stand_in

HANDLERS = {**layers.HANDLERS, **products.HANDLERS}
INPUT = "input"
# Named arguments of a call, or arguments in their order.
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def read(
    module: torch.nn.Module,
    *,
    shape: Sequence[int] | None,
    example: Any,
    tokens: int | None,
    name: str,
    training: bool,
) -> Graph:
    """Return the graph of a module; see `read_module`."""
    module = getattr(module, "_orig_mod", module)
    called = name or type(module).__name__
    first = 2 if training else 1
    made = _inputs(module, called, shape, example, tokens)
    records, parameters = _recorded(module, called, made, first, training=training)
    try:
        others, _ = _recorded(module, called, made, 2 * first, training=training)
    except MlsimError:
        others = None
    return assemble(records, first, others, 2 * first, parameters)


def _recorded(
    module: torch.nn.Module, called: str, made: _Inputs, batch: int, *, training: bool
) -> tuple[list[Record], dict[str, int]]:
    """Return the layers of a module, as they run on a batch."""
    shell = shell_of(module, training=training)
    recorder = Recorder(shell, batch, HANDLERS, products.PRODUCTS)
    listen(recorder)
    args, kwargs = made.arguments(batch)
    with _quietly(), torch.inference_mode():
        _declare(recorder, made, args, kwargs)
        with recorder:
            _call(recorder, shell, called, args, kwargs)
    return join_attention(recorder.records, batch), recorder.parameters


def _call(recorder: Recorder, shell: torch.nn.Module, called: str, args: Any, kwargs: Any) -> None:
    try:
        shell(*args, **kwargs)
    except MlsimError:
        raise
    except Exception as error:
        place = recorder.place or called
        told = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        given = ", ".join(str(tuple(each.shape)) for each in tensors_in((args, kwargs)))
        raise InvalidValueError(
            f"{called} does not take this input, of shape {given} with the batch first: "
            f"{place}: {told} The shape that is given is of one sample, without the batch."
        ) from error


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep PyTorch from its shortcuts, and its warnings from the reader."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _declare(recorder: Recorder, made: _Inputs, args: Any, kwargs: Any) -> None:
    """Record the inputs as the first nodes."""
    named = [(name, each) for name, value in kwargs.items() for each in tensors_in(value)]
    plain = tensors_in(args)
    for index, tensor in enumerate(plain):
        named.insert(index, (INPUT if index == 0 else f"{INPUT}_{index + 1}", tensor))
    for name, tensor in named:
        told = recorder.names.unique(INPUT if len(named) == 1 else name)
        size = 0 if tensor.is_floating_point() else tensor.element_size()
        record = Record(told, told, "", "input", tuple(tensor.shape), element_bytes=size)
        recorder.records.append(record)
        recorder.know(tensor, record)


class _Inputs:
    """What a module is called with, for any batch."""

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any], batch: int) -> None:
        self.args, self.kwargs, self.batch = tuple(args), dict(kwargs), batch

    def arguments(self, batch: int) -> Arguments:
        """Return the arguments for a batch, as tensors without numbers."""
        from torch.utils._pytree import tree_map

        def sized(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            if not value.dim() or value.shape[0] % self.batch:
                return stand_in(value)
            side = value.shape[0] // self.batch * batch
            return torch.empty((side, *value.shape[1:]), dtype=value.dtype, device="meta")

        args, kwargs = tree_map(sized, (self.args, self.kwargs))
        return args, kwargs


def _inputs(
    module: torch.nn.Module,
    called: str,
    shape: Sequence[int] | None,
    example: Any,
    tokens: int | None,
) -> _Inputs:
    """Return what a module is called with.

    Raises
    ------
    InvalidValueError
        If nothing tells its input, or what does can't be.
    """
    if example is not None:
        if shape is not None or tokens is not None:
            raise InvalidValueError("give example, or shape and tokens, not both.")
        return _from_example(example)
    if shape is None and tokens is None:
        raise InvalidValueError(
            f"what does {called} read? Give shape=..., of one sample without the batch, such as "
            "shape=(3, 224, 224); tokens=... for a model that reads text, such as tokens=512; or "
            "example=..., what it is called with."
        )
    args: list[torch.Tensor] = []
    kwargs: dict[str, torch.Tensor] = {}
    if shape is not None:
        args.append(torch.empty((1, *_sides(shape)), dtype=_dtype(module), device="meta"))
    if tokens is not None:
        words = torch.empty((1, _whole("tokens", tokens)), dtype=torch.int64, device="meta")
        if shape is None:
            args.append(words)
        if "decoder_input_ids" in inspect.signature(module.forward).parameters:
            kwargs["decoder_input_ids"] = words.clone()
        elif shape is not None:
            raise InvalidValueError(
                f"{called} takes no decoder_input_ids, so shape and tokens don't go together. "
                "Give example=..., a dict of what it is called with."
            )
    return _Inputs(args, kwargs, 1)


def _from_example(example: Any) -> _Inputs:
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(example, Mapping):
        kwargs = dict(example)
    elif isinstance(example, torch.Tensor):
        args = (example,)
    elif isinstance(example, (tuple, list)):
        args = tuple(example)
    else:
        raise InvalidValueError(
            "example must be a tensor, a tuple of what the module takes or a dict by name, not "
            f"{type(example).__name__}."
        )
    found = [each for each in tensors_in((args, kwargs)) if each.dim()]
    if not found:
        raise InvalidValueError("example has no tensor, so there is no batch in it.")
    return _Inputs(args, kwargs, found[0].shape[0])


def _sides(shape: Any) -> tuple[int, ...]:
    sides = (shape,) if isinstance(shape, int) else tuple(shape)
    return tuple(_whole("a side of shape", each) for each in sides)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 1:
        raise InvalidValueError(f"{name} must be a whole number of 1 or more, not {value!r}.")
    return int(value)


def _dtype(module: torch.nn.Module) -> torch.dtype:
    """Return the number format of a module: that of its first parameter."""
    found = (each.dtype for each in module.parameters() if each.is_floating_point())
    return next(found, torch.float32)
