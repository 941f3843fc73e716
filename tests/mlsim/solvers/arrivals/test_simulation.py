"""The scheduler's run against another one, written apart, and against what must always hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traces import TRACES, own_step, requests_like, write

from mlsim import Engine
from mlsim.errors import UnknownNameError
from mlsim.solvers.arrivals.loaded import LoadedService
from mlsim.solvers.arrivals.lookup import between, chunk_time
from mlsim.solvers.arrivals.step_times import step_times
from mlsim.workloads.requests import Requests


def step_by_step(
    asked: Requests,
    step: Callable[[int, list[int], list[tuple[int, int]]], float],
    budget: int,
    path: float,
) -> tuple[Any, Any]:
    """Run a service of the plainest kind: one step after another, one request after another.

    `step` gives the time of a step with so many tokens, the contexts of those that decode and
    the chunks (new, before) of those that are read. A request is on its way for `path` seconds,
    and a step takes in whoever was there when the one before it began. No limit of memory.
    """
    left = [[int(p), int(o)] for p, o in zip(asked.prompt_tokens, asked.output_tokens, strict=True)]
    first, last = [-1.0] * len(left), [-1.0] * len(left)
    now, began, came, open_ones = 0.0, 0.0, 0, []
    while came < len(left) or open_ones:
        if not open_ones:
            now = began = max(now, float(asked.arrived[came]) + path)
        while came < len(left) and asked.arrived[came] + path <= began:
            open_ones.append(came)
            came += 1
        decoding = [i for i in open_ones if left[i][0] == 0]
        room = budget - len(decoding)
        chunks = []
        for i in open_ones:
            new = min(left[i][0], room)
            if new > 0:
                chunks.append((i, new, int(asked.prompt_tokens[i]) - left[i][0]))
                room -= new
        contexts = [
            int(asked.prompt_tokens[i]) + int(asked.output_tokens[i]) - left[i][1] - 1 + 1
            for i in decoding
        ]
        tokens = len(decoding) + sum(new for _, new, _ in chunks)
        began = now
        now += step(tokens, contexts, [(new, before) for _, new, before in chunks])
        for i in decoding:
            left[i][1] -= 1
        for i, new, _ in chunks:
            left[i][0] -= new
            if left[i][0] == 0:
                first[i] = now
                left[i][1] -= 1
        for i in [i for i in open_ones if left[i] == [0, 0]]:
            last[i] = now
            open_ones.remove(i)
    return np.array(first), np.array(last)


@pytest.mark.parametrize("trace", TRACES)
def test_it_agrees_with_a_simulation_written_apart(trace: str, tmp_path: Path) -> None:
    asked = requests_like(trace)
    loaded = Engine.load(
        model="Llama3_8B",
        hardware="H100",
        trace=write(tmp_path / "trace.csv", asked),
        estimate="calibrated",
        software="engine",
    )
    first, last = step_by_step(
        asked, own_step("Llama3_8B"), 8192, loaded.loaded.of_software("call_time")
    )
    # A trace begins at its first request.
    waits = first - asked.arrived
    steps = asked.output_tokens - 1
    each = ((last - first) / np.where(steps > 0, steps, np.nan))[steps > 0]
    for name, values in (("time_to_first_token", waits), ("time_per_output_token", each)):
        assert loaded.value(name) == pytest.approx(values.mean(), rel=0.15)
        assert loaded.value(f"{name}_p90") == pytest.approx(np.quantile(values, 0.9), rel=0.15)


def load(**asked: Any) -> LoadedService:
    """A small model on one device."""
    return Engine.load(**({"model": "Llama3_8B", "hardware": "H100"} | asked))


@pytest.mark.parametrize("scheduler", ["vllm", "sglang", "tensorrt_llm"])
@pytest.mark.parametrize("way", [{"rate": 20}, {"users": 30}, {"burst": 300}])
def test_no_token_is_lost(scheduler: str, way: dict[str, int]) -> None:
    loaded = load(scheduler=scheduler, output_tokens="uniform 1 300", requests=300, **way)
    requests = loaded.loaded.requests
    lasted = loaded.value("run_span")
    assert loaded.value("output_throughput") * lasted == pytest.approx(
        requests.output_tokens.sum(), rel=1e-9
    )


def test_littles_law_holds_of_the_run() -> None:
    """Requests there at one time are those that come, times how long each stays."""
    loaded = load(rate=15, output_tokens=200, requests=5000)
    there = loaded.value("running_requests") + loaded.value("waiting_requests")
    stays = loaded.value("request_rate") * loaded.value("request_latency")
    assert there == pytest.approx(stays, rel=0.02)


def test_a_lone_request_waits_for_nobody() -> None:
    loaded = load(burst=1, prompt_tokens=2048, output_tokens=64)
    alone = Engine.serve(model="Llama3_8B", hardware="H100", prompt_tokens=2048, output_tokens=64)
    assert loaded.value("time_to_first_token") == pytest.approx(
        alone.prefill.value("latency"), rel=1e-3
    )
    assert loaded.value("time_per_output_token") == pytest.approx(
        alone.decode_at(2048 + 32).value("latency"), rel=1e-3
    )
    assert loaded.value("waiting_requests") == 0


def test_more_load_never_waits_less() -> None:
    waits = [
        load(rate=rate, requests=1500).value("time_to_first_token") for rate in (1, 10, 30, 50)
    ]
    assert waits == sorted(waits)


def test_a_full_cache_stops_the_latest_and_loses_none() -> None:
    tight = {"reserve": 0.74, "prompt_tokens": 2000, "output_tokens": 1500, "burst": 60}
    stopped = load(scheduler="vllm", **tight)
    assert stopped.stopped > 0
    reserved = load(scheduler="tensorrt_llm", **tight)
    assert reserved.stopped == 0
    assert len(stopped.loaded.requests) == stopped.value("answered_requests") == 60
    assert reserved.value("running_requests") < stopped.value("running_requests")


def test_users_never_run_beyond_their_number() -> None:
    loaded = load(users=7, requests=70)
    assert loaded.value("running_requests") <= 7
    pausing = load(users=7, requests=70, think_time=5.0)
    assert pausing.value("running_requests") < loaded.value("running_requests")


def test_two_copies_are_two_services() -> None:
    one = load(rate=10, burstiness=0, requests=400)
    two = load(rate=20, burstiness=0, requests=800, hardware="hgx_h100", data_parallel=2)
    assert two.value("time_per_output_token") == pytest.approx(
        one.value("time_per_output_token"), rel=1e-3
    )
    assert two.value("saturation_rate") == pytest.approx(2 * one.value("saturation_rate"))


def test_the_same_seed_gives_the_same_answer() -> None:
    asked = {"rate": 5, "prompt_tokens": "lognormal 400 1.0", "requests": 300}
    assert load(seed=3, **asked).to_dict() == load(seed=3, **asked).to_dict()
    assert load(seed=4, **asked).value("time_to_first_token") != load(seed=3, **asked).value(
        "time_to_first_token"
    )


@pytest.mark.parametrize("software", ["kernels", "engine", "vllm", "vllm_async", "eager"])
@pytest.mark.parametrize(("batch", "context"), [(1, 100), (32, 576), (200, 2000)])
def test_a_step_takes_as_long_as_that_of_the_service(
    software: str, batch: int, context: int
) -> None:
    """What a program adds counts once, however many tables a step is put together from."""
    asked = {
        "model": "Llama3_8B",
        "hardware": "H100",
        "estimate": "calibrated",
        "software": software,
        "check_memory": False,
    }
    service = Engine.serve(**asked).service
    times = step_times(service, running=256, tokens=8192, longest=8192)
    reading = between(times.reading[batch], context / times.context_step)
    step = Engine.serve(batch_size=batch, prompt_tokens=16, **asked).decode_at(context)
    device = times.together[batch] + times.scores[batch] + reading
    assert times.step(device, batch, batch) == pytest.approx(step.value("latency"), rel=1e-6)
    # Prompts that a step reads together are so many sequences, however many tokens they have.
    for prompts in (1, 4):
        asked["batch_size"] = prompts
        prefill = Engine.serve(prompt_tokens=2000, **asked).prefill.value("latency")
        tokens = 2000 * prompts
        alone = times.together[tokens] + times.scores[prompts]
        alone += prompts * chunk_time(times, 2000, 0)
        assert times.step(alone, tokens, prompts) == pytest.approx(prefill, rel=0.02)


@pytest.mark.parametrize("stages", [2, 4])
def test_the_stages_of_a_pipeline_have_a_batch_each(stages: int) -> None:
    """A step of one batch takes as long as in a service with as many batches under way."""
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "HGX_H100"}
    asked |= {"pipeline_parallel": stages, "prompt_tokens": 512, "output_tokens": 128}
    service = Engine.serve(**asked).service
    times = step_times(service, running=256, tokens=8192, longest=8192)
    reading = between(times.reading[64], 576 / times.context_step)
    step = Engine.serve(**asked, batch_size=64 * stages).decode_at(576)
    assert times.together[64] + times.scores[64] + reading == pytest.approx(
        step.value("latency"), rel=1e-6
    )
    # They share the memory that there is: as many requests fit as in the service.
    fits = int(times.cache_room / between(times.memory, 640 / times.context_step)) * stages
    assert fits == pytest.approx(Engine.serve(**asked).largest_batch, rel=0.02)


def test_each_percentile_is_a_value_that_says_where_it_comes_from() -> None:
    loaded = load(rate=5, output_tokens=20, requests=200)
    for name in ("time_to_first_token_p99", "time_per_output_token_p50", "request_latency_p90"):
        found = getattr(loaded, name)
        assert found.to_dict()["unit"] == "s"
        assert "a simulation of 200 requests" in found.origin.how


def test_the_times_of_each_request_are_what_means_and_percentiles_are_of() -> None:
    """Each request that counts, and a percentile as a value tells which run it is from."""
    loaded = Engine.load(model="Llama3_8B", hardware="H100", rate=10, requests=300)
    for name in ("time_to_first_token", "time_per_output_token", "request_latency"):
        times = loaded.each_request(name)
        assert 200 <= len(times) <= 300
        assert times.mean() == pytest.approx(loaded.value(name))
        assert np.quantile(times, 0.99) == pytest.approx(loaded.value(f"{name}_p99"))
        last = getattr(loaded, f"{name}_p99")
        assert last.name == f"{name}_p99".replace("_", " ")
        assert "a simulation of 300 requests" in last.origin.how
    with pytest.raises(UnknownNameError, match="time_to_first_token"):
        loaded.each_request("time_to_first_tokens")
