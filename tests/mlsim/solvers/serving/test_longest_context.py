"""How long a sequence fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from capacities import NODE, WINDOWED, blocks, chunks, decoders, serve
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
    check_longest(
        output,
        model=model,
        hardware=device,
        batch_size=batch,
        block_tokens=block,
        chunk_tokens=chunk,
        kv_cache=kv_cache,
    )


@given(
    st.sampled_from(WINDOWED),
    st.integers(1, 3000),
    blocks,
    chunks,
    st.sampled_from([1, 16, 100, 400]),
)
def test_so_it_is_with_windows(
    model: Transformer, batch: int, block: int, chunk: int, output: int
) -> None:
    """Batches around those at which the window is just full, and beyond."""
    check_longest(output, model=model, batch_size=batch, block_tokens=block, chunk_tokens=chunk)


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
    what = {
        "hardware": chip(2 * 852 + 20 + capacity),
        "weights": None,
        "precision": "fp16",
        "prompt_tokens": 1,
        "output_tokens": 1,
        "block_tokens": 1,
        "reserve": 0,
    }
    longest: int = serve(model=model, **{**what, **changes}).longest_context
    return longest


def test_longest_context_by_hand() -> None:
    """Six layers of 8 B: 48 B a token, and 40 B for each but the last.

    Ten tokens take 10 x 48 + 9 x 40 = 840 B.
    """
    model = small_model()
    found = [hand(model, capacity) for capacity in (47, 48, 135, 136, 839, 840)]
    assert found == [0, 1, 1, 2, 9, 10]
    # No longer than the model can read.
    assert hand(model, 10**9) == 1000


def test_a_longer_output_leaves_room_by_hand() -> None:
    """Of an output of four tokens six of ten are the prompt: 10 x 48 + 6 x 40 = 720 B.

    As short as the output, or by a token longer, the prompt is one token: 4 x 48 + 40 = 232 B,
    5 x 48 + 40 = 280 B.
    """
    model = small_model()
    capacities = (231, 232, 279, 280, 719, 720)
    assert [hand(model, each, output_tokens=4) for each in capacities] == [3, 4, 4, 5, 9, 10]


def test_the_last_block_need_not_be_full_by_hand() -> None:
    """Blocks of four, an output of one: eight tokens take 384 B and 7 x 40 = 280 B.

    A third block is 576 B; nine tokens then need 8 x 40 = 320 B beside it, ten 360 B.
    """
    model = small_model()
    found = [hand(model, each, block_tokens=4) for each in (663, 664, 895, 896, 935, 936)]
    assert found == [7, 8, 8, 9, 9, 10]


def test_longest_context_by_hand_once_a_chunk_is_full() -> None:
    """At most four tokens' activations, 160 B: ten tokens take 480 + 160 = 640 B.

    Three tokens do not fill the chunk: 144 + 80 = 224 B; four are 192 + 120.
    """
    model = small_model()
    capacities = (223, 224, 311, 312, 399, 400, 639, 640)
    found = [hand(model, capacity, chunk_tokens=4) for capacity in capacities]
    assert found == [2, 3, 3, 4, 4, 5, 9, 10]


def test_longest_context_by_hand_with_a_window() -> None:
    """Every third layer full: two of 8 B for every token, four for 5 tokens at most.

    Up to 5 tokens 48 B each, 240 B, and 40 B for all but the last, 160 B; then
    16 + 40 B each. If a chunk is four tokens, then 16 B each.
    """
    attention = Attention(heads=2, kv_heads=1, head_size=2, window=5, full_every=3)
    model = small_model(attention=attention)
    found = [hand(model, capacity) for capacity in (47, 48, 399, 400, 455, 456, 960)]
    assert found == [0, 1, 4, 5, 5, 6, 15]
    found = [hand(model, each, chunk_tokens=4) for each in (311, 312, 399, 400, 415, 416, 560)]
    assert found == [3, 4, 4, 5, 5, 6, 15]


def test_longest_context_by_hand_with_a_window_in_all_layers() -> None:
    """Six layers that keep 5 tokens at most: 240 B hold any length, but for the prompt.

    Its tokens take 40 B each: 400 B for five, 40 B for each further one, until a
    chunk is full.
    """
    model = small_model(attention=Attention(heads=2, kv_heads=1, head_size=2, window=5))
    found = [hand(model, capacity) for capacity in (48, 399, 400, 439, 440, 600, 10**6)]
    assert found == [1, 4, 5, 5, 6, 10, 1000]
    found = [hand(model, capacity, chunk_tokens=4) for capacity in (48, 399, 400, 10**6)]
    assert found == [1, 4, 1000, 1000]


def test_a_context_that_blocks_do_not_divide() -> None:
    """No layer keeps more than the context, 1,000 tokens; a chunk of one takes 40 B.

    Below it come 62 blocks of 16, 992 tokens.
    """
    model = small_model()
    for capacity, longest in ((48 * 1000 + 40, 1000), (48 * 999 + 40, 992)):
        assert hand(model, capacity, block_tokens=16, chunk_tokens=1) == longest


def test_contexts_of_many_points() -> None:
    """Also where bytes are given, and with windows, in some layers or in all."""
    batch = np.array([[1], [30], [3000]])
    size = ["1 B/element", "2 B/element"]
    for model in (Models.Llama3_8B, Models.Gemma3_27B, Models.Mistral_7B):
        many = serve(model=model, batch_size=batch, bytes_per_cached_element=size)
        found = many.longest_context
        assert found.shape == (3, 2)
        for index in np.ndindex(3, 2):
            alone = serve(
                model=model,
                batch_size=int(batch[index[0], 0]),
                bytes_per_cached_element=size[index[1]],
            )
            assert found[index] == alone.longest_context == many[index].longest_context


@given(decoders, st.integers(1, 3000))
def test_a_larger_batch_is_never_longer(model: Transformer, batch: int) -> None:
    longest = [serve(model=model, batch_size=each).longest_context for each in (batch, batch + 1)]
    assert longest[0] >= longest[1]
    # And fewer bits hold more.
    assert serve(model=model, batch_size=batch, kv_cache="fp8").longest_context >= longest[0]


def test_a_window_lets_a_sequence_be_longer() -> None:
    """Gemma 3 27B with and without its window, 50 sequences on one device."""
    model = Models.Gemma3_27B
    full = Attention(heads=32, kv_heads=16, head_size=128, qk_norm=True)
    without = Transformer(
        **{
            name: getattr(model, name)
            for name in model.__dataclass_fields__
            if name not in ("attention", "key", "_counts")
        },
        attention=full,
        key="Full",
    )
    assert without.parameter_count == model.parameter_count
    with_window = serve(model=model, batch_size=50).longest_context
    assert with_window > 3 * serve(model=without, batch_size=50).longest_context


def test_the_block_in_which_a_context_ends_is_not_filled() -> None:
    """A context of 1,024 in blocks of 100: beside 1,000 tokens is room for 24, not for 100."""
    what = {"hardware": Hardware.Cloud.L40S, "batch_size": 251, "kv_cache": "fp8"}
    assert check_longest(model=Models.GPT2_XL, block_tokens=100, **what) == 1024
