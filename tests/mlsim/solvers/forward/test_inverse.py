"""Asking backwards, sensitivities, and overrides that contradict each other."""

from __future__ import annotations

from typing import Any

import pytest
from own_chips import chip
from refusals import answered

from mlsim import Engine, Hardware, Models
from mlsim.errors import InvalidValueError

ASK: dict[str, Any] = {"model": Models.ResNet50, "hardware": Hardware.Cloud.A100}


def find(**asked: Any) -> Any:
    return Engine.find(**{**ASK, **asked})


def test_the_bandwidth_that_makes_a_batch_compute_bound() -> None:
    share = {"target": "memory_bound_share", "value": 0.5, "batch_size": 256}
    found = find(vary="memory_bandwidth", **share)
    before, after = (
        Engine.solve(**ASK, batch_size=256, memory_bandwidth=found * factor).bottleneck
        for factor in (0.999, 1.001)
    )
    assert (before, after) == ("Memory Bound", "Compute Bound")


def test_inverting_and_solving_agree() -> None:
    """By hand too: where memory is no limit, the peak is work over time."""
    bandwidth = find(vary="memory_bandwidth", target="latency", value="100 us")
    latency = Engine.solve(**ASK, memory_bandwidth=bandwidth).latency
    assert latency.to("us").magnitude == pytest.approx(100, rel=1e-9)
    peak = find(vary="peak_flops", target="latency", value="1 ms", memory_bandwidth="1e9 TB/s")
    assert peak.to("FLOP/s").magnitude == pytest.approx(Models.ResNet50.flop_count / 1e-3, rel=1e-3)


def test_the_first_that_is_tried_may_be_the_one() -> None:
    """One image has its latency at batch 1; a bandwidth, at the low end of where to look."""
    alone = Engine.solve(**ASK).latency
    assert find(vary="batch_size", target="latency", value=alone) == 1
    asked = {"vary": "memory_bandwidth", "target": "memory_bandwidth", "value": "1 TB/s"}
    assert find(**asked, between=("1 TB/s", "3 TB/s")).to("TB/s").magnitude == 1
    # A thousandth of 2,039 GB/s is the least that is looked at, and a thousand times the most.
    for value, word in (("2 GB/s", "from"), ("2100 TB/s", "to")):
        with pytest.raises(Exception, match=rf"{word} 2\.039 [GP]B/s"):
            find(**{**asked, "value": value})


def test_a_batch_is_the_first_whole_one_that_reaches_it() -> None:
    asked: dict[str, Any] = {"vary": "batch_size", "target": "throughput", "value": 25_000}
    batch = find(**asked)
    assert isinstance(batch, int)
    below, at = (Engine.solve(**ASK, batch_size=b).throughput for b in (batch - 1, batch))
    assert below < 25_000 <= at
    assert find(**asked, precision="fp16") == batch


def test_bad_questions() -> None:
    """A refusal names the range, and the format, unless that was asked for."""

    def bad(**asked: Any) -> Any:
        usual = {"vary": "memory_bandwidth", "target": "latency", "value": "100 us"}
        return find(**{**usual, **asked})

    assert answered(bad, "find") == []


def test_elasticities_of_a_memory_bound_network() -> None:
    """Memory binds everywhere: latency goes with bytes over bandwidth, and nothing else."""
    slow = chip(bandwidth="1 GB/s", fp16="1000 TFLOP/s")
    profile = Engine.solve(model=Models.ResNet50, hardware=slow)
    table = profile.sensitivity().set_index("input").elasticity
    assert table["memory_bandwidth"] == pytest.approx(-1, abs=1e-6)
    assert table["peak_flops"] == table["memory_capacity"] == 0
    assert table["bytes_per_parameter"] + table["bytes_per_element"] == pytest.approx(1, abs=1e-4)
    # Both rates twice as high: half the time, wherever operators lie.
    table = Engine.solve(**ASK, batch_size=32).sensitivity().set_index("input").elasticity
    assert table["memory_bandwidth"] + table["peak_flops"] == pytest.approx(-1, abs=1e-4)
    assert table["batch_size"] > 0.5


def test_overrides_that_agree_are_taken_and_others_refused() -> None:
    given = {"flops": "1 GFLOP", "peak_flops": "1 TFLOP/s"}
    profile = Engine.solve(**ASK, **given, compute_time="1 ms")
    assert profile.latency.to("ms").magnitude == pytest.approx(56)
    with pytest.raises(InvalidValueError, match=r"compute_time = 2 ms contradicts flops / peak"):
        Engine.solve(**ASK, **given, compute_time="2 ms")
    with pytest.raises(InvalidValueError, match="throughput = 10 sample/s contradicts"):
        Engine.solve(**ASK, latency="1 s", throughput=10)
