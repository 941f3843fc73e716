"""Modules that are one layer, though their code does several operations; and experts.

A program that runs experts branches on the router's choice, which only numbers decide. How many
experts each token chooses stands in the shape of that choice, and that is enough to count:
stacked weights are counted as often as they are chosen.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import torch

from mlsim.workloads.pytorch.recorder import BIASES, WEIGHTS, Record, Recorder, Use, tensors_in

EXPERTS, ROUTER = "experts", "router"
# An expert is a matrix for each expert in one tensor; biases have a side less.
_STACKED = 3
# What may stand between a router's matrix and its choice: nothing that multiplies matrices.
_CHOOSING = frozenset(
    ("softmax", "activation", "elementwise", "add", "multiply", "pooling", "other", "positions")
) | {"reshape", "concatenation"}


def is_stack(module: torch.nn.Module) -> bool:
    """Tell whether a module is a stack of experts: three-dimensional weights, one for each."""
    own = [each for each in module.parameters(recurse=False) if each.dim() == _STACKED]
    counts = {each.shape[0] for each in own}
    return "Experts" in type(module).__name__ and len(own) > 1 and len(counts) == 1


def run_stack(
    recorder: Recorder,
    module: torch.nn.Module,
    hidden_states: torch.Tensor,
    *args: Any,
    **kwargs: Any,
) -> torch.Tensor:
    """Record a stack as its layers, whichever experts are chosen.

    Matrices that read the token come first, then what its numbers go through, then the matrix
    that brings them back, and the sum of what the chosen experts say.
    """
    chosen = [
        each
        for each in tensors_in((args, kwargs))
        if not each.is_floating_point() and each.dtype is not torch.bool
    ]
    if len(chosen) != 1:
        raise recorder.refusal(
            EXPERTS,
            "it is not told by one tensor which expert each token goes to",
            "Only experts that are given the router's choice as whole numbers are read.",
        )
    own = list(module.named_parameters(recurse=False))
    matrices = [(name, each) for name, each in own if each.dim() == _STACKED]
    *ups, down = matrices
    width, each_token = hidden_states.shape[-1], chosen[0].shape[-1]
    rows = chosen[0].numel() // each_token
    columns = sum(each[0].numel() for _, each in ups) // width
    inner = down[1][0].numel() // width

    def layer(kind: str, function: str, given: list[Any], *shape: int, **more: Any) -> Any:
        out = torch.empty(shape, dtype=hidden_states.dtype, device="meta")
        recorder.add(out, kind, function, inputs=given, **more)
        return out

    def product(parts: list[Any], given: list[Any], sides: tuple[int, int], **more: Any) -> Any:
        names = tuple(name for name, _ in parts)
        biases = [b for name, b in own if b.dim() < _STACKED and name.startswith(names)]
        uses = recorder.learned(*(each for _, each in parts))
        return layer(
            EXPERTS,
            "",
            given,
            *(rows, each_token, sides[1]),
            uses=(*uses, *recorder.uses(*biases, role=BIASES)),
            multiply_adds=rows * each_token * sides[0] * sides[1],
            window=sides[0],
            outputs=sides[1],
            chosen=(each_token, len(down[1])),
            **more,
        )

    given = [hidden_states, *tensors_in((args, kwargs))]
    # Which experts a token goes to is no activation, and few numbers.
    last = product(ups, given, (width, columns), read=rows * width)
    last = layer("activation", "gated" if columns > inner else "", [last], rows, each_token * inner)
    last = product([down], [last], (inner, width))
    return layer("multiply", "weighted sum", [last], *hidden_states.shape)


def join_router(record: Record, readers: dict[Record, list[Record]], gone: set[Record]) -> None:
    """Make one record of a router: its matrix, and what chooses by its scores."""
    if record.kind != EXPERTS or len(record.inputs) == 1:
        return
    token, *choice = record.inputs
    router, between = _choice(choice)
    known = between.union((record,))
    if router is None or not all(known.issuperset(readers[each]) for each in between):
        return
    gone.update(between)
    router.kind = ROUTER
    router.buffers += sum(each.buffers for each in between)
    router.uses += [use for each in between for use in each.uses]
    record.inputs = [token, router]


def _choice(choice: list[Record]) -> tuple[Record | None, set[Record]]:
    """Return the matrix whose scores decide, and what lies between it and a choice."""
    matrices: set[Record] = set()
    between: set[Record] = set()
    stack = list(choice)
    while stack:
        record = stack.pop()
        if record.kind == "linear":
            matrices.add(record)
        elif record.kind not in _CHOOSING:
            return None, set()
        elif record not in between:
            between.add(record)
            stack.extend(record.inputs)
    return (matrices.pop() if len(matrices) == 1 else None), between


# What a norm that is written out is made of.
_POINTWISE = frozenset(("elementwise", "multiply", "add", "activation"))
_GATHERED = frozenset((*_POINTWISE, "pooling", "positions", "other"))
_STATISTICS = frozenset(("mean", "var", "rsqrt", "sqrt", "norm", "linalg_vector_norm", "var_mean"))
# Functions of which the way back needs the result, or what they read.
_KEEP_OUTPUT = frozenset(("relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "reciprocal"))
_KEEP_INPUT = frozenset(("pow", "div", "log", "abs", "var"))


def listen(recorder: Recorder) -> None:
    """Make a shell's modules tell a recorder when they run."""
    for name, module in recorder.module.named_modules():
        if isinstance(module, torch.nn.LocalResponseNorm):
            module.forward = partial(_response_norm, recorder, module)
        elif is_stack(module):
            module.forward = partial(run_stack, recorder, module)
        module.forward = partial(_followed, recorder, name, module, module.forward)


def _followed(
    recorder: Recorder, name: str, module: torch.nn.Module, forward: Any, *args: Any, **kwargs: Any
) -> Any:
    """Run a module's own code within its path."""
    start = len(recorder.records)
    with recorder.inside(name, module):
        check_batch_place(recorder, module, args)
        out = forward(*args, **kwargs)
        if not any(True for _ in module.children()):
            _gather(recorder, name, module, start, tensors_in(out))
    return out


def check_batch_place(recorder: Recorder, module: torch.nn.Module, args: Any) -> None:
    """Refuse a sequence whose steps would be taken for samples.

    Attention and recurrent layers read steps first unless they are made with
    `batch_first=True`. Given the batch first, they would run, and mix up the samples.
    """
    read = tensors_in(args)
    if getattr(module, "batch_first", True) or not read or read[0].dim() != 3:
        return
    first, second, _ = read[0].shape
    if first == recorder.batch != second:
        raise recorder.refusal(
            "sequence",
            f"it reads steps first and the batch second, and is given {tuple(read[0].shape)} "
            "with the batch first, so steps would be taken for samples",
            "Make it with batch_first=True, which counts the same, or swap the two before it.",
        )


def _response_norm(
    recorder: Recorder, module: torch.nn.Module, source: torch.Tensor
) -> torch.Tensor:
    out = torch.empty_strided(tuple(source.shape), source.stride(), device="meta")
    recorder.add(out, "response norm", inputs=[source])
    return out


def _gather(
    recorder: Recorder, name: str, module: torch.nn.Module, start: int, outs: list[torch.Tensor]
) -> None:
    """Make one layer of a norm or an activation function that is written out."""
    found = [each for each in recorder.records[start:] if each.kind != "reshape"]
    if len(found) < 2 or len(outs) != 1 or not recorder.is_data(outs[0]):
        return
    if any(each.kind not in _GATHERED for each in found):
        return
    inputs = [each for one in found for each in one.inputs if each not in found]
    inputs = list(dict.fromkeys(inputs))
    if len(inputs) != 1 or inputs[0].elements != outs[0].numel():
        return
    uses = [use for each in found for use in each.uses]
    called = type(module).__name__
    if any(each.function in _STATISTICS for each in found) and "norm" in called.lower():
        kind, function = "norm", "layer" if len(uses) > 1 else "rms"
    elif not uses and all(each.kind in _POINTWISE for each in found):
        kind, function = "activation", _function(called)
    else:
        return
    if kind == "norm":
        uses = [
            Use(use.parameter, use.size, use.read, BIASES if "bias" in use.parameter else WEIGHTS)
            for use in uses
        ]
    last = recorder.value(outs[0]).record
    assert last is not None
    kept = _kept(found, last)
    last.kind, last.function, last.inputs, last.uses = kind, function, inputs, uses
    last.name, last.base = recorder.names.again(name or kind, found), name
    last.mask, last.window, last.kept_bytes = None, 0, kept
    # A part of something that it reads was shown here first, and stays.
    shown = [each for each in recorder.records[start:] if each in inputs]
    recorder.records[start:] = [*shown, last]


def _kept(found: list[Record], last: Record) -> int:
    """Return the bytes, in 32 bits, that training keeps within a layer that is written out."""
    kept: set[Record] = set()
    for each in found:
        if each.function in _KEEP_OUTPUT:
            kept.add(each)
        elif each.kind in ("multiply", "activation") or each.function in _KEEP_INPUT:
            kept.update(each.inputs)
    within = kept.intersection(found) - {last}
    return 4 * sum(each.elements for each in within)


def _function(words: str) -> str:
    """Return the function of an activation module, by the name of its class."""
    for known in ("gelu", "silu", "mish", "swish", "sigmoid", "tanh", "relu", "softplus"):
        if known in words.lower():
            return known
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words.removesuffix("Activation")).lower()
