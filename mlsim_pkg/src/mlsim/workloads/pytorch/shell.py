"""A shell of a module: the same code and structure, with tensors that have a shape but no numbers.

Weights are neither copied nor moved. Small whole numbers and masks that a module holds are
taken along, since its control flow may depend on them.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from mlsim.errors import InvalidValueError, UnsupportedLayerError

# Numbers that a module holds without learning them are kept as they are up to so many.
MOST_KEPT = 2**22


# What transformers does with the numbers of an input and that changes nothing.
_ONLY_WARNS = ("warn_if_padding_and_no_attention_mask",)


def _nothing(*_: Any, **__: Any) -> None:
    pass


def stand_in(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape, layout and type that holds no numbers."""
    return torch.empty_strided(
        tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta"
    )


def keeps_values(tensor: torch.Tensor) -> bool:
    """Tell whether the numbers of a tensor that is not learned are taken along."""
    return (
        tensor.device.type != "meta"
        and not tensor.requires_grad
        and not tensor.is_floating_point()
        and not tensor.is_complex()
        and tensor.numel() <= MOST_KEPT
    )


class _Copies(TorchFunctionMode):  # type: ignore[misc]
    """Answers what copies a tensor that is neither a parameter nor a buffer."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.__deepcopy__:
            tensor, memo = args
            memo[id(tensor)] = made = _shelled(tensor)
            return made
        return func(*args, **(kwargs or {}))


def _shelled(tensor: torch.Tensor) -> torch.Tensor:
    if keeps_values(tensor):
        return tensor.detach().to("cpu", copy=True)
    return stand_in(tensor)


def shell_of(module: torch.nn.Module, *, training: bool) -> torch.nn.Module:
    """Return a copy of a module without its weights; the module itself is left as it is.

    Raises
    ------
    InvalidValueError
        If parameters have no shape yet.
    UnsupportedLayerError
        If the module can't be copied, or was scripted.
    """
    for name, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            raise UnsupportedLayerError(
                f"{name or type(module).__name__} is scripted, so its Python code is gone. Give "
                "the module from which it was made."
            )
    memo: dict[int, Any] = {}
    for name, parameter in module.named_parameters():
        if isinstance(parameter, torch.nn.parameter.UninitializedTensorMixin):
            raise InvalidValueError(
                f"{name} has no shape yet. A lazy module learns it from its first input: run "
                "the module once, or give its layers their sizes."
            )
        made = torch.nn.Parameter(stand_in(parameter), requires_grad=False)
        memo[id(parameter)] = made
    for _, buffer in module.named_buffers():
        memo[id(buffer)] = _shelled(buffer)
    try:
        with _Copies():
            shell: torch.nn.Module = copy.deepcopy(module, memo)
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise UnsupportedLayerError(
            f"{type(module).__name__} can't be copied, so its layers can't be read: {error} "
            "Give the module before it was compiled, scripted or wrapped."
        ) from error
    shell.train(training)
    for part in shell.modules():
        # One pass over a whole text caches nothing.
        if getattr(getattr(part, "config", None), "use_cache", False):
            part.config.use_cache = False
        for name in _ONLY_WARNS:
            if hasattr(part, name):
                setattr(part, name, _nothing)
    return shell
