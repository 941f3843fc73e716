"""What several operations of a program make together: turns, routers, and joined pieces."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from small_modules import WIDE, kinds, read  # noqa: E402
from torch import nn  # noqa: E402

from mlsim.workloads.graph.fuse import fused  # noqa: E402


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


@pytest.mark.parametrize("turn", [halves, neighbors, apart])
def test_a_turn_is_one_layer_and_runs_with_the_matrix(turn: Any) -> None:
    graph = read(turn)
    assert kinds(graph) == [("linear", ""), ("elementwise", "turned")]
    assert graph.elements_read(graph.layers[1]) == graph.layers[1].elements == 5 * WIDE
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

    def forward(self, tokens: torch.Tensor, chosen: torch.Tensor, shares: Any) -> torch.Tensor:
        raise NotImplementedError


def routed(whole: torch.Tensor, gate: nn.Module, experts: nn.Module) -> torch.Tensor:
    tokens = whole.reshape(-1, WIDE)
    shares, chosen = torch.topk(gate(tokens).softmax(-1), 2, dim=-1)
    return experts(tokens, chosen, shares / shares.sum(-1, keepdim=True))


def test_a_router_is_one_layer_and_experts_are_their_matrices() -> None:
    graph = read(routed, nn.Linear(WIDE, 4, bias=False), Experts())
    assert kinds(graph) == [
        ("linear", ""),
        ("router", ""),
        ("experts", ""),
        ("activation", "gated"),
        ("experts", ""),
        ("multiply", "weighted sum"),
    ]
    router, up, _, down, _ = graph.layers[1:]
    assert (router.weights, router.multiply_adds) == (4 * WIDE, 5 * 4 * WIDE)
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
