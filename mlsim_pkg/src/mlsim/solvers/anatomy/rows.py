"""Rows of an anatomy: one for each layer as a framework runs it, or for each kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mlsim.workloads.graph import MAC, Graph, Node, backward_multiply_adds, operations
from mlsim.workloads.graph.fuse import Fused, Traffic
from mlsim.workloads.graph.training import learning

SIZES = ("bytes_in", "bytes_out", "bytes_weights")
LAYER = ("layer", "kind", "function", "shape_in", "shape_out", "parameters", "operations")
MOVED = (*SIZES, "working_set", "intensity")
TRAINED = ("operations_backward", "weights", "outputs", "errors", "gradients", "states")


def layer_rows(
    graph: Graph, traffic: Traffic, count: str, kernels: Sequence[Fused]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each layer, for the whole batch."""
    homes = {node.name: each.operator.name for each in kernels for node in each.nodes}
    for node in graph.layers:
        work = traffic.scaled(operations(node, count))
        yield {
            "layer": node.name,
            "kind": node.kind,
            "function": node.function,
            "shape_in": _shape_in(graph, node),
            "shape_out": node.shape,
            "parameters": node.parameters,
            "operations": work,
            "multiply_adds": traffic.scaled(operations(node, MAC)),
            **traffic.of_node(node, work),
            "runs_in": homes[node.name],
        }


def kernel_rows(
    graph: Graph, traffic: Traffic, count: str, kernels: Sequence[Fused]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each kernel, for the whole batch: layers that run together are one."""
    for each in kernels:
        first, last = each.nodes[0], each.nodes[-1]
        work = traffic.scaled(sum(operations(node, count) for node in each.nodes))
        yield {
            "layer": each.operator.name,
            "kind": first.kind,
            "function": ", ".join(node.name for node in each.nodes[1:]),
            "shape_in": _shape_in(graph, first),
            "shape_out": last.shape,
            "parameters": sum(node.parameters for node in each.nodes),
            "operations": work,
            "multiply_adds": traffic.scaled(sum(operations(node, MAC) for node in each.nodes)),
            **traffic.of_kernel(each, work),
            "runs_in": each.operator.name,
        }


def add_training(
    rows: Iterable[dict[str, Any]], graph: Graph, traffic: Traffic, states: int
) -> Iterator[dict[str, Any]]:
    """Yield rows with what training holds of each layer, in bytes, and its way back."""
    learns = learning(graph)
    for row in rows:
        node = graph[row["layer"]]
        back = backward_multiply_adds(graph, node, learns)
        yield row | {
            "operations_backward": traffic.flops(back),
            **traffic.held(node, states, has_error=node.name in learns),
        }


def add_times(
    rows: Iterable[dict[str, Any]], operators: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield rows with the time of the kernel in which each runs, at the first row of it."""
    found = {each["name"]: each for each in operators}
    seen = set()
    for row in rows:
        kernel = found[row["runs_in"]]
        first = row["runs_in"] not in seen
        seen.add(row["runs_in"])
        time = kernel["roofline_time"] if first else 0.0
        yield row | {"time": time, "bound": kernel["bound"] if first else ""}


def _shape_in(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the shape of what a layer reads first."""
    return graph[node.inputs[0]].shape if node.inputs else ()
