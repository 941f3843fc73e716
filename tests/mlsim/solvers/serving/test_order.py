"""What never makes a service slower, and never beats the bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from language_models import each_decoder, each_mixture, shared_by
from service_limits import (
    NEARLY,
    batches,
    decoders,
    devices,
    divides,
    languages,
    lengths,
    node,
    serve,
    times,
)

from mlsim import Device, Hardware, Models
from mlsim.systems import System
from mlsim.values import quantity
from mlsim.workloads.language import Transformer
from mlsim.workloads.parallelism import Parallelism

# The roofline is never below the bound.


@given(languages, devices, batches, lengths, lengths)
def test_no_time_is_below_the_bound(
    model: Transformer, device: Device, batch: int, prompt: int, output: int
) -> None:
    what = {
        "model": model,
        "hardware": device,
        "batch_size": batch,
        "prompt_tokens": min(prompt, model.context // 2),
        "output_tokens": min(output, model.context // 2),
    }
    for each, least in zip(
        times(serve(**what)), times(serve(**what, estimate="bound")), strict=True
    ):
        assert each >= least / NEARLY


@given(
    decoders,
    batches,
    lengths,
    st.sampled_from(["w4a16", "w8a8", "w8a8kv8", "fp8", "w8a16kv8"]),
    st.sampled_from([(1, 1, 1), (2, 1, 1), (4, 1, 2), (1, 2, 2), (2, 2, 4)]),
)
def test_nor_with_other_formats_and_layouts(
    model: Transformer, batch: int, prompt: int, precision: str, sizes: tuple[int, int, int]
) -> None:
    tensor, pipeline, data = sizes
    what = {
        "model": model,
        "hardware": node(Hardware.Cloud.H100),
        "batch_size": batch,
        "prompt_tokens": prompt,
        "precision": precision,
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "data_parallel": data,
    }
    if not divides(model, Parallelism(tensor=tensor, pipeline=pipeline, data=data)):
        return
    found = times(serve(**what))
    for each, least in zip(found, times(serve(**what, estimate="bound")), strict=True):
        assert each >= least / NEARLY


@given(
    decoders,
    st.sampled_from(["bf16", "fp8", "int8", "int4"]),
    st.sampled_from(["bf16", "fp8", "int8"]),
    st.sampled_from(["bf16", "fp8", "int8", "int4"]),
    st.integers(1, 2**17),
)
def test_nor_with_a_format_for_each(
    model: Transformer, weights: str, activations: str, kv_cache: str, prompt: int
) -> None:
    """Products of narrow factors may be faster, wherever they are."""
    what = {"model": model, "weights": weights, "activations": activations, "kv_cache": kv_cache}
    what |= {"prompt_tokens": min(prompt, model.context - 128)}
    found = times(serve(**what))
    for each, least in zip(found, times(serve(**what, estimate="bound")), strict=True):
        assert each >= least / NEARLY


def test_the_bound_computes_attention_as_fast_as_it_may() -> None:
    what = {"model": Models.Llama3_8B, "prompt_tokens": 100_000}
    what |= {"weights": "bf16", "activations": "fp8", "kv_cache": "fp8"}
    bound = serve(**what, estimate="bound")
    assert bound.value("peak_flops") == Hardware.Cloud.H100.compute.figure("fp8").si
    assert bound.value("time_to_first_token") <= serve(**what).value("time_to_first_token")


@each_decoder
def test_a_step_is_between_its_longest_limit_and_their_sum(model: Transformer) -> None:
    serving = serve(model=model, batch_size=np.array([1, 16, 256, 4096]))
    for step in (serving.prefill, serving.decode):
        compute, memory = step.value("total_compute_time"), step.value("total_memory_time")
        assert (np.maximum(compute, memory) <= step.value("latency") * NEARLY).all()
        assert (step.value("latency") <= (compute + memory) * NEARLY).all()
        shares = sum(step.shares.values())
        np.testing.assert_allclose(shares, 1.0, rtol=1e-12)


# What never makes it slower.


@given(
    languages, devices, batches, lengths, st.floats(1, 64), st.sampled_from(["roofline", "bound"])
)
def test_faster_memory_or_units_never_slow(
    model: Transformer, device: Device, batch: int, prompt: int, factor: float, estimate: str
) -> None:
    what = {
        "model": model,
        "hardware": device,
        "batch_size": batch,
        "prompt_tokens": prompt,
        "estimate": estimate,
    }
    peak = device.compute.figure("fp16").si
    slow = times(serve(**what))
    bandwidth = quantity(device.bandwidth_si * factor, "B/s")
    peak_flops = quantity(peak * factor, "FLOP/s")
    for faster in ({"memory_bandwidth": bandwidth}, {"peak_flops": peak_flops}):
        for was, is_ in zip(slow, times(serve(**what, **faster)), strict=True):
            assert was / factor / NEARLY <= is_ <= was * NEARLY
    both = times(serve(**what, memory_bandwidth=bandwidth, peak_flops=peak_flops))
    assert both == pytest.approx([each / factor for each in slow], rel=1e-12)


@given(decoders, batches, lengths)
def test_doubling_what_a_device_has_never_slows(
    model: Transformer, batch: int, prompt: int
) -> None:
    def made(peak: int, bandwidth: int, link: int) -> System:
        chip = Device(
            "Chip",
            peak_flops={"fp16": f"{100 * peak} TFLOP/s"},
            memory_bandwidth=f"{bandwidth} TB/s",
            memory_capacity="1 TB",
        )
        return node(chip, link_bandwidth=f"{100 * link} GB/s")

    # GPT-2 XL has 25 heads, and Phi-4 has 10 of keys, which 4 devices can't share.
    tensor = 4 if shared_by(model, 4) else 5
    what = {"model": model, "batch_size": batch, "prompt_tokens": prompt, "tensor_parallel": tensor}
    slow = times(serve(**what, hardware=made(1, 1, 1)))
    for doubled in (made(2, 1, 1), made(1, 2, 1), made(1, 1, 2)):
        for was, is_ in zip(slow, times(serve(**what, hardware=doubled)), strict=True):
            assert is_ <= was * NEARLY
    twice = times(serve(**what, hardware=made(2, 2, 2)))
    assert twice == pytest.approx([each / 2 for each in slow], rel=1e-12)


@given(languages, devices, st.integers(1, 500), st.integers(1, 500), lengths)
def test_a_larger_batch_takes_longer_but_less_each(
    model: Transformer, device: Device, batch: int, more: int, prompt: int
) -> None:
    small = serve(model=model, hardware=device, batch_size=batch, prompt_tokens=prompt)
    large = serve(model=model, hardware=device, batch_size=batch + more, prompt_tokens=prompt)
    for was, is_ in zip(times(small), times(large), strict=True):
        assert is_ * NEARLY >= was
        assert is_ / (batch + more) <= was / batch * NEARLY
    # An encoder whose chunk is full takes no more.
    assert large.value("memory_required") >= small.value("memory_required")
    if model.decoder:
        assert large.value("memory_required") > small.value("memory_required")


@each_decoder
@pytest.mark.parametrize("batch", [1, 7, 128])
def test_a_device_more_never_lowers_the_ceiling(model: Transformer, batch: int) -> None:
    """Divide the matrices, the layers or the batch: the bound's throughput never falls."""
    many = node(Hardware.Cloud.H100)
    for name in ("tensor_parallel", "data_parallel", "pipeline_parallel"):
        rates, firsts = [], []
        for size in (1, 2, 4, 8):
            if not divides(model, Parallelism(**{name.removesuffix("_parallel"): size})):
                continue
            found = serve(
                model=model,
                hardware=many,
                batch_size=batch,
                prompt_tokens=200,
                estimate="bound",
                **{name: size},
            )
            rates.append(found.value("decode_throughput"))
            firsts.append(found.value("time_to_first_token"))
        assert len(rates) >= 1
        for before, after in itertools.pairwise(rates):
            assert after >= before / NEARLY, name
        if name != "pipeline_parallel":
            for before, after in itertools.pairwise(firsts):
                assert after <= before * NEARLY, name


@each_mixture
def test_spreading_the_experts_never_lowers_the_ceiling(model: Transformer) -> None:
    many = node(Hardware.Cloud.H100)
    rates = [
        serve(
            model=model,
            hardware=many,
            batch_size=64,
            estimate="bound",
            data_parallel=8,
            expert_parallel=size,
        ).value("decode_throughput")
        for size in (1, 2, 4, 8)
    ]
    assert rates == sorted(rates)


@given(decoders, batches, lengths, st.sampled_from([2, 4, 8]))
def test_more_devices_do_no_more_than_their_number(
    model: Transformer, batch: int, prompt: int, size: int
) -> None:
    """A matrix shared by N devices is at most N times as fast."""
    if model.attention.heads % size:
        return
    what = {"model": model, "batch_size": batch, "prompt_tokens": prompt}
    one = serve(**what, estimate="bound")
    many = serve(**what, estimate="bound", hardware=node(Hardware.Cloud.H100), tensor_parallel=size)
    for alone, together in zip(times(one), times(many), strict=True):
        # Tables round up to a row a device, experts to a feature.
        assert together >= alone / size * (1 - 1e-3)


@each_decoder
def test_causal_is_less_than_full(model: Transformer) -> None:
    for tokens in (1, 2, 100):
        causal, full = model.flop_count(tokens), model.flop_count(tokens, causal=False)
        assert causal == full if tokens == 1 else causal < full
