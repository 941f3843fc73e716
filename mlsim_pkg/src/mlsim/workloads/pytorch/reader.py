"""Reads a PyTorch module: makes its input, runs its shell twice, and assembles the graph.

A shell has the same code and structure, with tensors that have a shape but no numbers. Weights
are neither copied nor moved. Small whole numbers and masks that a module holds are taken along,
since its control flow may depend on them.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from operator import index
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from mlsim.errors import InvalidValueError, MlsimError, UnsupportedLayerError
from mlsim.workloads.graph import Graph
from mlsim.workloads.pytorch import handlers, patterns
from mlsim.workloads.pytorch.modules import check_batch_place, join_router, listen
from mlsim.workloads.pytorch.recorder import MOST_KEPT, Record, Recorder, stand_in, tensors_in

# What transformers does with the numbers of an input and that changes nothing.
_ONLY_WARNS = ("warn_if_padding_and_no_attention_mask",)


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
        if parameter.is_complex():
            raise UnsupportedLayerError(
                f"{type(module).__name__}: {name} holds complex numbers, which can't be counted: "
                "one product of them is four real ones. Give a module of real numbers."
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
                setattr(part, name, lambda *_, **__: None)
    return shell


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
    module: torch.nn.Module, called: str, shape: Any, example: Any = None, tokens: Any = None
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
        # The number format of a module is that of its first parameter.
        formats = (each.dtype for each in module.parameters() if each.is_floating_point())
        dtype = next(formats, torch.float32)
        args.append(torch.empty((1, *_sides(shape)), dtype=dtype, device="meta"))
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
        sides = getattr(shape, "shape", None)
        what = repr(shape) if sides is None else f"a tensor; its shape is {tuple(sides)}"
        raise InvalidValueError(
            "shape must be whole numbers, those of one sample without the batch, such as "
            f"(3, 224, 224), not {what}."
        )
    sides = tuple(_whole("a side of shape", each) for each in shape)
    if not sides:
        raise InvalidValueError("shape has no side; (1,) is that of a single number.")
    if prod(sides) > _MOST:
        raise InvalidValueError(f"a sample has at most {_MOST:,} numbers, not {prod(sides):.3g}.")
    return sides


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or index(value) < 1:
        raise InvalidValueError(f"{name} must be a whole number of 1 or more, not {value!r}.")
    if index(value) > _MOST:
        raise InvalidValueError(f"{name} is at most {_MOST:,}, not {index(value):.3g}.")
    return index(value)


INPUT = "input"


def read(module: torch.nn.Module, name: str, *, training: bool, **given: Any) -> Graph:
    """Return the graph of a module; see `read_module`."""
    module = getattr(module, "_orig_mod", module)
    called = name or type(module).__name__
    made = inputs_of(module, called, **given)
    try:
        graph = _graph(module, called, made, training=training)
    except InvalidValueError:
        shape = given["shape"]
        if not isinstance(shape, Sequence) or len(shape) < 2 or given["tokens"] is not None:
            raise
        found = _with_batch_in_front(module, called, tuple(shape), training=training)
        if found is None:
            raise
        graph = found
    if not graph.layers:
        raise InvalidValueError(
            f"{called} has no layer that computes: what it returns is what it was given, in "
            "another shape at most, so there is nothing to count."
        )
    return graph


def _graph(module: torch.nn.Module, called: str, made: Inputs, *, training: bool) -> Graph:
    first = 2 if training else 1
    records, parameters = _recorded(module, called, made, first, training=training)
    try:
        others, _ = _recorded(module, called, made, 2 * first, training=training)
    except MlsimError:
        others = None
    return patterns.assemble(records, first, others, parameters)


def _with_batch_in_front(
    module: torch.nn.Module, called: str, shape: tuple[int, ...], *, training: bool
) -> Graph | None:
    """Return the graph if a shape that a module refused fits without its first side.

    A 1 in front can only be a batch of one, and counts are for one sample anyway. Any other
    number would be lost, so it is asked for as what it is.

    Raises
    ------
    InvalidValueError
        If the first side is a batch of several samples; says what to write.
    """
    try:
        made = inputs_of(module, called, shape[1:])
        graph = _graph(module, called, made, training=training)
    except MlsimError:
        return None
    if shape[0] == 1:
        return graph
    raise InvalidValueError(
        f"{called} reads {shape[1:]} as one sample, so shape={shape} has the batch in front. "
        f"Write shape={shape[1:]}, and batch_size={shape[0]} where the batch is asked for."
    )


def _recorded(
    module: torch.nn.Module, called: str, made: Inputs, batch: int, *, training: bool
) -> tuple[list[Record], dict[str, int]]:
    """Return the layers of a module, as they run on a batch."""
    shell = shell_of(module, training=training)
    recorder = Recorder(shell, batch, handlers.HANDLERS, handlers.PRODUCTS)
    listen(recorder)
    args, kwargs = made.arguments(batch)
    with _quietly(), torch.inference_mode():
        _declare(recorder, made, args, kwargs)
        with recorder:
            _call(recorder, shell, called, args, kwargs)
    attention = (patterns.join_attention, patterns.join_rotations, patterns.read_in_pieces)
    found = patterns.read_as_rows(patterns.rewritten(recorder.records, *attention))
    others = (patterns.join_row_statistics, patterns.spread_in_readers, join_router)
    found = patterns.rewritten(found, *others)
    return found, recorder.parameters


# What PyTorch says where a program asks for numbers of a tensor that has none.
_NO_NUMBERS = ("meta", "data-independent", "unallocated storage")


def _call(recorder: Recorder, shell: torch.nn.Module, called: str, args: Any, kwargs: Any) -> None:
    try:
        check_batch_place(recorder, shell, args)
        shell(*args, **kwargs)
    except MlsimError:
        raise
    except Exception as error:  # whatever somebody's own program raises is told
        place = recorder.place or called
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        said = said if said.endswith((".", "!", "?")) else f"{said}."
        if any(each in said for each in _NO_NUMBERS):
            shortly = said.split(". ")[0].rstrip(".")
            raise UnsupportedLayerError(
                f"{place}: it asks for numbers of a tensor, and here tensors have a shape only "
                f"({shortly}). Give the module without what depends on them."
            ) from error
        if "fake impl" in said:
            raise UnsupportedLayerError(
                f"{place}: an operation of its own can't be counted ({said.split(':')[0]}). Give "
                "the module before it was quantized or compiled, and ask with precision=..."
            ) from error
        given = ", ".join(str(tuple(each.shape)) for each in tensors_in((args, kwargs)))
        raise InvalidValueError(
            f"{called} does not take this input, of shape {given} with the batch first: "
            f"{place}: {said} {_advice(said, args)}"
        ) from error


def _advice(said: str, args: Any) -> str:
    """Return what to write instead, as far as PyTorch's words tell."""
    if "missing" in said and "positional argument" in said:
        return "Give example=..., a tuple of all that it takes, each with the batch first."
    words = [each for each in tensors_in(args) if not each.is_floating_point()]
    if words:
        return "If it reads numbers and no tokens, give shape=..., such as shape=(3, 224, 224)."
    if "Long" in said or "indices" in said:
        return "If it reads tokens, give tokens=..., how many, such as tokens=512."
    return "The shape that is given is of one sample, without the batch."


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


def _declare(recorder: Recorder, made: Inputs, args: Any, kwargs: Any) -> None:
    """Record the inputs as the first nodes."""
    named = [(name, each) for name, value in kwargs.items() for each in tensors_in(value)]
    plain = tensors_in(args)
    named[:0] = [
        (INPUT if place == 0 else f"{INPUT}_{place + 1}", each) for place, each in enumerate(plain)
    ]
    for name, tensor in named:
        unique = recorder.names.unique(INPUT if len(named) == 1 else name)
        size = 0 if tensor.is_floating_point() else tensor.element_size()
        record = Record(unique, unique, "", "input", tuple(tensor.shape), element_bytes=size)
        recorder.records.append(record)
        recorder.know(tensor, record)
