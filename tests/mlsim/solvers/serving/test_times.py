"""What users of a service see: its steps add up to their wait."""

from __future__ import annotations

from typing import Any

import kept
import numpy as np
import pytest
from hypothesis import given, strategies as st
from language_models import tiny
from services import CHIP, llama

from mlsim import Engine
from mlsim.systems import System


@pytest.mark.parametrize("estimate", ["roofline", "bound"])
def test_latencies_add_up(estimate: str) -> None:
    serving = llama(batch_size=8, output_tokens=100, estimate=estimate)
    each = serving.value("time_per_output_token")
    ready = serving.value("time_to_first_token")
    assert serving.value("generation_latency") == pytest.approx(ready + 99 * each, rel=1e-12)
    assert serving.user_token_rate == pytest.approx(1 / each, rel=1e-12)
    assert serving.decode_throughput == pytest.approx(8 / each, rel=1e-12)
    assert serving.value("output_throughput") == pytest.approx(
        800 / serving.value("generation_latency"), rel=1e-12
    )


def test_one_new_token_needs_no_decode_step() -> None:
    serving = llama(output_tokens=1)
    assert serving.value("generation_latency") == serving.value("time_to_first_token")
    # The step that would follow has the whole prompt cached.
    assert serving.value("first_token_time") == serving.decode_at(2048).value("latency")
    assert serving.value("time_per_output_token") == pytest.approx(
        serving.value("first_token_time"), rel=1e-12
    )


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
    asked: dict[str, Any] = {"model": tiny(layers=12), "prompt_tokens": 3, "output_tokens": 3}
    asked |= {"precision": "fp16", "check_memory": False}
    many = System("Many", CHIP, devices=16, link_bandwidth="8 B/s")
    layout = {"pipeline_parallel": stages, "data_parallel": copies}
    serving = Engine.serve(**asked, hardware=many, batch_size=batch, **layout)
    prefill = serving.prefill
    resident, at_once = -(-batch // copies), -(-batch // (copies * stages))
    assert prefill.value("resident_batch") == resident
    assert prefill.value("device_batch") == at_once
    way = prefill.value("latency")
    assert serving.value("time_to_first_token") == pytest.approx(
        way * (resident / at_once + stages - 1) / stages, rel=1e-12
    )
    # No sooner than one part is through, no later than one part after another.
    assert serving.value("time_to_first_token") >= way * (1 - 1e-12)
    assert serving.value("time_to_first_token") <= way * stages * (1 + 1e-12)
    assert serving.decode_throughput == pytest.approx(
        batch / serving.value("time_per_output_token"), rel=1e-12
    )
    alone = Engine.serve(**asked, hardware=CHIP, batch_size=at_once)
    # The same way as on one device, and what is sent from stage to stage.
    sent = (stages - 1) * 2 * 4 * at_once / 8
    assert serving.decode_at(3).value("latency") == pytest.approx(
        alone.decode_at(3).value("latency") + sent, rel=1e-12
    )


def test_a_larger_chunk_costs_memory_and_no_time() -> None:
    small, large = llama(batch_size=16, chunk_tokens=512), llama(batch_size=16, chunk_tokens=32_768)
    assert small.value("generation_latency") == large.value("generation_latency")
    # 16 prompts of 2,048 tokens, or 512 of them at a time.
    live = 4 * 4096 + 2 * 14336 - 2 * 4096
    scores = 16 * 128_256
    assert small.value("activation_memory") == 2 * (512 * live + scores)
    assert large.value("activation_memory") == 2 * (16 * 2048 * live + scores)
