"""PyTorch's MNIST example as torchsummary prints it, and VGG-16 beside it."""

from __future__ import annotations

from mlsim import Models
from mlsim.records import DATA
from mlsim.workloads.graph.fuse import operators_of
from mlsim.workloads.graph.networks import graph_of
from mlsim.workloads.graph.training import TrainingStep, kept_besides
from mlsim.workloads.layers import Dropout, Shape
from mlsim.workloads.model import Network

FILE = DATA / "workloads" / "mnist_net.toml"
# Its unit, which it calls MB, and the bytes of a number.
MEBI, FP32 = 2**20, 4


def sizes(model: Network) -> tuple[float, float, float]:
    """Return what torchsummary prints: of the input, of outputs and errors, of parameters."""
    graph = graph_of(model)
    listed = [graph[name] for name in model.modules] or graph.layers
    numbers = (
        model.input.elements,
        2 * sum(node.elements for node in listed),
        graph.parameters,
    )
    given, passes, parameters = (each * FP32 / MEBI for each in numbers)
    return given, passes, parameters


def printed(model: Network) -> list[str]:
    found = sizes(model)
    return [f"{each:.2f}" for each in (*found, sum(found))]


def test_the_table_by_layer() -> None:
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


def test_the_sizes_that_are_printed() -> None:
    """Outputs by hand: 5760 + 1280 + 1280 + 50 + 10, twice, of four bytes.

    VGG-16, whose layers are all modules, is the second example of torchsummary's README.
    """
    assert printed(Models.MNIST_Net) == ["0.00", "0.06", "0.08", "0.15"]
    assert sizes(Models.MNIST_Net)[1] == 2 * 8380 * 4 / 2**20
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
