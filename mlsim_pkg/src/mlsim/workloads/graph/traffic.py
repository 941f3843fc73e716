"""Bytes that a layer reads, writes and holds, for a batch and a number format."""

from __future__ import annotations

from dataclasses import dataclass

from mlsim.workloads.graph.fuse import Fused, written_of
from mlsim.workloads.graph.nodes import Graph, Node

# MB of a printed summary.
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Traffic:
    """The bytes of a graph's layers; `element_bytes` is that of weights and activations.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> graph = graph_of(Models.LeNet5_Variant)
    >>> Traffic(graph, batch_size=1, element_bytes=4).of_node(graph["fc3"], 1200)["bytes_in"]
    240.0
    """

    graph: Graph
    batch_size: int
    element_bytes: float

    def scaled(self, counted: int) -> int:
        """Return a count of one sample for the batch."""
        return counted * self.batch_size

    def flops(self, multiply_adds: int) -> int:
        """Return the FLOP of so many multiply-adds of each sample."""
        return 2 * multiply_adds * self.batch_size

    def output(self, node: Node) -> float:
        """Return the bytes of what a layer puts out."""
        samples = 1 if node.once else self.batch_size
        return samples * node.elements * (node.element_bytes or self.element_bytes)

    def _read(self, nodes: tuple[Node, ...]) -> float:
        own = [node.read for node in nodes if node.read is not None]
        if own:
            return sum(own) * self.batch_size * self.element_bytes
        return self._bytes(self.graph.taken(nodes))

    def _bytes(self, counted: dict[str, int]) -> float:
        """Return the bytes of so many numbers of each node's output."""
        return sum(
            self.output(self.graph[name]) * count / self.graph[name].elements
            for name, count in counted.items()
            if count
        )

    def _moved(self, nodes: tuple[Node, ...], work: float) -> dict[str, float]:
        read = self._read(nodes)
        written = self._bytes(written_of(self.graph, nodes))
        weights = sum(node.parameters_read(self.batch_size) for node in nodes) * self.element_bytes
        total = read + written + weights
        return {
            "bytes_in": read,
            "bytes_out": written,
            "bytes_weights": weights,
            "working_set": total,
            "intensity": work / total if total else 0.0,
        }

    def of_node(self, node: Node, work: float) -> dict[str, float]:
        """Return what one layer moves, if nothing runs with it, and its intensity."""
        return self._moved((node,), work)

    def of_kernel(self, kernel: Fused, work: float) -> dict[str, float]:
        """Return what a kernel moves, and its intensity."""
        return self._moved(kernel.nodes, work)

    def held(self, node: Node, states: int, *, has_error: bool) -> dict[str, float]:
        """Return what training holds of a layer."""
        weights = node.parameters * self.element_bytes
        return {
            "weights": weights,
            "outputs": self.output(node),
            "errors": self.output(node) * has_error,
            "gradients": weights,
            "states": weights * states,
        }

    def inference_memory(self, live: int) -> float:
        """Return the memory of all weights, and of the activations alive at the worst moment."""
        held = self.graph.parameters + sum(node.buffers for node in self.graph)
        return (held + self.batch_size * live) * self.element_bytes

    def summary_sizes(self, inputs: float, outputs: float, parameters: int) -> dict[str, float]:
        """Return the sizes that a printed summary ends with, in MB of 2**20 bytes.

        Each output is counted twice, since its gradient is as large.
        """
        weights = parameters * self.element_bytes
        sizes = {
            "Input size": inputs,
            "Forward/backward pass size": 2 * outputs,
            "Params size": weights,
            "Estimated total size": inputs + 2 * outputs + weights,
        }
        return {name: size / MEBIBYTE for name, size in sizes.items()}

    @staticmethod
    def share(part: float, whole: float) -> float:
        """Return the share of a part, 0 of nothing."""
        return part / whole if whole else 0.0
