"""From a computation graph to operators: what a good compiler runs as one kernel.

A matrix product takes along what follows it and needs nothing else: normalization, an
activation function, the addition of a shortcut. A norm takes its activation function along.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlsim.workloads.graph.nodes import ATTENTION, CONVOLUTION, LINEAR, Graph, Node
from mlsim.workloads.operators import NetworkOperators, Operator

# What may run in the kernel of what computed its first input.
_FOLLOWERS = {
    CONVOLUTION: ("batch norm", "activation", "add", "positions", "concatenation", "dropout"),
    LINEAR: ("batch norm", "activation", "softmax", "multiply", "add", "dropout"),
    "pooling": ("activation", "dropout"),
    ATTENTION: ("multiply",),
    "experts": ("activation", "multiply", "add"),
    "batch norm": ("activation",),
    "norm": ("activation",),
    "elementwise": ("activation",),
    "add": ("activation",),
}
# A concatenation runs with a convolution only if it joins learned numbers to its output.
LEARNED = "learned token"
GATE = "gate"
# What a matrix is called with which each token is multiplied.
PROJECTION = "projection"


@dataclass(frozen=True)
class Fused:
    """The nodes of one kernel, and the operator that it is."""

    nodes: tuple[Node, ...]
    operator: Operator

    @property
    def anchor(self) -> Node:
        """The node that the others run with."""
        return self.nodes[0]


def fused(graph: Graph) -> tuple[Fused, ...]:
    """Return the kernels of a graph, in the order in which they run.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> [each.operator.name for each in fused(graph_of(Models.LeNet5_Variant))]
    ['conv1', 'pool1', 'conv2', 'pool2', 'fc1', 'fc2', 'fc3']
    """
    groups = _groups(graph)
    live = _live(graph, groups)
    return tuple(
        Fused(nodes, _operator(graph, nodes, alive))
        for nodes, alive in zip(groups, live, strict=True)
    )


def operators_of(graph: Graph) -> NetworkOperators:
    """Return the operators of a graph as a table."""
    return NetworkOperators(tuple(each.operator for each in fused(graph)))


def _groups(graph: Graph) -> list[tuple[Node, ...]]:
    """Return the nodes that run together, in the order in which the last of each runs."""
    homes: dict[str, list[Node]] = {}
    depth = _depths(graph)
    found: list[list[Node]] = []
    for node in graph.layers:
        home = _home(graph, node, homes, depth)
        if home is None:
            home = []
            found.append(home)
        home.append(node)
        homes[node.name] = home
    place = {node.name: index for index, node in enumerate(graph.nodes)}
    found.sort(key=lambda nodes: place[nodes[-1].name])
    return [tuple(nodes) for nodes in found]


def _home(
    graph: Graph, node: Node, homes: dict[str, list[Node]], depth: dict[str, int]
) -> list[Node] | None:
    """Return the kernel in which a node can run: that of its deepest input, if of any."""
    sources = sorted(graph.sources(node), key=lambda each: -depth[each.name])
    for source in sources:
        home = homes.get(source.name)
        if home is None or node.kind not in _FOLLOWERS.get(home[0].kind, ()):
            continue
        if node.kind == "concatenation" and node.function != LEARNED:
            continue
        # A gate weighs what a matrix put out; other factors weigh something else.
        if node.kind == "multiply" and home[0].kind == LINEAR and node.function != GATE:
            continue
        # Positions are added to patches, not to what went through a network.
        if node.kind == "positions" and home[-1].kind not in (CONVOLUTION, "concatenation"):
            continue
        # What somebody else reads must be written first.
        if graph.consumers[source.name] == (node.name,) and home[-1] is source:
            return home
    return None


def _depths(graph: Graph) -> dict[str, int]:
    """Return how many layers lead to each node, at the longest."""
    depth: dict[str, int] = {}
    for node in graph:
        before = max((depth[name] for name in node.inputs), default=0)
        depth[node.name] = before + (not node.is_view)
    return depth


def _live(graph: Graph, groups: list[tuple[Node, ...]]) -> list[int]:
    """Return the elements alive while each kernel runs: read, written, or kept for later."""
    first = {nodes[-1].name: index for index, nodes in enumerate(groups)}
    last = {name: index for index, nodes in enumerate(groups) for name in graph.taken(nodes)}
    # Tokens as numbers of words are no activations.
    kept = [graph[name] for name in last if not graph[name].element_bytes]
    found = []
    for index, nodes in enumerate(groups):
        read = graph.taken(nodes)
        waiting = sum(
            node.elements
            for node in kept
            if (first.get(node.name, -1) < index < last[node.name])
            or (node.name in read and index < last[node.name])
        )
        ends = sum(count for name, count in read.items() if last[name] == index)
        own = [node.read for node in nodes if node.read is not None]
        found.append(waiting + (sum(own) if own else ends) + nodes[-1].elements)
    return found


def _operator(graph: Graph, nodes: tuple[Node, ...], live: int) -> Operator:
    anchor = nodes[0]
    own = [node.read for node in nodes if node.read is not None]
    read = sum(own) if own else sum(graph.taken(nodes).values())
    return Operator(
        name=anchor.name,
        kind=_kind(anchor),
        multiply_adds=sum(node.multiply_adds for node in nodes),
        # A tied matrix is read here in full, so it is held here, and not by the embedding.
        parameters=sum(node.weights + node.biases + node.tied for node in nodes),
        activations_read=read,
        activations_written=nodes[-1].elements,
        activations_live=live,
        outputs=anchor.outputs,
        table_parameters=sum(node.table - _tied(graph, node) for node in nodes),
    )


def _tied(graph: Graph, node: Node) -> int:
    """Return how much of an embedding's table is that of a tied matrix."""
    tied = sum(each.tied for each in graph) if node.table else 0
    return tied if tied <= node.table else 0


def _kind(node: Node) -> str:
    """Return what an operator of this kind is called."""
    if node.kind == LINEAR and (len(node.shape) > 1 or node.function == PROJECTION):
        return PROJECTION
    if node.kind in ("positions", "multiply", "add", "activation"):
        return "elementwise"
    return {"response norm": "normalisation", ATTENTION: ATTENTION}.get(node.kind, node.kind)
