"""Computation graphs: a network layer by layer, as a framework runs it, unfused."""

from mlsim.workloads.graph.nodes import Graph, Node

__all__ = ["Graph", "Node"]
