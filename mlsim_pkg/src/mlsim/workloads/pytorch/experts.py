"""Experts among which a router chooses: stacked weights, counted as often as they are chosen.

A program that runs them branches on the router's choice, which only numbers decide. How many
experts each token chooses stands in the shape of that choice, and that is enough to count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch

from mlsim.workloads.pytorch.recorder import Recorder
from mlsim.workloads.pytorch.records import BIASES, WEIGHTS, Record, tensors_in

EXPERTS, ROUTER = "experts", "router"
# An expert is a matrix for each expert in one tensor; biases have a side less.
_STACKED = 3
# What may stand between a router's matrix and its choice: nothing that multiplies matrices.
_CHOOSING = frozenset(
    ("softmax", "activation", "elementwise", "add", "multiply", "pooling", "other", "positions")
) | {"reshape", "concatenation"}
Whole = Callable[..., Record]


def is_stack(module: torch.nn.Module) -> bool:
    """Tell whether a module is a stack of experts: three-dimensional weights, one for each."""
    own = [each for each in module.parameters(recurse=False) if each.dim() == _STACKED]
    counts = {each.shape[0] for each in own}
    return "Experts" in type(module).__name__ and len(own) > 1 and len(counts) == 1


def run_stack(
    recorder: Recorder,
    whole: Whole,
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
    width, rows, each_token = hidden_states.shape[-1], *_rows(chosen[0])
    columns = sum(each[0].numel() for _, each in ups) // width
    inner = down[1][0].numel() // width
    told = {"chosen": (each_token, len(down[1]))}

    def layer(kind: str, function: str, given: list[Any], *shape: int, **more: Any) -> Any:
        out = torch.empty(shape, dtype=hidden_states.dtype, device="meta")
        whole(recorder, kind, function, given, out, **more)
        return out

    def product(parts: list[Any], given: list[Any], sides: tuple[int, int], **more: Any) -> Any:
        names = tuple(name for name, _ in parts)
        biases = [b for name, b in own if b.dim() < _STACKED and name.startswith(names)]
        uses = recorder.uses(*(each for _, each in parts), role=WEIGHTS)
        return layer(
            EXPERTS,
            "",
            given,
            *(rows, each_token, sides[1]),
            uses=(*uses, *recorder.uses(*biases, role=BIASES)),
            multiply_adds=rows * each_token * sides[0] * sides[1],
            window=sides[0],
            outputs=sides[1],
            **told,
            **more,
        )

    given = [hidden_states, *tensors_in((args, kwargs))]
    # Which experts a token goes to is no activation, and few numbers.
    last = product(ups, given, (width, columns), read=rows * width)
    last = layer("activation", "gated" if columns > inner else "", [last], rows, each_token * inner)
    last = product([down], [last], (inner, width))
    return layer("multiply", "weighted sum", [last], *hidden_states.shape)


def _rows(chosen: torch.Tensor) -> tuple[int, int]:
    """Return how many tokens choose, and how many experts each of them."""
    each_token = chosen.shape[-1]
    return chosen.numel() // each_token, each_token


def join_routers(records: list[Record]) -> list[Record]:
    """Return the records with each router in one: its matrix, and what chooses by its scores."""
    readers: dict[Record, list[Record]] = defaultdict(list)
    for record in records:
        for source in record.inputs:
            readers[source].append(record)
    gone: set[Record] = set()
    for record in records:
        if record.kind != EXPERTS or len(record.inputs) == 1:
            continue
        token, *choice = record.inputs
        router, between = _choice(choice)
        known = between.union((record,))
        if router is None or not all(known.issuperset(readers[each]) for each in between):
            continue
        gone.update(between)
        router.kind = ROUTER
        router.buffers += sum(each.buffers for each in between)
        router.uses += [use for each in between for use in each.uses]
        record.inputs = [token, router]
    return [each for each in records if each not in gone]


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
