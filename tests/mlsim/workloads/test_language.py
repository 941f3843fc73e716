"""Transformers: parts counted by hand, and against published truths."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from language_models import LANGUAGE, by_name, counts, tiny

from mlsim import show
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.workloads.blocks import Attention, Experts, FeedForward
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.steps import StepOperator
from mlsim.zoo.spaces import Models

# Exact where it is definitional.


# Layers x (key and value) x heads x size of a head, or one vector of 512 + 64 for all 128 heads.
CACHED = {
    "Llama2_7B": 32 * 2 * 32 * 128,
    "Llama3_8B": 32 * 2 * 8 * 128,
    "Mixtral_8x7B": 32 * 2 * 8 * 128,
    "Llama2_70B": 80 * 2 * 8 * 128,
    "Llama3_70B": 80 * 2 * 8 * 128,
    "DeepSeek_V3": 61 * (512 + 64),
}


def test_cache_of_a_token() -> None:
    for name, elements in CACHED.items():
        model = getattr(Models, name)
        assert model.model_cached_elements == elements, name
        assert model.cache_bytes_per_token().to("B").magnitude == 2 * elements
        assert model.cache_bytes_per_token("fp8").to("B").magnitude == elements
    # MiniMax's guide to vLLM says 240 GB for a million tokens, and means GiB.
    cache = Models.MiniMax_M2.cache_bytes_per_token().to("GiB").magnitude
    assert round(1e6 * cache, -1) == 240


def test_llama2_decodes_with_the_known_work() -> None:
    """One new token and 2,048 cached ones.

    Every parameter but the embedding table and the norms meets the token:
    6,738,415,616 - 131,072,000 - 65 x 4,096 = 6,607,077,376 MAC; and
    32 layers x 2,049 pairs x 2 x 4,096 = 537,133,056 MAC of attention.
    """
    model = Models.Llama2_7B
    matrices = model.parameter_count - 32_000 * 4_096 - 65 * 4_096
    assert matrices == 6_607_077_376
    assert 2 * (matrices + 32 * 2_049 * 2 * 4_096) == 14_288_420_864
    assert model.flop_count(1, 2048) == 14_288_420_864


def test_llama2_reads_a_prompt_with_the_known_work() -> None:
    """A prompt of 2,048 tokens, and what counting the masked half makes of it.

    In full: each token meets 6,607,077,376 weights, the output layer among
    them, and 2,048 tokens in 32 layers, 8,192 MAC each: 29.26 TFLOP.
    Causal: of 2,048^2 = 4,194,304 pairs 2,048 x 2,049 / 2 = 2,098,176 are not
    masked, so attention has 1,100.0 instead of 2,199.0 GFLOP.
    Last token only: the output layer's 131,072,000 weights meet one token.
    """
    model = Models.Llama2_7B
    full = 2 * (6_607_077_376 * 2_048 + 32 * 8_192 * 2_048**2)
    assert full == 29_261_612_187_648
    assert model.flop_count(2048, causal=False, all_logits=True) == full
    causal = full - 2 * 32 * 8_192 * (2_048**2 - 2_098_176)
    assert causal == 28_162_637_430_784
    assert model.flop_count(2048, all_logits=True) == causal
    last = causal - 2 * 131_072_000 * 2_047
    assert last == 27_626_028_662_784
    assert model.flop_count(2048) == last
    # Together 5.6 % less than counted in full.
    assert 1 - last / full == pytest.approx(0.0559, abs=5e-5)


# Of the parameters that a token meets, in billions, as their makers print them: rounded, or the
# further digits cut off.
MET = """
Qwen3_235B_A22B 22, Qwen3_Coder_480B_A35B 35, DeepSeek_V3_1 37, GLM_4_5 32, GLM_4_5_Air 12,
GLM_4_7_Flash 3, Kimi_K2 32, Llama4_Scout 17, Llama4_Maverick 17, MiniMax_M2 10,
Mistral_Large_3 39, Mixtral_8x7B 13, Qwen3_Next_80B_A3B 3, Nemotron_3_Nano_30B_A3B 3, GLM_5 41,
Gemma4_26B_A4B 3, DeepSeek_V3_2 38
"""
# GLM's report counts neither the table of words nor the output layer; MiniMax's 10 billion hold
# without the table.
TABLES = {"GLM_4_5": 2, "GLM_4_5_Air": 2, "MiniMax_M2": 1}


def test_parameters_that_a_token_meets() -> None:
    for name, billions in (each.split() for each in MET.split(",")):
        model = getattr(Models, name)
        tables = TABLES.get(name, 0) * model.vocabulary * model.hidden
        met = (model.active_parameter_count - tables) / 1e9
        assert int(billions) - 0.5 <= met < int(billions) + 1, name


def test_llama4_by_hand() -> None:
    """48 layers: experts in all of Scout's, in half of Maverick's; one is shared."""
    h, expert = 5120, 3 * 5120 * 8192
    attention = 2 * h * h + 2 * h * 8 * 128
    common = 48 * attention + (2 * 48 + 1) * h + 2 * 202_048 * h
    assert Models.Llama4_Scout.parameter_count == common + 48 * (17 * expert + 16 * h)
    experts = 24 * (129 * expert + 128 * h)
    assert Models.Llama4_Maverick.parameter_count == common + experts + 24 * 3 * h * 16_384
    # A quarter of the layers sees the whole sequence, the others one chunk.
    assert Models.Llama4_Scout.full_layers == 12


def test_norms_as_wide_as_all_heads() -> None:
    """Six query heads and two of keys, of 16 numbers each: 128 scales instead of 32."""
    plain = Attention(heads=6, kv_heads=2, head_size=16, qk_norm=True)
    wide = replace(plain, wide_norm=True)
    assert plain.parameters(64) - 2 * 16 == wide.parameters(64) - (6 + 2) * 16
    none = replace(wide, qk_norm=False)
    assert wide.parameters(64) - none.parameters(64) == 128
    # Two devices hold half of them each.
    held = next(iter(wide.operators(64, Parallelism(tensor=2)))).parameters
    assert held == 64 * (3 + 2) * 16 + (3 + 1) * 16


def test_operators_hold_what_the_parts_count() -> None:
    """Two ways to the same numbers: the formula of each part, and the lowered operators."""
    broken = []
    for model in LANGUAGE:
        operators = model.operators()
        held = sum(each.parameters * each.resident_repeats for each in operators)
        # All are read in a step but the tables, whose rows count as activations. A tied output
        # layer reads its table without holding it again.
        read = sum(
            (each.parameters_streamed + each.parameters_routed) * each.repeats for each in operators
        )
        tables = (model.vocabulary + model.positions + model.token_types) * model.hidden
        rows = model.layer_vocabulary or model.vocabulary
        tables += rows * model.layers * model.layer_embedding
        tied = model.tied_embeddings and model.output_layer
        streamed = model.parameter_count - tables + tied * model.vocabulary * model.hidden
        # A token meets all but the experts that are not chosen.
        unused, experts = 0, model.experts
        if experts:
            unused = experts.count - experts.per_token
            unused *= model.expert_layers * experts.expert.parameters(model.hidden)
        counts = (held, read, model.active_parameter_count + unused)
        if counts != (model.parameter_count, streamed, model.parameter_count):
            broken.append((model.key, *counts, model.parameter_count, streamed))
    assert broken == []


def test_a_model_in_one_line() -> None:
    assert repr(Models.Llama3_8B) == "<Model Llama 3.1 8B: 8,030,261,248 parameters>"
    assert repr(tiny()) == "<Model Tiny: 340 parameters>"


# The tiny transformer by hand.


def test_tiny_parameters() -> None:
    """Count them.

    attention     4 x (4 + 2 + 2) + 4 x 4 = 48
    feed-forward  2 x 4 x 6 + 6 x 4 = 72
    norms         2 x 4 = 8
    two layers    2 x 128 = 256, and the last norm 4
    embedding and output layer 10 x 4 = 40 each
    """
    model = tiny()
    assert model.attention.parameters(4) == 48
    assert model.feed_forward.parameters(4) == 72
    assert model.parameter_count == model.active_parameter_count == 256 + 4 + 80 == 340
    assert model.parameters.magnitude == 340


# What `counts` tells of an operator, in this order.
COLUMNS = ("token_multiply_adds", "outputs", "parameters", "parameters_streamed")
COLUMNS += ("token_elements", "live_elements")


def row(operator: StepOperator) -> tuple[float, ...]:
    """Return an operator's work, numbers put out, weights held and read, moved and alive.

    All else must be as it is by default.
    """
    found = counts(operator)
    numbers = tuple(found.pop(name, 0) for name in COLUMNS)
    assert found == {}, operator.name
    return numbers


def test_tiny_operators() -> None:
    """Each operator for one token, and how often it runs."""
    model = tiny()
    attention = by_name(model).pop("attention")
    assert counts(attention) == {
        # Two heads: a score of 2 and a weighted value of 2 for each pair.
        "pair_multiply_adds": 8,
        "cached_elements": 4,
        "token_elements": 8,
        "live_elements": 16,
    }
    output = by_name(model)["output layer"]
    assert output.token_limit == 1
    others = [each for each in model.operators() if each.name != "attention"]
    assert {each.name: row(replace(each, token_limit=32)) for each in others} == {
        "embedding": (0, 0, 40, 0, 8, 4),  # a row of the table in, a vector out
        "norms": (0, 0, 4, 4, 8, 12),
        # Reads 4, writes 4 of queries; key and value go to the cache.
        "queries, keys, values": (32, 8, 32, 32, 8, 16),
        "attention output": (16, 4, 16, 16, 12, 12),  # reads 4 and the residual's 4, writes 4
        "feed-forward, up": (48, 12, 48, 48, 10, 20),
        "feed-forward, down": (24, 4, 24, 24, 14, 14),
        "output layer": (40, 10, 40, 40, 14, 0),
    }
    repeats = {each.name: each.repeats for each in model.operators()}
    once = {"embedding": 1, "norms": 5, "output layer": 1}
    assert repeats == {name: once.get(name, model.layers) for name in repeats}


def test_tiny_work() -> None:
    """Three tokens: 120 MAC each in two layers, 6 pairs of 8 MAC, the last one's scores.

    2 x (2 x (3 x 120 + 6 x 8) + 40) = 1,712; with two cached, one more token
    meets 3: 2 x (2 x (120 + 3 x 8) + 40) = 656.
    """
    model = tiny()
    assert model.flop_count(3) == 1712
    assert model.flop_count(1, 2) == 656
    # With all scores, and with all nine pairs.
    assert model.flop_count(3, all_logits=True) == 1712 + 2 * 2 * 40
    assert model.flop_count(3, causal=False) == 1712 + 2 * 2 * 3 * 8


def head(**changes: Any) -> Attention:
    return Attention(**{"heads": 2, "kv_heads": 1, "head_size": 2, **changes})


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        # Queries, keys and values 8 wide; an output 4 wide; both layers.
        ({"attention": head(bias=True)}, 2 * 8),
        ({"attention": head(output_bias=True)}, 2 * 4),
        # A scale for each of 2 numbers of a query and of a key.
        ({"attention": head(qk_norm=True)}, 2 * 4),
        # A score for each head.
        ({"attention": head(sinks=True)}, 2 * 2),
        # A key and a value of 2 more: 4 x 4 weights.
        ({"attention": head(kv_heads=2)}, 2 * 16),
        # A window changes what is seen, and no weight.
        ({"attention": head(window=3)}, 0),
        # Without a gate one matrix less; a bias of 6 and 4.
        ({"feed_forward": FeedForward(size=6)}, -2 * 24),
        ({"feed_forward": FeedForward(size=6, bias=True)}, 2 * (6 + 4 - 24)),
        ({"feed_forward": FeedForward(size=6, gated=True, bias=True)}, 2 * (12 + 4)),
        # Five norms with a shift too.
        ({"norm": "layer"}, 5 * 4),
        ({"norms": 4}, 4 * 4),
        ({"final_norm": False}, -4),
        ({"embedding_norm": True}, 4),
        ({"tied_embeddings": True}, -40),
        ({"output_layer": False}, -40),
        ({"output_bias": True}, 10),
        ({"positions": 32}, 32 * 4),
        ({"token_types": 2}, 8),
        # A matrix of 4 x 4 and a bias.
        ({"pooler": True}, 20),
    ],
    ids=repr,
)
def test_what_a_part_adds(changes: dict[str, object], more: int) -> None:
    model = tiny(**changes)
    assert model.parameter_count == 340 + more
    held = sum(each.parameters * each.resident_repeats for each in model.operators())
    assert held == model.parameter_count


def test_experts_by_hand() -> None:
    """Four experts of 3 with a gate, two for each token, one shared, in the second layer.

    One expert: 3 x 4 x 3 = 36. The layer: 5 x 36 + a router of 4 x 4 = 196,
    and with a bias of the router 200; a token meets 3 x 36 + 20 of them.
    """
    experts = Experts(count=4, per_token=2, size=3, shared=1, dense_layers=1, router_bias=True)
    assert experts.parameters(4) == 200
    assert experts.active_parameters(4) == 128
    model = tiny(experts=experts)
    # Of 340, the second layer's 72 go and 200 come.
    assert model.parameter_count == 340 - 72 + 200
    assert model.active_parameter_count == 340 - 72 + 128
    operators = by_name(model)
    assert row(operators["router"]) == (16, 4, 20, 20, 8, 12)
    # Held: four experts; worked on: two. The inner layers of two are 6 wide.
    routed = {"experts, up": (48, 6, 96, 0, 10, 20), "experts, down": (24, 4, 48, 0, 14, 20)}
    for name, numbers in routed.items():
        assert operators[name].parameters_routed == operators[name].parameters
        assert row(replace(operators[name], parameters_routed=0)) == numbers
    assert operators["shared expert, up"].token_multiply_adds == 24
    assert operators["shared expert, down"].token_multiply_adds == 12
    assert [operators[name].repeats for name in ("feed-forward, up", "router")] == [1, 1]
    # Each token: the first layer's 120, the second's 48 + 16 + 72 + 36.
    assert model.flop_count(1) == 2 * (120 + 172 + 2 * 8 + 40)


def test_a_gate_on_the_shared_expert_is_one_more_score() -> None:
    experts = Experts(count=4, per_token=2, size=3, shared=1, shared_gate=True)
    # Five experts, four scores and the gate, 4 wide each.
    assert experts.parameters(4) == 5 * 36 + 5 * 4
    router = by_name(tiny(experts=experts, feed_forward=None))["router"]
    assert (router.parameters, router.token_multiply_adds, router.token_elements) == (20, 20, 9)


@pytest.mark.parametrize("gated", [False, True])
def test_shared_experts_are_one_wide_network(gated: bool) -> None:
    """Three of 3 that see every token: as one of 9, with one bias at its output."""
    experts = Experts(count=4, per_token=2, size=3, shared=3, gated=gated, bias=True)
    wide = FeedForward(size=9, gated=gated, bias=True)
    assert experts.shared_expert == wide
    branches = 1 + gated
    assert wide.parameters(4) == (branches + 1) * 4 * 9 + branches * 9 + 4
    alone = Experts(count=4, per_token=2, size=3, gated=gated, bias=True)
    assert alone.shared_expert is None
    assert experts.parameters(4) == alone.parameters(4) + wide.parameters(4)
    operators = {each.name: each for each in experts.operators(4, Parallelism())}
    # Read once and summed within: a vector of 4 in, one of 9; then 9, 4 and the residual's 4.
    assert operators["shared expert, up"].token_elements == 4 + 9
    assert operators["shared expert, down"].token_elements == 9 + 4 + 4
    assert operators["shared expert, down"].parameters == 9 * 4 + 4
    assert sum(each.parameters for each in operators.values()) == experts.parameters(4)


def test_biases_of_experts_are_held_and_read() -> None:
    experts = Experts(count=4, per_token=2, size=3, bias=True)
    # 6 for the two branches, 4 for the output, four times.
    assert experts.parameters(4) == 4 * 36 + 16 + 4 * 10
    assert experts.active_parameters(4) == 2 * 46 + 16
    operators = by_name(tiny(experts=experts, feed_forward=None))
    assert operators["experts, up"].parameters_routed == 4 * (24 + 6)
    assert operators["experts, down"].parameters_routed == 4 * (12 + 4)


def test_three_sizes_of_palm() -> None:
    """Chowdhery et al. (2022), table 1. The last is cut off, not rounded."""
    model = Models.PaLM_540B
    for sizes, billions in {
        (32, 16, 4096): 8.63,
        (64, 32, 8192): 62.50,
        (118, 48, 18432): 540.35,
    }.items():
        layers, heads, hidden = sizes
        parts = {
            "attention": replace(model.attention, heads=heads),
            "feed_forward": replace(model.feed_forward, size=4 * hidden),
        }
        sized = replace(model, layers=layers, hidden=hidden, **parts)
        assert abs(sized.parameter_count / 1e9 - billions) < 0.01


@pytest.mark.parametrize("tokens", [float("nan"), float("inf"), 1.5, True, "8", None, [1, 2]])
def test_a_count_of_tokens_is_a_whole_number(tokens: Any) -> None:
    """NaN was a ValueError of another kind, 1.5 gave a number, and True counted as 1."""
    for given in ((tokens,), (1, tokens)):
        with pytest.raises(InvalidValueError, match="_tokens must be a whole number"):
            Models.Llama3_8B.flop_count(*given)
    with pytest.raises(InvalidValueError, match="new_tokens must be one whole number"):
        Models.Llama3_8B.flop_count(np.array([1, 2]))
    # Whole numbers of other types count alike.
    assert tiny().flop_count(np.int64(3)) == tiny().flop_count(3.0) == 1712


def test_a_number_of_the_architecture_names_its_document() -> None:
    found = show(Models.Mixtral_8x7B, "experts.per_token")
    assert found == 2
    assert found.origin.brief == (
        "experts.per_token of Mixtral 8x7B: 2; architecture from [@jiang2024mixtral]"
    )
    for name in ("experts.heads", "experts", "name", "attention.", "parameter_count.real"):
        with pytest.raises(UnknownNameError, match="no count of a model is called"):
            show(Models.Mixtral_8x7B, name)
