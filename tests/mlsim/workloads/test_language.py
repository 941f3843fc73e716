"""Transformers: parts counted by hand, and against published truths."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from language_models import LANGUAGE, by_name, counts, tiny
from told import rows

from mlsim import show
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.workloads.blocks import Attention, Experts, FeedForward
from mlsim.workloads.steps import Parallelism, StepOperator
from mlsim.zoo.spaces import Models


def test_cache_of_a_token() -> None:
    for name, told in rows("cached_elements"):
        model, elements = getattr(Models, name), int(told)
        assert model.model_cached_elements == elements, name
        assert model.cache_bytes_per_token().to("B").magnitude == 2 * elements
        assert model.cache_bytes_per_token("fp8").to("B").magnitude == elements
    # MiniMax's guide to vLLM says 240 GB for a million tokens, and means GiB.
    cache = Models.MiniMax_M2.cache_bytes_per_token().to("GiB").magnitude
    assert round(1e6 * cache, -1) == 240


def test_llama2_works_as_is_known() -> None:
    """One new token and 2,048 cached ones; and a prompt of 2,048 tokens.

    Every parameter but the embedding table and the norms meets the token: 6,738,415,616 -
    131,072,000 - 65 x 4,096 = 6,607,077,376 MAC; and 32 layers x 2,049 pairs x 2 x 4,096 =
    537,133,056 MAC of attention. Of a prompt's 2,048^2 = 4,194,304 pairs 2,048 x 2,049 / 2 =
    2,098,176 are not masked. Last token only: the output layer's 131,072,000 weights meet one.
    """
    model = Models.Llama2_7B
    matrices = model.parameter_count - 32_000 * 4_096 - 65 * 4_096
    assert matrices == 6_607_077_376
    assert model.flop_count(1, 2048) == 2 * (matrices + 32 * 2_049 * 2 * 4_096) == 14_288_420_864
    full = 2 * (matrices * 2_048 + 32 * 8_192 * 2_048**2)
    assert model.flop_count(2048, causal=False, all_logits=True) == full == 29_261_612_187_648
    causal = full - 2 * 32 * 8_192 * (2_048**2 - 2_098_176)
    assert model.flop_count(2048, all_logits=True) == causal
    last = causal - 2 * 131_072_000 * 2_047
    assert model.flop_count(2048) == last == 27_626_028_662_784


# GLM's report counts neither the table of words nor the output layer; MiniMax's 10 billion hold
# without the table.
TABLES = {"GLM_4_5": 2, "GLM_4_5_Air": 2, "MiniMax_M2": 1}


def test_parameters_that_a_token_meets() -> None:
    for name, billions in rows("active_parameters"):
        model = getattr(Models, name)
        tables = TABLES.get(name, 0) * model.vocabulary * model.hidden
        met = (model.active_parameter_count - tables) / 1e9
        assert int(billions) - 0.5 <= met < int(billions) + 1, name


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


def test_what_a_part_adds() -> None:
    broken = []
    for told, more in rows("parts_of_transformers"):
        changes = json.loads(told)
        if "attention" in changes:
            heads = {"heads": 2, "kv_heads": 1, "head_size": 2}
            changes["attention"] = Attention(**{**heads, **changes["attention"]})
        if "feed_forward" in changes:
            changes["feed_forward"] = FeedForward(**changes["feed_forward"])
        model = tiny(**changes)
        held = sum(each.parameters * each.resident_repeats for each in model.operators())
        if not model.parameter_count == held == 340 + int(more):
            broken.append((changes, model.parameter_count, held))
    assert broken == []


def test_experts_by_hand() -> None:
    """Four experts of 3 with a gate, two for each token, one shared, in the second layer.

    One expert: 3 x 4 x 3 = 36. The layer: 5 x 36 + a router of 4 x 4 = 196,
    and with a bias of the router 200; a token meets 3 x 36 + 20 of them.
    """
    experts = Experts(count=4, per_token=2, size=3, shared=1, dense_layers=1, router_bias=True)
    assert experts.parameters(4) == 200
    assert experts.idle_parameters(4) == 200 - 128
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


def test_shared_experts_are_one_wide_network() -> None:
    """Three of 3 that see every token: as one of 9, with one bias at its output."""
    one: dict[str, Any] = {"count": 4, "per_token": 2, "size": 3, "bias": True}
    for gated in (False, True):
        experts = Experts(**one, shared=3, gated=gated)
        wide = FeedForward(size=9, gated=gated, bias=True)
        assert experts.shared_expert == wide
        assert wide.parameters(4) == (2 + gated) * 4 * 9 + (1 + gated) * 9 + 4
        alone = Experts(**one, gated=gated)
        assert alone.shared_expert is None
        assert experts.parameters(4) == alone.parameters(4) + wide.parameters(4)
        operators = {each.name: each for each in experts.operators(4, Parallelism())}
        # Read once and summed within: a vector of 4 in, one of 9; then 9, 4 and the residual's 4.
        assert operators["shared expert, up"].token_elements == 4 + 9
        down = operators["shared expert, down"]
        assert (down.token_elements, down.parameters) == (9 + 4 + 4, 9 * 4 + 4)
        assert sum(each.parameters for each in operators.values()) == experts.parameters(4)


def test_biases_of_experts_are_held_and_read() -> None:
    experts = Experts(count=4, per_token=2, size=3, bias=True)
    # 6 for the two branches, 4 for the output, four times.
    assert experts.parameters(4) == 4 * 36 + 16 + 4 * 10
    assert experts.idle_parameters(4) == experts.parameters(4) - (2 * 46 + 16)
    operators = by_name(tiny(experts=experts, feed_forward=None))
    assert operators["experts, up"].parameters_routed == 4 * (24 + 6)
    assert operators["experts, down"].parameters_routed == 4 * (12 + 4)


def test_a_count_of_tokens_is_a_whole_number() -> None:
    """NaN was a ValueError of another kind, 1.5 gave a number, and True counted as 1."""
    for tokens in (float("nan"), float("inf"), 1.5, True, "8", None, [1, 2]):
        for given in ((tokens,), (1, tokens)):
            with pytest.raises(InvalidValueError, match="_tokens must be a whole number"):
                Models.Llama3_8B.flop_count(*given)  # type: ignore[arg-type]
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
