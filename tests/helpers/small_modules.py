"""Small PyTorch modules whose own code is what a test is about."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from mlsim.workloads.graph import Graph
from mlsim.workloads.pytorch import read_module

WIDE = 8


def read(forward: Any, *layers: nn.Module) -> Graph:
    """Return the graph of a module with a matrix, and code of its own on what it puts out."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.matrix = nn.Linear(WIDE, WIDE, bias=False)
            self.more = nn.ModuleList(layers)

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            return forward(self.matrix(given), *self.more)

    return read_module(Net(), shape=(5, WIDE))


def kinds(graph: Graph) -> list[tuple[str, str]]:
    return [(node.kind, node.function) for node in graph.layers]
