"""Kernels of a training step, and what it moves and holds, counted by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mlsim import Models
from mlsim.workloads.graph import Graph, Node
from mlsim.workloads.graph.fuse import Traffic, fused
from mlsim.workloads.graph.training import (
    Held,
    both_ways,
    held,
    network_of,
    step_table,
    training_network,
)


def chain(*parts: tuple[Any, ...]) -> Graph:
    """Return a graph of nodes: name, kind, shape, names of inputs, and what else is told."""
    nodes = [Node(name="x", kind="input", shape=(3, 5))]
    for name, kind, shape, inputs, told in parts:
        given = tuple(inputs.split())
        nodes.append(Node(name=name, kind=kind, shape=shape, inputs=given, **told))
    return Graph(tuple(nodes))


RELU = {"function": "relu"}
NORM = {"weights": 2, "biases": 2, "buffers": 4}
# A residual block of 2 x 5 numbers with a convolution in its shortcut, and what comes behind it.
RESIDUAL = chain(
    ("scale", "elementwise", (3, 5), "x", {}),
    ("prelu", "activation", (3, 5), "scale", {"function": "prelu", "weights": 3}),
    (
        "a",
        "convolution",
        (2, 5),
        "prelu",
        {"weights": 30, "biases": 2, "multiply_adds": 150, "outputs": 2},
    ),
    ("a_bn", "batch norm", (2, 5), "a", NORM),
    ("a_relu", "activation", (2, 5), "a_bn", RELU),
    ("b", "convolution", (2, 5), "a_relu", {"weights": 20, "multiply_adds": 100, "outputs": 2}),
    ("b_bn", "batch norm", (2, 5), "b", NORM),
    ("down", "convolution", (2, 5), "x", {"weights": 15, "multiply_adds": 75, "outputs": 2}),
    ("add", "add", (2, 5), "b_bn down", {}),
    ("relu", "activation", (2, 5), "add", RELU),
    ("pool", "pooling", (2,), "relu", {"function": "max"}),
    ("drop", "dropout", (2,), "relu", {"function": "maps"}),
    ("sum", "add", (2,), "pool drop", {}),
    ("fc", "linear", (7,), "sum", {"weights": 14, "biases": 7, "multiply_adds": 14, "outputs": 7}),
    ("fc_gelu", "activation", (7,), "fc", {"function": "gelu"}),
)


def counts(operators: Any) -> list[tuple[Any, ...]]:
    return [
        (
            each.name.replace(": backward", ""),
            each.multiply_adds,
            each.parameters,
            each.activations_read,
            each.activations_written,
            each.outputs,
        )
        for each in operators
    ]


def test_the_kernels_of_a_residual_block() -> None:
    """Name, multiply-adds, parameters, numbers read and written, columns.

    A batch norm is a kernel that reads its input twice. The way back reads what was kept and the
    error of what was written, of a product twice; it writes the errors of what was read. It is
    twice the product, but for the first one: nothing asks for an error of x.
    """
    forward = [
        ("scale", 0, 3, 15, 15, 0),
        ("a", 150, 32, 15, 10, 2),
        ("a_bn", 0, 4, 2 * 10, 10, 0),
        ("b", 100, 20, 10, 10, 2),
        ("down", 75, 15, 15, 10, 2),
        ("b_bn", 0, 4, 2 * 10 + 10, 10, 0),
        ("pool", 0, 0, 10, 2, 0),
        ("drop", 0, 0, 10, 2, 0),
        ("sum", 0, 0, 4, 2, 0),
        ("fc", 14, 21, 2, 7, 7),
    ]
    # What is kept, the errors of what was read, and once more what was written: as many numbers
    # as the way forward writes count as written.
    back = [
        ("fc", 2 * 14, 2 * 21, 2 + 2 + 7, 7, 7),
        ("sum", 0, 0, 4, 2, 0),
        ("drop", 0, 0, 10, 2, 0),
        ("pool", 0, 0, 10 + 10, 2, 0),
        ("b_bn", 0, 2 * 4, 2 * (10 + 10) + 10 + 2 * 10, 10, 0),
        ("down", 75, 15, 15, 10, 0),
        ("b", 2 * 100, 2 * 20, 10 + 10 + 10, 10, 2),
        ("a_bn", 0, 2 * 4, 2 * (10 + 10) + 10 + 10, 10, 0),
        ("a", 2 * 150, 2 * 32, 15 + 15 + 10, 10, 2),
        ("scale", 0, 3, 15, 15, 0),
    ]
    ways = both_ways(RESIDUAL)
    assert [counts(way) for way in ways] == [forward, back]
    *others, update = training_network(RESIDUAL, states=2).operators
    assert tuple(others) == (*ways[0], *ways[1])
    # Weights, gradients and two states are read; weights and states are written.
    assert counts([update]) == [("update", 0, 7 * RESIDUAL.parameters, 0, 0, 0)]
    # Three kernels do the same in both directions: they are one row.
    table = step_table(RESIDUAL)
    assert [row.name for row in table if row.repeats > 1] == ["scale", "drop", "sum"]
    ways_of_row = zip(
        *(table.columns[f"{way}_repeats"] for way in ("forward", "backward", "all")), strict=True
    )
    assert Counter(ways_of_row) == {(1, 1, 2): 3, (1, 0, 1): 7, (0, 1, 1): 7}
    assert sum(table.columns["all_repeats"]) == len(forward) + len(back)


def test_a_step_holds_all_gradients_or_those_that_are_there() -> None:
    """Bytes of gradients and of outputs with errors, at the moment with the most of both."""
    graph = chain(
        ("a", "linear", (5,), "x", {"weights": 50}),
        ("a_relu", "activation", (5,), "a", RELU),
        ("b", "linear", (2,), "a_relu", {"weights": 10}),
    )
    # x 15, the result of ReLU 5 and that of b 2. Last comes a, with its error of 5; as b goes
    # back, there are errors of b (2) and of ReLU (5), and b's gradient.
    for whole, most in ((False, Held(5 * 60, 6 * (17 + 5))), (True, Held(5 * 60, 6 * (22 + 10)))):
        assert held(graph, 3, 2.0, 5.0, whole=whole) == most


def test_experts_are_read_by_so_many_samples() -> None:
    graph = chain(
        ("in", "linear", (3, 4), "x", {"weights": 20, "multiply_adds": 60, "outputs": 4}),
        ("up", "experts", (3, 2, 7), "in", {"weights": 1000, "chosen": (2, 5)}),
        ("gelu", "activation", (3, 2, 7), "up", {"function": "gelu"}),
    )
    # Two samples are six tokens: each leaves three of five experts out.
    for samples, read in ((0, 1000), (2, round(1000 * (1 - 0.6**6)))):
        found = network_of(graph, name="mine", samples=samples)
        assert [each.parameters for each in found.operators] == [20, read]
        assert (found.key, found.architecture) == ("mine", "computation graph")
    like = Models.ResNet50
    found = network_of(graph, like=like)
    assert (found.key, found.name, found.architecture) == (like.key, like.name, like.architecture)
    assert (found.source, found.figures) == (like.source, like.figures)


def test_a_sum_does_not_run_with_what_its_other_part_comes_from() -> None:
    """Two matrices are one product; what reads one of them waits for what the other leads to."""
    wide = {"weights": 10, "multiply_adds": 30, "outputs": 2}
    graph = chain(
        ("b.q", "linear", (3, 2), "x", wide),
        ("b.k", "linear", (3, 2), "x", wide),
        ("b.act", "activation", (3, 2), "b.q", RELU),
        ("b.mean", "pooling", (3, 2), "b.k", {}),
        ("b.soft", "softmax", (3, 2), "b.mean", {}),
        ("b.sum", "add", (3, 2), "b.act b.soft", {}),
    )
    kernels = [[node.name for node in each.nodes] for each in fused(graph)]
    assert kernels == [["b.q", "b.k", "b.act"], ["b.mean"], ["b.soft"], ["b.sum"]]


def test_bytes_of_a_batch_and_of_what_is_once() -> None:
    graph = chain(
        ("once", "linear", (5,), "", {"weights": 7, "once": True}),
        ("bn", "batch norm", (3, 5), "x", {"weights": 3, "buffers": 11}),
    )
    traffic = Traffic(graph, batch_size=3, element_bytes=2)
    assert [traffic.output(node) for node in graph.layers] == [2 * 5, 3 * 2 * 15]
    # Ten parameters, eleven numbers that are not learned, and 13 alive in each sample.
    assert traffic.inference_memory(13) == 2 * (10 + 11 + 3 * 13)
