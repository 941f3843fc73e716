"""Services under load with something switched on: limits, laws, and closed forms beside runs."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlsim import Engine
from mlsim.systems.schedulers import scheduler
from mlsim.workloads import Offload, Speculation

SMALL: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100", "prompt_tokens": 2048}
LARGE: dict[str, Any] = {
    "model": "Llama3_70B",
    "hardware": "HGX_H100",
    "tensor_parallel": 8,
    "prompt_tokens": 1024,
}
DRAFTED = Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7)


def first(loaded: Any) -> float:
    return float(loaded.value("time_to_first_token"))


def each(loaded: Any) -> float:
    return float(loaded.value("time_per_output_token"))


def test_a_prefix_brings_the_first_token_sooner_and_saturates_later() -> None:
    asked = SMALL | {"rate": 8, "requests": 600}
    plain, half, most = (Engine.load(**asked, prefix_share=share) for share in (0, 0.5, 0.9))
    assert first(plain) > first(half) > first(most)
    rates = [float(one.value("saturation_rate")) for one in (plain, half, most)]
    assert rates == sorted(rates)
    assert rates[2] > 2 * rates[0]
    for one in (plain, half, most):
        assert one.steady is not None
        assert one.steady.value("steady_first_token") == pytest.approx(first(one), rel=0.15)


def test_one_request_alone_waits_as_in_a_batch_of_one() -> None:
    for on in ({"prefix_share": 0.5}, {"offload": Offload(cache=0.3, weights=0.1)}):
        alone = Engine.load(**SMALL, burst=1, output_tokens=64, **on)
        batch = Engine.serve(**SMALL, output_tokens=64, **on)
        assert first(alone) == pytest.approx(batch.value("time_to_first_token"), rel=0.01)
        assert each(alone) == pytest.approx(batch.value("time_per_output_token"), rel=0.01)


def test_speculation_helps_a_quiet_service_and_harms_a_full_one() -> None:
    quiet = LARGE | {"rate": 1, "requests": 300}
    plain, drafted = Engine.load(**quiet), Engine.load(**quiet, speculation=DRAFTED)
    assert each(drafted) < 0.7 * each(plain)
    assert drafted.value("saturation_rate") < plain.value("saturation_rate")
    assert drafted.steady is not None
    assert drafted.steady.value("time_per_output_token") == pytest.approx(each(drafted), rel=0.1)
    assert "time_per_output_token" in str(drafted.steady.explain("time_per_output_token"))
    assert "token_interval" not in drafted.to_dict()["closed_form"]


def test_a_trace_says_what_is_cached_of_each_prompt(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    rows = [
        {
            "timestamp": 100 * at,
            "input_length": 2048,
            "output_length": 20,
            "hash_ids": [1, 2, 10 + at % 4, 100 + at],
        }
        for at in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    asked = {"model": "Llama3_8B", "hardware": "H100", "trace": path}
    plain = Engine.load(**asked)
    found = Engine.load(**asked, prefix_share="trace")
    small = Engine.load(**asked, prefix_share="trace", prefix_blocks=6)
    # Of 40 prompts the first finds nothing, three find two blocks, all others three.
    assert found.loaded.requests.prefix_share == pytest.approx((3 * 2 + 36 * 3) / (40 * 4))
    assert first(found) < first(small) < first(plain)
    assert "switched_on" in found.to_dict()


def rounds_by_chance(rate: float, count: int, on: dict[str, Any], seed: int) -> tuple[Any, Any]:
    """Run a service of the plainest kind, where each drafted token is accepted or not by chance.

    One round after another; prompts that came are read before it, one after another.
    """
    random = np.random.default_rng(seed)
    asked = SMALL | {"output_tokens": 200} | on
    batches = [1, 2, 4, 8, 16, 32]
    lengths = [1, 16, 64, 128, 256, 384, 512, 768, 1024, 2048, 4096, 8192]
    reads = [
        float(Engine.serve(**(SMALL | {"prompt_tokens": n, "output_tokens": 1}))
              .prefill.value("latency"))
        for n in lengths
    ]  # fmt: skip
    whole = Engine.serve(**asked, batch_size=batches)
    if "speculation" in on:
        times, tokens = whole.speculation.value("round_time"), on["speculation"].tokens
        chance = on["speculation"].acceptance
    else:
        times, tokens, chance = whole.value("time_per_output_token"), 0, 0.0
    new_tokens = round(2048 * (1 - on.get("prefix_share", 0)))
    lone = float(Engine.serve(**asked).value("time_to_first_token"))

    @cache
    def step(decoding: int, prompts: int) -> float:
        """All tokens go through the matrices together; the rest of a round or a prompt adds up."""
        width = decoding * (tokens + 1)
        found = float(np.interp(width + prompts * new_tokens, lengths, reads))
        found += prompts * (lone - float(np.interp(new_tokens, lengths, reads)))
        if decoding:
            found += float(np.interp(decoding, batches, times) - np.interp(width, lengths, reads))
        return found

    arrived = np.cumsum(random.exponential(1 / rate, count))
    first, last = np.zeros(count), np.zeros(count)
    now, came, left = 0.0, 0, {}
    while came < count or left:
        if not left:
            now = max(now, float(arrived[came]))
        new = []
        while came < count and arrived[came] <= now:
            new.append(came)
            came += 1
        now += step(len(left), len(new))
        for index in list(left):
            left[index] -= 1
            drafted = tokens
            while drafted and random.random() < chance:
                left[index], drafted = left[index] - 1, drafted - 1
            if left[index] <= 0:
                last[index] = now
                del left[index]
        for index in new:
            first[index] = now
            left[index] = 199
    return first - arrived, (last - first) / 199


@pytest.mark.parametrize(
    ("rate", "on"),
    [
        (4.0, {"prefix_share": 0.75}),
        (4.0, {"speculation": Speculation(cost=0.1, tokens=4, acceptance=0.7)}),
        (
            6.0,
            {"speculation": Speculation(cost=0.1, tokens=3, acceptance=0.5), "prefix_share": 0.5},
        ),
    ],
)
def test_it_agrees_with_a_simulation_by_chance_written_apart(
    rate: float, on: dict[str, Any]
) -> None:
    waits, each_token = rounds_by_chance(rate, 4000, on, seed=3)
    # One that makes up no step ahead, as the simulation above.
    plain = replace(scheduler("vllm"), steps_ahead=0)
    asked = SMALL | {"rate": rate, "requests": 4000, "output_tokens": 200, "seed": 4}
    loaded = Engine.load(**asked, scheduler=plain, **on)
    for name, seen in (("time_to_first_token", waits), ("time_per_output_token", each_token)):
        assert loaded.value(name) == pytest.approx(seen[400:].mean(), rel=0.08)
        assert loaded.value(f"{name}_p90") == pytest.approx(np.quantile(seen[400:], 0.9), rel=0.08)
