"""How long a sequence fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from capacities import NODE, blocks, chunks, decoders, serve
from hypothesis import given, strategies as st

from mlsim import Device, Hardware, Models
from mlsim.workloads.blocks import Attention, FeedForward
from mlsim.workloads.language import Transformer


def small_model(**changes: Any) -> Transformer:
    """Return 6 layers, 4 wide, that cache 2 x 2 elements of a token each."""
    arguments = {
        "key": "Small",
        "name": "Small",
        "architecture": "Transformer decoder",
        "source": "vaswani2017attention",
        "layers": 6,
        "hidden": 4,
        "vocabulary": 10,
        "context": 1000,
        "attention": Attention(heads=2, kv_heads=1, head_size=2),
        "feed_forward": FeedForward(size=6, gated=True),
    }
    return Transformer(**{**arguments, **changes})


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
    # No request is shorter than two tokens.
    if longest > 1:
        assert fits(longest)
        # Nor is it longer with a shorter prompt.
        assert serve(**what, prompt_tokens=1, output_tokens=longest - 1).feasible
    if 1 < longest + 1 <= model.context:
        assert not fits(longest + 1)
    return longest


@given(
    decoders,
    st.integers(1, 3000),
    blocks,
    chunks,
    st.sampled_from([1, 16, 100, 400]),
    st.sampled_from(["bf16", "fp8", "mxfp4"]),
    st.sampled_from([Hardware.Cloud.H200, Hardware.Cloud.A100, Hardware.Cloud.L40S]),
)
def test_the_longest_context_fits_and_a_token_more_does_not(
    model: Transformer,
    batch: int,
    block: int,
    chunk: int,
    output: int,
    kv_cache: str,
    device: Device,
) -> None:
    sizes = {"batch_size": batch, "block_tokens": block, "chunk_tokens": chunk}
    check_longest(output, model=model, hardware=device, kv_cache=kv_cache, **sizes)


@pytest.mark.parametrize(
    "layout",
    [
        {"tensor_parallel": 4},
        {"data_parallel": 3},
        {"pipeline_parallel": 2},
        {"tensor_parallel": 2, "data_parallel": 4},
        {"pipeline_parallel": 2, "data_parallel": 3},
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("batch", [1, 10, 300, 900])
def test_so_it_is_on_several_devices(layout: dict[str, int], batch: int) -> None:
    for model in (Models.Llama3_8B, Models.Gemma3_27B, Models.Mixtral_8x7B):
        check_longest(model=model, hardware=NODE, batch_size=batch, weights=None, **layout)


def test_a_long_prompt_needs_room_that_a_long_output_does_not() -> None:
    """Llama 3.1 8B, 290 sequences on an H200: a chunk of 8,192 tokens takes 0.6 GB.

    Beside the weights, and 290 x 256,512 B of scores, there is room for 3,129
    tokens of 131,072 B each: 3,120 in whole blocks.
    """
    left = 0.9 * 143_771 * 2**20 - 16_060_522_496 - 290 * 256_512
    assert (left - 603_979_776) / 290 / 131_072 == pytest.approx(3_129.1, abs=0.1)
    assert check_longest(model=Models.Llama3_8B, batch_size=290, weights=None) == 3_120
    # One token at a time: the prompt's activations are small, and 3,136 tokens fit.
    assert left / 290 / 131_072 == pytest.approx(3_145.0, abs=0.1)
    what = {"model": Models.Llama3_8B, "batch_size": 290, "weights": None}
    assert check_longest(**what, chunk_tokens=1) == 3_136
    assert serve(**what, prompt_tokens=1, output_tokens=3_135).feasible


def chip(capacity: int) -> Device:
    """Return a device with so many bytes."""
    return Device(
        "Chip",
        peak_flops={"fp16": "1 TFLOP/s"},
        memory_bandwidth="1 GB/s",
        memory_capacity=f"{capacity} B",
    )


def hand(model: Transformer, capacity: int, **changes: Any) -> int:
    """Return the longest context with this many bytes beside what is always there.

    Weights: 6 x 128 + 4 + 80 = 852 of 2 B. Ten scores, 20 B. A token takes 4
    elements of 2 B in each layer; each but the last 20 elements, 40 B, while the
    prompt is read, if the chunk is not full.
    """
    what = {"hardware": chip(2 * 852 + 20 + capacity), "weights": None, "precision": "fp16"}
    what |= {"prompt_tokens": 1, "output_tokens": 1, "block_tokens": 1, "reserve": 0}
    longest: int = serve(model=model, **what | changes).longest_context
    return longest


FULL = small_model()
WINDOW = Attention(heads=2, kv_heads=1, head_size=2, window=5)


@pytest.mark.parametrize(
    ("model", "asked", "found"),
    [
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
        (
            FULL,
            {"chunk_tokens": 4},
            {223: 2, 224: 3, 311: 3, 312: 4, 399: 4, 400: 5, 639: 9, 640: 10},
        ),
        # Blocks that do not divide the context: below it come 62 of 16 tokens, 992.
        (FULL, {"block_tokens": 16, "chunk_tokens": 1}, {48 * 1000 + 40: 1000, 48 * 999 + 40: 992}),
        # Every third layer full: two of 8 B for every token, four for 5 tokens at most. Up to 5
        # tokens 48 B each, and 40 B for all but the last; then 16 + 40 B each, or 16 B.
        (
            small_model(attention=replace(WINDOW, full_every=3)),
            {},
            {47: 0, 48: 1, 399: 4, 400: 5, 455: 5, 456: 6, 960: 15},
        ),
        (
            small_model(attention=replace(WINDOW, full_every=3)),
            {"chunk_tokens": 4},
            {311: 3, 312: 4, 399: 4, 400: 5, 415: 5, 416: 6, 560: 15},
        ),
        # Six layers that keep 5 tokens at most: 240 B hold any length, but for the prompt, whose
        # tokens take 40 B each until a chunk is full.
        (
            small_model(attention=WINDOW),
            {},
            {48: 1, 399: 4, 400: 5, 439: 5, 440: 6, 600: 10, 10**6: 1000},
        ),
        (
            small_model(attention=WINDOW),
            {"chunk_tokens": 4},
            {48: 1, 399: 4, 400: 1000, 10**6: 1000},
        ),
    ],
)
def test_longest_context_by_hand(
    model: Transformer, asked: dict[str, int], found: dict[int, int]
) -> None:
    assert {capacity: hand(model, capacity, **asked) for capacity in found} == found


def test_the_block_in_which_a_context_ends_is_not_filled() -> None:
    """A context of 1,024 in blocks of 100: beside 1,000 tokens is room for 24, not for 100."""
    what = {"hardware": Hardware.Cloud.L40S, "batch_size": 251, "kv_cache": "fp8"}
    assert check_longest(model=Models.GPT2_XL, block_tokens=100, **what) == 1024
