"""Networks read from PyTorch modules, without running them; imports PyTorch when it is used."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.errors import WrongKindError, need
from mlsim.workloads.graph import Graph
from mlsim.workloads.graph.fuse import operators_of
from mlsim.workloads.model import Network, NetworkOperators, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

# Number formats by PyTorch's names.
FORMATS = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}


def is_module(thing: Any) -> bool:
    """Tell whether something is a PyTorch module; PyTorch is not imported for it.

    >>> is_module("resnet50")
    False
    """
    # Whoever has a module has imported PyTorch.
    torch = sys.modules.get("torch")
    module = getattr(getattr(torch, "nn", None), "Module", None)
    return module is not None and isinstance(thing, module)


def read_module(
    module: torch.nn.Module,
    *,
    shape: Sequence[int] | None = None,
    example: Any = None,
    tokens: int | None = None,
    name: str = "",
    training: bool = False,
) -> Graph:
    """Return the computation graph of a PyTorch module, read without running it.

    Its code runs with tensors that have a shape and no numbers, so no weight is touched or
    copied, however large; the module is left as it is. What programs write as several
    operations is one layer here: attention, positions by rotation, a norm, a router with what
    chooses by its scores. Experts are counted as often as they are chosen, whichever they are.

    Parameters
    ----------
    module
        Any `torch.nn.Module`; on the meta device too.
    shape
        Of one sample, without the batch, such as (3, 224, 224).
    tokens
        Length of the sequence that a language model reads; of a model that also decodes,
        with `shape` what it decodes, and without both.
    example
        In place of these what the module is called with: a tensor, a tuple of them or a
        dict by name, each with the batch first. Only shapes and types are used.
    name
        What errors call it; the name of its class unless said.
    training
        Whether it is read as it runs in training: dropout is then a layer.

    Raises
    ------
    UnsupportedLayerError
        If a layer does what can't be counted; names the layer, the operation, a way out.
    InvalidValueError
        If the input is not told, or does not fit.
    WrongKindError
        If it is no module.
    MissingLibraryError
        If PyTorch is not installed.
    """
    need("torch", "reading a PyTorch module", "torch")
    if not is_module(module):
        raise WrongKindError(
            f"a torch.nn.Module is wanted, not {type(module).__name__}. Models of the zoo are "
            "given by their names, and a config.json by load_config(path)."
        )
    from mlsim.workloads.pytorch.reader import read

    given = {"shape": shape, "example": example, "tokens": tokens}
    return read(module, name, training=training, **given)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ModuleNetwork(Network):
    """A network that was read from a PyTorch module.

    Attributes
    ----------
    precision
        Number format of most of its parameters, as they are.
    graph
        Its layers, unfused.
    """

    precision: str = "fp32"
    graph: Graph

    @cached_property
    def operators(self) -> NetworkOperators:
        """Every operator in the order in which it runs: its layers, fused."""
        return operators_of(self.graph)

    @cached_property
    def parameter_count(self) -> int:
        """Learned numbers in the network, those among them that a pass does not use."""
        return self.graph.parameters


def load_module(module: torch.nn.Module, *, name: str = "", **read: Any) -> ModuleNetwork:
    """Return a PyTorch module as a network, for `Engine.solve(model=...)`.

    Takes and raises what `read_module` does. Its operators are those of the graph,
    `fuse.operators_of(graph)`; the graph itself is its attribute `graph`.
    """
    graph = read_module(module, name=name, **read)
    called = name or type(module).__name__
    first = next(node for node in graph if node.kind == "input")
    return ModuleNetwork(
        key=called,
        name=called,
        architecture=f"{type(module).__name__}, read from a PyTorch module",
        source=f"{type(module).__module__}.{type(module).__qualname__}",
        input=Shape(first.elements, 1),
        layers=(),
        precision=precision_of(module),
        graph=graph,
    )


def precision_of(module: torch.nn.Module) -> str:
    """Return the number format of most of a module's parameters, FP32 if it has none.

    >>> import torch
    >>> precision_of(torch.nn.Linear(2, 2).half())
    'fp16'
    """
    numbers: Counter[str] = Counter()
    for parameter in module.parameters():
        numbers[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
    known = {name: count for name, count in numbers.items() if name in FORMATS}
    return FORMATS[max(known, key=known.__getitem__)] if known else "fp32"
