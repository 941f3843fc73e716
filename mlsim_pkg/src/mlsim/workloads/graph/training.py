"""What a step of training holds, moment by moment, and its kernels: there, back, and the update.

The rules of what is held are those of PyTorch's autograd, read in its `derivatives.yaml`: a
product keeps what it read, ReLU what it put out, an addition nothing. A tensor lives until its
last reader is done, and so does the gradient of it, called its error here.

The way back of a product is two products of the same size: one for the error of what it read,
one for the gradient of its weights. Every other kernel reads the error of what it put out, what
was kept, and writes the error of what it read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from mlsim.workloads.graph import Graph, Node, backward_multiply_adds
from mlsim.workloads.graph.fuse import BATCH_NORM, Fused, fused
from mlsim.workloads.model import Lowered, Model, Network, Operator, OperatorTable, Shape

# Kinds of layer that keep what they read, or what they put out, for the way back.
_KEEP_INPUTS = frozenset(
    (
        *("convolution", "linear", "attention", "batch norm", "norm", "response norm"),
        *("pooling", "multiply", "product", "distances", "experts", "router", "recurrent"),
    )
)
_KEEP_OUTPUT = frozenset(("softmax", "attention", "recurrent"))
_FUNCTIONS_KEEP_OUTPUT = frozenset(("relu", "sigmoid", "tanh"))
# A mean and a deviation of each channel of a batch norm, or each place of a norm; a place
# number for each maximum; PyTorch's response norm makes three arrays besides its output.
_STATISTICS = 2 * 4
_PLACE_NUMBER = 8
_RESPONSE_ARRAYS = 3
KINDS = ("weights", "states", "gradients", "outputs", "errors")


@dataclass(frozen=True, slots=True)
class Moment:
    """What lies in memory while one layer runs, in bytes by kind.

    `phase` is "forward", "loss", "backward" or "update".
    """

    phase: str
    layer: str
    held: Mapping[str, float]

    @property
    def total(self) -> float:
        """Bytes in all."""
        return sum(self.held.values())


def learning(graph: Graph) -> frozenset[str]:
    """Return the nodes whose outputs depend on something learned: they have an error."""
    found: set[str] = set()
    for node in graph:
        if node.parameters or found.intersection(node.inputs):
            found.add(node.name)
    return frozenset(found)


def keeps_input(node: Node) -> bool:
    """Tell whether training keeps what a layer read."""
    if node.kind == "activation":
        return node.function not in _FUNCTIONS_KEEP_OUTPUT
    return node.kind in _KEEP_INPUTS


def keeps_output(node: Node) -> bool:
    """Tell whether training keeps what a layer put out."""
    if node.kind == "activation":
        return node.function in _FUNCTIONS_KEEP_OUTPUT
    return node.kind in _KEEP_OUTPUT


def kept_besides(node: Node, batch_size: int, element_bytes: float) -> float:
    """Return what training keeps of a layer besides its input and output, in bytes."""
    own = float(node.kept_bytes * batch_size)
    if node.kind == "batch norm":
        return own + _STATISTICS * node.shape[0]
    if node.kind == "norm":
        # One that does not take the mean off keeps no mean.
        statistics = _STATISTICS // 2 if node.function == "rms" else _STATISTICS
        return own + statistics * batch_size * node.elements / node.shape[-1]
    if node.kind == "pooling" and node.function == "max":
        return own + _PLACE_NUMBER * batch_size * node.elements
    if node.kind == "dropout" and node.function == "maps":
        return own + batch_size * node.shape[0] * element_bytes
    if node.kind == "dropout":
        return own + batch_size * node.elements
    if node.kind == "response norm":
        return own + _RESPONSE_ARRAYS * batch_size * node.elements * element_bytes
    if node.kind == "activation" and node.in_place and not keeps_output(node):
        # What it wrote over is what it needs: PyTorch copies it first.
        return own + batch_size * node.elements * element_bytes
    if node.kind == "activation" and node.function.endswith("gated"):
        return own + batch_size * node.elements * element_bytes
    return own


@dataclass(frozen=True, slots=True)
class _Block:
    """Memory from one moment to another, both included."""

    kind: str
    size: float
    born: int
    dies: int


class TrainingStep:
    """One step of training of a graph.

    Parameters
    ----------
    graph
        The network.
    batch_size, element_bytes
        Samples in the step; bytes of each number of weights, activations and gradients.
    states
        Numbers that the optimizer keeps of each parameter: 0, 1 (momentum) or 2 (Adam).
    gradient_bytes
        Bytes of the gradient of a weight, if those are not the bytes of the weight.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> step = TrainingStep(graph_of(Models.LeNet5_Variant), batch_size=1, element_bytes=4)
    >>> step.peak.phase, step.held("weights")
    ('backward', 165128.0)
    """

    def __init__(
        self,
        graph: Graph,
        *,
        batch_size: int,
        element_bytes: float,
        states: int = 0,
        gradient_bytes: float | None = None,
    ) -> None:
        self.graph, self.batch_size = graph, batch_size
        self.element_bytes, self.states = element_bytes, states
        self.gradient_bytes = element_bytes if gradient_bytes is None else gradient_bytes
        self.layers = graph.layers
        self._place = {node.name: index for index, node in enumerate(self.layers)}
        self._loss = len(self.layers)
        self._end = 2 * self._loss + 1
        self._learns = learning(graph)
        self.moments = tuple(self._moments())

    @property
    def peak(self) -> Moment:
        """The moment at which most is held; of several, the first."""
        return max(self.moments, key=lambda moment: moment.total)

    def held(self, kind: str) -> float:
        """Return the most that is held of a kind at one time."""
        return max(moment.held[kind] for moment in self.moments)

    def bytes_of(self, node: Node) -> float:
        """Return the size of a node's output for the whole batch."""
        samples = 1 if node.once else self.batch_size
        return samples * node.elements * (node.element_bytes or self.element_bytes)

    def _backward(self, name: str) -> int:
        """Return the moment at which a layer's way back runs."""
        return self._end - 1 - self._place[name]

    def _storage(self, name: str) -> str:
        """Return the node that first wrote the memory in which a node's output lies."""
        node = self.graph[self.graph.root(name)]
        while node.in_place and node.inputs:
            node = self.graph[self.graph.root(node.inputs[0])]
        return node.name

    def _blocks(self) -> Iterator[_Block]:
        yield from self._outputs()
        yield from self._errors()
        for node in self.layers:
            besides = kept_besides(node, self.batch_size, self.element_bytes)
            if besides and node.name in self._learns:
                place = self._place[node.name]
                yield _Block("outputs", besides, place, self._backward(node.name))
            if node.parameters:
                size = node.parameters * self.gradient_bytes
                yield _Block("gradients", size, self._backward(node.name), self._end)
        weights = (self.graph.parameters + 0.0) * self.element_bytes
        yield _Block("weights", weights, 0, self._end)
        yield _Block("states", weights * self.states, 0, self._end)
        buffers = sum(node.buffers for node in self.graph)
        yield _Block("weights", buffers * self.element_bytes, 0, self._end)

    def _outputs(self) -> Iterator[_Block]:
        """Yield what layers put out; the input is held to the end, and so is the result."""
        dies: dict[str, int] = {}
        for node in self.layers:
            own = self._storage(node.name)
            dies[own] = max(dies.get(own, 0), self._place[node.name])
            back = self._backward(node.name) if node.name in self._learns else 0
            if keeps_output(node):
                dies[own] = max(dies[own], back)
            for source in map(self._storage, node.inputs):
                until = back if keeps_input(node) else self._place[node.name]
                dies[source] = max(dies.get(source, 0), until)
        ends = {self._storage(name) for name in self.graph.outputs}
        for node in self.graph:
            if node.is_view or self._storage(node.name) != node.name:
                continue
            lasts = node.kind == "input" or node.name in ends
            born = self._place.get(node.name, 0)
            yield _Block(
                "outputs",
                self.bytes_of(node),
                born,
                self._end if lasts else dies.get(node.name, born),
            )
        # The loss keeps the logarithms of the probabilities until it has gone back.
        for name in self.graph.outputs:
            yield _Block("outputs", self.bytes_of(self.graph[name]), self._loss, self._loss)

    def _errors(self) -> Iterator[_Block]:
        """Yield the gradients of what layers put out; those of a sum are one."""
        born: dict[str, int] = dict.fromkeys(self.graph.outputs, self._loss)
        dies: dict[str, int] = {}
        shared: dict[str, str] = {}
        for node in reversed(self.layers):
            back = self._backward(node.name)
            own = shared.get(node.name, node.name)
            dies[own] = max(dies.get(own, 0), back)
            for source in dict.fromkeys(map(self.graph.root, node.inputs)):
                if source not in self._learns or source in born:
                    continue
                # What one layer only reads, a sum, has no error of its own.
                if node.kind == "add" and len(self.graph.consumers[source]) == 1:
                    shared[source] = own
                    continue
                born[source] = back
        for name in self.graph.outputs:  # that of the logarithms
            yield _Block("errors", self.bytes_of(self.graph[name]), self._loss, self._loss)
        for name, first in born.items():
            if name in self._learns:
                yield _Block("errors", self.bytes_of(self.graph[name]), first, dies[name])

    def _moments(self) -> Iterator[Moment]:
        changes: list[dict[str, float]] = [dict.fromkeys(KINDS, 0.0) for _ in range(self._end + 2)]
        for block in self._blocks():
            changes[block.born][block.kind] += block.size
            changes[block.dies + 1][block.kind] -= block.size
        held = dict.fromkeys(KINDS, 0.0)
        names = [node.name for node in self.layers]
        labels = [("forward", name) for name in names]
        labels += [("loss", ""), *(("backward", name) for name in reversed(names))]
        labels += [("update", "")]
        for (phase, layer), change in zip(labels, changes, strict=False):
            held = {kind: held[kind] + change[kind] for kind in KINDS}
            yield Moment(phase, layer, dict(held))


BACKWARD, UPDATE = "backward", "update"


@dataclass(frozen=True, slots=True)
class Recorded:
    """Operators that are known as they are, as a layer of a network."""

    name: str
    operators: tuple[Operator, ...]

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Return the operators."""
        return Lowered(self.operators, shape)


def network_of(
    graph: Graph, *, like: Model | None = None, name: str = "", samples: int = 0
) -> Network:
    """Return a network whose operators are those of a graph, fused.

    With `samples` its parameters are those that so many samples read, to be timed: of
    experts, those that some token is expected to choose.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> network_of(graph_of(Models.ResNet18), name="mine").parameter_count
    11689512
    """
    found = []
    for kernel in fused(graph):
        operator = kernel.operator
        if samples and any(node.chosen for node in kernel.nodes):
            read = sum(node.parameters_read(samples) for node in kernel.nodes)
            operator = replace(operator, parameters=round(read))
        found.append(operator)
    return _network(tuple(found), like, name)


def training_network(graph: Graph, states: int, *, like: Model | None = None) -> Network:
    """Return the kernels of one training step as a network, to be timed.

    Its "parameters" are what each kernel moves of weights, gradients and the optimizer's
    states, and not what the network holds.
    """
    forward, back = both_ways(graph)
    # Weights, gradients and states are read; weights and states are written.
    update = Operator(UPDATE, "elementwise", parameters=graph.parameters * (3 + 2 * states))
    return _network((*forward, *back, update), like, "")


def both_ways(graph: Graph) -> tuple[tuple[Operator, ...], tuple[Operator, ...]]:
    """Return the kernels of a training step forward, and those of the way back, in order.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> [len(way) for way in both_ways(graph_of(Models.LeNet5_Variant))]
    [7, 7]
    """
    kernels, learns = fused(graph, training=True), learning(graph)
    back = (_backward(graph, each, learns) for each in reversed(kernels))
    return tuple(each.operator for each in kernels), tuple(each for each in back if each)


def _network(operators: tuple[Operator, ...], like: Model | None, name: str) -> Network:
    name = name or (like.name if like else "network")
    return Network(
        key=like.key if like else name,
        name=name,
        architecture=like.architecture if like else "computation graph",
        source=like.source if like else "",
        figures=like.figures if like else {},
        input=Shape(1, 1),
        layers=(Recorded("graph", operators),),
    )


def _backward(graph: Graph, kernel: Fused, learns: frozenset[str]) -> Operator | None:
    """Return the way back of a kernel, both products of it in one row; None if it has none."""
    operator, nodes = kernel.operator, kernel.nodes
    if not any(node.name in learns for node in nodes):
        return None
    multiply_adds = sum(backward_multiply_adds(graph, node, learns) for node in nodes)
    kept = sum(_kept(graph, kernel))
    errors = sum(count for name, count in graph.taken(nodes).items() if name in learns)
    products = 2 if operator.multiply_adds and errors else 1
    moved = products * operator.activations_written + kept + errors
    if kernel.anchor.kind == BATCH_NORM:
        # First the sums over the whole batch of errors and of errors times inputs, then the rest.
        moved += operator.activations_written + kept
    return Operator(
        name=f"{operator.name}: {BACKWARD}",
        kind=operator.kind,
        multiply_adds=multiply_adds,
        # Weights are read for the error of the input, and their gradient is written.
        parameters=operator.parameters * (2 if errors else 1) + operator.table_parameters,
        # Of what is moved, so much is written that its rows are those of the way forward.
        activations_read=moved - operator.activations_written,
        activations_written=operator.activations_written,
        activations_live=operator.activations_live,
        # A first layer's way back writes no map: the gradient of its weights counts as full.
        outputs=operator.outputs if errors else 0,
    )


def _kept(graph: Graph, kernel: Fused) -> Iterator[int]:
    """Yield the elements that the way back reads again."""
    own = {node.name for node in kernel.nodes}
    for node in kernel.nodes:
        if keeps_output(node):
            yield node.elements
        if keeps_input(node):
            yield sum(
                count
                for name, count in graph.taken((node,)).items()
                if name not in own or node.weights
            )


# A mean and a variance are kept in 32 bits whatever the format of the weights.
_STATISTIC_BYTES = 4
_COLUMNS = ("multiply_adds", "parameters", "activations_read", "activations_written", "outputs")
_PASSES = ("forward_repeats", "backward_repeats", "all_repeats")


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes that a step holds of gradients, and of activations with their errors, at its peak."""

    gradients: float
    activations: float


@lru_cache(maxsize=64)
def step_table(graph: Graph) -> OperatorTable[Operator]:
    """Return the kernels of a micro-batch, equal ones in one row, counted for one sample.

    Columns beside their counts say how often a row runs forward, and on the way back.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> table = step_table(graph_of(Models.ResNet18))
    >>> sum(table.columns["forward_repeats"]), len(table) < sum(table.columns["all_repeats"])
    (43.0, True)
    """
    rows: dict[Operator, Operator] = {}
    counts: dict[Operator, list[float]] = {}
    for way, operators in enumerate(both_ways(graph)):
        for operator in operators:
            # What is alive beside it is no count of its own.
            same = replace(operator, name="", activations_live=0, repeats=1)
            rows.setdefault(same, operator)
            counts.setdefault(same, [0.0, 0.0])[way] += operator.repeats
    merged = tuple(replace(rows[same], repeats=int(sum(count))) for same, count in counts.items())
    columns = [(forward, back, forward + back) for forward, back in counts.values()]
    return OperatorTable(
        merged, _COLUMNS, dict(zip(_PASSES, zip(*columns, strict=True), strict=True))
    )


@lru_cache(maxsize=256)
def held(
    graph: Graph, batch_size: int, element_bytes: float, gradient_bytes: float, *, whole: bool
) -> Held:
    """Return what a step holds at its peak, beside weights and states.

    Parameters
    ----------
    graph
        The network, described closely enough: without notes.
    batch_size, element_bytes, gradient_bytes
        Samples of a micro-batch; bytes of each activation and of each gradient.
    whole
        Whether gradients of all weights are there all the time: as where they are added up
        over micro-batches, or lie in buckets to be sent.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> lenet = graph_of(Models.LeNet5_Variant)
    >>> held(lenet, 1, 4.0, 4.0, whole=True).gradients
    165128.0
    """
    step = TrainingStep(
        graph, batch_size=batch_size, element_bytes=element_bytes, gradient_bytes=gradient_bytes
    )
    moments = [
        Held(
            gradient_bytes * graph.parameters if whole else moment.held["gradients"],
            moment.held["outputs"] + moment.held["errors"],
        )
        for moment in step.moments
    ]
    return max(moments, key=lambda each: each.gradients + each.activations)


def read_parameters(network: Network) -> float:
    """Return the parameters that every step reads: all but tables, of which it reads rows.

    >>> from mlsim import Models
    >>> read_parameters(Models.ResNet50)
    25557032.0
    """
    return float(network.parameter_count - network.operators.table_parameters)


def statistics_bytes(graph: Graph) -> float:
    """Return the bytes of the running statistics of all batch norms.

    >>> from mlsim import Models
    >>> from mlsim.workloads.graph.networks import graph_of
    >>> statistics_bytes(graph_of(Models.ResNet50))
    212480.0
    """
    return float(_STATISTIC_BYTES * sum(node.buffers for node in graph))
