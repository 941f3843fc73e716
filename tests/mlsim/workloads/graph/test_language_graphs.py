"""The graph of a language model and its steps are two ways to the same counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import pytest
from language_models import LANGUAGE
from refusals import answered
from told import rows

from mlsim import Models
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.workloads import (
    Attention,
    Experts,
    FeedForward,
    Indexer,
    LatentAttention,
    Transformer,
)
from mlsim.workloads.graph import Graph
from mlsim.workloads.graph.fuse import fused
from mlsim.workloads.graph.language import blocks_of, graph, language_graph
from mlsim.workloads.graph.training import TrainingStep

TOKENS = 7
# What an operator of a step is called, and the layer of the graph that it is.
SAME = dict(rows("operators_in_graphs"))


def small(**given: Any) -> Transformer:
    """Return a model of two layers that fits on a page, with some of it changed."""
    told: dict[str, Any] = {
        "attention": Attention(heads=2, kv_heads=1, head_size=4),
        "feed_forward": FeedForward(size=16, gated=True),
        **given,
    }
    made: dict[str, Any] = {"layers": 2, "hidden": 8, "vocabulary": 32, "context": 64} | told
    return Transformer(key="small", name="small", architecture="", source="", **made)


def test_parameters_and_work_are_those_of_the_model() -> None:
    """Around the length of a window, and what a mask hides is the rest of the square."""
    broken = []
    for model in LANGUAGE:
        near = min(512, *(each.window or each.chosen or 512 for _, each in model.mixers))
        for tokens in sorted({1, TOKENS, near, min(model.window + 1, model.context)}):
            found = language_graph(model, tokens, all_logits=tokens != near)
            work = model.flop_count(tokens, all_logits=tokens != near)
            if (found.parameters, 2 * found.multiply_adds) != (model.parameter_count, work):
                broken.append(f"{model.key}: {tokens} tokens")
        found = language_graph(model, near)
        hidden = sum(node.masked_multiply_adds for node in found)
        whole = model.flop_count(near, causal=False)
        # As `flop_count` has it without the mask, where no window cuts a corner off.
        latent = any(isinstance(each, LatentAttention) for _, each in model.mixers)
        if bool(hidden) != model.decoder or not (
            latent or 2 * (found.multiply_adds + hidden) == whole
        ):
            broken.append(f"{model.key}: a mask over {near} tokens hides {hidden}")
    assert broken == []


def test_a_window_hides_more_than_the_mask() -> None:
    near = Attention(heads=2, kv_heads=1, head_size=4, window=3)
    found = language_graph(small(attention=near), 5)["layers.0.attention.attention"]
    # Tokens see 1, 2, 3, 3 and 3 of 25 pairs: 16 multiply-adds each, 8 for a score and 8 more.
    assert found.multiply_adds == 16 * 12
    assert found.masked_multiply_adds == 16 * 13
    assert found.function == "causal, window"


def _by_layer(found: Graph) -> dict[str, int]:
    """Return what each layer reads and writes with what runs in its kernel, over all blocks."""
    total: dict[str, int] = defaultdict(int)
    for kernel in fused(found):
        read, written = kernel.operator.activations_read, kernel.operator.activations_written
        for node in kernel.nodes:  # numbers of tokens are no activations
            written -= node.element_bytes and node.elements
            if node.read is None:
                read -= sum(each.elements for each in found.sources(node) if each.element_bytes)
        parts = kernel.anchor.name.split(".")
        total[".".join(parts[2:] if parts[0] == "layers" else parts)] += read + written
    return total


def _by_operator(model: Transformer, tokens: int) -> dict[str, int]:
    """Return the same of a step; a cache that it writes and reads counts with them."""
    total: dict[str, int] = defaultdict(int)
    for operator in model.operators():
        if operator.kind != "norm":
            each = operator.token_elements * min(tokens, operator.token_limit)
            if operator.name.startswith("attention") and operator.kind == "attention":
                each += tokens * operator.cached_elements
                total["attention.qkv"] += operator.repeats * tokens * operator.cached_elements
            total[SAME[operator.name]] += operator.repeats * each
    return total


# Attention and network behind one norm.
SIDE_BY_SIDE = ("GPT_J_6B", "PaLM_540B")
PLAIN = [
    model
    for model in LANGUAGE
    if model.norms <= 2
    and all(
        isinstance(each, Attention) and not each.qk_norm and not each.indexer
        for each in model.attentions
    )
]


def test_what_a_step_moves_is_what_its_layers_move() -> None:
    """Each operator but the norms, whose number is told only in all: they are added up."""
    differ = {model.key: _moved(model) for model in PLAIN}
    assert {key: told for key, (found, told) in differ.items() if found != told} == {}


def _moved(model: Transformer) -> tuple[dict[str, int], dict[str, int]]:
    """Return what the layers of a graph move, and the operators of a step, made alike."""
    found = _by_layer(language_graph(model, TOKENS))
    norms = sum(found.pop(each) for each in list(found) if "norm" in each)
    assert norms == 2 * model.hidden * TOKENS * model.norm_count
    # A step has positions and kinds of tokens in the embedding; their rows are no activations.
    for each in ("positions", "token_types"):
        assert found.pop(each, 0) == 2 * model.hidden * TOKENS * bool(getattr(model, each))
    told = _by_operator(model, TOKENS)
    if model.experts and model.experts.shared_gate:
        told["experts.shared.down"] += TOKENS * model.expert_layers
    if model.experts and model.experts.shared:
        # In a step each of the two takes an addition along; a program adds both up first.
        vector = TOKENS * model.hidden * model.expert_layers
        told["experts.shared.down"] -= vector
        told["experts.down"] += vector
    if model.key in SIDE_BY_SIDE:  # two additions, and either matrix may take both along
        for counts in (found, told):
            counts["attention.output"] += counts.pop("feed_forward.down")
    return found, told


def test_norms_that_a_step_has_elsewhere() -> None:
    model = Models.Qwen3_8B
    found, told = _by_layer(language_graph(model, TOKENS)), _by_operator(model, TOKENS)
    turned = TOKENS * 36 * (32 + 8) * 128
    # A step runs those of queries and keys with the matrix; here they read and write.
    assert found["attention.query_norm"] + found["attention.key_norm"] == 2 * turned
    for name in ("attention.qkv", "attention.attention", "attention.output", "feed_forward.up"):
        assert found[name] == told[name]
    # Behind a part they keep it from taking the addition along.
    model = Models.Gemma2_9B
    found, told = _by_layer(language_graph(model, TOKENS)), _by_operator(model, TOKENS)
    vector = TOKENS * 42 * 3584
    for name in ("attention.output", "feed_forward.down"):
        assert found[name] == told[name] - vector
    assert found["attention.add"] == found["feed_forward.add"] == 3 * vector


def test_latent_attention_reads_what_was_expanded() -> None:
    """A step's attention reads the compressed vector; expanding it is a matrix in both."""
    model = Models.DeepSeek_V3
    found, told = _by_layer(language_graph(model, TOKENS)), _by_operator(model, TOKENS)
    layers = 61 * TOKENS
    queries, values, expanded = 128 * (128 + 64), 128 * 128, 128 * (128 + 128)
    assert found["attention.attention"] == layers * (queries + values + expanded + 64)
    assert told["attention.attention"] == layers * (queries + values + 576)
    # The compressed vector is written for a norm to read, in a step to the cache; and one product
    # reduces queries and compresses keys and values, so that the token is read once.
    name = "attention.query_reduction"
    assert found[name] == told[name] + layers * (576 - 7168)
    same = ("queries", "kv_expansion", "output")
    for name in (*(f"attention.{each}" for each in same), "feed_forward.up", "experts.up"):
        assert found[name] == told[name]
    for name in ("experts.shared.up", "experts.router"):
        assert found[name] == told[name]
    # Both kinds of experts are added up before the token is; in a step each takes one along.
    vector = 58 * TOKENS * 7168
    assert found["experts.down"] == told["experts.down"] + vector
    assert found["experts.shared.down"] == told["experts.shared.down"] - vector


def _read_and_written(found: Graph, name: str) -> tuple[int, int]:
    return found.elements_read(found[name]), found[name].elements


def test_a_block_of_llama_by_hand() -> None:
    """512 tokens of 4096 numbers; 32 heads of 128, 8 of them for keys; 14336 in the middle."""
    found = language_graph(Models.Llama3_8B, 512)
    block = [node.name for node in found if node.name.startswith("layers.31.")]
    assert [name.removeprefix("layers.31.") for name in block] == [
        *("attention.norm", "attention.qkv", "attention.attention", "attention.output"),
        *("attention.add", "feed_forward.norm", "feed_forward.up", "feed_forward.activation"),
        *("feed_forward.down", "feed_forward.add"),
    ]
    stream, inner = 2_097_152, 7_340_032  # 512 x 4096, 512 x 14336
    assert [_read_and_written(found, name) for name in block] == [
        (stream, stream),
        (stream, 3_145_728),  # 512 x (32 + 8 + 8) x 128
        (3_145_728, stream),
        (stream, stream),
        (2 * stream, stream),
        (stream, stream),
        (stream, 2 * inner),
        (2 * inner, inner),
        (inner, stream),
        (2 * stream, stream),
    ]
    assert [found[name].parameters for name in block] == [
        *(4096, 25_165_824, 0, 16_777_216, 0, 4096),
        *(117_440_512, 0, 58_720_256, 0),
    ]
    attention = found["layers.31.attention.attention"]
    # 512 x 513 / 2 pairs, and 2 x 32 x 128 multiply-adds for each.
    assert attention.multiply_adds == 131_328 * 8192
    assert attention.masked_multiply_adds == 130_816 * 8192
    assert found["layers.31.attention.qkv"].multiply_adds == 512 * 25_165_824
    output = found["output"]
    assert (output.shape, output.weights) == ((128_256,), 128_256 * 4096)
    assert found.elements_read(output) == 4096


def test_a_block_of_gpt2_by_hand() -> None:
    """1024 tokens of 768 numbers; a bias in each matrix, and norms of two vectors."""
    found = language_graph(Models.GPT2, 1024)
    stream = 786_432
    numbers = {
        "attention.norm": (stream, stream, 1536),
        "attention.qkv": (stream, 3 * stream, 768 * 2304 + 2304),
        "attention.attention": (3 * stream, stream, 0),
        "attention.output": (stream, stream, 768 * 768 + 768),
        "attention.add": (2 * stream, stream, 0),
        "feed_forward.norm": (stream, stream, 1536),
        "feed_forward.up": (stream, 4 * stream, 768 * 3072 + 3072),
        "feed_forward.activation": (4 * stream, 4 * stream, 0),
        "feed_forward.down": (4 * stream, stream, 3072 * 768 + 768),
        "feed_forward.add": (2 * stream, stream, 0),
    }
    for name, told in numbers.items():
        full = f"layers.0.{name}"
        assert (*_read_and_written(found, full), found[full].parameters) == told
    # The published size of a block, 7,087,872, and of the tables.
    assert sum(told[2] for told in numbers.values()) == 7_087_872
    assert found["embedding"].table == 50_257 * 768
    # All rows of the positions are read, once for a batch of any size.
    assert (found["positions"].weights, found["positions"].table) == (1024 * 768, 0)
    few = language_graph(Models.GPT2, 24)["positions"]
    assert (few.weights, few.table) == (24 * 768, 1000 * 768)
    # The output layer is the table of the embedding: none of its own, and read all the same.
    assert found["output"].parameters == 0
    assert found["output"].parameters_read() == 50_257 * 768


def test_experts_hold_all_and_read_those_that_are_chosen() -> None:
    found = language_graph(Models.Mixtral_8x7B, 1)
    up = found["layers.0.experts.up"]
    assert up.parameters == 8 * 4096 * 2 * 14336
    assert up.parameters_read() == 2 * 4096 * 2 * 14336
    # A second sample meets an expert that the first left out with chance 1/4.
    assert up.parameters_read(2) == up.parameters * (1 - 0.75**2)
    assert up.multiply_adds == 2 * 4096 * 2 * 14336
    assert found["layers.0.experts.weighted"].shape == (1, 4096)
    assert found.elements_read(found["layers.0.experts.weighted"]) == 2 * 4096


def test_latent_layers_by_hand() -> None:
    latent = LatentAttention(
        heads=2, query_rank=4, kv_rank=4, content_size=4, rope_size=2, value_size=4, chosen=3
    )
    # Layers without an indexer look at the tokens of the last one.
    own = replace(latent, indexer=Indexer(heads=1, size=4))
    model = small(attention=own, mixer_layers=((1, own), (1, latent)))
    found = language_graph(model, 5)
    assert found["layers.0.attention.index.scores"].shape == (5, 3)
    for layer in (0, 1):
        attention = found[f"layers.{layer}.attention.attention"]
        assert "layers.0.attention.index.scores" in attention.inputs
    assert found.parameters == model.parameter_count
    assert 2 * found.multiply_adds == model.flop_count(5)
    # A rank below the size of a key: in the compressed space a pair is less work.
    latent = LatentAttention(
        heads=2, query_rank=0, kv_rank=2, content_size=16, rope_size=2, value_size=16
    )
    model = small(attention=latent)
    found = language_graph(model, 5)
    # 15 pairs; two heads, each with 2 x 2 + 2 multiply-adds instead of 16 + 2 + 16.
    assert found["layers.0.attention.attention"].multiply_adds == 15 * 2 * 6
    assert 2 * found.multiply_adds == model.flop_count(5)


def test_where_norms_are() -> None:
    found = language_graph(Models.GPT_J_6B, 4)
    assert found["layers.3.attention.qkv"].inputs == ("layers.3.norm",)
    assert found["layers.3.feed_forward.up"].inputs == ("layers.3.norm",)
    assert found["layers.3.norm"].inputs == ("layers.2.feed_forward.add",)
    # A model that ends without a norm has them behind its parts.
    found = language_graph(Models.BERT_Base, 4)
    assert found["layers.0.attention.qkv"].inputs == ("embedding_norm",)
    assert found["layers.0.attention.norm"].inputs == ("layers.0.attention.add",)
    assert found["first_token"].inputs == ("layers.11.feed_forward.norm",)
    assert found["layers.0.attention.attention"].function == ""


def test_the_order_of_layers() -> None:
    wide = [
        number
        for number, block in enumerate(blocks_of(Models.Gemma3_27B)[0])
        if not block.mixers[0].window
    ]
    # Of each six the last one sees all.
    assert wide == list(range(5, 62, 6))
    first = [type(block.feeds[0]) for block in blocks_of(Models.DeepSeek_V3)[0]]
    assert first == [FeedForward] * 3 + [Experts] * 58
    assert language_graph(Models.Gemma3_27B, 8).notes == ()
    # A fifth norm stands behind what a layer's embedding adds.
    blocks_with = [blocks_of(small(layer_embedding=3, norms=each))[0][0] for each in (2, 4, 5)]
    assert [each.embedding_norm for each in blocks_with] == [False, False, True]
    # Where it is not, layers are spread, and a note says so.
    blocks, notes = blocks_of(Models.Nemotron_3_Nano_30B_A3B)
    kinds = Counter(
        "".join(type(part).__name__[0] for part in (*block.mixers, *block.feeds))
        for block in blocks
    )
    assert kinds == {"S": 23, "E": 23, "A": 6}
    (note,) = notes
    assert "which of the 52 layers has which part is not told" in note
    assert language_graph(Models.Nemotron_3_Nano_30B_A3B, 8).notes == notes


def test_tokens_that_cannot_be() -> None:
    def ask(tokens: Any) -> Graph:
        return language_graph(Models.GPT2, tokens)

    assert answered(ask, "graph_tokens") == []


def test_one_function_for_all_models() -> None:
    assert graph(Models.ResNet50)["conv1"].kind == "convolution"
    assert graph(Models.GPT2, 8, all_logits=True)["output"].shape == (8, 50_257)
    with pytest.raises(InvalidValueError, match=r"say how many tokens .* such as tokens=512"):
        graph(Models.GPT2)
    with pytest.raises(InvalidValueError, match="tokens=8 is for language models"):
        graph(Models.ResNet50, 8)
    with pytest.raises(InvalidValueError, match="all_logits=True is for language models"):
        graph(Models.ResNet50, all_logits=True)
    with pytest.raises(WrongKindError, match="not 'GPT2'"):
        graph("GPT2")


def test_training_keeps_what_pytorch_keeps() -> None:
    """To the byte: 4 sequences of 128 tokens through a GPT-2 of four layers.

    Counted in torch 2.13.0 with `torch.autograd.graph.saved_tensors_hooks`: each storage once,
    parameters apart, of transformers 5.23.0's GPT2LMHeadModel (`n_embd=256, n_layer=4,
    n_head=8, vocab_size=1000, n_positions=128, activation_function="gelu"`, no dropout).
    """
    model = small(
        layers=4,
        hidden=256,
        vocabulary=1000,
        context=128,
        positions=128,
        norm="layer",
        tied_embeddings=True,
        attention=Attention(heads=8, kv_heads=8, head_size=32, bias=True, output_bias=True),
        feed_forward=FeedForward(size=1024, bias=True),
    )
    places = 128 * 8
    # The numbers of the positions are left out here.
    assert _kept(model) + places == 34_710_528


def _kept(model: Transformer) -> float:
    """Return the bytes that are there after the last layer, but for the result."""
    step = TrainingStep(language_graph(model, 128, all_logits=True), batch_size=4, element_bytes=4)
    last = next(each for each in step.moments if (each.phase, each.layer) == ("forward", "output"))
    return last.held["outputs"] - 4 * 128 * 1000 * 4


def test_a_norm_in_three_steps_keeps_one_vector_more() -> None:
    """A Llama of four layers, counted likewise: its RMS norm is three operations there."""
    model = small(
        layers=4,
        hidden=256,
        vocabulary=1000,
        context=128,
        attention=Attention(heads=8, kv_heads=2, head_size=32),
        feed_forward=FeedForward(size=704, gated=True),
    )
    # What the factors multiply, of nine norms; and the sines and cosines of the positions.
    vectors, angles = 9 * 4 * 128 * 256 * 4, 2 * 128 * 32 * 4
    assert _kept(model) + vectors + angles == 42_588_160
