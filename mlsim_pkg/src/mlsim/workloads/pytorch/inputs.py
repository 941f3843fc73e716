"""What a PyTorch module is called with: tensors that have a shape and no numbers."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from operator import index
from typing import Any

import torch

from mlsim.errors import InvalidValueError
from mlsim.workloads.pytorch.records import tensors_in
from mlsim.workloads.pytorch.shell import stand_in

# Named arguments of a call, or arguments in their order.
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
# Numbers in a sample: beyond that PyTorch's own sizes, in bytes, overflow.
_MOST = 2**53


class Inputs:
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


def inputs_of(
    module: torch.nn.Module,
    called: str,
    shape: Sequence[int] | None,
    example: Any,
    tokens: int | None,
) -> Inputs:
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
    return Inputs(args, kwargs, 1)


def _from_example(example: Any) -> Inputs:
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
    return Inputs(args, kwargs, found[0].shape[0])


def _sides(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, int):
        shape = (shape,)
    if isinstance(shape, (str, bytes, Mapping, torch.Tensor)) or not isinstance(shape, Iterable):
        raise InvalidValueError(
            "shape must be whole numbers, those of one sample without the batch, such as "
            f"(3, 224, 224), not {_short(shape)}."
        )
    sides = tuple(_whole("a side of shape", each) for each in shape)
    if not sides:
        raise InvalidValueError("shape has no side; (1,) is that of a single number.")
    if prod(sides) > _MOST:
        raise InvalidValueError(f"a sample has at most {_MOST:,} numbers, not {prod(sides):.3g}.")
    return sides


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor; its shape is {tuple(value.shape)}"
    return repr(value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or index(value) < 1:
        raise InvalidValueError(f"{name} must be a whole number of 1 or more, not {value!r}.")
    if index(value) > _MOST:
        raise InvalidValueError(f"{name} is at most {_MOST:,}, not {index(value):.3g}.")
    return index(value)


def _dtype(module: torch.nn.Module) -> torch.dtype:
    """Return the number format of a module: that of its first parameter."""
    found = (each.dtype for each in module.parameters() if each.is_floating_point())
    return next(found, torch.float32)
