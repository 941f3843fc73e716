"""What several operations of a program make together, and memory that is written over."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from small_modules import WIDE, kinds, read  # noqa: E402
from torch import nn  # noqa: E402

from mlsim.workloads.graph.fuse import fused  # noqa: E402
from mlsim.workloads.pytorch import read_module  # noqa: E402

TOKENS = 5


def halves(whole: torch.Tensor) -> torch.Tensor:
    """Turn pairs of numbers that lie half a vector apart."""
    cos, sin = torch.ones(5, WIDE), torch.zeros(5, WIDE)
    first, last = whole[..., : WIDE // 2], whole[..., WIDE // 2 :]
    return whole * cos + torch.cat((-last, first), dim=-1) * sin


def neighbors(whole: torch.Tensor) -> torch.Tensor:
    """Turn pairs of numbers that lie beside one another, in half of a vector."""
    turned, left = whole[..., : WIDE // 2], whole[..., WIDE // 2 :]
    cos, sin = torch.ones(5, WIDE // 2), torch.zeros(5, WIDE // 2)
    even, odd = turned[..., ::2], turned[..., 1::2]
    other = torch.stack((-odd, even), dim=-1).flatten(-2)
    return torch.cat((turned * cos + other * sin, left), dim=-1)


def apart(whole: torch.Tensor) -> torch.Tensor:
    """Turn two halves by themselves, and join them."""
    cos, sin = torch.ones(5, WIDE // 2), torch.zeros(5, WIDE // 2)
    first, last = whole.chunk(2, dim=-1)
    return torch.cat((first * cos - last * sin, last * cos + first * sin), dim=-1)


def test_a_turn_is_one_layer_and_runs_with_the_matrix() -> None:
    for turn in (halves, neighbors, apart):
        graph = read(turn)
        assert kinds(graph) == [("linear", ""), ("elementwise", "turned")]
        assert graph.elements_read(graph.layers[1]) == graph.layers[1].elements == 5 * WIDE
        turned = graph.layers[1]
        assert (turned.multiply_adds, turned.window, turned.outputs) == (0, 0, 0)
        (kernel,) = fused(graph)
        assert (kernel.operator.activations_read, kernel.operator.activations_written) == (40, 40)


def test_what_is_read_between_is_no_turn() -> None:
    """A second reader of a product with a constant needs it as it is."""

    def forward(whole: torch.Tensor) -> torch.Tensor:
        scaled = whole * torch.ones(5, WIDE)
        return (scaled + whole.flip(-1) * torch.zeros(5, WIDE)) @ scaled.transpose(-1, -2)

    assert "turned" not in [function for _, function in kinds(read(forward))]


def test_parts_that_are_read_once_run_on_in_the_kernel() -> None:
    """Of one matrix's result a half goes through a function, which the rest multiplies."""

    def forward(whole: torch.Tensor) -> torch.Tensor:
        gate, up = whole.chunk(2, dim=-1)
        return nn.functional.silu(gate) * up

    (kernel,) = fused(read(forward))
    assert [node.kind for node in kernel.nodes] == ["linear", "activation", "multiply"]
    assert kernel.operator.activations_written == 5 * WIDE // 2


def test_of_a_result_that_goes_on_in_part_the_rest_is_written() -> None:
    """A half is turned in the kernel; the other half is written as it is, for a product."""

    def forward(whole: torch.Tensor) -> torch.Tensor:
        left, right = whole.chunk(2, dim=-1)
        return nn.functional.relu(left).transpose(-1, -2) @ right

    first, product = fused(read(forward))
    assert [node.kind for node in first.nodes] == ["linear", "activation"]
    assert first.operator.activations_written == product.operator.activations_read == 5 * WIDE


def test_what_is_read_twice_is_written_first() -> None:
    def forward(whole: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(whole) * whole

    found = [[node.kind for node in kernel.nodes] for kernel in fused(read(forward))]
    assert found == [["linear"], ["activation"], ["multiply"]]


def test_copies_into_one_memory_are_a_concatenation() -> None:
    def forward(whole: torch.Tensor) -> torch.Tensor:
        both = whole.new_empty(*whole.shape[:-1], 2 * WIDE)
        both[..., :WIDE].copy_(whole)
        both[..., WIDE:].copy_(nn.functional.relu(whole))
        return both * 2

    graph = read(forward)
    (joined,) = [node for node in graph if node.kind == "concatenation"]
    assert joined.shape == (5, 2 * WIDE)
    assert graph.elements_read(joined) == 2 * 5 * WIDE


def test_attention_reads_pieces_where_they_lie() -> None:
    def forward(whole: torch.Tensor) -> torch.Tensor:
        key = torch.cat((whole, nn.functional.relu(whole)), dim=-1)
        return nn.functional.scaled_dot_product_attention(key, key, whole)

    graph = read(forward)
    assert [node.kind for node in graph.layers] == ["linear", "activation", "attention"]
    assert graph.elements_read(graph.layers[-1]) == 2 * 5 * WIDE


class Experts(nn.Module):
    """Two experts in one tensor each, which are given a choice."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.empty(4, 2 * 3, WIDE))
        self.down = nn.Parameter(torch.empty(4, WIDE, 3))
        self.aside = nn.Conv1d(2, 3, 1)  # not run, and no matrix of the experts

    def forward(self, tokens: torch.Tensor, chosen: torch.Tensor, shares: Any) -> torch.Tensor:
        raise NotImplementedError


def routed(whole: torch.Tensor, gate: nn.Module, experts: nn.Module) -> torch.Tensor:
    tokens = whole.reshape(-1, WIDE)
    shares, chosen = torch.topk(gate(tokens).softmax(-1) + gate.preference, 2, dim=-1)
    return experts(tokens, chosen, shares / shares.sum(-1, keepdim=True))


def test_a_router_is_one_layer_and_experts_are_their_matrices() -> None:
    gate = nn.Linear(WIDE, 4, bias=False)
    gate.register_buffer("preference", torch.zeros(4))
    graph = read(routed, gate, Experts())
    assert kinds(graph) == [
        ("linear", ""),
        ("router", ""),
        ("experts", ""),
        ("activation", "gated"),
        ("experts", ""),
        ("multiply", "weighted sum"),
        ("other", "not run"),
    ]
    router, up, _, down, *_ = graph.layers[1:]
    assert (router.weights, router.multiply_adds) == (4 * WIDE, 5 * 4 * WIDE)
    assert router.buffers == 4  # what is added to the scores as experts are chosen
    # Two of four experts for each of five tokens.
    assert (up.shape, up.weights, up.chosen) == ((5, 2, 6), 4 * 6 * WIDE, (2, 4))
    assert (up.multiply_adds, down.multiply_adds) == (10 * 6 * WIDE, 10 * 3 * WIDE)
    assert down.shape == (5, 2, WIDE)
    # One token reads two experts; five read most of the four.
    assert up.parameters_read() == pytest.approx(up.weights * (1 - 0.5**5))


def test_scores_that_somebody_else_reads_keep_their_layers() -> None:
    def forward(whole: torch.Tensor, gate: nn.Module, experts: nn.Module) -> torch.Tensor:
        tokens = whole.reshape(-1, WIDE)
        scores = gate(tokens).softmax(-1)
        shares, chosen = torch.topk(scores, 2, dim=-1)
        return experts(tokens, chosen, shares) * scores.amax(-1, keepdim=True)

    graph = read(forward, nn.Linear(WIDE, 4, bias=False), Experts())
    assert ("router", "") not in kinds(graph)
    assert ("other", "topk") in kinds(graph)


# A row and its own figures.

BY_ROW = ("elementwise", "by row")


def normed(rows: torch.Tensor) -> torch.Tensor:
    return rows * torch.rsqrt((rows**2).mean(dim=-1, keepdim=True) + 1e-6)


def standard(rows: torch.Tensor) -> torch.Tensor:
    mean, spread = rows.mean(dim=-1, keepdim=True), rows.std(dim=-1, keepdim=True)
    return (rows - mean) / (spread + 1e-6)


def cut(rows: torch.Tensor) -> torch.Tensor:
    """Set to zero what lies below a bound that each row has."""
    bound = rows.mean(dim=-1, keepdim=True) + 1.5 * rows.std(dim=-1, keepdim=True)
    return torch.nn.functional.relu(rows - bound)


def test_a_row_is_changed_by_its_figures_in_one_layer() -> None:
    for change in (normed, standard, cut):
        graph = read(change)
        assert kinds(graph)[:2] == [("linear", ""), BY_ROW]
        last = fused(graph)[-1]
        assert last.anchor.function == "by row"
        # The rows are read once and written once.
        operator = last.operator
        assert operator.activations_read == operator.activations_written == TOKENS * WIDE


def test_a_figure_that_others_use_is_a_layer_of_its_own() -> None:
    """Two further matrices are made as long as the first: its length is found once."""

    def forward(first: torch.Tensor, *others: nn.Module) -> torch.Tensor:
        length = (first**2).mean(dim=-1, keepdim=True) ** 0.5
        made = [other(first) for other in others]
        return torch.stack([each * length / (each**2).mean(-1, True).sqrt() for each in made])

    graph = read(forward, *(nn.Linear(WIDE, WIDE, bias=False) for _ in range(2)))
    found = [node for node in graph.layers if node.function == "by row"]
    assert [node.shape for node in found] == [(TOKENS, 1), (TOKENS, WIDE), (TOKENS, WIDE)]
    assert [graph.elements_read(node) for node in found] == [40, 45, 45]


def test_figures_of_columns_and_of_all_stay_what_they_are() -> None:
    for forward in (
        lambda rows: rows - rows.mean(dim=-2, keepdim=True),
        lambda rows: rows - rows.mean(dim=(-1, -2), keepdim=True),
    ):
        assert BY_ROW not in kinds(read(forward))


def test_a_sum_with_the_rows_that_two_read_is_no_part_of_it() -> None:
    """What lies between the rows and the figure's use is read by somebody else too."""

    def forward(rows: torch.Tensor) -> torch.Tensor:
        scaled = rows * 2
        centred = scaled - rows.mean(dim=-1, keepdim=True)
        return torch.cat((scaled, centred), dim=-1)

    graph = read(forward)
    scaled = next(node for node in graph.layers if node.function == "scale")
    assert len(graph.consumers[scaled.name]) == 2


class Streams(nn.Module):
    """Several vectors side by side, of which all but the first are added to in their place."""

    def __init__(self, copies: int = 3) -> None:
        super().__init__()
        self.matrix = nn.Linear(WIDE, WIDE, bias=False)
        self.copies = copies

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        made = self.matrix(given)
        streams = torch.stack([made] * self.copies) * 2
        streams[1:] += made
        return streams[0] + streams.sum(dim=0)


def test_memory_that_was_added_to_in_part_is_read_where_it_lies() -> None:
    graph = read_module(Streams(), shape=(TOKENS, WIDE))
    assert "copy" not in [function for _, function in kinds(graph)]
    scaled, added, total, last = graph.layers[-4:]
    assert (added.kind, added.shape) == ("add", (2, TOKENS, WIDE))
    # The sum reads the first stream as it was, and the others as they are now.
    assert set(graph.sources(total)) == {scaled, added}
    assert graph.taken((total,)) == {scaled.name: 40, added.name: 80}
    # And a part that was left alone is the layer that made it.
    assert set(graph.sources(last)) == {scaled, total}


def test_memory_that_was_written_over_as_a_whole_holds_the_last() -> None:
    def forward(made: torch.Tensor) -> torch.Tensor:
        made += made.flip(-1)
        return made.tanh()

    graph = read(forward)
    assert graph.sources(graph.layers[-1]) == (graph.layers[-2],)
    assert graph.layers[-2].kind == "add"


def test_repeated_numbers_are_read_where_they_lie_but_by_products() -> None:
    each = read(lambda rows: rows.repeat(1, 3, 1) * 2)
    assert kinds(each) == [("linear", ""), ("elementwise", "scale")]
    assert each.elements_read(each.layers[-1]) == TOKENS * WIDE
    product = read(lambda rows: rows.repeat(1, 1, 3) @ rows.repeat(1, 1, 3).transpose(-1, -2))
    assert ("other", "repeat") in kinds(product)


def test_which_words_a_table_knows_is_found_as_they_are_looked_up() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, WIDE)

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            known = torch.logical_and(words >= 0, words < 10)
            return self.table(torch.where(known, words, 0))

    graph = read_module(Net(), tokens=TOKENS)
    assert [node.kind for node in graph.layers] == ["embedding"]
    assert graph.sources(graph.layers[0])[0].kind == "input"
