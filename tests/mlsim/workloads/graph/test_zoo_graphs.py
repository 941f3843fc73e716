"""The graph of a network and its operators are two ways to the same counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlsim import Models
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.workloads import Network
from mlsim.workloads.graph import Graph, Node
from mlsim.workloads.graph.fuse import operators_of
from mlsim.workloads.graph.networks import graph_of

# Of these only operators are known, so what waits for a later one is not.
CHAINS = ("DLRM", "StableDiffusion1_UNet")


def test_fusing_the_graph_gives_the_operators() -> None:
    broken = []
    for model in Models:
        if not isinstance(model, Network):
            continue
        graph = graph_of(model)
        found, told = list(operators_of(graph)), list(model.operators)
        if model.key in CHAINS:
            found, told = ([replace(x, activations_live=0) for x in each] for each in (found, told))
        broken += [
            (model.key, one.name) for one, other in zip(found, told, strict=True) if one != other
        ]
        if (graph.parameters, 2 * graph.multiply_adds) != (model.parameter_count, model.flop_count):
            broken.append((model.key, "in all"))
    assert broken == []


def test_a_convolution_is_four_nodes_and_one_operator() -> None:
    graph = graph_of(Models.ResNet50)
    names = [node.name for node in graph if node.name.startswith("conv2.1.c")]
    assert names == [f"conv2.1.c{part}" for part in ("", "_bn", "_add", "_relu")]
    assert graph["conv2.1.c_add"].inputs == ("conv2.1.c_bn", "conv2.1.down_bn")
    assert graph.consumers["conv2.1.c_relu"] == ("conv2.2.a", "conv2.2.c_add")


def test_a_part_of_a_tensor_is_read_in_part() -> None:
    graph = graph_of(Models.ViT_B16)
    assert graph["head"].inputs == ("class",)
    assert graph.elements_read(graph["head"]) == 768
    assert graph.root("class") == "encoder.norm"


def test_a_graph_refuses_names_that_are_twice_there_and_readers_that_come_first() -> None:
    first = Node(name="a", kind="input", shape=(4,))
    with pytest.raises(InvalidValueError, match="two layers are called 'a'"):
        Graph((first, first))
    with pytest.raises(InvalidValueError, match="b reads 'c'"):
        Graph((first, Node(name="b", kind="linear", shape=(2,), inputs=("c",))))
    with pytest.raises(UnknownNameError, match="convolution"):
        Node(name="a", kind="convolutoin", shape=(4,))
    with pytest.raises(UnknownNameError, match="layer"):
        Graph((first,))["b"]
