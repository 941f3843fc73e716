"""What never makes a service slower, and never beats the bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from language_models import DECODERS
from sampled import sampled
from service_limits import NEARLY, batches, devices, divides, languages, lengths, node, serve, times

from mlsim import Device, Hardware, Models
from mlsim.values import quantity
from mlsim.workloads.language import Transformer
from mlsim.workloads.parallelism import Parallelism

# The roofline is never below the bound.


@given(languages, devices, batches, lengths, lengths)
def test_no_time_is_below_the_bound(
    model: Transformer, device: Device, batch: int, prompt: int, output: int
) -> None:
    half = model.context // 2
    what = {"model": model, "hardware": device, "batch_size": batch}
    what |= {"prompt_tokens": min(prompt, half), "output_tokens": min(output, half)}
    for each, least in zip(
        times(serve(**what)), times(serve(**what, estimate="bound")), strict=True
    ):
        assert each >= least / NEARLY


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
        assert len(rates) >= 1
        for before, after in itertools.pairwise(rates):
            assert after >= before / NEARLY, name
        if name != "pipeline_parallel":
            for before, after in itertools.pairwise(firsts):
                assert after <= before * NEARLY, name
