"""What must hold of every service: what it reads at least, and what binds it."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from language_models import DECODERS, MIXTURES
from sampled import sampled
from service_limits import DEVICES, empty, node, serve

from mlsim import Hardware, Models
from mlsim.workloads.language import Transformer

# Decode at batch 1 reads the weights.


def streamed(model: Transformer) -> float:
    """Return the parameters that one token meets in a step, counted from the parts.

    Of the tables it meets one row each, which counts as activations; a tied
    table is the output layer, too.
    """
    tables = (model.vocabulary + model.positions + model.token_types) * model.hidden
    tables += model.vocabulary * model.layers * model.layer_embedding
    tied = model.tied_embeddings * model.output_layer * model.vocabulary * model.hidden
    return model.active_parameter_count - tables + tied


def test_decode_at_batch_1_is_not_faster_than_reading_the_weights() -> None:
    asked = itertools.product(DECODERS, ("roofline", "bound"), DEVICES)
    for model, estimate, device in sampled(asked, 60):
        serving = serve(model=model, hardware=device, output_tokens=64, estimate=estimate)
        least = streamed(model) * 2 / device.bandwidth_si
        assert serving.value("first_token_time") >= least
        assert serving.value("time_per_output_token") >= least
        assert empty(serving).value("latency") >= least
        # With little cached it does not take much longer either.
        assert serving.value("time_per_output_token") <= 1.25 * least


# Experts.


def test_one_token_reads_its_own_experts() -> None:
    """At batch 1 exactly k of E experts are read, in every layer that has them."""
    for model, estimate in sampled(itertools.product(MIXTURES, ("roofline", "bound")), 14):
        experts = model.experts
        step = serve(model=model, estimate=estimate).decode
        share = experts.per_token / experts.count
        assert step.value("expert_share") == pytest.approx(share, rel=1e-12)
        rows = [*zip(step.service.table, step.value("parameters_read"), strict=True)]
        read = sum(each * row.repeats for row, each in rows if row.kind == "experts")
        one = experts.expert.parameters(model.hidden)
        assert read == pytest.approx(model.expert_layers * experts.per_token * one, rel=1e-12)
        whole = sum(float(each) * row.repeats for row, each in rows)
        assert whole == pytest.approx(streamed(model), rel=1e-12)


def test_the_share_that_is_read_is_what_tokens_choose() -> None:
    """Let 16 tokens choose 4 of 32 experts each, evenly, many times over."""
    rng = np.random.default_rng(4)
    trials = 4000
    chosen = np.zeros((trials, 32), dtype=bool)
    for _ in range(16):
        picks = rng.random((trials, 32)).argpartition(4, axis=1)[:, :4]
        np.put_along_axis(chosen, picks, values=True, axis=1)
    share = serve(model=Models.GPT_OSS_20B, batch_size=16).decode.value("expert_share")
    assert chosen.mean() == pytest.approx(share, abs=0.003)


def test_copies_that_share_their_experts_choose_together() -> None:
    """Eight copies of the attention part with a sequence each: eight tokens choose."""
    layout = {"hardware": node(Hardware.Cloud.H100), "batch_size": 8, "data_parallel": 8}
    alone = serve(model=Models.Mixtral_8x7B, **layout).decode
    spread = serve(model=Models.Mixtral_8x7B, **layout, expert_parallel=8).decode
    assert alone.value("expert_share") == 0.25
    assert spread.value("expert_share") == pytest.approx(1 - 0.75**8, rel=1e-12)
    # Each holds one expert of eight, and reads it with that chance.
    rows = {row.name: row for row in spread.service.table}
    assert rows["experts, up"].parameters == 2 * 4096 * 14336
    assert spread.value("total_network_time") > alone.value("total_network_time") == 0


# Compute-bound or memory-bound.


def test_with_an_empty_cache_a_large_batch_is_compute_bound() -> None:
    """But for states, which each sequence has of its own: its first token writes them."""
    devices = (Hardware.Cloud.A100, Hardware.Cloud.H100, Hardware.Cloud.L4)
    for model, device in sampled(itertools.product(DECODERS, devices), 24):
        bound = empty(serve(model=model, hardware=device, batch_size=10**6, estimate="bound"))
        stateful = model.state_bytes_per_sequence
        assert bound.bottleneck == ("Memory Bound" if stateful else "Compute Bound")
        assert bound.value("latency") >= 10**6 * stateful / device.bandwidth_si
        alone = empty(serve(model=model, hardware=device, batch_size=1, estimate="bound"))
        assert alone.bottleneck == "Memory Bound"
        assert empty(serve(model=model, hardware=device)).bottleneck == "Memory Bound"


@pytest.mark.parametrize("model", sampled(DECODERS, 10), ids=lambda model: model.key)
def test_the_intensity_of_attention_is_queries_per_key(model: Transformer) -> None:
    """Derive where attention's intensity ends while the cache grows; no row of chosen tokens does.

    A cached token costs 2 x 2 x heads x head size FLOP (a score and a weighted
    value) and 2 x KV heads x head size elements of 2 B: heads / KV heads FLOP/B.
    Latent attention: 2 x heads x (2 x rank + rope) FLOP for rank + rope elements.
    """
    attention = model.attention
    if model.latent:
        work = 2 * attention.heads * (2 * attention.kv_rank + attention.rope_size)
        limit = work / (2 * (attention.kv_rank + attention.rope_size))
    else:
        limit = attention.heads / attention.kv_heads
    extended = dataclasses.replace(model, context=10**8)
    for batch in (1, 1000):
        serving = serve(model=extended, batch_size=batch)
        for cached in (100, 10**4, 10**7):
            step = serving.decode_at(cached)
            rows = [row for row in step.operators if row["name"] == "attention"]
            for row in rows:
                assert row["arithmetic_intensity"] < limit
                if cached == 10**7 and not attention.chosen:
                    assert row["arithmetic_intensity"] == pytest.approx(limit, rel=1e-3)
                assert (row["bound"] == "memory") == (row["memory_time"] > row["compute_time"])


def test_the_intensity_of_attention_by_name() -> None:
    """Multi-head 1, grouped by eight 8, by four 4; and 241.8 for DeepSeek's latent vector."""
    expected = {"Llama2_7B": 1, "Llama2_70B": 8, "Llama3_8B": 4, "Mixtral_8x7B": 4}
    for name, limit in {**expected, "DeepSeek_V3": 128 * 1088 / 576}.items():
        extended = dataclasses.replace(getattr(Models, name), context=10**9)
        step = serve(model=extended).decode_at(10**8)
        (row,) = [each for each in step.operators if each["name"] == "attention"]
        assert row["arithmetic_intensity"] == pytest.approx(limit, rel=1e-3)
    assert pytest.approx(241.8, abs=0.05) == 128 * 1088 / 576


def test_llama_with_context_is_memory_bound_at_any_batch() -> None:
    """Llama 2 7B at 4,000 tokens: 7.3 FLOP/B at most, where an A100 wants 153.

    One sequence works 2 x (6,607,077,376 + 32 x 8,192 x 4,001) = 15.3 GFLOP;
    its cache has 4,001 x 524,288 B = 2.1 GB.
    """
    work = 2 * (6_607_077_376 + 32 * 8_192 * 4_001)
    assert Models.Llama2_7B.flop_count(1, 4000) == work
    limit = work / (4_001 * 524_288)
    assert limit == pytest.approx(7.3, abs=0.05)
    steps = serve(
        model=Models.Llama2_7B,
        hardware=Hardware.Cloud.A100,
        batch_size=2.0 ** np.arange(30),
        estimate="bound",
    ).decode_at(4000)
    assert set(steps.bottleneck.tolist()) == {"Memory Bound"}
    assert steps.value("network_intensity")[-1] == pytest.approx(limit, rel=1e-6)
