"""What fits: memory by part, and the largest batch."""

from __future__ import annotations

from typing import Any

import pytest
from capacities import NODE, blocks, chunks, decoders, lengths, serve
from hypothesis import given, strategies as st
from language_models import DECODERS, kept_elements
from sampled import sampled

from mlsim import Models
from mlsim.solvers.serving.serving import Serving
from mlsim.workloads.language import Transformer

# What the driver of an H200 lists, in bytes.
H200 = 143_771 * 2**20
ENCODERS = (Models.BERT_Base, Models.BERT_Large)


def memory(serving: Serving) -> dict[str, float]:
    return {name: each.to("B").magnitude for name, each in serving.memory.items()}


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


def test_tensor_parallel_divides_weights_and_keys() -> None:
    """Llama 3.1 70B over 8: each has one KV head and 17.6 GB of weights."""
    alone = serve(model=Models.Llama3_70B, batch_size=4, weights=None)
    shared = serve(
        model=Models.Llama3_70B, batch_size=4, weights=None, hardware=NODE, tensor_parallel=8
    )
    assert shared.value("cache_memory") == alone.value("cache_memory") / 8
    # But for the norms, which are on each.
    norms = 161 * 8192
    assert shared.value("weight_memory") == 2 * ((70_553_706_496 - norms) / 8 + norms)
    # 16 devices: there are no more KV heads to divide.
    more = serve(
        model=Models.Llama3_70B, batch_size=4, weights=None, hardware=NODE, tensor_parallel=16
    )
    assert more.value("cache_memory") == shared.value("cache_memory")
    assert more.value("weight_memory") < shared.value("weight_memory")


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


def test_how_many_users_of_llama_by_hand() -> None:
    """Llama 3.1 8B on an H200 at 8,192 tokens.

    135.7 GB may be used: 0.9 of what the driver lists. Weights take 16,060,522,496 B; a sequence 512 blocks
    of 16 tokens, 1,073,741,824 B, and 256,512 B of scores; a chunk of 8,192
    tokens x (2 x 4,096 + 2 x 14,336) elements 603,979,776 B.
    """
    serving = serve(model=Models.Llama3_8B, weights=None, prompt_tokens=8000, output_tokens=192)
    left = 0.9 * H200 - 16_060_522_496 - 603_979_776
    assert left / (1_073_741_824 + 256_512) == pytest.approx(110.8, abs=0.05)
    assert serving.largest_batch == 110


@given(decoders, st.integers(1, 4000), lengths, blocks, st.sampled_from([0, 0.1, 0.37]), chunks)
def test_the_largest_batch_fits_and_one_more_does_not(
    model: Transformer, prompt: int, output: int, block: int, reserve: float, chunk: int
) -> None:
    what = {
        "model": model,
        "prompt_tokens": min(prompt, model.context - output),
        "output_tokens": output,
        "block_tokens": block,
        "reserve": reserve,
        "chunk_tokens": chunk,
    }
    most = serve(**what).largest_batch
    assert most.is_integer()
    assert most > 0
    assert serve(**what, batch_size=most).feasible
    assert not serve(**what, batch_size=most + 1).feasible
    # It does not depend on the batch that is asked about.
    assert serve(**what, batch_size=most + 1).largest_batch == most


@given(
    st.sampled_from(ENCODERS),
    st.integers(1, 512),
    chunks,
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 3]),
)
def test_the_largest_batch_of_an_encoder(
    model: Transformer, prompt: int, chunk: int, tensor: int, data: int
) -> None:
    """It keeps no cache, and reads its texts at once, whatever a chunk is."""
    what = {
        "model": model,
        "hardware": NODE,
        "prompt_tokens": prompt,
        "chunk_tokens": chunk,
        "tensor_parallel": tensor,
        "data_parallel": data,
    }
    most = serve(**what).largest_batch
    assert most > 0
    assert most % data == 0
    assert serve(**what, batch_size=most).feasible
    assert not serve(**what, batch_size=most + 1).feasible
    assert serve(**what).to_dict()["largest_batch"] == {"value": most, "unit": "sample"}


def test_no_room_at_all() -> None:
    serving = serve(model=Models.Llama3_405B, weights=None)
    assert not serving.feasible
    assert (serving.largest_batch, serving.longest_context) == (0, 0)
    assert memory(serving)["memory_free"] < 0
