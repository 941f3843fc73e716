"""Transformers: parts counted by hand, against published truths, and files that can't be."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.workloads import Layout, Transformer, load_model
from mlsim.workloads.blocks import Attention, Experts, FeedForward, LatentAttention
from mlsim.workloads.steps import UNLIMITED, StepOperator, StepTable
from mlsim.zoo import DATA, Models

LANGUAGE = tuple(each for each in Models if isinstance(each, Transformer))
DECODERS = tuple(each for each in LANGUAGE if each.decoder)
each_model = pytest.mark.parametrize("model", LANGUAGE, ids=lambda model: model.key)
each_decoder = pytest.mark.parametrize("model", DECODERS, ids=lambda model: model.key)


def make(**changes) -> Transformer:
    """Return a transformer of two layers, 4 wide, small enough to work out by hand.

    Two heads of 2 share one key and one value; the feed-forward network has a
    gate and 6 features inside; 10 tokens are known.
    """
    arguments = {
        "key": "Tiny",
        "name": "Tiny",
        "architecture": "Transformer decoder",
        "source": "vaswani2017attention",
        "layers": 2,
        "hidden": 4,
        "vocabulary": 10,
        "context": 32,
        "attention": Attention(heads=2, kv_heads=1, head_size=2),
        "feed_forward": FeedForward(size=6, gated=True),
    }
    return Transformer(**{**arguments, **changes})


def by_name(model: Transformer, layout: Layout | None = None) -> dict[str, StepOperator]:
    return {operator.name: operator for operator in model.operators(layout)}


def counts(operator: StepOperator) -> dict[str, float]:
    """Return what is not as it is by default, without names and repeats."""
    default = StepOperator(name="", kind="")
    return {
        each.name: getattr(operator, each.name)
        for each in dataclasses.fields(operator)
        if each.name not in ("name", "kind", "repeats", "resident_repeats", "kept")
        and getattr(operator, each.name) != getattr(default, each.name)
    }


# Exact where it is definitional.


@pytest.mark.parametrize(
    ("name", "size"),
    [
        # 32 layers x 2 x 32 heads x 128 x 2 B.
        ("Llama2_7B", 524_288),
        # 8 KV heads instead of 32.
        ("Llama3_8B", 131_072),
        ("Mixtral_8x7B", 131_072),
        # 80 layers x 2 x 8 x 128 x 2 B.
        ("Llama2_70B", 327_680),
        ("Llama3_70B", 327_680),
        # 61 layers x (512 + 64) x 2 B, one vector for all 128 heads.
        ("DeepSeek_V3", 70_272),
    ],
)
def test_cache_of_a_token(name: str, size: int) -> None:
    model = getattr(Models, name)
    assert model.cache_bytes_per_token().to("B").magnitude == size
    assert model.cache_bytes_per_token("fp8").to("B").magnitude == size / 2
    assert model.model_cached_elements == size / 2


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


@each_model
def test_parameters_are_the_published_ones(model: Transformer) -> None:
    published = model.figures.get("published_parameters")
    assert published is not None
    if model.key == "GPT_J_6B":
        # Eight shards count a copy each of 86 vectors, and one has 8 more: 610 of 4096.
        assert published.value - model.parameter_count == (7 * 86 + 8) * 4096
    elif published.unit == "parameter":
        assert model.parameter_count == published.value
    else:
        # A rounded count, such as 671 Gparameter, at its own precision.
        assert model.parameter_count == pytest.approx(published.si, rel=0.015)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("GPT2", 124_439_808),
        ("GPT2_XL", 1_557_611_200),
        ("BERT_Base", 109_482_240),
        ("BERT_Large", 335_141_888),
        ("Llama2_7B", 6_738_415_616),
        ("Llama2_13B", 13_015_864_320),
        ("Llama2_70B", 68_976_648_192),
        ("Llama3_8B", 8_030_261_248),
        ("Llama3_70B", 70_553_706_496),
        ("Llama3_405B", 405_853_388_800),
        ("Mistral_7B", 7_241_732_096),
        ("Mixtral_8x7B", 46_702_792_704),
        ("Qwen2_5_7B", 7_615_616_512),
        ("Qwen3_8B", 8_190_735_360),
        ("Qwen3_30B_A3B", 30_532_122_624),
        ("Gemma2_9B", 9_241_705_984),
        ("GPT_OSS_20B", 20_914_757_184),
        ("GPT_OSS_120B", 116_829_156_672),
        ("BLOOM_176B", 176_247_271_424),
        ("DeepSeek_V3", 671_026_419_200),
    ],
)
def test_parameters_to_the_last_one(name: str, count: int) -> None:
    assert getattr(Models, name).parameter_count == count


@each_model
def test_operators_hold_what_the_parts_count(model: Transformer) -> None:
    """Two ways to the same number: the formula of each part, and the lowered operators."""
    operators = model.operators()
    held = sum(each.parameters * each.resident_repeats for each in operators)
    assert held == model.parameter_count
    # All are read in a step but the tables, whose rows count as activations. A
    # tied output layer reads its table without holding it again.
    read = sum(
        (each.parameters_streamed + each.parameters_routed) * each.repeats for each in operators
    )
    tables = (model.vocabulary + model.positions + model.token_types) * model.hidden
    tied = model.tied_embeddings and model.output_layer
    assert read == model.parameter_count - tables + tied * model.vocabulary * model.hidden


@each_model
def test_a_token_meets_all_parameters_but_those_of_other_experts(model: Transformer) -> None:
    if not model.experts:
        assert model.active_parameter_count == model.parameter_count
        return
    experts = model.experts
    one = experts.expert.parameters(model.hidden)
    unused = (model.layers - model.dense_layers) * (experts.count - experts.per_token) * one
    assert model.active_parameter_count == model.parameter_count - unused


def test_mixtral_meets_13_of_its_47_billion() -> None:
    # Jiang et al. (2024): 47B parameters, 13B of them for each token.
    assert Models.Mixtral_8x7B.parameter_count == pytest.approx(47e9, rel=0.01)
    assert Models.Mixtral_8x7B.active_parameter_count == pytest.approx(13e9, rel=0.01)


# The tiny transformer by hand.


def test_tiny_parameters() -> None:
    """Count them.

    attention     4 x (4 + 2 + 2) + 4 x 4 = 48
    feed-forward  2 x 4 x 6 + 6 x 4 = 72
    norms         2 x 4 = 8
    two layers    2 x 128 = 256, and the last norm 4
    embedding and output layer 10 x 4 = 40 each
    """
    model = make()
    assert model.attention.parameters(4) == 48
    assert model.feed_forward.parameters(4) == 72
    assert model.parameter_count == model.active_parameter_count == 256 + 4 + 80 == 340
    assert model.parameters.magnitude == 340


def test_tiny_operators() -> None:
    """Each operator for one token: MAC, elements read and written, elements alive."""
    operators = by_name(make())
    assert {name: counts(operator) for name, operator in operators.items()} == {
        # A row of the table in, a vector out.
        "embedding": {"parameters": 40, "token_elements": 8, "live_elements": 4},
        "norms": {
            "parameters": 4,
            "parameters_streamed": 4,
            "token_elements": 8,
            "live_elements": 12,
        },
        # Reads 4, writes 4 of queries; key and value go to the cache.
        "queries, keys, values": {
            "token_multiply_adds": 32,
            "parameters": 32,
            "parameters_streamed": 32,
            "token_elements": 8,
            "live_elements": 16,
        },
        # Two heads: a score of 2 and a weighted value of 2 for each pair.
        "attention": {
            "pair_multiply_adds": 8,
            "cached_elements": 4,
            "token_elements": 8,
            "live_elements": 16,
        },
        # Reads 4 and the residual's 4, writes 4.
        "attention output": {
            "token_multiply_adds": 16,
            "parameters": 16,
            "parameters_streamed": 16,
            "token_elements": 12,
            "live_elements": 12,
        },
        "feed-forward, up": {
            "token_multiply_adds": 48,
            "parameters": 48,
            "parameters_streamed": 48,
            "token_elements": 10,
            "live_elements": 20,
        },
        "feed-forward, down": {
            "token_multiply_adds": 24,
            "parameters": 24,
            "parameters_streamed": 24,
            "token_elements": 14,
            "live_elements": 14,
        },
        "output layer": {
            "token_multiply_adds": 40,
            "parameters": 40,
            "parameters_streamed": 40,
            "token_elements": 14,
            "token_limit": 1,
        },
    }
    repeats = {name: operator.repeats for name, operator in operators.items()}
    layered = ("queries, keys, values", "attention", "attention output")
    layered += ("feed-forward, up", "feed-forward, down")
    assert repeats == {"embedding": 1, "norms": 5, "output layer": 1, **dict.fromkeys(layered, 2)}


def test_tiny_work() -> None:
    """Three tokens: 120 MAC each in two layers, 6 pairs of 8 MAC, the last one's scores.

    2 x (2 x (3 x 120 + 6 x 8) + 40) = 1,712; with two cached, one more token
    meets 3: 2 x (2 x (120 + 3 x 8) + 40) = 656.
    """
    model = make()
    assert model.flop_count(3) == 1712
    assert model.flop_count(1, 2) == 656
    # With all scores, and with all nine pairs.
    assert model.flop_count(3, all_logits=True) == 1712 + 2 * 2 * 40
    assert model.flop_count(3, causal=False) == 1712 + 2 * 2 * 3 * 8


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        # Queries, keys and values 8 wide; an output 4 wide; both layers.
        ({"attention": Attention(heads=2, kv_heads=1, head_size=2, bias=True)}, 2 * 8),
        ({"attention": Attention(heads=2, kv_heads=1, head_size=2, output_bias=True)}, 2 * 4),
        # A scale for each of 2 numbers of a query and of a key.
        ({"attention": Attention(heads=2, kv_heads=1, head_size=2, qk_norm=True)}, 2 * 4),
        # A score for each head.
        ({"attention": Attention(heads=2, kv_heads=1, head_size=2, sinks=True)}, 2 * 2),
        # A key and a value of 2 more: 4 x 4 weights.
        ({"attention": Attention(heads=2, kv_heads=2, head_size=2)}, 2 * 16),
        # A window changes what is seen, and no weight.
        ({"attention": Attention(heads=2, kv_heads=1, head_size=2, window=3)}, 0),
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
    model = make(**changes)
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
    model = make(experts=experts)
    # Of 340, the second layer's 72 go and 200 come.
    assert model.parameter_count == 340 - 72 + 200
    assert model.active_parameter_count == 340 - 72 + 128
    operators = by_name(model)
    assert counts(operators["router"]) == {
        "token_multiply_adds": 16,
        "parameters": 20,
        "parameters_streamed": 20,
        "token_elements": 8,
        "live_elements": 12,
    }
    # Held: four experts; worked on: two. The inner layers of two are 6 wide.
    assert counts(operators["experts, up"]) == {
        "token_multiply_adds": 48,
        "parameters": 96,
        "parameters_routed": 96,
        "token_elements": 10,
        "live_elements": 20,
    }
    assert counts(operators["experts, down"]) == {
        "token_multiply_adds": 24,
        "parameters": 48,
        "parameters_routed": 48,
        "token_elements": 14,
        "live_elements": 20,
    }
    assert operators["shared expert, up"].token_multiply_adds == 24
    assert operators["shared expert, down"].token_multiply_adds == 12
    assert [operators[name].repeats for name in ("feed-forward, up", "router")] == [1, 1]
    # Each token: the first layer's 120, the second's 48 + 16 + 72 + 36.
    assert model.flop_count(1) == 2 * (120 + 172 + 2 * 8 + 40)


def test_a_gate_on_the_shared_expert_is_one_more_score() -> None:
    experts = Experts(count=4, per_token=2, size=3, shared=1, shared_gate=True)
    # Five experts, four scores and the gate, 4 wide each.
    assert experts.parameters(4) == 5 * 36 + 5 * 4
    router = by_name(make(experts=experts, feed_forward=None))["router"]
    assert (router.parameters, router.token_multiply_adds, router.token_elements) == (20, 20, 9)


def test_biases_of_experts_are_held_and_read() -> None:
    experts = Experts(count=4, per_token=2, size=3, bias=True)
    # 6 for the two branches, 4 for the output, four times.
    assert experts.parameters(4) == 4 * 36 + 16 + 4 * 10
    assert experts.active_parameters(4) == 2 * 46 + 16
    operators = by_name(make(experts=experts, feed_forward=None))
    assert operators["experts, up"].parameters_routed == 4 * (24 + 6)
    assert operators["experts, down"].parameters_routed == 4 * (12 + 4)


def test_latent_attention_by_hand() -> None:
    """Two heads; queries by 3, keys and values by 2, a rotary key of 1.

    query reduction 4 x 3, queries 3 x 2 x (2 + 1) = 18, compression 4 x 3,
    keys and values 2 x 2 x (2 + 2) = 16, output 2 x 2 x 4 = 16, norms 3 + 2.
    """
    attention = LatentAttention(
        heads=2, query_rank=3, kv_rank=2, content_size=2, rope_size=1, value_size=2
    )
    assert attention.parameters(4) == 12 + 18 + 12 + 16 + 16 + 5 == 79
    assert attention.cached_elements == 3
    assert attention.kv_heads == 1
    model = make(attention=attention)
    assert model.latent
    assert model.parameter_count == 340 + 2 * (79 - 48)
    operators = by_name(model)
    assert counts(operators["attention"]) == {
        # A pair: score 2 x 3, value 2 x 2; compressed: score 2 x 3, value 2 x 2.
        "pair_multiply_adds": 10,
        "absorbed_pair_multiply_adds": 2 * (2 * 2 + 1),
        "expand_multiply_adds": 16,
        "cached_elements": 3,
        "token_elements": 6 + 4,
        "live_elements": 4 + 12 + 4,
    }
    assert operators["query reduction"].token_multiply_adds == 12
    assert operators["queries"].token_multiply_adds == 18
    # A norm of 3 stands before the queries, one of 2 before keys and values.
    assert operators["queries"].parameters == 18 + 3
    assert operators["keys and values"].parameters == 16 + 2
    # The compressed vector is written to the cache: as activation it is read only.
    assert operators["key and value compression"].token_elements == 4
    assert operators["attention output"].token_elements == 4 + 4 + 4
    assert [each.name for each in model.operators()][2:8] == [
        "query reduction",
        "queries",
        "key and value compression",
        "keys and values",
        "attention",
        "attention output",
    ]


def test_latent_attention_without_a_query_rank() -> None:
    attention = LatentAttention(
        heads=2, query_rank=0, kv_rank=2, content_size=2, rope_size=1, value_size=2
    )
    # One matrix 4 x 6 for the queries, and one norm less.
    assert attention.parameters(4) == 24 + 12 + 16 + 16 + 2
    assert "query reduction" not in by_name(make(attention=attention))


def test_latent_attention_takes_the_way_with_less_work() -> None:
    """DeepSeek-V3: to read a prompt keys and values are expanded, to write they are not.

    A pair costs 40,960 MAC expanded and 139,264 compressed; expanding one
    cached token costs 16,777,216.
    """
    model = Models.DeepSeek_V3
    attention = by_name(model)["attention"]
    assert attention.pair_multiply_adds == 128 * (128 + 64 + 128) == 40_960
    assert attention.absorbed_pair_multiply_adds == 128 * (2 * 512 + 64) == 139_264
    assert attention.expand_multiply_adds == 512 * 128 * 256 == 16_777_216
    # One more token, 1,000 cached: 61 layers x 139,264 MAC for each more cached one.
    more = model.flop_count(1, 1000) - model.flop_count(1, 999)
    assert more == 2 * 61 * 139_264
    # A prompt: 1,000 more pairs for the 1,000th token, and its own projections.
    alone = model.flop_count(1, 0) - 2 * by_name(model)["output layer"].token_multiply_adds
    more = model.flop_count(1000) - model.flop_count(999)
    assert more == alone + 2 * 61 * 40_960 * 999


# Windows.


def test_a_window_by_hand() -> None:
    """Five tokens that see three at most: 1 + 2 + 3 + 3 + 3 = 12 pairs instead of 15."""
    window = Attention(heads=2, kv_heads=1, head_size=2, window=3)
    full, windowed = make(), make(attention=window)
    assert full.flop_count(5) - windowed.flop_count(5) == 2 * 2 * 8 * 3
    # With two cached: 3 + 3 + 3 instead of 3 + 4 + 5; with seven, 3 instead of 8.
    assert full.flop_count(3, 2) - windowed.flop_count(3, 2) == 2 * 2 * 8 * 3
    assert full.flop_count(1, 7) - windowed.flop_count(1, 7) == 2 * 2 * 8 * 5
    assert windowed.flop_count(1, 7) == windowed.flop_count(1, 30)
    (operator,) = [each for each in windowed.operators() if each.kind == "attention"]
    assert (operator.name, operator.attention_window) == ("attention in a window", 3)
    assert operator.repeats == 2


def test_some_layers_see_all_nevertheless() -> None:
    """Of six layers every third is full: two. Of the six, those in a window are four."""
    attention = Attention(heads=2, kv_heads=1, head_size=2, window=3, full_every=3)
    model = make(layers=6, attention=attention)
    assert model.full_layers == 2
    rows = {each.name: each for each in model.operators() if each.kind == "attention"}
    assert rows["attention"].repeats == 2
    assert rows["attention"].attention_window == UNLIMITED
    assert rows["attention in a window"].repeats == 4
    # With ten cached: two layers meet 11 tokens, four meet 3.
    matrices = make(layers=6).flop_count(1, 0) - 6 * 2 * 8
    assert model.flop_count(1, 10) == matrices + 2 * 8 * (2 * 11 + 4 * 3)


@pytest.mark.parametrize(
    ("name", "full", "window"),
    [
        ("Mistral_7B", 0, 4096),
        ("Gemma2_9B", 21, 4096),
        # Five layers of six have a window; 62 are ten times six and two more.
        ("Gemma3_27B", 10, 1024),
        ("GPT_OSS_20B", 12, 128),
        ("Llama3_8B", 32, 0),
    ],
)
def test_layers_that_see_all(name: str, full: int, window: int) -> None:
    model = getattr(Models, name)
    assert (model.full_layers, model.attention.window) == (full, window)
    rows = [each for each in model.operators() if each.kind == "attention"]
    assert sum(row.repeats for row in rows) == model.layers


# Encoders.


def test_an_encoder_sees_all_and_caches_nothing() -> None:
    """Three tokens meet nine times; keys and values are written and read as activations."""
    model = make(decoder=False)
    assert model.flop_count(3) == make().flop_count(3, causal=False)
    operators = by_name(model)
    assert all(each.cached_elements == 0 for each in operators.values())
    # 8 and 8 elements as in a decoder, and 4 of a key and a value for both.
    assert operators["queries, keys, values"].token_elements == 12
    assert operators["attention"].token_elements == 12


def test_bert_has_a_pooler_and_no_output_layer() -> None:
    operators = by_name(Models.BERT_Base)
    assert "output layer" not in operators
    pooler = operators["pooler"]
    assert pooler.parameters == 768 * 768 + 768
    assert pooler.token_limit == 1
    # 384 tokens: 12 layers of 12 x 768^2 weights, 384^2 pairs, and the pooler.
    layer = 12 * 768**2 * 384 + 384**2 * 2 * 768
    assert Models.BERT_Base.flop_count(384) == 2 * (12 * layer + 768**2)


# Layouts, by hand.


def test_tensor_parallel_by_hand() -> None:
    """Two devices: one head each, the same key and value, half of each other matrix."""
    operators = by_name(make(), Layout(tensor=2))
    expected = {
        # MAC, parameters, elements of activation.
        "embedding": (0, 20, 8),
        "norms": (0, 4, 8),
        # 4 x (2 + 2 + 2): the queries are halved, the one KV head is not.
        "queries, keys, values": (24, 24, 6),
        "attention": (0, 0, 4),
        "attention output": (8, 8, 10),
        "feed-forward, up": (24, 24, 7),
        "feed-forward, down": (12, 12, 11),
        "output layer": (20, 20, 9),
    }
    for name, (work, held, elements) in expected.items():
        operator = operators[name]
        assert operator.token_multiply_adds == work, name
        assert operator.parameters == held, name
        assert operator.token_elements == elements, name
    assert operators["attention"].pair_multiply_adds == 4
    assert operators["attention"].cached_elements == 4
    # A vector of 4 is added up over two: each sends half of it twice. Once
    # after each attention and feed-forward network, once after the embedding.
    reduce = operators["all-reduce"]
    assert (reduce.link_elements, reduce.repeats) == (4.0, 5)
    # Half of ten scores is elsewhere, for the last token only.
    gather = operators["gather of the output"]
    assert (gather.link_elements, gather.repeats, gather.token_limit) == (5.0, 1, 1)


def test_kv_heads_are_divided_before_they_are_repeated() -> None:
    attention = Attention(heads=8, kv_heads=2, head_size=2)
    for tensor, cached in ((1, 8), (2, 4), (4, 4), (8, 4)):
        operators = by_name(
            make(attention=attention, feed_forward=FeedForward(size=8)), Layout(tensor)
        )
        assert operators["attention"].cached_elements == cached


def test_pipeline_parallel_by_hand() -> None:
    """Two stages: a layer each; the one that holds more has the output layer."""
    operators = by_name(make(), Layout(pipeline=2))
    resident = {name: operator.resident_repeats for name, operator in operators.items()}
    assert resident == {
        "embedding": 0.0,
        "norms": 2.5,
        "queries, keys, values": 1.0,
        "attention": 1.0,
        "attention output": 1.0,
        "feed-forward, up": 1.0,
        "feed-forward, down": 1.0,
        "output layer": 1.0,
        "stage to stage": 0.0,
    }
    # All layers are still passed through, one vector is sent between the two.
    assert operators["attention"].repeats == 2
    assert (operators["stage to stage"].link_elements, operators["stage to stage"].repeats) == (
        4,
        1,
    )


def test_a_tied_table_lies_on_the_last_stage_too() -> None:
    tied = make(tied_embeddings=True)
    assert by_name(tied)["output layer"].parameters == 0
    assert by_name(tied, Layout(pipeline=2))["output layer"].parameters == 40
    # An encoder's last stage has no output layer: the first one holds most.
    encoder = make(decoder=False, output_layer=False)
    assert by_name(encoder, Layout(pipeline=2))["embedding"].resident_repeats == 1.0


def test_expert_parallel_by_hand() -> None:
    """Four experts over four copies of the attention part: one on each device."""
    model = make(experts=Experts(count=4, per_token=2, size=3), feed_forward=None)
    layout = Layout(data=4, expert=4)
    assert layout.expert_replicas == 4
    operators = by_name(model, layout)
    assert operators["experts, up"].parameters == operators["experts, up"].parameters_routed == 24
    # The work of a device's own tokens, on average.
    assert operators["experts, up"].token_multiply_adds == 48
    # Both experts of a token are elsewhere three times in four; there and back.
    sent = operators["tokens to their experts and back"]
    assert (sent.link_elements, sent.repeats) == (2 * 2 * 4 * 3 / 4, 2)
    # All of attention is on each.
    assert operators["attention output"].parameters == 16


def test_experts_within_a_tensor_group_send_nothing_more() -> None:
    model = make(experts=Experts(count=4, per_token=2, size=4), feed_forward=None)
    together, spread = Layout(tensor=2), Layout(tensor=2, expert=2)
    assert by_name(model, together).keys() == by_name(model, spread).keys()
    assert by_name(model, together)["experts, up"] == by_name(model, spread)["experts, up"]
    assert spread.expert_replicas == 1


def test_copies_send_nothing() -> None:
    assert make().operators(Layout(data=4)) == make().operators()


@pytest.mark.parametrize("tensor", [1, 2, 4, 8])
@each_model
def test_devices_together_hold_at_least_the_model(model: Transformer, tensor: int) -> None:
    if model.attention.heads % tensor:
        return
    operators = model.operators(Layout(tensor=tensor))
    held = sum(each.parameters * each.resident_repeats for each in operators) * tensor
    # A table whose rows don't divide is a row short on some device.
    assert held >= model.parameter_count - tensor * model.hidden
    # Nor much more: norms, routers, tables of positions and shared KV heads repeat.
    assert held <= 1.25 * model.parameter_count
    together = sum(each.token_multiply_adds * each.repeats for each in operators) * tensor
    alone = sum(each.token_multiply_adds * each.repeats for each in model.operators())
    assert alone * (1 - 1e-6) <= together <= alone * 1.25


def test_a_layout_in_words() -> None:
    assert str(Layout()) == "1 device"
    assert str(Layout(tensor=4, pipeline=2)) == "TP4 PP2"
    assert str(Layout(data=2, expert=8)) == "DP2 EP8"
    assert Layout(tensor=4, pipeline=2, data=3).devices == 24


@pytest.mark.parametrize(
    ("name", "layout", "message"),
    [
        (
            "Llama3_8B",
            Layout(tensor=5),
            (
                "tensor_parallel = 5 does not divide the 32 attention heads of Llama 3.1 8B. "
                "Near it are 1, 2, 4, 8, 16."
            ),
        ),
        (
            "Qwen2_5_7B",
            Layout(tensor=7),
            (
                "tensor_parallel = 7 does not divide the 4 KV heads of Qwen2.5 7B. "
                "Near it are 1, 2, 4."
            ),
        ),
        (
            "Llama3_8B",
            Layout(pipeline=5),
            (
                "pipeline_parallel = 5 does not divide the 32 layers of Llama 3.1 8B. "
                "Near it are 1, 2, 4, 8, 16."
            ),
        ),
        (
            "Mixtral_8x7B",
            Layout(data=3, expert=3),
            (
                "expert_parallel = 3 does not divide the 8 experts of Mixtral 8x7B. "
                "Near it are 1, 2, 4, 8."
            ),
        ),
        (
            "Llama3_8B",
            Layout(data=2, expert=2),
            "expert_parallel = 2, but Llama 3.1 8B has no experts. Leave it out.",
        ),
        (
            "Mixtral_8x7B",
            Layout(expert=8),
            (
                "expert_parallel = 8 can't be laid out over tensor_parallel x data_parallel = "
                "1 x 1 = 1 devices: it must divide their number, and divide or be a multiple of "
                "tensor_parallel."
            ),
        ),
    ],
    ids=lambda each: str(each)[:20],
)
def test_a_layout_that_does_not_divide(name: str, layout: Layout, message: str) -> None:
    with pytest.raises(InvalidValueError) as e:
        getattr(Models, name).operators(layout)
    assert str(e.value) == message


def test_a_feed_forward_network_that_does_not_divide() -> None:
    model = make(attention=Attention(heads=4, kv_heads=4, head_size=1))
    with pytest.raises(InvalidValueError, match="= 4 does not divide the 6 feed-forward features"):
        model.operators(Layout(tensor=4))


# Invariants.


@st.composite
def transformers(draw: st.DrawFn) -> Transformer:
    """Draw a small decoder of any kind."""
    hidden = draw(st.integers(1, 8)) * 8
    window = draw(st.sampled_from([0, 0, 3, 17]))
    spread = {"window": window, "full_every": draw(st.integers(0, 3)) if window else 0}
    if draw(st.booleans()):
        attention: Attention | LatentAttention = Attention(
            heads=4,
            kv_heads=draw(st.sampled_from([1, 2, 4])),
            head_size=draw(st.integers(1, 16)),
            bias=draw(st.booleans()),
            qk_norm=draw(st.booleans()),
            sinks=draw(st.booleans()),
            **spread,
        )
    else:
        attention = LatentAttention(
            heads=4,
            query_rank=draw(st.integers(0, 8)),
            kv_rank=draw(st.integers(1, 8)),
            content_size=draw(st.integers(1, 8)),
            rope_size=draw(st.integers(1, 8)),
            value_size=draw(st.integers(1, 8)),
            **spread,
        )
    layers, experts = draw(st.integers(1, 6)), None
    if draw(st.booleans()):
        count = draw(st.sampled_from([2, 4, 8]))
        shared = draw(st.integers(0, 2))
        experts = Experts(
            count=count,
            per_token=draw(st.integers(1, count)),
            size=draw(st.integers(1, 4)) * 4,
            # No family shares several experts that have biases.
            bias=draw(st.booleans()) and shared < 2,
            shared=shared,
            shared_gate=draw(st.booleans()) and shared > 0,
            router_bias=draw(st.booleans()),
            dense_layers=draw(st.integers(0, layers)),
        )
    return make(
        layers=layers,
        hidden=hidden,
        vocabulary=draw(st.integers(1, 50)) * 4,
        context=10_000,
        attention=attention,
        feed_forward=FeedForward(size=draw(st.integers(1, 8)) * 4, gated=draw(st.booleans())),
        experts=experts,
        norm=draw(st.sampled_from(["rms", "layer"])),
        tied_embeddings=draw(st.booleans()),
        output_bias=draw(st.booleans()),
    )


tokens = st.integers(1, 200)


@given(transformers())
def test_any_transformer_holds_what_its_parts_count(model: Transformer) -> None:
    held = sum(each.parameters * each.resident_repeats for each in model.operators())
    assert held == pytest.approx(model.parameter_count, rel=1e-12)
    assert model.active_parameter_count <= model.parameter_count


@given(transformers(), tokens, tokens)
def test_causal_is_not_more_than_full(model: Transformer, new: int, cached: int) -> None:
    causal, full = model.flop_count(new, cached), model.flop_count(new, cached, causal=False)
    assert causal <= full
    if new == 1:
        assert causal == full


@given(transformers(), st.integers(1, 40))
def test_a_prompt_is_its_tokens_one_after_another(model: Transformer, length: int) -> None:
    """A causal prompt costs what its tokens cost one by one, each on top of those before."""
    at_once = model.flop_count(length, all_logits=True)
    one_by_one = sum(model.flop_count(1, cached) for cached in range(length))
    if model.latent:
        # Token by token it may take the compressed way, where that is less.
        assert one_by_one <= at_once + 2 * sum(
            each.expand_multiply_adds * each.repeats for each in model.operators()
        ) * sum(range(length))
    else:
        assert one_by_one == at_once


@each_decoder
def test_a_prompt_of_the_zoo_is_its_tokens_one_after_another(model: Transformer) -> None:
    at_once = model.flop_count(600, all_logits=True)
    if model.latent:
        # Expanded, a pair is cheaper; only the first few would be cheaper compressed.
        assert at_once <= sum(model.flop_count(1, cached) for cached in range(600))
    else:
        assert at_once == sum(model.flop_count(1, cached) for cached in range(600))


@given(transformers(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_devices_together_do_at_least_the_work(model: Transformer, tensor: int, data: int) -> None:
    operators = model.operators(Layout(tensor=tensor, data=data))
    for name in ("token_multiply_adds", "pair_multiply_adds", "absorbed_pair_multiply_adds"):
        alone = sum(getattr(each, name) * each.repeats for each in model.operators())
        divided = sum(getattr(each, name) * each.repeats for each in operators)
        assert divided * tensor >= alone
        assert divided <= alone


def test_columns_are_what_operators_say() -> None:
    table = StepTable(make().operators(), {"peak_flops": tuple(range(8))})
    assert len(table) == len(list(table)) == 8
    assert table.columns["token_multiply_adds"] == [0, 0, 32, 0, 16, 48, 24, 40]
    assert table.columns["peak_flops"] == list(range(8))
    for name, column in table.arrays.items():
        assert column.tolist() == table.columns[name]
        assert table.columns_2d[name].shape == (8, 1)
    assert "live_elements" not in table.columns


def test_what_a_perfect_program_could_avoid() -> None:
    kept = by_name(make(), Layout(tensor=2))["all-reduce"].compulsory()
    assert kept.link_elements == 0
    one = by_name(make())["feed-forward, up"]
    assert one.compulsory() == dataclasses.replace(one, token_elements=0)
    assert one.renamed("other") == dataclasses.replace(one, name="other")


# What can't be.


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"norm": "batch"}, "norm must be one of rms, layer, not 'batch'."),
        ({"quantised": "all"}, "quantised must be one of linear, experts, not 'all'."),
        (
            {"feed_forward": None},
            "Tiny: 2 layers have no experts, so feed_forward must say what they have.",
        ),
        (
            {
                "feed_forward": None,
                "experts": Experts(count=2, per_token=1, size=2, dense_layers=1),
            },
            "Tiny: 1 layers have no experts, so feed_forward must say what they have.",
        ),
        (
            {"experts": Experts(count=2, per_token=1, size=2, dense_layers=3)},
            "Tiny: dense_layers = 3 is more than the 2 layers there are.",
        ),
    ],
    ids=lambda each: str(each)[:30],
)
def test_parts_that_do_not_fit_together(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValueError) as e:
        make(**changes)
    assert str(e.value) == words


def test_parts_that_cannot_be() -> None:
    with pytest.raises(InvalidValueError, match="kv_heads = 3 must divide heads = 4, since each"):
        Attention(heads=4, kv_heads=3, head_size=2)
    with pytest.raises(InvalidValueError, match="per_token = 5 experts can't be chosen from 4"):
        Experts(count=4, per_token=5, size=2)


# Files.

TINY = """\
key = "Tiny"
name = "Tiny"
kind = "decoder"
architecture = "Transformer decoder"
source = "vaswani2017attention"

[transformer]
layers = 2
hidden = 4
vocabulary = 10
context = 32

[attention]
heads = 2
kv_heads = 1
head_size = 2

[feed_forward]
size = 6
gated = true
"""

LATENT = """\
[latent_attention]
heads = 2
query_rank = 0
kv_rank = 2
content_size = 2
rope_size = 1
value_size = 2
"""

EXPERTS = """
[experts]
count = 4
per_token = 2
size = 3
"""


def load(folder: Path, text: str) -> Transformer:
    path = folder / "tiny.toml"
    path.write_text(text, encoding="utf-8")
    found = load_model(path)
    assert isinstance(found, Transformer)
    return found


def test_a_file_says_the_same_as_the_parts(tmp_path: Path) -> None:
    model = load(tmp_path, TINY)
    assert model.operators() == make().operators()
    assert (model.key, model.name, model.source) == ("Tiny", "Tiny", "vaswani2017attention")
    assert model.parameter_count == 340
    assert model.decoder
    assert model.figures == {}


def test_a_file_of_an_encoder(tmp_path: Path) -> None:
    model = load(tmp_path, TINY.replace('"decoder"', '"encoder"'))
    assert not model.decoder
    assert model.operators() == make(decoder=False).operators()


def test_a_file_with_latent_attention_and_experts(tmp_path: Path) -> None:
    attention = TINY[TINY.index("[attention]") : TINY.index("[feed_forward]")]
    text = TINY.replace(attention, LATENT + "\n") + EXPERTS
    model = load(tmp_path, text)
    assert model.latent
    assert model.experts == Experts(count=4, per_token=2, size=3)
    assert model.attention == LatentAttention(
        heads=2, query_rank=0, kv_rank=2, content_size=2, rope_size=1, value_size=2
    )


def test_a_count_that_has_a_default_may_be_0(tmp_path: Path) -> None:
    text = TINY.replace("head_size = 2", "head_size = 2\nwindow = 0\nfull_every = 0")
    assert load(tmp_path, text).operators() == make().operators()


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('kind = "decoder"', 'kind = "coder"', 3, "kind must be one of decoder, encoder, not 'co"),
        ('kind = "decoder"\n', "", 1, "kind must be one of decoder, encoder, not None."),
        ('name = "Tiny"\n', "", 1, "name is missing."),
        ('source = "v', "source = 3 #", 5, "source must be str, not 3."),
        ('source = "v', 'sauce = "v', 5, "unknown key 'sauce'. Did you mean 'source'?"),
        ("[feed_forward]", "[feedforward]", 18, "'feedforward'. Did you mean 'feed_forward'?"),
        ("layers = 2\n", "", 7, "transformer.layers is missing."),
        ("layers = 2", "layers = 0", 8, "transformer.layers must be 1 or more, not 0."),
        ("layers = 2", "layers = -1", 8, "transformer.layers must be 1 or more, not -1."),
        ("layers = 2", "layers = 2.0", 8, "transformer.layers must be int, not 2.0."),
        ("layers = 2", "layers = true", 8, "transformer.layers must be int, not True."),
        ("layers = 2", 'layers = "2"', 8, "transformer.layers must be int, not '2'."),
        ("hidden = 4", "width = 4", 9, "unknown key 'width'."),
        ("hidden = 4", "hiden = 4", 9, "unknown key 'hiden'. Did you mean 'hidden'? Allowed here:"),
        ("context = 32", "context = 32\ndecoder = true", 12, "unknown key 'decoder'."),
        ("context = 32", "context = 32\nname = 'x'", 12, "unknown key 'name'."),
        (
            "context = 32",
            "context = 32\npositions = -1",
            12,
            "transformer.positions must be 0 or more, not -1.",
        ),
        (
            "context = 32",
            "context = 32\ntied_embeddings = 1",
            12,
            "transformer.tied_embeddings must be bool, not 1.",
        ),
        ("kv_heads = 1\n", "", 13, "attention.kv_heads is missing."),
        ("heads = 2\nkv", "heads = 0\nkv", 14, "attention.heads must be 1 or more, not 0."),
        ("kv_heads = 1", "kv_heads = 3", 13, "kv_heads = 3 must divide heads = 2, since each"),
        ("head_size = 2", "head_size = 2\nwindow = -3", 17, "attention.window must be 0 or more"),
        ("gated = true", "gated = 'yes'", 20, "feed_forward.gated must be bool, not 'yes'."),
        ("[attention]", "[attentions]", 13, "'attentions'. Did you mean 'attention'?"),
        (
            "[attention]",
            LATENT + "\n[attention]",
            1,
            "a transformer has [attention] or [latent_attention], one of the two.",
        ),
        (
            "gated = true",
            "gated = true\n" + EXPERTS.replace("per_token = 2", "per_token = 5"),
            22,
            "per_token = 5 experts can't be chosen from 4.",
        ),
        ("hidden = 4", "hidden = 4\nhidden = 4", 10, ""),
    ],
    ids=lambda each: str(each)[:30].replace("\n", " "),
)
def test_a_file_that_cannot_be(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert TINY.count(old) == 1
    with pytest.raises(DataFileError) as e:
        load(tmp_path, TINY.replace(old, new))
    assert str(e.value).startswith(f"{tmp_path / 'tiny.toml'}:{line}: ")
    assert words in str(e.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("context = 32", "context = 32\nnorm = 'batch'", "norm must be one of rms, layer, not 'ba"),
        (
            "[feed_forward]\nsize = 6\ngated = true\n",
            "",
            "Tiny: 2 layers have no experts, so feed_forward must say what they have.",
        ),
        (
            "gated = true\n",
            "gated = true\n" + EXPERTS + "dense_layers = 3\n",
            "Tiny: dense_layers = 3 is more than the 2 layers there are.",
        ),
    ],
    ids=["norm", "feed-forward", "dense layers"],
)
def test_a_file_whose_parts_do_not_fit_together(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    with pytest.raises(DataFileError, match=re.escape(words)) as e:
        load(tmp_path, TINY.replace(old, new))
    assert str(e.value).startswith(str(tmp_path / "tiny.toml"))


def test_a_file_without_attention(tmp_path: Path) -> None:
    attention = TINY[TINY.index("[attention]") : TINY.index("[feed_forward]")]
    with pytest.raises(DataFileError, match=r"has \[attention\] or \[latent_attention\], one of"):
        load(tmp_path, TINY.replace(attention, ""))


@pytest.mark.parametrize("part", ["transformer", "attention", "feed_forward"])
def test_a_part_that_is_no_table(tmp_path: Path, part: str) -> None:
    table = re.compile(rf"\[{part}\]\n(?:\w.*\n)+")
    text = f"{part} = 3\n" + table.sub("", TINY)
    with pytest.raises(DataFileError, match=rf"tiny\.toml:1: {part} must be dict, not 3\."):
        load(tmp_path, text)


def test_a_figure_needs_its_source(tmp_path: Path) -> None:
    text = TINY + '\n[figures.release_year]\nvalue = 2024\nunit = "year"\n'
    with pytest.raises(DataFileError, match=r"tiny\.toml:22: figures\.release_year lacks its kind"):
        load(tmp_path, text)


def test_a_longer_context_is_a_replacement_away() -> None:
    longer = dataclasses.replace(Models.Llama2_7B, context=32_768)
    assert longer.context == 32_768
    assert longer.operators() == Models.Llama2_7B.operators()


def test_every_file_of_the_zoo_is_read_once() -> None:
    paths = [
        path for path in (DATA / "workloads").glob("*.toml") if "[transformer]" in path.read_text()
    ]
    assert len(paths) == len(LANGUAGE) >= 24
    assert len({model.name for model in LANGUAGE}) == len(LANGUAGE)
