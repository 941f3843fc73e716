"""What a training step holds: by hand for two layers, and as the seed has it for AlexNet."""

from __future__ import annotations

import pytest

from mlsim import Models
from mlsim.workloads.graph import Graph, Node
from mlsim.workloads.graph.networks import graph_of
from mlsim.workloads.graph.training import TrainingStep


def two_layers() -> Graph:
    return Graph(
        (
            Node(name="x", kind="input", shape=(10,)),
            Node(name="a", kind="linear", shape=(5,), inputs=("x",), weights=50),
            Node(name="a_relu", kind="activation", function="relu", shape=(5,), inputs=("a",)),
            Node(name="b", kind="linear", shape=(2,), inputs=("a_relu",), weights=10),
        )
    )


def test_two_layers_by_hand() -> None:
    step = TrainingStep(two_layers(), batch_size=1, element_bytes=1, states=1)
    totals = [(moment.phase, moment.layer, moment.held) for moment in step.moments]
    assert [each[:2] for each in totals] == [
        ("forward", "a"),
        ("forward", "a_relu"),
        ("forward", "b"),
        ("loss", ""),
        ("backward", "b"),
        ("backward", "a_relu"),
        ("backward", "a"),
        ("update", ""),
    ]
    outputs = [moment.held["outputs"] for moment in step.moments]
    # x is held throughout; a goes once ReLU has read it; b's result stays; the loss keeps 2
    # until it has gone back.
    assert outputs == [15, 20, 17, 19, 17, 17, 12, 12]
    errors = [moment.held["errors"] for moment in step.moments]
    # The loss gives its own and from it b's; b gives that of ReLU, which gives a's; x has none.
    assert errors == [0, 0, 0, 4, 7, 10, 5, 0]
    gradients = [moment.held["gradients"] for moment in step.moments]
    assert gradients == [0, 0, 0, 0, 10, 10, 60, 60]
    assert {moment.held["weights"] for moment in step.moments} == {60}
    assert step.peak.phase == "backward"
    assert step.peak.layer == "a"
    assert step.peak.total == 60 + 60 + 60 + 12 + 5
    # Three samples of two bytes: outputs and errors six times, weights, gradients and state twice.
    more = TrainingStep(two_layers(), batch_size=3, element_bytes=2, states=1).peak
    assert more.total == 2 * (60 + 60 + 60) + 6 * (12 + 5)


def test_alexnet_has_the_two_sums_of_its_time() -> None:
    """0.75 GB of weights, gradients, momentum; 1.96 GB of outputs with their errors."""
    graph = graph_of(Models.AlexNet)
    outputs = sum(node.elements for node in graph.layers)
    assert 2 * 4 * 128 * outputs / 1e9 == pytest.approx(1.96, abs=0.005)
