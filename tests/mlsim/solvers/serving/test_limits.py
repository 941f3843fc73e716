"""What must hold of every service: its limits, what never slows it, and how its steps add up."""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial
from typing import Any

import kept
import numpy as np
import pytest
from hypothesis import given, strategies as st
from language_models import DECODERS, MIXTURES, tiny
from sampled import sampled
from service_limits import (
    DEVICES,
    NEARLY,
    batches,
    devices,
    divides,
    empty,
    languages,
    lengths,
    node,
    serve,
    times,
)
from services import CHIP, by_hand, llama

from mlsim import Device, Engine, Hardware, Models
from mlsim.systems import System
from mlsim.values import quantity
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism

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
            for row in (each for each in step.operators if each["name"] == "attention"):
                assert row["arithmetic_intensity"] < limit
                if cached == 10**7 and not attention.chosen:
                    assert row["arithmetic_intensity"] == pytest.approx(limit, rel=1e-3)
                assert (row["bound"] == "memory") == (row["memory_time"] > row["compute_time"])


# The roofline is never below the bound.


@given(languages, devices, batches, lengths, lengths)
def test_no_time_is_below_the_bound(
    model: Transformer, device: Device, batch: int, prompt: int, output: int
) -> None:
    half = model.context // 2
    what = {"model": model, "hardware": device, "batch_size": batch}
    what |= {"prompt_tokens": min(prompt, half), "output_tokens": min(output, half)}
    found, least = (times(serve(**what, estimate=each)) for each in ("roofline", "bound"))
    assert all(each >= bound / NEARLY for each, bound in zip(found, least, strict=True))


def test_the_bound_computes_attention_as_fast_as_it_may() -> None:
    what = {"model": Models.Llama3_8B, "prompt_tokens": 100_000}
    what |= {"weights": "bf16", "activations": "fp8", "kv_cache": "fp8"}
    bound = serve(**what, estimate="bound")
    assert bound.value("peak_flops") == Hardware.Cloud.H100.compute.figure("fp8").si
    assert bound.value("time_to_first_token") <= serve(**what).value("time_to_first_token")


def test_a_step_is_between_its_longest_limit_and_their_sum() -> None:
    for model in sampled(DECODERS, 12):
        serving = serve(model=model, batch_size=np.array([1, 16, 256, 4096]))
        for step in (serving.prefill, serving.decode):
            compute, memory = step.value("total_compute_time"), step.value("total_memory_time")
            assert (np.maximum(compute, memory) <= step.value("latency") * NEARLY).all()
            assert (step.value("latency") <= (compute + memory) * NEARLY).all()
            np.testing.assert_allclose(sum(step.shares.values()), 1.0, rtol=1e-12)


# What never makes it slower.


@given(
    languages, devices, batches, lengths, st.floats(1, 64), st.sampled_from(["roofline", "bound"])
)
def test_faster_memory_or_units_never_slow(
    model: Transformer, device: Device, batch: int, prompt: int, factor: float, estimate: str
) -> None:
    what = {"model": model, "hardware": device, "batch_size": batch}
    what |= {"prompt_tokens": prompt, "estimate": estimate}
    peak = device.compute.figure("fp16").si
    slow = times(serve(**what))
    bandwidth = quantity(device.bandwidth_si * factor, "B/s")
    peak_flops = quantity(peak * factor, "FLOP/s")
    for faster in ({"memory_bandwidth": bandwidth}, {"peak_flops": peak_flops}):
        for was, is_ in zip(slow, times(serve(**what, **faster)), strict=True):
            assert was / factor / NEARLY <= is_ <= was * NEARLY
    both = times(serve(**what, memory_bandwidth=bandwidth, peak_flops=peak_flops))
    assert both == pytest.approx([each / factor for each in slow], rel=1e-12)


def test_a_device_more_never_lowers_the_ceiling() -> None:
    """Divide the matrices, the layers or the batch: the bound's throughput never falls."""
    many = node(Hardware.Cloud.H100)
    names = ("tensor_parallel", "data_parallel", "pipeline_parallel")
    asked = itertools.product(DECODERS, (1, 7, 128), names)
    for model, batch, name in sampled(asked, 40):
        rates, firsts = [], []
        for size in (1, 2, 4, 8):
            if not divides(model, Parallelism(**{name.removesuffix("_parallel"): size})):
                continue
            what = {"model": model, "hardware": many, "batch_size": batch, name: size}
            found = serve(**what, prompt_tokens=200, estimate="bound")
            rates.append(found.value("decode_throughput"))
            firsts.append(found.value("time_to_first_token"))
        assert all(b >= a / NEARLY for a, b in itertools.pairwise(rates)), name
        if name != "pipeline_parallel":
            assert all(b <= a * NEARLY for a, b in itertools.pairwise(firsts)), name


# Prefill and decode are one.


def test_a_prompt_of_one_token_is_decode_with_an_empty_cache() -> None:
    asked = itertools.product(DECODERS, ("roofline", "bound"), (1, 64))
    for model, estimate, batch in sampled(asked, 40):
        serving = serve(model=model, batch_size=batch, prompt_tokens=1, estimate=estimate)
        step = empty(serving)
        for name in ("latency", "total_flops", "total_bytes", "memory_bound_share"):
            assert serving.prefill.value(name) == pytest.approx(step.value(name), rel=1e-12)
        assert step.value("total_flops") == batch * model.flop_count(1, 0)
        # One more cached token costs its reading and its meeting, no more.
        more = serving.decode_at(1).value("total_flops") - step.value("total_flops")
        assert more == batch * (model.flop_count(1, 1) - model.flop_count(1, 0))


def test_a_step_does_what_the_model_counts() -> None:
    for model in sampled(DECODERS, 20, seed=2):
        serving = serve(model=model, batch_size=3, prompt_tokens=300)
        found = serving.prefill.value("total_flops")
        assert found == pytest.approx(3 * model.flop_count(300), rel=1e-12)
        for cached in (1, 127, min(5000, model.context - 1)):
            found = serving.decode_at(cached).value("total_flops")
            assert found == pytest.approx(3 * model.flop_count(1, cached), rel=1e-12)


# Steps add up to the wait.


def test_one_new_token_needs_no_decode_step() -> None:
    serving = llama(output_tokens=1)
    assert serving.value("generation_latency") == serving.value("time_to_first_token")
    # The step that would follow has the whole prompt cached.
    step = serving.decode_at(2048).value("latency")
    assert serving.value("first_token_time") == step
    assert serving.value("time_per_output_token") == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "hardware", "batch", "prompt", "output"), kept.cases("mean_steps.toml")
)
def test_the_mean_step_is_that_of_all_steps(
    model: str, hardware: str, batch: int, prompt: int, output: int
) -> None:
    asked: dict[str, Any] = {"batch_size": batch, "prompt_tokens": prompt, "output_tokens": output}
    asked |= {"precision": "fp16", "check_memory": False}
    serving = Engine.serve(model=model, hardware=hardware, **asked)
    steps = serving.decode_at(np.arange(prompt, prompt + output - 1)).value("latency")
    assert len(steps) == output - 1
    assert serving.value("time_per_output_token") == pytest.approx(float(steps.mean()), rel=2e-3)
    assert steps[0] == pytest.approx(serving.value("first_token_time"), rel=1e-12)
    assert steps[-1] == pytest.approx(serving.value("last_token_time"), rel=1e-12)
    assert serving.value("generation_latency") == pytest.approx(
        serving.value("time_to_first_token") + float(steps.sum()), rel=2e-3
    )


@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 4))
def test_a_pipeline_by_the_formulas(batch: int, stages: int, copies: int) -> None:
    """B / copies sequences lie on a device, a part of them goes through the stages at a time."""
    ask = partial(by_hand, model=tiny(layers=12), check_memory=False)
    many = System("Many", CHIP, devices=16, link_bandwidth="8 B/s")
    layout = {"pipeline_parallel": stages, "data_parallel": copies}
    serving = ask(hardware=many, batch_size=batch, **layout)
    resident, at_once = -(-batch // copies), -(-batch // (copies * stages))
    assert serving.prefill.value("resident_batch") == resident
    assert serving.prefill.value("device_batch") == at_once
    way = serving.prefill.value("latency") * (resident / at_once + stages - 1) / stages
    assert serving.value("time_to_first_token") == pytest.approx(way, rel=1e-12)
    rate = batch / serving.value("time_per_output_token")
    assert serving.decode_throughput == pytest.approx(rate, rel=1e-12)
    # The same way as on one device, and what is sent from stage to stage.
    alone = ask(batch_size=at_once).decode_at(3).value("latency")
    sent = (stages - 1) * 2 * 4 * at_once / 8
    assert serving.decode_at(3).value("latency") == pytest.approx(alone + sent, rel=1e-12)


def test_a_larger_chunk_costs_memory_and_no_time() -> None:
    small, large = llama(batch_size=16, chunk_tokens=512), llama(batch_size=16, chunk_tokens=32_768)
    assert small.value("generation_latency") == large.value("generation_latency")
    # 16 prompts of 2,048 tokens, or 512 of them at a time.
    live = 4 * 4096 + 2 * 14336 - 2 * 4096
    scores = 16 * 128_256
    assert small.value("activation_memory") == 2 * (512 * live + scores)
    assert large.value("activation_memory") == 2 * (16 * 2048 * live + scores)
