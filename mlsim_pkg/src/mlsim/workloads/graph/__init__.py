"""A computation graph: the layers that a framework runs, each with what it reads and holds.

Here a convolution, its batch normalization and its ReLU are three nodes; `fuse` makes one
operator of them, as a compiler does.

No two papers count operations alike: a multiply-add is one or two, a bias, a ReLU or a pooling
window counts or does not. A count is worth something only with the name of its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from mlsim.equations.transformer import expert_share
from mlsim.errors import InvalidValueError, unknown_name

# What a node may be. The first three are matrix products.
CONVOLUTION, LINEAR, ATTENTION = "convolution", "linear", "attention"
KINDS = (
    *("input", CONVOLUTION, LINEAR, ATTENTION, "batch norm", "norm", "response norm"),
    *("activation", "softmax", "pooling", "add", "multiply", "elementwise", "dropout"),
    *("concatenation", "reshape", "embedding", "positions", "product", "recurrent", "router"),
    *("experts", "distances", "interaction", "resampling", "other"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One layer of a network, counted for one sample.

    Attributes
    ----------
    name
        Such as "layer1.0.conv1"; what stands before the last point is its block.
    kind, function
        One of `KINDS`, and which of that kind, such as "relu" or "max".
    inputs
        Names of the nodes whose outputs it reads.
    shape
        Of its output, without the batch.
    weights, biases
        Learned numbers that a step reads: in matrices and windows, and added ones.
    table
        Learned numbers in tables of which a sample reads a few rows.
    tied
        Learned numbers of another node that it reads too, such as a table of embeddings.
    chosen
        Of experts: how many each token chooses, and of how many.
    buffers
        Numbers that it holds without learning them, such as running means.
    multiply_adds
        MAC of matrix products and convolutions.
    masked_multiply_adds
        Further MAC that a program does which computes what a causal mask hides.
    window
        Numbers that go into each output: of a window, or a row of a matrix.
    outputs
        Columns of the matrix product that it is, else 0.
    read
        Elements that it reads, where those are not all of its inputs.
    kept_bytes
        Bytes besides activations that training keeps of a sample, such as indices.
    element_bytes
        Bytes of an element of its output, if the number format does not say (0).
    in_place, once, functional
        Whether it writes over its input; whether its output is one for the whole batch;
        whether it is a function that its program calls, and no module of its own.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    inputs: tuple[str, ...] = ()
    function: str = ""
    weights: int = 0
    biases: int = 0
    table: int = 0
    tied: int = 0
    chosen: tuple[int, int] | None = None
    buffers: int = 0
    multiply_adds: int = 0
    masked_multiply_adds: int = 0
    window: int = 0
    outputs: int = 0
    read: int | None = None
    kept_bytes: int = 0
    element_bytes: int = 0
    in_place: bool = False
    once: bool = False
    functional: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_name("kind of layer", self.kind, KINDS)
        if any(size < 0 for size in self.shape):
            raise InvalidValueError(f"{self.name}: no shape has a side below 0: {self.shape}.")

    @property
    def elements(self) -> int:
        """Numbers in its output."""
        return prod(self.shape)

    @property
    def parameters(self) -> int:
        """Learned numbers that it holds."""
        return self.weights + self.biases + self.table

    def parameters_read(self, samples: int = 1) -> float:
        """Return the learned numbers that so many samples read together, rows of tables apart.

        Experts are read if one token or more chose them: the number that is to be expected.

        >>> Node(name="up", kind="experts", shape=(3, 8), weights=80, chosen=(2, 8)
        ...      ).parameters_read()
        46.25
        """
        held = float(self.weights + self.biases)
        if self.chosen:
            held *= expert_share(*self.chosen, samples * self.shape[0])
        return held + self.tied

    @property
    def is_view(self) -> bool:
        """Whether its output is its input under another shape: no bytes, no work."""
        return self.kind == "reshape"

    @property
    def block(self) -> str:
        """The block that it belongs to, or "" if it stands by itself."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in the order in which they run.

    Raises
    ------
    InvalidValueError
        If two nodes have one name, or one reads what has not been computed yet.

    >>> graph = Graph((Node(name="x", kind="input", shape=(8,)),
    ...                Node(name="y", kind="linear", shape=(4,), inputs=("x",), weights=32)))
    >>> graph.parameters, graph.elements_read(graph["y"])
    (32, 8)
    """

    nodes: tuple[Node, ...]
    # Why some of it could not be counted exactly, in words; empty if all was.
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for node in self.nodes:
            if node.name in seen:
                raise InvalidValueError(f"two layers are called {node.name!r}; names must differ.")
            for source in node.inputs:
                if source not in seen:
                    raise InvalidValueError(
                        f"{node.name} reads {source!r}, which no earlier layer computes."
                    )
            seen.add(node.name)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """Nodes by their names."""
        return {node.name: node for node in self.nodes}

    def __getitem__(self, name: str) -> Node:
        if name not in self.by_name:
            raise unknown_name("layer", name, self.by_name)
        return self.by_name[name]

    @property
    def layers(self) -> tuple[Node, ...]:
        """The nodes that do something: neither inputs nor other shapes of the same numbers."""
        return tuple(each for each in self if each.kind != "input" and not each.is_view)

    @cached_property
    def consumers(self) -> dict[str, tuple[str, ...]]:
        """Names of the nodes that read each node's numbers, through other shapes of them too."""
        found: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            if not node.is_view:
                for source in node.inputs:
                    found[self.root(source)].append(node.name)
        return {name: tuple(readers) for name, readers in found.items()}

    def root(self, name: str) -> str:
        """Return the node that computed the numbers which a node shows in another shape."""
        node = self[name]
        while node.is_view:
            node = self[node.inputs[0]]
        return node.name

    def sources(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes that computed what a node reads, each once."""
        return tuple(self[name] for name in dict.fromkeys(map(self.root, node.inputs)))

    def elements_read(self, node: Node) -> int:
        """Return the numbers of activation that a node reads for one sample."""
        if node.read is not None:
            return node.read
        return sum(self.taken((node,)).values())

    def taken(self, nodes: Iterable[Node]) -> dict[str, int]:
        """Return how many numbers nodes that run together read of each other node's output.

        Of a part of them, such as the first token, only that part is read.
        """
        nodes = tuple(nodes)
        own = {node.name for node in nodes}
        seen = dict.fromkeys(name for node in nodes for name in node.inputs)
        found: dict[str, int] = {}
        for name in seen:
            root = self.root(name)
            if root not in own:
                parts = found.get(root, 0) + self[name].elements
                found[root] = min(parts, self[root].elements)
        return found

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of the nodes whose numbers nobody reads: what the network puts out."""
        return tuple(
            node.name
            for node in self.nodes
            if not node.is_view and node.kind != "input" and not self.consumers[node.name]
        )

    @property
    def parameters(self) -> int:
        """Learned numbers in all nodes."""
        return sum(node.parameters for node in self)

    @property
    def multiply_adds(self) -> int:
        """MAC of matrix products and convolutions for one sample."""
        return sum(node.multiply_adds for node in self)


FLOP, MAC, SEED003, PYTORCH = "flop", "mac", "seed003", "pytorch"


# The rules of pthflops, which printed the seed's table: each output of a convolution is its
# window and its bias, each of ReLU and batch norm two, each of a maximum one less than its
# window, each of a mean its window, each of a sum or a product of numbers one.
_SEED_FREE = ("dropout", "reshape", "input", "concatenation")
_SEED_EACH = {"batch norm": 2, "add": 1, "multiply": 1}


def _seed003(node: Node) -> int:
    if node.kind == CONVOLUTION:
        return node.elements * (node.window + bool(node.biases))
    if node.kind == LINEAR:
        return node.multiply_adds
    if node.kind == "pooling" and node.function in ("max", "mean"):
        return node.elements * (node.window - (node.function == "max"))
    if node.kind == "activation" and node.function in ("relu", "relu6"):
        return 2 * node.elements
    if node.kind in _SEED_EACH:
        return _SEED_EACH[node.kind] * node.elements
    if node.kind in _SEED_FREE:
        return 0
    what = f"{node.kind} ({node.function})" if node.function else node.kind
    raise InvalidValueError(
        f"count='seed003' has no rule for {node.name}, which is {what}: it counts "
        "convolutions, linear layers, pooling, ReLU, batch norm and additions. "
        "Use count='flop', 'mac' or 'pytorch'."
    )


# What each way counts, in words.
COUNTS = {
    FLOP: "two for each multiply-add of products and convolutions",
    MAC: "one for each multiply-add of products and convolutions",
    SEED003: "a bias with each window; two for ReLU; comparisons of a maximum",
    PYTORCH: "as torch.utils.flop_counter: as flop, a causal mask counted in full",
}


def check_count(count: str) -> str:
    """Return the name of a way of counting, if it is one.

    Raises
    ------
    UnknownNameError
        If it is none; names those there are.
    """
    if count not in COUNTS:
        raise unknown_name("way of counting", count, COUNTS)
    return count


def operations(node: Node, count: str = FLOP) -> int:
    """Return the operations of a layer for one sample, in a way of counting.

    Raises
    ------
    UnknownNameError
        If there is no such way.
    InvalidValueError
        If that way has no rule for the layer.

    >>> relu = Node(name="relu", kind="activation", function="relu", shape=(6, 24, 24))
    >>> operations(relu, "seed003"), operations(relu, "flop")
    (6912, 0)
    """
    if check_count(count) == SEED003:
        return _seed003(node)
    hidden = node.masked_multiply_adds if count == PYTORCH else 0
    return (1 if count == MAC else 2) * (node.multiply_adds + hidden)


def total(graph: Graph | Iterable[Node], count: str = FLOP) -> int:
    """Return the operations of all layers for one sample."""
    return sum(operations(node, count) for node in graph)


def backward_multiply_adds(graph: Graph, node: Node, learning: frozenset[str]) -> int:
    """Return the MAC of a layer's way back: for its weights, and for what it read.

    `learning` names the nodes whose outputs depend on something learned; what reads the
    network's own input needs no error of it.
    """
    products = node.multiply_adds
    of_weights = products if node.weights else 0
    of_inputs = products if any(each.name in learning for each in graph.sources(node)) else 0
    # Of two activations that are multiplied, each has an error.
    both = 2 * products if not node.weights and of_inputs else 0
    return both or of_weights + of_inputs
