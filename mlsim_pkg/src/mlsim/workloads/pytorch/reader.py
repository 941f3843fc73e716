"""Reads a PyTorch module: makes its input, runs its shell twice, and assembles the graph."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from mlsim.errors import InvalidValueError, MlsimError, UnsupportedLayerError
from mlsim.workloads.graph.nodes import Graph
from mlsim.workloads.pytorch import layers, products
from mlsim.workloads.pytorch.assemble import assemble
from mlsim.workloads.pytorch.experts import join_routers
from mlsim.workloads.pytorch.inputs import Inputs, inputs_of
from mlsim.workloads.pytorch.modules import check_batch_place, listen
from mlsim.workloads.pytorch.patterns import (
    join_attention,
    read_as_rows,
    read_in_pieces,
    spread_in_readers,
)
from mlsim.workloads.pytorch.recorder import Recorder
from mlsim.workloads.pytorch.records import Record, tensors_in
from mlsim.workloads.pytorch.rotations import join_rotations
from mlsim.workloads.pytorch.row_statistics import join_row_statistics
from mlsim.workloads.pytorch.shell import shell_of

HANDLERS = {**layers.HANDLERS, **products.HANDLERS}
INPUT = "input"


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
    _refuse_complex(module, called)
    made = inputs_of(module, called, shape, example, tokens)
    try:
        graph = _graph(module, called, made, training=training)
    except InvalidValueError:
        sample = tuple(shape)[1:] if isinstance(shape, Sequence) else ()
        if not sample or tokens is not None:
            raise
        found = _with_batch_in_front(module, called, tuple(shape or ()), training=training)
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
    return assemble(records, first, others, 2 * first, parameters)


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
        made = inputs_of(module, called, shape[1:], None, None)
        graph = _graph(module, called, made, training=training)
    except MlsimError:
        return None
    if shape[0] == 1:
        return graph
    raise InvalidValueError(
        f"{called} reads {shape[1:]} as one sample, so shape={shape} has the batch in front. "
        f"Write shape={shape[1:]}, and batch_size={shape[0]} where the batch is asked for."
    )


def _refuse_complex(module: torch.nn.Module, called: str) -> None:
    for name, parameter in module.named_parameters():
        if parameter.is_complex():
            raise UnsupportedLayerError(
                f"{called}: {name} holds complex numbers, which can't be counted: one product of "
                "them is four real ones. Give a module of real numbers."
            )


def _recorded(
    module: torch.nn.Module, called: str, made: Inputs, batch: int, *, training: bool
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
    found = join_attention(recorder.records, batch)
    found = read_in_pieces(join_rotations(found))
    found = spread_in_readers(join_row_statistics(read_as_rows(found)))
    return join_routers(found), recorder.parameters


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
        told = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        told = told if told.endswith((".", "!", "?")) else f"{told}."
        if any(each in told for each in _NO_NUMBERS):
            shortly = told.split(". ")[0].rstrip(".")
            raise UnsupportedLayerError(
                f"{place}: it asks for numbers of a tensor, and here tensors have a shape only "
                f"({shortly}). Give the module without what depends on them."
            ) from error
        if "fake impl" in told:
            raise UnsupportedLayerError(
                f"{place}: an operation of its own can't be counted ({told.split(':')[0]}). Give "
                "the module before it was quantized or compiled, and ask with precision=..."
            ) from error
        given = ", ".join(str(tuple(each.shape)) for each in tensors_in((args, kwargs)))
        raise InvalidValueError(
            f"{called} does not take this input, of shape {given} with the batch first: "
            f"{place}: {told} {_advice(told, args)}"
        ) from error


def _advice(told: str, args: Any) -> str:
    """Return what to write instead, as far as PyTorch's words tell."""
    if "missing" in told and "positional argument" in told:
        return "Give example=..., a tuple of all that it takes, each with the batch first."
    words = [each for each in tensors_in(args) if not each.is_floating_point()]
    if words:
        return "If it reads numbers and no tokens, give shape=..., such as shape=(3, 224, 224)."
    if "Long" in told or "indices" in told:
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
    for index, tensor in enumerate(plain):
        named.insert(index, (INPUT if index == 0 else f"{INPUT}_{index + 1}", tensor))
    for name, tensor in named:
        told = recorder.names.unique(INPUT if len(named) == 1 else name)
        size = 0 if tensor.is_floating_point() else tensor.element_size()
        record = Record(told, told, "", "input", tuple(tensor.shape), element_bytes=size)
        recorder.records.append(record)
        recorder.know(tensor, record)
