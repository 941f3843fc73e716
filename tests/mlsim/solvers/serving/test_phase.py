"""What must hold of prefill and decode: they are one, and longer takes longer."""

from __future__ import annotations

import itertools

import pytest
from language_models import DECODERS
from sampled import sampled
from service_limits import empty, serve

from mlsim import Models

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
