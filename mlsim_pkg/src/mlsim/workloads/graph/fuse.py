"""From a computation graph to operators: what a good compiler runs as one kernel, and its traffic.

A matrix product takes along what follows it and needs nothing else: normalization, an
activation function, the addition of a shortcut. A norm takes its activation function along.
Matrices of one block that read the same numbers, such as those of queries, keys and values,
are one product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlsim.workloads.graph import ATTENTION, CONVOLUTION, LINEAR, Graph, Node
from mlsim.workloads.model import NetworkOperators, Operator

BATCH_NORM = "batch norm"
# What may run in the kernel of what computed its first input.
_FOLLOWERS = {
    CONVOLUTION: (BATCH_NORM, "activation", "add", "positions", "concatenation", "dropout"),
    LINEAR: (BATCH_NORM, "activation", "softmax", "multiply", "add", "dropout"),
    "experts": ("activation", "multiply", "add"),
    BATCH_NORM: ("activation", "dropout"),
    "norm": ("activation", "dropout"),
    "elementwise": ("activation", "add", "multiply", "dropout"),
    "multiply": ("activation", "add", "multiply", "dropout"),
    "add": ("activation", "dropout"),
    "embedding": ("dropout",),
    "positions": ("dropout",),
    "pooling": ("activation", "dropout"),
    ATTENTION: ("multiply", "dropout"),
    "product": ("add",),
}
# In training a batch norm must have seen the whole batch before it can change a number of it,
# so it is a kernel of its own, in which the addition of a shortcut may run.
_TRAINED = {
    **_FOLLOWERS,
    CONVOLUTION: tuple(kind for kind in _FOLLOWERS[CONVOLUTION] if kind != BATCH_NORM),
    LINEAR: tuple(kind for kind in _FOLLOWERS[LINEAR] if kind != BATCH_NORM),
    BATCH_NORM: (*_FOLLOWERS[BATCH_NORM], "add"),
}
# Each of these may also be followed by what treats every number of its result alike.
_SCALED = frozenset((*_FOLLOWERS, "concatenation", "product", "softmax"))
# A concatenation runs with a convolution only if it joins learned numbers to its output.
LEARNED = "learned token"
GATE = "gate"
# What changes each row by figures of the row, such as its mean.
BY_ROW = "by row"
# What a matrix is called with which each token is multiplied.
PROJECTION = "projection"
# What a module holds and does not use.
NOT_RUN = "not run"


_Followers = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Fused:
    """The nodes of one kernel, and the operator that it is."""

    nodes: tuple[Node, ...]
    operator: Operator

    @property
    def anchor(self) -> Node:
        """The node that the others run with."""
        return self.nodes[0]


def fused(graph: Graph, *, training: bool = False) -> tuple[Fused, ...]:
    """Return the kernels of a graph, in the order in which they run.

    In training each batch norm is a kernel of its own, which reads its input twice: once for
    its mean and variance, and once to use them.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> [each.operator.name for each in fused(graph_of(Models.LeNet5_Variant))]
    ['conv1', 'pool1', 'conv2', 'pool2', 'fc1', 'fc2', 'fc3']
    """
    groups = _groups(graph, _TRAINED if training else _FOLLOWERS)
    live = _live(graph, groups)
    return tuple(
        Fused(nodes, _operator(graph, nodes, alive, training=training))
        for nodes, alive in zip(groups, live, strict=True)
    )


def operators_of(graph: Graph) -> NetworkOperators:
    """Return the operators of a graph as a table."""
    return NetworkOperators(tuple(each.operator for each in fused(graph)))


def _groups(graph: Graph, followers: _Followers) -> list[tuple[Node, ...]]:
    """Return the nodes that run together, in the order in which the last of each runs."""
    homes: dict[str, list[Node]] = {}
    depth = _depths(graph)
    found: list[list[Node]] = []
    for node in graph.layers:
        home = _home(graph, node, homes, depth, followers)
        if node.function == NOT_RUN and found:
            home = found[-1]  # it is held, and no kernel of its own
        if home is None:
            home = []
            found.append(home)
        home.append(node)
        homes[node.name] = home
    return _in_order(graph, found, homes)


def _in_order(
    graph: Graph, groups: list[list[Node]], homes: dict[str, list[Node]]
) -> list[tuple[Node, ...]]:
    """Return groups so that each comes after what it reads, else as their last nodes do."""
    place = {node.name: index for index, node in enumerate(graph.nodes)}
    done: set[int] = set()
    ordered: list[tuple[Node, ...]] = []
    for group in sorted(groups, key=lambda nodes: place[nodes[-1].name]):
        stack = [group]
        while stack:
            needed = next((each for each in _read(graph, stack[-1], homes, done)), None)
            if needed is not None:
                stack.append(needed)
                continue
            top = stack.pop()
            if id(top) not in done:
                done.add(id(top))
                ordered.append(tuple(top))
    return ordered


def _read(
    graph: Graph, group: list[Node], homes: dict[str, list[Node]], done: set[int]
) -> Iterator[list[Node]]:
    """Yield the groups that one reads and that have not run yet."""
    for node in group:
        for source in graph.sources(node):
            home = homes.get(source.name)
            if home is not None and home is not group and id(home) not in done:
                yield home


def _home(
    graph: Graph,
    node: Node,
    homes: dict[str, list[Node]],
    depth: dict[str, int],
    followers: _Followers,
) -> list[Node] | None:
    """Return the kernel in which a node can run: that of its deepest input, if of any."""
    if node.kind == LINEAR:
        return _sibling(graph, node, homes)
    sources = sorted(graph.sources(node), key=lambda each: -depth[each.name])
    for source in sources:
        home = homes.get(source.name)
        if home is None or not _follows(node, home, sources, followers):
            continue
        # What somebody else reads must be written first, unless each number is read once.
        if set(graph.consumers[source.name]) != {node.name} and not _is_split(graph, source):
            continue
        others = [each for each in sources if homes.get(each.name) is not home]
        # A gate weighs what a matrix of the same kernel put out; other factors are written first.
        gates = node.function == GATE or not others
        if node.kind == "multiply" and home[0].kind == LINEAR and not gates:
            continue
        if not _leads_to(graph, home, node, others):
            return home
    return None


def _is_split(graph: Graph, source: Node) -> bool:
    """Tell whether those that read a layer's numbers read a part each, and all of them once.

    So queries are turned, and values are not, of one matrix's result.
    """
    views = [
        graph[name].elements
        for reader in dict.fromkeys(graph.consumers[source.name])
        for name in dict.fromkeys(graph[reader].inputs)
        if graph.root(name) == source.name
    ]
    return len(views) > 1 and sum(views) == source.elements


def _follows(node: Node, home: list[Node], sources: list[Node], followers: _Followers) -> bool:
    """Tell whether a node may run with what a kernel consists of so far."""
    anchor = home[0].kind
    if node.function == BY_ROW:
        return False  # a row must be there as a whole
    if node.kind == "elementwise":
        # Of a network that is known by its operators alone, each is a kernel.
        return len(sources) == 1 and node.read is None and anchor in _SCALED
    if node.kind == "concatenation" and node.function != LEARNED:
        return False
    # Positions are added to patches, not to what went through a network.
    if node.kind == "positions" and home[-1].kind not in (CONVOLUTION, "concatenation"):
        return False
    return node.kind in followers.get(anchor, ())


def _sibling(graph: Graph, node: Node, homes: dict[str, list[Node]]) -> list[Node] | None:
    """Return the kernel of another matrix of the same block that reads the same numbers."""
    for source in graph.sources(node):
        for name in graph.consumers[source.name]:
            other = graph[name]
            if name not in homes or other.kind != LINEAR or other.block != node.block:
                continue
            if node.block and other.inputs == node.inputs and homes[name][0].kind == LINEAR:
                return homes[name]
    return None


def _leads_to(graph: Graph, home: list[Node], node: Node, others: list[Node]) -> bool:
    """Tell whether what else a node reads is computed from a kernel that it would join.

    Only a kernel of which others read something puts it out before it is complete.
    """
    within = {node.name, *(each.name for each in home)}
    if all(within.issuperset(graph.consumers[each.name]) for each in home):
        return False
    names, seen = {node.name for node in home}, set[str]()
    stack = [each.name for each in others]
    while stack:
        name = stack.pop()
        if name in names:
            return True
        if name not in seen:
            seen.add(name)
            stack.extend(each.name for each in graph.sources(graph[name]))
    return False


def _depths(graph: Graph) -> dict[str, int]:
    """Return how many layers lead to each node, at the longest."""
    depth: dict[str, int] = {}
    for node in graph:
        before = max((depth[name] for name in node.inputs), default=0)
        depth[node.name] = before + (not node.is_view)
    return depth


def _live(graph: Graph, groups: list[tuple[Node, ...]]) -> list[int]:
    """Return the elements alive while each kernel runs: read, written, or kept for later."""
    results = [results_of(graph, nodes) for nodes in groups]
    first = {node.name: index for index, nodes in enumerate(results) for node in nodes}
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
        written = sum(written_of(graph, nodes).values())
        found.append(waiting + (sum(own) if own else ends) + written)
    return found


def results_of(graph: Graph, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the nodes of a kernel whose numbers leave it."""
    own = {node.name for node in nodes}
    return tuple(
        node
        for node in nodes
        if not graph.consumers[node.name] or not own.issuperset(graph.consumers[node.name])
    )


def written_of(graph: Graph, nodes: tuple[Node, ...]) -> dict[str, int]:
    """Return the results of a kernel, and how many numbers of each leave it.

    Of one that the kernel itself goes on with, these are the parts that others read.
    """
    own = {node.name for node in nodes}
    found = {}
    for node in results_of(graph, nodes):
        found[node.name] = node.elements
        readers = graph.consumers[node.name]
        if own.intersection(readers):
            others = [graph[name] for name in readers if name not in own]
            found[node.name] = graph.taken(others)[node.name]
    return found


def _operator(
    graph: Graph, nodes: tuple[Node, ...], live: int, *, training: bool = False
) -> Operator:
    anchor = nodes[0]
    own = [node.read for node in nodes if node.read is not None]
    read = sum(own) if own else sum(graph.taken(nodes).values())
    if training and anchor.kind == BATCH_NORM:
        read += graph.elements_read(anchor)
    return Operator(
        name=anchor.name,
        kind=_kind(anchor),
        multiply_adds=sum(node.multiply_adds for node in nodes),
        # A tied matrix is read here in full, so it is held here, and not by the embedding.
        parameters=sum(node.weights + node.biases + node.tied for node in nodes),
        activations_read=read,
        activations_written=sum(written_of(graph, nodes).values()),
        activations_live=live,
        outputs=sum(node.outputs for node in nodes),
        table_parameters=sum(node.table - _tied(graph, node) for node in nodes),
    )


def _tied(graph: Graph, node: Node) -> int:
    """Return how much of an embedding's table is that of a tied matrix: the first large enough."""
    tied = sum(each.tied for each in graph) if node.table else 0
    holder = next((each for each in graph if each.table >= tied), None) if tied else None
    return tied if holder is node else 0


def _kind(node: Node) -> str:
    """Return what an operator of this kind is called."""
    if node.kind == LINEAR and (len(node.shape) > 1 or node.function == PROJECTION):
        return PROJECTION
    if node.kind in ("positions", "multiply", "add", "activation"):
        return "elementwise"
    return {"response norm": "normalisation", ATTENTION: ATTENTION}.get(node.kind, node.kind)


# MB of a printed summary.
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Traffic:
    """The bytes of a graph's layers; `element_bytes` is that of weights and activations.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> graph = graph_of(Models.LeNet5_Variant)
    >>> Traffic(graph, batch_size=1, element_bytes=4).moved((graph["fc3"],), 1200)["bytes_in"]
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

    def moved(self, nodes: tuple[Node, ...], work: float) -> dict[str, float]:
        """Return what a kernel or a layer by itself moves, and its intensity."""
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
