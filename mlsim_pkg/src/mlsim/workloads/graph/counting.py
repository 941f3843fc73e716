"""Ways of counting the operations of a layer, each by its name.

No two papers count alike: a multiply-add is one or two, a bias, a ReLU or a pooling window
counts or does not. A count is worth something only with the name of its way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mlsim.errors import InvalidValueError, unknown_name
from mlsim.workloads.graph.nodes import CONVOLUTION, LINEAR, Graph, Node

FLOP, MAC, SEED003, PYTORCH = "flop", "mac", "seed003", "pytorch"


def _flop(node: Node) -> int:
    return 2 * node.multiply_adds


def _mac(node: Node) -> int:
    return node.multiply_adds


def _pytorch(node: Node) -> int:
    return 2 * (node.multiply_adds + node.masked_multiply_adds)


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
    raise InvalidValueError(
        f"count='seed003' has no rule for {node.name}, which is {_named(node)}: it counts "
        "convolutions, linear layers, pooling, ReLU, batch norm and additions. "
        "Use count='flop', 'mac' or 'pytorch'."
    )


def _named(node: Node) -> str:
    return f"{node.kind} ({node.function})" if node.function else node.kind


# What each way counts, in words, and how.
COUNTS: dict[str, tuple[str, Callable[[Node], int]]] = {
    FLOP: ("two for each multiply-add of products and convolutions", _flop),
    MAC: ("one for each multiply-add of products and convolutions", _mac),
    SEED003: ("a bias with each window; two for ReLU; comparisons of a maximum", _seed003),
    PYTORCH: ("as torch.utils.flop_counter: as flop, a causal mask counted in full", _pytorch),
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
    return COUNTS[check_count(count)][1](node)


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
