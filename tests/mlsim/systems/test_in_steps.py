"""What runs in steps: workers that feed a device, stale updates, an engine's limits, pools."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from faults import overlooked
from refusals import answered

from mlsim import Hardware
from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.systems import PrefillPool, largest_stable_rate, load_and_compute, stale_descent
from mlsim.systems.schedulers import FOLDER, _read, scheduler
from mlsim.workloads.steps import Parallelism

load = partial(load_and_compute, prepare_time=2.0, compute_time=1.0, batches=40)
stale = partial(stale_descent, rate=0.1, delay=1, steps=3)
VLLM = scheduler("vllm")


def test_what_can_not_be_is_refused() -> None:
    assert answered(partial(load, workers=1), "systems", "loading") == []
    assert answered(stale, "systems", "stale") == []
    text = (FOLDER / "vllm.toml").read_text("utf-8")
    assert overlooked(_read, text, "scheduler_faults") == []


# ---- workers that feed a device ----


def test_in_turn_by_hand() -> None:
    run = load(workers=0, batches=3)
    assert [(work.start, work.end) for work in run.computed] == [(2, 3), (5, 6), (8, 9)]
    assert {work.who for work in run.prepared} == {0}
    assert run.waited == 6
    # The pace is that of taking turns.
    run = load(workers=0)
    fed = EQUATIONS["alternating_throughput"](1 / 2.0, 1 / 1.0)
    assert run.batches_per_second == pytest.approx(fed)
    assert run.waited / run.seconds == pytest.approx(EQUATIONS["starved_share"](fed, 1.0))


def test_two_workers_one_batch_ahead_by_hand() -> None:
    """3 s to prepare and 5 to compute: a place is free when the device begins an old batch."""
    run = load_and_compute(workers=2, prepare_time=3, compute_time=5, batches=6, ahead=1)
    prepared = [(work.who, work.batch, work.start, work.end) for work in run.prepared]
    assert prepared == [
        *((1, 0, 0, 3), (2, 1, 0, 3), (1, 2, 3, 6)),
        *((2, 3, 8, 11), (1, 4, 13, 16), (2, 5, 18, 21)),
    ]
    computed = [(work.who, work.batch, work.start, work.end) for work in run.computed]
    assert computed == [(0, batch, 3 + 5 * batch, 8 + 5 * batch) for batch in range(6)]
    assert (run.seconds, run.waited, run.batches_per_second) == (33, 3, 3 / 15)


def test_two_slow_workers_two_batches_ahead_by_hand() -> None:
    """7 s to prepare and 2 to compute: 23 s for five batches, of which the device waits 13."""
    run = load_and_compute(workers=2, prepare_time=7, compute_time=2, batches=5)
    assert [work.start for work in run.prepared] == [0, 0, 7, 7, 14]
    assert [work.end for work in run.computed] == [9, 11, 16, 18, 23]
    # The second half is of three batches, after the one that ends at 11.
    assert (run.seconds, run.waited, run.batches_per_second) == (23, 13, 3 / 12)
    # Two ahead is what is meant: with short work a worker waits for its third.
    short = load_and_compute(workers=1, prepare_time=1, compute_time=9, batches=5)
    assert [work.start for work in short.prepared] == [0, 1, 2, 10, 19]


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("compute_time", [0.3, 1.0, 2.5])
def test_the_pace_is_that_of_the_slowest_stage(workers: int, compute_time: float) -> None:
    run = load(workers=workers, compute_time=compute_time, batches=60 * workers)
    supply = EQUATIONS["prepare_rate"](workers, 1 / 2.0)
    fed = EQUATIONS["overlapped_throughput"](supply, 1 / compute_time)
    assert run.batches_per_second == pytest.approx(fed, rel=0.02)


# ---- stale updates ----


def test_the_limits_by_hand() -> None:
    """One update old: 2 sin(30 degrees). Two: 2 sin(18 degrees), the golden ratio less one."""
    limits = [largest_stable_rate(delay) for delay in (0, 1, 2)]
    assert limits == pytest.approx([2, 1, (math.sqrt(5) - 1) / 2])
    assert largest_stable_rate(1, curvature=4) == pytest.approx(0.25)
    assert stale_descent(0.1, 2, 9, curvature=3) == pytest.approx(stale_descent(0.3, 2, 9))
    # Below the limit it shrinks, and above it grows.
    for delay in (0, 1, 2, 7, 15):
        below, above = (
            stale_descent(part * largest_stable_rate(delay), delay, 4000) for part in (0.95, 1.05)
        )
        assert max(map(abs, below[-50:])) < 1e-3
        assert max(map(abs, above[-50:])) > 1e3


# ---- an engine's limits, and pools ----


def limits(of: Any) -> tuple[int, int]:
    return (of.running_limit, of.tokens_per_step)


def test_the_engines_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vllm", "vLLM", "v-llm", VLLM):
        assert scheduler(name) is VLLM
    assert scheduler("TensorRT_LLM") is scheduler("tensorrt-llm") is scheduler("tensorrtllm")
    with pytest.raises(UnknownNameError, match="Did you mean 'sglang'"):
        scheduler("sglong")
    with pytest.raises(InvalidValueError, match="such as 'vllm', not 7"):
        scheduler(7)  # type: ignore[arg-type]
    # Some have a name that is not their key.
    own = replace(VLLM, key="my_own", name="Your-Engine")
    monkeypatch.setattr("mlsim.systems.schedulers.schedulers", lambda: {"my_own": own})
    for name in ("My-Own", "myown", "your_engine", "YourEngine"):
        assert scheduler(name) is own
    # One request at a time is a limit, too.
    text = (FOLDER / "vllm.toml").read_text("utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("running_limit = 256", "running_limit = 1"), "utf-8")
    assert (_read(path).running_limit, _read(path).own[1].running_limit) == (1, 1)


def test_limits_are_those_of_the_device_until_somebody_sets_them() -> None:
    """From 70 GiB up, but not on an A100, vLLM runs 1,024 and 8,192 tokens; else 256 and 2,048."""
    cloud = Hardware.Cloud
    found = [limits(VLLM.on(each)) for each in (cloud.H100, cloud.A100, cloud.L4, cloud.MI300X)]
    assert found == [(1024, 8192), (256, 2048), (256, 2048), (1024, 8192)]
    set_to = VLLM.with_limits(running_limit=77)
    assert set_to.limited == ("running_limit",)
    assert [limits(set_to.on(each)) for each in (cloud.H100, cloud.L4)] == [(77, 8192), (77, 2048)]
    both = set_to.with_limits(tokens_per_step=555)
    assert both.limited == ("running_limit", "tokens_per_step")
    assert limits(both.on(cloud.H100)) == (77, 555)
    assert limits(scheduler("sglang").on(cloud.H100)) == (2048, 8192)


def test_patience_is_none_or_what_is_said() -> None:
    plain = VLLM.with_patience()
    assert (plain.poll_steps, plain.wait_steps, plain.wait_share) == (1, 0, 0.0)
    for share in (0, 0.3, 1):
        found = VLLM.with_patience(poll_steps=5, wait_steps=7, wait_share=share)
        assert (found.poll_steps, found.wait_steps, found.wait_share) == (5, 7, share)
    for wrong in ({"wait_share": 1.1}, {"wait_share": -0.1}, {"poll_steps": 0}, {"wait_steps": -1}):
        with pytest.raises(InvalidValueError, match=f"{next(iter(wrong))} must be"):
            VLLM.with_patience(**wrong)


def test_a_pool_is_copies_of_a_layout() -> None:
    sizes = {"tensor_parallel": 2, "pipeline_parallel": 3, "data_parallel": 4}
    sizes |= {"expert_parallel": 8, "context_parallel": 1}
    pool = PrefillPool(copies=5, **sizes)
    assert pool.parallelism == Parallelism(tensor=2, pipeline=3, data=4, expert=8, context=1)
    assert PrefillPool(context_parallel=7).parallelism == Parallelism(context=7)
    alone = PrefillPool()
    assert (alone.copies, alone.batch_size, alone.parallelism.devices) == (1, 1, 1)
    assert (alone.link_bandwidth, alone.overlap) == (None, False)
    for name in ("copies", "batch_size", *sizes):
        with pytest.raises(InvalidValueError, match=f"{name} of a PrefillPool must be a whole"):
            PrefillPool(**{name: 0})
    with pytest.raises(InvalidValueError, match="must be True or False, not 1"):
        PrefillPool(overlap=1)  # type: ignore[arg-type]
