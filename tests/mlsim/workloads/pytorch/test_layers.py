"""Single layers of PyTorch, each counted by hand; and the module that is read stays as it was."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mlsim import Engine, Hardware  # noqa: E402
from mlsim.workloads.graph import Graph, Node  # noqa: E402
from mlsim.workloads.pytorch import is_module, load_module, read_module  # noqa: E402
from mlsim.workloads.pytorch.handlers import visible  # noqa: E402
from mlsim.workloads.pytorch.reader import keeps_values  # noqa: E402


def only(graph: Graph) -> Node:
    (node,) = graph.layers
    return node


def of(forward: Any, **parts: Any) -> nn.Module:
    """Return a module of parts with a forward pass."""

    class Made(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, *inputs: Any) -> Any:
            return forward(self, *inputs)

    return Made()


# A layer, its input and output, its multiply-adds, its weights, and how many inputs go into each
# of how many outputs; of groups none, since they are products of their own.
PRODUCTS: list[Any] = [
    (nn.Conv2d(3, 8, 3), (3, 10, 10), (8, 8, 8), 8 * 8 * 8 * 27, 8 * 27, 27, 8),
    (nn.Conv2d(4, 8, 3, groups=2), (4, 5, 5), (8, 3, 3), 8 * 9 * 18, 8 * 18, 18, 0),
    (nn.Conv2d(4, 4, 3, groups=4, padding=1), (4, 6, 6), (4, 6, 6), 4 * 36 * 9, 36, 9, 0),
    (nn.Conv2d(2, 3, 3, dilation=2), (2, 9, 9), (3, 5, 5), 3 * 25 * 18, 54, 18, 3),
    (nn.Conv1d(3, 4, 5, stride=2), (3, 21), (4, 9), 4 * 9 * 15, 60, 15, 4),
    (nn.Conv3d(1, 2, 2), (1, 3, 3, 3), (2, 2, 2, 2), 16 * 8, 16, 8, 2),
    # Each of the 3 x 25 inputs goes into 2 windows of 4.
    (nn.ConvTranspose2d(3, 2, 2, stride=2), (3, 5, 5), (2, 10, 10), 75 * 2 * 4, 24, 12, 2),
    (nn.ConvTranspose1d(4, 6, 3, groups=2), (4, 7), (6, 9), 28 * 3 * 3, 36, 6, 0),
    (nn.Linear(7, 5), (7,), (5,), 35, 35, 7, 5),
    (nn.Linear(7, 5), (3, 7), (3, 5), 105, 35, 7, 5),
]


def test_a_product_is_counted_by_hand() -> None:
    for layer, shape, out, done, weights, *sides in PRODUCTS:
        node = only(read_module(layer, shape=shape))
        assert (node.shape, node.multiply_adds, node.weights) == (out, done, weights), layer
        assert [node.window, node.outputs] == sides, layer
        assert (node.function == "transposed") == ("Transpose" in str(layer))
        assert node.biases == layer.bias.numel()


def test_a_recurrent_layer_uses_its_matrices_once_a_step() -> None:
    both = nn.LSTM(3, 5, num_layers=2, bidirectional=True, batch_first=True)
    for layer, matrices in {
        # Four gates of 5, which read 3 inputs and 5 states.
        nn.LSTM(3, 5, batch_first=True): 20 * 3 + 20 * 5,
        nn.GRU(3, 5, batch_first=True): 15 * 3 + 15 * 5,
        nn.RNN(3, 5, batch_first=True): 5 * 3 + 5 * 5,
        # The second layer reads the 10 states of both directions of the first.
        both: 2 * (20 * 3 + 20 * 5) + 2 * (20 * 10 + 20 * 5),
    }.items():
        graph = read_module(layer, shape=(11, 3))
        (node,) = [each for each in graph if each.kind == "recurrent"]
        assert (node.weights, node.multiply_adds) == (matrices, 11 * matrices)
        # The gates of each step are kept: rows of the matrices that read inputs.
        gates = sum(len(own) for name, own in layer.named_parameters() if "weight_ih" in name)
        told = (type(layer).__name__.lower(), 3, 4 * 11 * gates, 10 if layer is both else 5)
        assert (node.function, node.window, node.kept_bytes, node.outputs) == told
        assert graph.parameters == sum(each.numel() for each in layer.parameters())
    step = of(lambda self, x: self.cell(x)[0], cell=nn.LSTMCell(3, 5))
    (node,) = [each for each in read_module(step, shape=(3,)) if each.kind == "recurrent"]
    assert (node.function, node.weights, node.biases) == ("lstm", 20 * 8, 40)
    assert (node.multiply_adds, node.kept_bytes, node.window, node.outputs) == (160, 80, 3, 5)


# A layer, its input, and what its node is: kind, function, parameters.
OTHERS: list[Any] = [
    (nn.BatchNorm2d(4), (4, 3, 3), "batch norm", "", 8),
    (nn.LayerNorm(6), (5, 6), "norm", "layer", 12),
    (nn.GroupNorm(2, 4), (4, 3, 3), "norm", "group", 8),
    (nn.InstanceNorm2d(4, affine=True), (4, 3, 3), "norm", "instance", 8),
    (nn.RMSNorm(6), (5, 6), "norm", "rms", 6),
    (nn.LocalResponseNorm(5), (4, 3, 3), "response norm", "", 0),
    (nn.MaxPool2d(2), (4, 6, 6), "pooling", "max", 0),
    (nn.AvgPool1d(2), (4, 6), "pooling", "mean", 0),
    (nn.AdaptiveAvgPool2d(1), (4, 6, 6), "pooling", "mean", 0),
    (nn.AdaptiveMaxPool1d(2), (4, 6), "pooling", "max", 0),
    (nn.Softmax(-1), (5, 6), "softmax", "", 0),
    (nn.PReLU(4), (4, 3, 3), "activation", "prelu", 4),
    (nn.GLU(), (5, 6), "activation", "sigmoid, gated", 0),
    (nn.Hardtanh(0, 6), (4,), "activation", "relu6", 0),
    (nn.Upsample(scale_factor=2), (4, 3, 3), "resampling", "nearest2d", 0),
    (nn.ZeroPad2d(1), (4, 3, 3), "other", "pad", 0),
    (nn.LogSoftmax(-1), (5, 6), "softmax", "log", 0),
    (of(lambda self, x: x.amax(-1)), (5, 6), "pooling", "max", 0),
    (of(lambda self, x: x.argmax(-1)), (5, 6), "other", "argmax", 0),
    (of(lambda self, x: x.std(-1)), (5, 6), "other", "std", 0),
    (of(lambda self, x: x.logsumexp(-1)), (5, 6), "other", "logsumexp", 0),
    (of(lambda self, x: x.roll(1, -1)), (5, 6), "other", "roll", 0),
    (of(lambda self, x: x[:, [0, 2]]), (5, 6), "other", "index", 0),
    (of(lambda self, x: x[:, torch.tensor([True, False])]), (2, 6), "other", "index", 0),
]


def test_what_is_no_product_is_named() -> None:
    for layer, shape, *told in OTHERS:
        node = only(read_module(layer, shape=shape))
        assert [node.kind, node.function, node.parameters] == told, layer
        assert node.multiply_adds == 0
    held = only(read_module(nn.BatchNorm2d(4), shape=(4, 3, 3)))
    assert held.buffers == 2 * 4
    # How many numbers each maximum or mean is of.
    for layer, window in (
        (nn.MaxPool2d((2, 3)), 6),
        (nn.AvgPool1d(2), 2),
        (nn.AdaptiveAvgPool2d((1, 2)), 6 * 3),
        (nn.AdaptiveMaxPool1d(2), 3),
        (of(lambda self, x: x.mean((-1, -2))), 36),
    ):
        shape = (4, 6) if "1d" in str(layer) else (4, 6, 6)
        assert only(read_module(layer, shape=shape)).window == window, layer


def test_a_table_is_read_in_rows_and_a_shared_one_counted_once() -> None:
    node = only(read_module(nn.Embedding(100, 8), tokens=5))
    assert (node.table, node.weights, node.read, node.shape) == (800, 0, 40, (5, 8))
    tied = of(
        lambda self, words: self.output(self.table(words)),
        table=nn.Embedding(100, 8),
        output=nn.Linear(8, 100, bias=False),
    )
    tied.output.weight = tied.table.weight
    graph = read_module(tied, tokens=5)
    assert graph.parameters == 800
    # The output layer reads all of it, so it stands there.
    assert (graph["table"].parameters, graph["output"].weights) == (0, 800)
    bag = only(read_module(nn.EmbeddingBag(100, 8), tokens=5))
    assert (bag.read, bag.shape, bag.table) == (40, (8,), 800)


def test_a_product_of_two_inputs() -> None:
    for forward in (
        lambda self, x: x @ x.transpose(-1, -2),
        lambda self, x: torch.bmm(x, x.mT),
        lambda self, x: torch.einsum("bik,bjk->bij", x, x),
    ):
        node = only(read_module(of(forward), shape=(5, 7)))
        assert (node.kind, node.multiply_adds, node.shape) == ("product", 5 * 5 * 7, (5, 5))
        assert (node.window, node.outputs) == (7, 5)
    both = of(lambda self, x: self.form(x, x), form=nn.Bilinear(6, 6, 5))
    node = only(read_module(both, shape=(2, 6)))
    assert (node.multiply_adds, node.weights, node.biases) == (2 * 5 * (36 + 6), 5 * 36, 5)
    assert (node.window, node.outputs) == (36, 5)
    # Each of five vectors of 7 with each of three others: 15 distances, or products of one pair.
    for forward, done, window, outputs in (
        (lambda self, x: torch.cdist(x, x[:, :3]), 15 * 7, 7, 0),
        (lambda self, x: torch.baddbmm(x[:, :, :3], x, x.mT[..., :3]), 15 * 7, 7, 3),
        (lambda self, x: torch.einsum("bik,bil->bkl", x, x[..., :2]), 5 * 7 * 2, 5, 2),
        (lambda self, x: torch.einsum("bik,bik->b", x, x), 35, 35, 1),
    ):
        node = only(read_module(of(forward), shape=(5, 7)))
        assert (node.multiply_adds, node.window, node.outputs) == (done, window, outputs)


def test_few_queries_look_at_many_keys() -> None:
    """Three queries and five keys, 7 wide, with values of 2: the first sees one, the last three."""
    attend = nn.functional.scaled_dot_product_attention
    node = only(
        read_module(
            of(lambda self, x: attend(x[:, :3], x, x[..., :2], is_causal=True)), shape=(5, 7)
        )
    )
    assert (node.function, node.kept_bytes) == ("causal", 4 * 3)
    assert (node.multiply_adds, node.masked_multiply_adds) == (6 * 9, 9 * 9)
    shown = torch.ones(3, 5, dtype=torch.bool)
    added = torch.zeros(2, 1, 5)
    added[..., 3:] = float("-inf")
    for mask, causal, seen in (
        (None, True, (6, True)),
        (None, False, (15, False)),
        (shown, False, (15, False)),
        (shown.tril(1), False, (2 + 3 + 4, True)),
        (added, False, (3 * 3, True)),
    ):
        assert visible(3, 5, mask, causal=causal) == seen
    assert visible(5, 3, None, causal=True) == (1 + 2 + 3 + 3 + 3, True)


def test_attention_of_pytorch_in_its_two_ways() -> None:
    """Four tokens of width 6: products with three matrices, pairs twice, and one more matrix."""
    layer = nn.MultiheadAttention(6, 2, batch_first=True)
    found = []
    for weights in (False, True):
        module = of(
            lambda self, x, weights=weights: self.inner(x, x, x, need_weights=weights)[0],
            inner=layer,
        )
        graph = read_module(module, shape=(4, 6))
        assert graph.multiply_adds == 4 * 18 * 6 + 2 * 16 * 6 + 4 * 6 * 6
        assert graph.parameters == sum(each.numel() for each in layer.parameters())
        found.append(graph)
    # Where the probabilities are asked for, they are read by others: three layers.
    assert [each.kind for each in found[0].layers] == ["linear", "attention", "linear"]
    assert "softmax" in [each.kind for each in found[1].layers]


def test_a_mask_that_hides_the_future_is_seen_by_its_numbers() -> None:
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)

    def forward(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        scores = (x @ x.mT / 3).masked_fill(hidden, float("-inf"))
        return nn.functional.softmax(scores, -1) @ x

    def learned(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        places = self.bias + torch.zeros(5, 5).masked_fill(hidden, float("-inf"))
        return nn.functional.softmax(x @ x.mT + places, -1) @ x

    for module in (of(forward), of(learned, bias=nn.Parameter(torch.zeros(5, 5)))):
        node = only(read_module(module, shape=(5, 7)))
        assert (node.kind, node.function) == ("attention", "causal, written out")
        assert (node.multiply_adds, node.masked_multiply_adds) == (15 * 14, 10 * 14)
    # The probabilities of all pairs are kept; a product has no outputs of its own in it.
    assert (node.kept_bytes, node.outputs, node.window) == (4 * 25, 0, 0)
    # The largest score may be taken off first, unless others read it, too.
    less = of(lambda self, x: ((s := x @ x.mT) - s.amax(-1, True)).softmax(-1) @ x)
    assert only(read_module(less, shape=(5, 7))).function == "written out"
    # Probabilities on the right of a product, or scores that others read, are no attention.
    for plain in (
        lambda self, x: ((s := x @ x.mT) - (m := s.amax(-1, True))).softmax(-1) @ x + m,
        lambda self, x: ((s := x @ x.mT) - s.mean(-1, True)).softmax(-1) @ x,
        lambda self, x: x.mT @ (x @ x.mT / 3).softmax(-1),
        lambda self, x: (scores := x @ x.mT).softmax(-1) @ x + scores.sum(),
    ):
        assert "attention" not in [each.kind for each in read_module(of(plain), shape=(5, 7))]


def test_names_are_paths_with_what_follows() -> None:
    module = of(
        lambda self, x: nn.functional.relu(self.one(x) + self.two(x)),
        one=nn.Linear(4, 4),
        two=nn.Sequential(nn.Linear(4, 4), nn.ReLU()),
    )
    names = [node.name for node in read_module(module, shape=(4,))]
    assert names == ["input", "one", "two.0", "two.1", "one_add", "one_relu"]
    twice = of(lambda self, x: self.one(x) + x + x * x, one=nn.Linear(4, 4))
    names = [node.name for node in read_module(twice, shape=(4,))]
    assert names == ["input", "one", "one_add", "input_multiply", "one_add_2"]
    own = {name: nn.Parameter(torch.ones(4, 4)) for name in ("mix_weight", "weight")}
    forward = lambda self, x: self.inner(x.relu()) @ self.mix_weight @ self.weight  # noqa: E731
    block = nn.Sequential(of(forward, inner=nn.Linear(4, 4), **own))
    names = [node.name for node in read_module(block, shape=(4,))]
    assert names == ["input", "0_relu", "0.inner", "0.mix", "0"]


def test_a_norm_or_a_function_that_is_written_out_is_one_layer() -> None:
    def normed(x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def centred(self: Any, x: torch.Tensor) -> torch.Tensor:
        return normed(x - x.mean(-1, keepdim=True)) * self.weight + self.bias

    for name, forward, learned, told in (
        ("OwnNorm", lambda self, x: normed(x) * self.weight, ["weight"], ("norm", "rms", 6)),
        ("OwnNorm", centred, ["weight", "bias"], ("norm", "layer", 12)),
        # What a sigmoid or a cut put out is kept within; a tanh's is the result.
        ("QuickGELU", lambda self, x: x * (1.7 * x).sigmoid(), [], ("activation", "gelu", 30)),
        ("SquaredCut", lambda self, x: x.relu() ** 2, [], ("activation", "squared_cut", 30)),
        ("ScaledTanh", lambda self, x: (1.7 * x).tanh(), [], ("activation", "tanh", 0)),
    ):
        module = type(name, (nn.Module,), {"forward": forward})()
        for each in learned:
            module.register_parameter(each, nn.Parameter(torch.ones(6)))
        node = only(read_module(nn.Sequential(module), shape=(5, 6)))
        held = node.parameters if learned else node.kept_bytes / 4
        assert (node.kind, node.function, held) == told
        assert (node.shape, node.window) == ((5, 6), 0)
    # Nothing but its name tells a norm from what else a row's figures do.
    assert only(read_module(of(lambda self, x: normed(x)), shape=(5, 6))).function == "by row"


def test_a_part_of_a_tensor_is_read_in_part_and_written_over_in_place() -> None:
    module = of(lambda self, x: self.head(x[:, 0]), head=nn.Linear(6, 2))
    graph = read_module(module, shape=(5, 6))
    assert graph.elements_read(graph["head"]) == 6

    def scatter(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        out = x.new_zeros(x.shape)
        out[:, 0] = self.head(x[:, 0])
        return out * 2

    graph = read_module(of(scatter, head=nn.Linear(6, 6)), shape=(5, 6))
    kinds = [node.kind for node in graph.layers]
    assert kinds == ["linear", "other", "elementwise"]


def test_what_does_not_grow_with_the_batch_is_once() -> None:
    module = of(
        lambda self, x: x + self.table(self.net(torch.ones(3))),
        net=nn.Linear(3, 6),
        table=nn.Linear(6, 6),
    )
    graph = read_module(module, shape=(6,))
    assert [node.name for node in graph if node.once] == ["net", "table"]
    assert graph["net"].multiply_adds == 18
    # What grows is one sample's, wherever it stands and however many rows a sample has.
    for forward, shape in (
        (lambda self, x: x.transpose(0, 1) * 2, (5, 7)),
        (lambda self, x: x.reshape(-1, 7) * 2, (5, 7)),
        (lambda self, x: x.transpose(0, 1).reshape(5, -1) * 2, (5, 7)),
        (lambda self, x: x.sum((1, 2)) * 2, (1,)),
        (lambda self, x: x.sum() * 2, ()),
    ):
        assert read_module(of(forward), shape=(5, 7)).layers[-1].shape == shape


def test_what_a_pass_leaves_out_is_held_and_told() -> None:
    module = of(
        lambda self, x: self.used(x), used=nn.Linear(4, 4), aside=nn.Sequential(nn.Linear(4, 9))
    )
    network = load_module(module, shape=(4,))
    assert network.parameter_count == 20 + 45
    assert network.graph.notes == ("aside: 45 parameters are held and not used in this pass.",)
    assert len(network.operators) == 1


def test_dropout_is_a_layer_in_training_only() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    assert [node.kind for node in read_module(module, shape=(4,)).layers] == ["linear"] * 2
    kinds = [node.kind for node in read_module(module, shape=(4,), training=True).layers]
    assert kinds == ["linear", "dropout", "linear"]
    norm = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    graph = read_module(norm, shape=(4,), training=True)
    assert [node.shape for node in graph.layers] == [(4,), (4,)]


def test_a_module_stays_as_it_was() -> None:
    calls = []
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout())
    module[0].register_forward_hook(lambda *_: calls.append(1))
    before = {name: (each, each.clone()) for name, each in module.state_dict().items()}
    parameters = list(module.parameters())
    fast = torch.backends.mha.get_fastpath_enabled()
    load_module(module, shape=(4,))
    assert module.training
    assert all(each is other for each, other in zip(module.parameters(), parameters, strict=True))
    for name, each in module.state_dict().items():
        assert each.data_ptr() == before[name][0].data_ptr()
        assert torch.equal(each, before[name][1])
    assert "forward" not in vars(module[0])
    assert torch.backends.mha.get_fastpath_enabled() is fast
    module(torch.zeros(2, 4))
    assert torch.is_grad_enabled()


def test_only_small_whole_numbers_are_taken_along() -> None:
    small, large = torch.zeros(3), torch.empty(2**22 + 1, dtype=torch.int8)
    taken = {torch.bool: True, torch.int64: True, torch.float16: False, torch.complex64: False}
    assert {kind: keeps_values(small.to(kind)) for kind in taken} == taken
    assert keeps_values(large[1:])
    assert not keeps_values(large)
    assert not keeps_values(torch.zeros(3, dtype=torch.int64, device="meta"))


def test_a_network_too_large_for_any_memory_is_read() -> None:
    with torch.device("meta"):
        module = nn.Sequential(*(nn.Linear(10**6, 10**6) for _ in range(10)))
    network = load_module(module, shape=(10**6,))
    assert network.parameter_count == 10 * (10**12 + 10**6)


def test_a_module_is_solved_like_any_model() -> None:
    network = load_module(nn.Sequential(nn.Linear(4096, 4096), nn.ReLU()), shape=(4096,))
    profile = Engine.solve(model=network, hardware=Hardware.Cloud.A100, precision="fp16")
    assert profile.latency.to("s").magnitude > 2 * 4096**2 / 2.04e12
    assert network.flop_count == 2 * 4096**2
    assert network.input.elements == 4096
    assert is_module(nn.Linear(1, 1))
    assert not is_module("resnet50")
    assert not is_module(nn.Linear)
