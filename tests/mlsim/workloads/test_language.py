"""Transformers: parts counted by hand, and against published truths."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from language_models import by_name, counts, each_model, tiny

from mlsim import show
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.workloads.blocks import Attention, Experts, FeedForward
from mlsim.workloads.language import Transformer
from mlsim.workloads.parallelism import Parallelism
from mlsim.zoo.spaces import Models

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
        # A rounded count, such as 671 Gparameter, at its own precision: "7B" may be 7.3.
        close = 0.06 if published.value < 14 else 0.015
        assert model.parameter_count == pytest.approx(published.si, rel=close)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("GPT2", 124_439_808),
        ("GPT2_Medium", 354_823_168),
        ("GPT2_Large", 774_030_080),
        ("GPT2_XL", 1_557_611_200),
        ("DistilBERT_Base", 66_362_880),
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
        ("Mistral_Small_3", 23_572_403_200),
        ("Phi_4", 14_659_507_200),
        ("Qwen3_8B", 8_190_735_360),
        ("Qwen3_32B", 32_762_123_264),
        ("Qwen3_30B_A3B", 30_532_122_624),
        ("Qwen3_235B_A22B", 235_093_634_560),
        # Below by hand; llama.cpp prints 107.77 and 400.71 billion.
        ("Llama4_Scout", 107_769_861_120),
        ("Llama4_Maverick", 400_711_848_960),
        # These five are printed rounded; other programs count the released weights so.
        ("MiniMax_M2", 228_689_764_864),
        # What the library's modules hold; llama.cpp prints 4.65 and 7.52 billion of the files,
        # with 18,880,512 and 55,055,616 numbers of keys and values that nobody reads.
        ("Gemma3n_E2B", 4_435_182_688),
        ("Gemma3n_E4B", 6_835_235_568),
        ("Gemma4_E2B", 4_628_569_344),
        ("Gemma4_E4B", 7_463_013_376),
        # What the library's modules hold; 27.6 GB of the 7B in 32 bits are on the list of files.
        ("OLMo_1B", 1_176_764_416),
        ("OLMo_7B", 6_888_095_744),
        ("OLMo2_7B", 7_298_617_344),
        ("OLMo2_13B", 13_716_198_400),
        ("OLMo3_7B", 7_298_011_136),
        ("OLMo3_32B", 32_233_522_176),
        ("Gemma2_9B", 9_241_705_984),
        ("GPT_OSS_20B", 20_914_757_184),
        ("GPT_OSS_120B", 116_829_156_672),
        ("BLOOM_176B", 176_247_271_424),
        ("DeepSeek_V3", 671_026_419_200),
    ],
)
def test_parameters_to_the_last_one(name: str, count: int) -> None:
    assert getattr(Models, name).parameter_count == count


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("Qwen3_235B_A22B", 22),
        ("Qwen3_Coder_480B_A35B", 35),
        ("DeepSeek_V3_1", 37),
        ("GLM_4_5", 32),
        ("GLM_4_5_Air", 12),
        ("GLM_4_7_Flash", 3),
        ("Kimi_K2", 32),
        ("Llama4_Scout", 17),
        ("Llama4_Maverick", 17),
        ("MiniMax_M2", 10),
        ("Mistral_Large_3", 39),
    ],
)
def test_parameters_that_a_token_meets(name: str, billions: int) -> None:
    """As their makers print them: rounded, or the further digits cut off."""
    model = getattr(Models, name)
    # GLM's report counts neither the table of words nor the output layer; MiniMax's 10
    # billion hold without the table.
    tables = {"GLM_4_5": 2, "GLM_4_5_Air": 2, "MiniMax_M2": 1}.get(name, 0)
    met = model.active_parameter_count - tables * model.vocabulary * model.hidden
    assert billions - 0.5 <= met / 1e9 < billions + 1


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
    wide = dataclasses.replace(plain, wide_norm=True)
    assert plain.parameters(64) - 2 * 16 == wide.parameters(64) - (6 + 2) * 16
    none = dataclasses.replace(wide, qk_norm=False)
    assert wide.parameters(64) - none.parameters(64) == 128
    # Two devices hold half of them each.
    held = next(iter(wide.operators(64, Parallelism(tensor=2)))).parameters
    assert held == 64 * (3 + 2) * 16 + (3 + 1) * 16


def test_the_cache_of_minimax_is_the_one_its_maker_prints() -> None:
    """Its guide to vLLM says 240 GB for a million tokens, and means GiB."""
    cache = Models.MiniMax_M2.cache_bytes_per_token().to("GiB").magnitude
    assert round(1e6 * cache, -1) == 240


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
    rows = model.layer_vocabulary or model.vocabulary
    tables += rows * model.layers * model.layer_embedding
    tied = model.tied_embeddings and model.output_layer
    assert read == model.parameter_count - tables + tied * model.vocabulary * model.hidden


@each_model
def test_a_token_meets_all_parameters_but_those_of_other_experts(model: Transformer) -> None:
    if not model.experts:
        assert model.active_parameter_count == model.parameter_count
        return
    experts = model.experts
    one = experts.expert.parameters(model.hidden)
    unused = model.expert_layers * (experts.count - experts.per_token) * one
    assert model.active_parameter_count == model.parameter_count - unused


def test_mixtral_meets_13_of_its_47_billion() -> None:
    # Jiang et al. (2024): 47B parameters, 13B of them for each token.
    assert Models.Mixtral_8x7B.parameter_count == pytest.approx(47e9, rel=0.01)
    assert Models.Mixtral_8x7B.active_parameter_count == pytest.approx(13e9, rel=0.01)


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


def test_tiny_operators() -> None:
    """Each operator for one token: MAC, numbers put out, elements moved and alive."""
    operators = by_name(tiny())
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
            "outputs": 8,
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
            "outputs": 4,
            "parameters": 16,
            "parameters_streamed": 16,
            "token_elements": 12,
            "live_elements": 12,
        },
        "feed-forward, up": {
            "token_multiply_adds": 48,
            "outputs": 12,
            "parameters": 48,
            "parameters_streamed": 48,
            "token_elements": 10,
            "live_elements": 20,
        },
        "feed-forward, down": {
            "token_multiply_adds": 24,
            "outputs": 4,
            "parameters": 24,
            "parameters_streamed": 24,
            "token_elements": 14,
            "live_elements": 14,
        },
        "output layer": {
            "token_multiply_adds": 40,
            "outputs": 10,
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
    model = tiny()
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
    assert counts(operators["router"]) == {
        "token_multiply_adds": 16,
        "outputs": 4,
        "parameters": 20,
        "parameters_streamed": 20,
        "token_elements": 8,
        "live_elements": 12,
    }
    # Held: four experts; worked on: two. The inner layers of two are 6 wide.
    assert counts(operators["experts, up"]) == {
        "token_multiply_adds": 48,
        "outputs": 6,
        "parameters": 96,
        "parameters_routed": 96,
        "token_elements": 10,
        "live_elements": 20,
    }
    assert counts(operators["experts, down"]) == {
        "token_multiply_adds": 24,
        "outputs": 4,
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


@pytest.mark.parametrize(
    ("layers", "heads", "hidden", "billions"),
    # Chowdhery et al. (2022), table 1. The last is cut off, not rounded.
    [(32, 16, 4096, 8.63), (64, 32, 8192, 62.50), (118, 48, 18432, 540.35)],
)
def test_three_sizes_of_palm(layers: int, heads: int, hidden: int, billions: float) -> None:
    model = Models.PaLM_540B
    sized = dataclasses.replace(
        model,
        layers=layers,
        hidden=hidden,
        attention=dataclasses.replace(model.attention, heads=heads),
        feed_forward=dataclasses.replace(model.feed_forward, size=4 * hidden),
    )
    assert abs(sized.parameter_count / 1e9 - billions) < 0.01


@pytest.mark.parametrize("tokens", [float("nan"), float("inf"), 1.5, True, "8", None, [1, 2]])
def test_a_count_of_tokens_is_a_whole_number(tokens: Any) -> None:
    """NaN was a ValueError of another kind, 1.5 gave a number, and True counted as 1."""
    for given in ((tokens,), (1, tokens)):
        with pytest.raises(InvalidValueError, match="_tokens must be a whole number"):
            Models.Llama3_8B.flop_count(*given)
    with pytest.raises(InvalidValueError, match="new_tokens must be one whole number"):
        Models.Llama3_8B.flop_count(np.array([1, 2]))


def test_whole_numbers_of_other_types_count_alike() -> None:
    model = Models.Llama3_8B
    assert model.flop_count(np.int64(8)) == model.flop_count(8)
    assert model.flop_count(8.0) == model.flop_count(8)


def test_a_number_of_the_architecture_names_its_document() -> None:
    found = show(Models.Mixtral_8x7B, "experts.per_token")
    assert found == 2
    assert found.origin.brief == (
        "experts.per_token of Mixtral 8x7B: 2; architecture from [@jiang2024mixtral]"
    )
    for name in ("experts.heads", "experts", "name", "attention.", "parameter_count.real"):
        with pytest.raises(UnknownNameError, match="no count of a model is called"):
            show(Models.Mixtral_8x7B, name)
