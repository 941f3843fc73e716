"""What fits: memory by part, the largest batch, and the longest context."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Any

from capacities import NODE, blocks, chunks, decoders, lengths, serve
from hypothesis import given, strategies as st
from language_models import DECODERS, kept_elements, tiny
from own_chips import chip
from sampled import sampled

from mlsim import Hardware, Models
from mlsim.workloads import Speculation
from mlsim.workloads.blocks import Attention
from mlsim.workloads.language import Transformer

# What the driver of an H200 lists, in bytes.
ENCODERS = (Models.BERT_Base, Models.BERT_Large)


# Memory by part.


def test_weights_and_a_cache_take_what_the_model_says() -> None:
    """Each layer keeps all tokens, or those in its window."""
    asked: dict[str, Any] = {"batch_size": 7, "prompt_tokens": 900, "output_tokens": 100}
    asked |= {"precision": "bf16", "weights": None}
    for model in sampled(DECODERS, 30):
        serving = serve(model=model, **asked)
        assert serving.value("weight_memory") == 2 * model.parameter_count
        tokens = 1008  # whole blocks of 16
        states = model.state_bytes_per_sequence
        assert serving.value("cache_memory") == 7 * (2 * kept_elements(model, tokens) + states)
        per_token = model.cache_bytes_per_token().to("B").magnitude
        assert serving.value("cache_bytes_per_token") == per_token
        if not (model.window or states):
            assert serving.value("cache_per_sequence") == 1008 * per_token


def test_a_latent_cache_is_on_every_device() -> None:
    model = Models.DeepSeek_V3
    what = {"model": model, "hardware": NODE, "batch_size": 16, "weights": "fp8"}
    eight, sixteen = (serve(**what, tensor_parallel=size) for size in (8, 16))
    # 16 sequences of 100 + 128 tokens, in blocks of 16: 240 of 70,272 B each.
    assert eight.value("cache_memory") == sixteen.value("cache_memory") == 16 * 240 * 70_272
    # Copies of the attention part have a part of the batch each.
    copies = serve(**what, data_parallel=16, expert_parallel=16)
    assert copies.value("cache_memory") == 240 * 70_272
    assert copies.value("weight_memory") > sixteen.value("weight_memory")


def test_spread_experts_are_held_once() -> None:
    """Mixtral 8x7B, a copy of the attention part on each of 8, an expert on each.

    Experts 32 x 8 x 3 x 4,096 x 14,336 parameters, all else 1,605,636,096.
    """
    model, experts = Models.Mixtral_8x7B, 32 * 8 * 3 * 4_096 * 14_336
    assert model.parameter_count - experts == 1_605_636_096
    what = {"model": model, "hardware": NODE, "weights": None, "data_parallel": 8}
    assert serve(**what).value("weight_memory") == 2 * model.parameter_count
    spread = serve(**what, expert_parallel=8)
    assert spread.value("weight_memory") == 2 * (1_605_636_096 + experts / 8)


# The largest batch.


requests = {
    "model": decoders,
    "prompt_tokens": st.integers(1, 4000),
    "output_tokens": lengths,
    "block_tokens": blocks,
    "reserve": st.sampled_from([0, 0.1, 0.37]),
    "chunk_tokens": chunks,
}


@given(st.fixed_dictionaries(requests))
def test_the_largest_batch_fits_and_one_more_does_not(what: dict[str, Any]) -> None:
    longest = what["model"].context - what["output_tokens"]
    what["prompt_tokens"] = min(what["prompt_tokens"], longest)
    most = serve(**what).largest_batch
    assert most.is_integer()
    assert most > 0
    assert serve(**what, batch_size=most).feasible
    assert not serve(**what, batch_size=most + 1).feasible
    # It does not depend on the batch that is asked about.
    assert serve(**what, batch_size=most + 1).largest_batch == most


def test_the_largest_batch_of_an_encoder() -> None:
    """It keeps no cache, and reads its texts at once, whatever a chunk is."""
    asked = itertools.product(ENCODERS, (1, 77, 512), (128, 10**7), (1, 2, 4), (1, 3))
    for model, prompt, chunk, tensor, data in sampled(asked, 24):
        what = {"model": model, "hardware": NODE, "prompt_tokens": prompt, "chunk_tokens": chunk}
        what |= {"tensor_parallel": tensor, "data_parallel": data}
        most = serve(**what).largest_batch
        assert most > 0
        assert most % data == 0
        assert serve(**what, batch_size=most).feasible
        assert not serve(**what, batch_size=most + 1).feasible
        assert serve(**what).to_dict()["largest_batch"] == {"value": most, "unit": "sample"}


def check_longest(output: int = 1, **what: Any) -> int:
    """Check that a request of the longest context fits, and one of a token more does not.

    A request is all prompt but for its output, or but for one token if it is as short.
    """

    def fits(tokens: int) -> bool:
        made = min(output, tokens - 1)
        return serve(**what, prompt_tokens=tokens - made, output_tokens=made).feasible

    model = what["model"]
    longest = serve(**what, prompt_tokens=1, output_tokens=output).longest_context
    assert isinstance(longest, int)
    assert 0 <= longest <= model.context
    if longest > 1:
        assert fits(longest)
        # Nor is it longer with a shorter prompt.
        assert serve(**what, prompt_tokens=1, output_tokens=longest - 1).feasible
    # No request is shorter than two tokens.
    if longest < model.context:
        assert not fits(max(longest + 1, 2))
    return longest


sizes = st.fixed_dictionaries(
    {
        "model": decoders,
        "batch_size": st.integers(1, 3000),
        "block_tokens": blocks,
        "chunk_tokens": chunks,
        "output": st.sampled_from([1, 16, 100, 400]),
        "kv_cache": st.sampled_from(["bf16", "fp8", "mxfp4"]),
        "hardware": st.sampled_from(
            [Hardware.Cloud.H200, Hardware.Cloud.A100, Hardware.Cloud.L40S]
        ),
    }
)


@given(sizes)
def test_the_longest_context_fits_and_a_token_more_does_not(asked: dict[str, Any]) -> None:
    check_longest(**asked)


STATES = Models.Nemotron_H_56B


def test_so_it_is_on_several_devices() -> None:
    for sizes in ((4, 1, 1), (1, 1, 3), (1, 2, 1), (2, 1, 4), (1, 2, 3)):
        names = ("tensor_parallel", "pipeline_parallel", "data_parallel")
        layout = dict(zip(names, sizes, strict=True))
        for model in (Models.Llama3_8B, Models.Gemma3_27B, Models.Mixtral_8x7B, STATES):
            for batch in (1, 10, 300, 900):
                check_longest(model=model, hardware=NODE, batch_size=batch, weights=None, **layout)


def test_so_it_is_with_a_draft() -> None:
    """A draft keeps each token, too, and a window is that of the model alone."""
    asked = itertools.product(DRAFTED, (1, 7, 256), (128, 10**7), (300, 400, 900, 2500))
    for model, block, chunk, batch in asked:
        what = {"model": model, "batch_size": batch, "weights": "fp8", "tensor_parallel": 8}
        what |= {"hardware": NODE, "block_tokens": block, "chunk_tokens": chunk}
        check_longest(**what, speculation=SPECULATION)


DRAFTED = (Models.Llama3_70B, replace(Models.Mistral_7B, vocabulary=128_256, layers=40))
SPECULATION = Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7)
small = partial(tiny, layers=6, context=1000)


def hand(model: Transformer, capacity: int, **changes: Any) -> int:
    """Return the longest context with this many bytes beside what is always there.

    Weights: 6 x 128 + 4 + 80 = 852 of 2 B. Ten scores, 20 B. A token takes 4
    elements of 2 B in each layer; each but the last 20 elements, 40 B, while the
    prompt is read, if the chunk is not full.
    """
    device = chip(capacity=f"{2 * 852 + 20 + capacity} B", fp16="1 TFLOP/s")
    what = {"hardware": device, "weights": None, "precision": "fp16", "reserve": 0}
    what |= {"prompt_tokens": 1, "output_tokens": 1, "block_tokens": 1}
    longest: int = serve(model=model, **what | changes).longest_context
    return longest


FULL = small()
WINDOW = Attention(heads=2, kv_heads=1, head_size=2, window=5)
SEEING, THIRD = (small(attention=replace(WINDOW, full_every=each)) for each in (0, 3))
CHUNK = {"chunk_tokens": 4}
CASES: tuple[tuple[Transformer, dict[str, int], dict[int, int]], ...] = (
    # Six layers of 8 B: 48 B a token, and 40 B for each but the last. Ten tokens take
    # 10 x 48 + 9 x 40 = 840 B. No sequence is longer than the model can read.
    (FULL, {}, {47: 0, 48: 1, 135: 1, 136: 2, 839: 9, 840: 10, 10**9: 1000}),
    # Of an output of four tokens six of ten are the prompt: 10 x 48 + 6 x 40 = 720 B. As short
    # as the output, or by a token longer, the prompt is one token: 4 x 48 + 40, 5 x 48 + 40.
    (FULL, {"output_tokens": 4}, {231: 3, 232: 4, 279: 4, 280: 5, 719: 9, 720: 10}),
    # Blocks of four: eight tokens take 384 B and 7 x 40. A third block is 576 B; nine tokens
    # then need 8 x 40 = 320 B beside it, ten 360 B.
    (FULL, {"block_tokens": 4}, {663: 7, 664: 8, 895: 8, 896: 9, 935: 9, 936: 10}),
    # At most four tokens' activations, 160 B: ten tokens take 480 + 160 = 640 B. Three do not
    # fill the chunk: 144 + 80 = 224 B; four are 192 + 120.
    (FULL, CHUNK, {223: 2, 224: 3, 311: 3, 312: 4, 399: 4, 400: 5, 639: 9, 640: 10}),
    # Blocks that do not divide the context: below it come 62 of 16 tokens, 992.
    (FULL, {"block_tokens": 16, "chunk_tokens": 1}, {48 * 1000 + 40: 1000, 48 * 999 + 40: 992}),
    # Every third layer full: two of 8 B for every token, four for 5 tokens at most. Up to 5
    # tokens 48 B each, and 40 B for all but the last; then 16 + 40 B each, or 16 B.
    (THIRD, {}, {47: 0, 48: 1, 399: 4, 400: 5, 455: 5, 456: 6, 960: 15}),
    (THIRD, CHUNK, {311: 3, 312: 4, 399: 4, 400: 5, 415: 5, 416: 6, 560: 15}),
    # Six layers that keep 5 tokens at most: 240 B hold any length, but for the prompt, whose
    # tokens take 40 B each until a chunk is full.
    (SEEING, {}, {48: 1, 399: 4, 400: 5, 439: 5, 440: 6, 600: 10, 10**6: 1000}),
    (SEEING, CHUNK, {48: 1, 399: 4, 400: 1000, 10**6: 1000}),
)


def test_longest_context_by_hand() -> None:
    for model, asked, found in CASES:
        assert {capacity: hand(model, capacity, **asked) for capacity in found} == found, asked


def test_the_block_in_which_a_context_ends_is_not_filled() -> None:
    """A context of 1,024 in blocks of 100: beside 1,000 tokens is room for 24, not for 100."""
    what = {"hardware": Hardware.Cloud.L40S, "batch_size": 251, "kv_cache": "fp8"}
    assert check_longest(model=Models.GPT2_XL, block_tokens=100, **what) == 1024
