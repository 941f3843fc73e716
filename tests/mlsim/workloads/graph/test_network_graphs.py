"""Graphs of networks: their operators, what others count, and what a training step holds.

Counts of others are in `fixtures/known_counts.csv`. FLOP are those of `torch.utils.flop_counter.FlopCounterMode` of torch 2.13.0: 2 for each
multiply-add, masks ignored. One sample, the models of torchvision 0.28.0, transformers 5.23.0 and
diffusers 0.42.1 with the sizes of the zoo's data files, without memory for their parameters (on
the meta device; Whisper on the processor, with `attn_implementation="eager"`). A picture has 224
pixels. Experts run in batches (`batched_mm`); in groups (`grouped_mm`) the counter has no rule
for them. "Not traced" are counts whose origin nobody wrote down.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from told import rows

from mlsim import Models
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.workloads import Network
from mlsim.workloads.graph import Graph, Node, operations, total
from mlsim.workloads.graph.fuse import Traffic, operators_of
from mlsim.workloads.graph.language import graph as graph_of_any
from mlsim.workloads.graph.networks import graph_of
from mlsim.workloads.graph.training import TrainingStep, kept_besides
from mlsim.workloads.model import Dropout, Shape

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


def test_parts_of_networks() -> None:
    graph = graph_of(Models.ResNet50)
    # A convolution is four nodes and one operator.
    names = [node.name for node in graph if node.name.startswith("conv2.1.c")]
    assert names == [f"conv2.1.c{part}" for part in ("", "_bn", "_add", "_relu")]
    assert graph["conv2.1.c_add"].inputs == ("conv2.1.c_bn", "conv2.1.down_bn")
    assert graph.consumers["conv2.1.c_relu"] == ("conv2.2.a", "conv2.2.c_add")
    first, last = graph["maxpool"], graph["avgpool"]
    assert (first.function, first.window) == ("max", 3 * 3)
    assert (last.function, last.window) == ("mean", 7 * 7)
    # A part of a tensor is read in part.
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
    with pytest.raises(InvalidValueError, match="a side below 0"):
        Node(name="a", kind="input", shape=(4, -1))
    with pytest.raises(UnknownNameError, match="convolution"):
        Node(name="a", kind="convolutoin", shape=(4,))
    with pytest.raises(UnknownNameError, match="layer"):
        Graph((first,))["b"]


# What others count.

KNOWN = Path(__file__).parents[3] / "fixtures" / "known_counts.csv"


def counted(nodes: Iterable[Node]) -> int:
    return 2 * sum(node.multiply_adds + node.masked_multiply_adds for node in nodes)


def found(row: dict[str, str]) -> int:
    model = Models.get(row["model"])
    if row["quantity"] == "parameters":
        return int(model.parameter_count)
    if isinstance(model, Network):
        return counted(graph_of_any(model))
    nodes = graph_of_any(model, int(row["tokens"]), all_logits="all outputs" in row["quantity"])
    experts = "without experts" not in row["quantity"]
    return counted(node for node in nodes if experts or node.kind != "experts")


def test_counts_are_those_of_others() -> None:
    with KNOWN.open(encoding="utf-8", newline="") as file:
        known = list(csv.DictReader(file))
    assert len(known) > 45
    assert [(row, found(row)) for row in known if found(row) != int(row["count"])] == []


def test_published_counts_are_held_to_the_last_parameter() -> None:
    """Where a figure is printed in full; `zoo check` compares the rounded ones to their digits."""
    # Eight shards of GPT-J count a copy each of 86 vectors, and one has 8 more; of LeNet-5 ten
    # vectors of 84 are fixed.
    others = {"GPT_J_6B": (7 * 86 + 8) * 4096, "LeNet5": -10 * 84}
    exact = {
        model: model.figures["published_parameters"].value
        for model in Models
        if "published_parameters" in model.figures
        and model.figures["published_parameters"].unit == "parameter"
    }
    assert len(exact) > 40
    more = {each.key: count - each.parameter_count for each, count in exact.items()}
    assert {key: count for key, count in more.items() if count} == others


def test_ours_skips_what_a_mask_hides() -> None:
    """Of the pairs of tokens that GPT-2 has at its full length, nearly half are hidden."""
    whole = graph_of_any(Models.GPT2, 1024, all_logits=True)
    pairs = [node for node in whole if node.kind == "attention"]
    # 12 layers, 1024 x 1023 / 2 pairs, 2 x 768 multiply-adds each.
    hidden = 12 * 523_776 * 1536
    assert counted(whole) - 2 * whole.multiply_adds == 2 * hidden
    assert counted(pairs) == 2 * 12 * 1024 * 1024 * 1536


def test_operations_in_four_ways() -> None:
    """A table of the time counts a window and its bias, comparisons, and two of each ReLU."""
    ways, nodes = ("flop", "mac", "seed003", "pytorch"), []
    for kind, function, numbers, told in rows("operations"):
        node = Node(
            name=f"n{len(nodes)}",
            kind=kind,
            function=function,
            shape=(3, 4),
            **json.loads(numbers),
        )
        assert " ".join(str(operations(node, way)) for way in ways) == told, kind
        nodes.append(node)
    assert [total(nodes, way) for way in ways] == [648, 324, 480, 648]
    hidden = replace(nodes[0], kind="attention", multiply_adds=5, masked_multiply_adds=2)
    assert [operations(hidden, way) for way in ("flop", "pytorch")] == [10, 14]
    with pytest.raises(InvalidValueError, match="no rule for n0, which is attention: it counts"):
        operations(hidden, "seed003")


# PyTorch's MNIST example.

FP32 = 4


def printed(model: Network) -> list[str]:
    """Return the sizes that torchsummary prints, whose MB are 2**20 bytes."""
    graph = graph_of(model)
    outputs = sum(node.elements for node in [graph[n] for n in model.modules] or graph.layers)
    sizes = Traffic(graph, batch_size=1, element_bytes=FP32).summary_sizes(
        FP32 * model.input.elements, FP32 * outputs, graph.parameters
    )
    return [f"{each:.2f}" for each in sizes.values()]


def test_the_mnist_net_as_torchsummary_prints_it() -> None:
    """The table by layer, and the sizes: 5760 + 1280 + 1280 + 50 + 10, twice, of four bytes.

    VGG-16, whose layers are all modules, is the second example of torchsummary's README.
    """
    graph = graph_of(Models.MNIST_Net)
    listed = [graph[name] for name in Models.MNIST_Net.modules]
    assert [(node.shape, node.parameters) for node in listed] == [
        ((10, 24, 24), 260),
        ((20, 8, 8), 5020),
        ((20, 8, 8), 0),
        ((50,), 16_050),
        ((10,), 510),
    ]
    assert graph.parameters == Models.MNIST_Net.parameter_count == 21_840
    assert printed(Models.MNIST_Net) == ["0.00", "0.06", "0.08", "0.15"]
    # Three samples of the last matrix: 50 numbers in, 10 out, of four bytes, and its weights.
    traffic = Traffic(graph, batch_size=3, element_bytes=FP32)
    assert traffic.flops(7) == 3 * 2 * 7
    moved = {"bytes_in": 600, "bytes_out": 120, "bytes_weights": 2040, "working_set": 2760}
    assert traffic.moved((graph["fc2"],), 1000) == {**moved, "intensity": 1000 / 2760}
    assert Models.VGG16.modules == ()
    assert printed(Models.VGG16) == ["0.57", "218.59", "527.79", "746.96"]


def test_layers_in_their_order_and_what_does_nothing_at_inference_is_no_operator() -> None:
    graph = graph_of(Models.MNIST_Net)
    assert [node.name for node in graph.layers] == [
        *("conv1", "pool1", "pool1_relu", "conv2", "conv2_drop", "pool2", "pool2_relu"),
        *("fc1", "fc1_relu", "fc1_drop", "fc2", "fc2_log_softmax"),
    ]
    assert graph["fc2_log_softmax"].kind == "softmax"
    assert graph["pool1_relu"].shape == (10, 12, 12)
    operators = Models.MNIST_Net.operators
    assert [each.name for each in operators] == ["conv1", "pool1", "conv2", "pool2", "fc1", "fc2"]
    assert list(operators_of(graph)) == list(operators)
    assert Dropout(name="drop").lower(Shape(20, 8)).output == Shape(20, 8)


def test_dropout_keeps_a_byte_of_each_number_or_a_factor_of_each_map() -> None:
    graph = graph_of(Models.MNIST_Net)
    assert kept_besides(graph["fc1_drop"], 3, FP32) == 3 * 50
    assert kept_besides(graph["conv2_drop"], 3, FP32) == 3 * 20 * FP32
    step = TrainingStep(graph, batch_size=64, element_bytes=FP32, states=1)
    assert step.held("weights") == 21_840 * FP32
    assert step.peak.total > 3 * 21_840 * FP32


# A training step.


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
