"""What fits: memory by part, and the largest batch."""

from __future__ import annotations

import math

import pytest
from capacities import NODE, blocks, chunks, decoders, lengths, serve
from hypothesis import given, strategies as st
from language_models import DECODERS, kept_elements, shared_by

from mlsim import Models
from mlsim.solvers.serving.serving import Serving
from mlsim.workloads.language import Transformer

# What the driver of an H200 lists, in bytes.
H200 = 143_771 * 2**20
ENCODERS = (Models.BERT_Base, Models.BERT_Large)


def memory(serving: Serving) -> dict[str, float]:
    return {name: each.to("B").magnitude for name, each in serving.memory.items()}


# Memory by part.


@given(decoders, st.integers(1, 300), lengths, lengths, st.floats(0, 0.9))
def test_memory_adds_up(
    model: Transformer, batch: int, prompt: int, output: int, reserve: float
) -> None:
    serving = serve(
        model=model, batch_size=batch, prompt_tokens=prompt, output_tokens=output, reserve=reserve
    )
    parts = memory(serving)
    required = parts["weight_memory"] + parts["cache_memory"] + parts["activation_memory"]
    assert serving.value("memory_required") == pytest.approx(required, rel=1e-12)
    usable = H200 * (1 - reserve)
    assert serving.value("usable_memory") == pytest.approx(usable, rel=1e-12)
    assert parts["memory_free"] == pytest.approx(usable - required, rel=1e-9, abs=1e-3)
    assert serving.feasible == (parts["memory_free"] >= 0)
    assert all(parts[name] > 0 for name in parts if name != "memory_free")


@pytest.mark.parametrize("model", DECODERS, ids=lambda model: model.key)
def test_weights_take_their_bytes(model: Transformer) -> None:
    serving = serve(model=model, precision="bf16", weights=None)
    assert serving.value("weight_memory") == 2 * model.parameter_count
    assert serve(model=model, precision="fp32", weights=None).value("weight_memory") == (
        4 * model.parameter_count
    )


@pytest.mark.parametrize("model", DECODERS, ids=lambda model: model.key)
def test_a_cache_takes_what_the_model_says(model: Transformer) -> None:
    """Each layer keeps all tokens, or those in its window."""
    serving = serve(model=model, batch_size=7, prompt_tokens=900, output_tokens=100)
    tokens = 1008  # whole blocks of 16
    states = model.state_bytes_per_sequence
    assert serving.value("cache_memory") == 7 * (2 * kept_elements(model, tokens) + states)
    per_token = model.cache_bytes_per_token().to("B").magnitude
    assert serving.value("cache_bytes_per_token") == per_token
    if not (model.window or states):
        assert serving.value("cache_per_sequence") == 1008 * per_token


@given(lengths, lengths, st.integers(1, 512))
def test_blocks_round_up(prompt: int, output: int, block: int) -> None:
    serving = serve(
        model=Models.Llama3_8B, prompt_tokens=prompt, output_tokens=output, block_tokens=block
    )
    tokens = serving.value("cache_tokens")
    assert tokens == math.ceil((prompt + output) / block) * block
    assert prompt + output <= tokens < prompt + output + block
    assert serving.value("cache_memory") == tokens * 131_072
    # A block is memory that is taken, not read.
    plain = serve(model=Models.Llama3_8B, prompt_tokens=prompt, output_tokens=output)
    assert serving.value("generation_latency") == plain.value("generation_latency")


def test_a_reserve_is_kept_of_the_whole_device() -> None:
    assert serve(model="GPT2", reserve=0).value("usable_memory") == H200
    assert serve(model="GPT2", reserve=0.25).value("usable_memory") == 0.75 * H200
    batches = [serve(model="GPT2", reserve=share).largest_batch for share in (0, 0.1, 0.5, 0.9)]
    assert batches == sorted(batches, reverse=True)
    assert len(set(batches)) == 4


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


@given(
    decoders,
    st.integers(1, 4000),
    lengths,
    blocks,
    st.sampled_from([0, 0.1, 0.37]),
    chunks,
)
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


@given(decoders, st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]), st.integers(1, 2000))
def test_so_it_is_over_several_devices(
    model: Transformer, tensor: int, data: int, prompt: int
) -> None:
    if not shared_by(model, tensor):
        return
    what = {
        "model": model,
        "hardware": NODE,
        "tensor_parallel": tensor,
        "data_parallel": data,
        "prompt_tokens": min(prompt, model.context - 128),
    }
    most = serve(**what).largest_batch
    # Each copy has as many.
    assert most % data == 0
    assert serve(**what, batch_size=most).feasible
    assert not serve(**what, batch_size=most + 1).feasible


@given(decoders, st.sampled_from([2, 4, 6]), st.integers(1, 2000))
def test_a_pipeline_has_room_for_whole_turns(model: Transformer, stages: int, prompt: int) -> None:
    """A batch that divides evenly among the stages fits up to the largest."""
    if model.layers % stages or model.shares_cache:
        return
    what = {
        "model": model,
        "hardware": NODE,
        "pipeline_parallel": stages,
        "prompt_tokens": min(prompt, model.context - 128),
    }
    most = serve(**what).largest_batch
    whole = most - most % stages
    assert serve(**what, batch_size=whole).feasible
    assert not serve(**what, batch_size=whole + stages).feasible


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


@given(decoders, lengths, st.integers(1, 300))
def test_narrower_or_shorter_never_holds_fewer(model: Transformer, prompt: int, more: int) -> None:
    long = serve(model=model, prompt_tokens=prompt + more).largest_batch
    assert serve(model=model, prompt_tokens=prompt).largest_batch >= long
    assert serve(model=model, prompt_tokens=prompt + more, kv_cache="fp8").largest_batch >= long


def test_no_room_at_all() -> None:
    serving = serve(model=Models.Llama3_405B, weights=None)
    assert not serving.feasible
    assert (serving.largest_batch, serving.longest_context) == (0, 0)
    assert memory(serving)["memory_free"] < 0
