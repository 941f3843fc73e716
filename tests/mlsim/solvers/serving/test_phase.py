"""What must hold of prefill and decode: they are one, and longer takes longer."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from language_models import each_decoder
from service_limits import decoders, devices, empty, serve

from mlsim import Device, Models
from mlsim.workloads.language import Transformer

# Prefill and decode are one.


@each_decoder
@pytest.mark.parametrize("estimate", ["roofline", "bound"])
def test_a_prompt_of_one_token_is_decode_with_an_empty_cache(
    model: Transformer, estimate: str
) -> None:
    for batch in (1, 64):
        serving = serve(model=model, batch_size=batch, prompt_tokens=1, estimate=estimate)
        step = empty(serving)
        for name in ("latency", "total_flops", "total_bytes", "memory_bound_share"):
            assert serving.prefill.value(name) == pytest.approx(step.value(name), rel=1e-12)
        assert step.value("total_flops") == batch * model.flop_count(1, 0)
        # One more cached token costs its reading and its meeting, no more.
        more = serving.decode_at(1).value("total_flops") - step.value("total_flops")
        assert more == batch * (model.flop_count(1, 1) - model.flop_count(1, 0))


@each_decoder
def test_a_step_does_what_the_model_counts(model: Transformer) -> None:
    serving = serve(model=model, batch_size=3, prompt_tokens=300)
    assert serving.prefill.value("total_flops") == pytest.approx(
        3 * model.flop_count(300), rel=1e-12
    )
    for cached in (1, 127, min(5000, model.context - 1)):
        assert serving.decode_at(cached).value("total_flops") == pytest.approx(
            3 * model.flop_count(1, cached), rel=1e-12
        )


@given(decoders, devices, st.integers(1, 64), st.integers(1, 300), st.integers(1, 300))
def test_longer_takes_longer(
    model: Transformer, device: Device, batch: int, prompt: int, more: int
) -> None:
    short = serve(model=model, hardware=device, batch_size=batch, prompt_tokens=prompt)
    long = serve(model=model, hardware=device, batch_size=batch, prompt_tokens=prompt + more)
    assert long.value("time_to_first_token") > short.value("time_to_first_token")
    assert long.value("first_token_time") >= short.value("first_token_time")
    steps = [short.decode_at(cached).value("latency") for cached in (prompt, prompt + more)]
    assert steps == pytest.approx(
        [short.value("first_token_time"), long.value("first_token_time")], rel=1e-12
    )


# Windows.


def test_behind_a_window_decode_time_stops_growing() -> None:
    """Mistral 7B sees 4,096 tokens, the new one among them, in every layer."""
    serving = serve(model=Models.Mistral_7B, batch_size=64)
    cached = [1000, 2000, 4000, 4095, 4096, 5000, 8000]
    found = [serving.decode_at(each).value("latency") for each in cached]
    assert found[:4] == sorted(found[:4])
    assert found[0] < found[1] < found[2] < found[3]
    assert found[3:] == pytest.approx([found[3]] * 4, rel=1e-12)
    # Without the window it goes on.
    llama = serve(model=Models.Llama3_8B, batch_size=64)
    assert llama.decode_at(8000).value("latency") > 1.2 * llama.decode_at(4095).value("latency")


def test_some_layers_in_a_window_make_time_grow_less() -> None:
    """Gemma 3 27B: beyond 1,024 tokens only 10 of 62 layers read more."""
    serving = serve(model=Models.Gemma3_27B, batch_size=64)
    steps = [serving.decode_at(each).value("latency") for each in (400, 500, 10_000, 10_100)]
    assert (steps[3] - steps[2]) / (steps[1] - steps[0]) == pytest.approx(10 / 62, rel=1e-9)
