"""Asking backwards, sensitivities, and overrides that contradict each other."""

from __future__ import annotations

import pytest

from mlsim import Device, Engine, Hardware, Models
from mlsim.errors import InvalidValueError, UnitError, UnknownNameError, UnreachableError

ASK = {"model": Models.ResNet50, "hardware": Hardware.Cloud.A100}


def test_the_bandwidth_that_makes_a_batch_compute_bound() -> None:
    found = Engine.find(
        vary="memory_bandwidth", target="memory_bound_share", value=0.5, batch_size=256, **ASK
    )
    before, after = (
        Engine.solve(**ASK, batch_size=256, memory_bandwidth=found * factor)
        for factor in (0.999, 1.001)
    )
    assert before.bottleneck == "Memory Bound"
    assert after.bottleneck == "Compute Bound"


def test_inverting_and_solving_agree() -> None:
    bandwidth = Engine.find(vary="memory_bandwidth", target="latency", value="100 us", **ASK)
    profile = Engine.solve(**ASK, memory_bandwidth=bandwidth)
    assert profile.latency.to("us").magnitude == pytest.approx(100, rel=1e-9)


def test_a_batch_is_the_first_whole_one_that_reaches_it() -> None:
    batch = Engine.find(vary="batch_size", target="throughput", value=25_000, **ASK)
    assert isinstance(batch, int)
    below, at = (Engine.solve(**ASK, batch_size=b).throughput for b in (batch - 1, batch))
    assert below < 25_000 <= at


def test_what_is_not_reached_says_the_range() -> None:
    with pytest.raises(UnreachableError, match=r"does not reach 60,000 sample/s.*from 18,02\d"):
        Engine.find(vary="batch_size", target="throughput", value=60_000, **ASK)


def test_a_refusal_says_in_which_format_it_looked() -> None:
    ask = {"vary": "batch_size", "target": "throughput", "value": 60_000, **ASK}
    with pytest.raises(UnreachableError, match="In fp16, since no other was given"):
        Engine.find(**ask)
    with pytest.raises(UnreachableError) as raised:
        Engine.find(**ask, precision="fp16")
    assert "since no other" not in str(raised.value)
    plain = {"vary": "batch_size", "target": "throughput", "value": 25_000, **ASK}
    assert Engine.find(**plain) == Engine.find(**plain, precision="fp16")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"vary": "memory_bandwith"}, UnknownNameError, "memory_bandwidth"),
        ({"target": "latencys"}, UnknownNameError, "latency"),
        ({"value": 5}, UnitError, "needs a unit"),
        ({"value": "5 GB"}, UnitError, "GB"),
        ({"between": ("2 TB/s", "1 TB/s")}, InvalidValueError, "in order"),
        ({"batch_size": [1, 2]}, InvalidValueError, "one batch"),
    ],
)
def test_bad_questions(change, error, message) -> None:
    ask = {"vary": "memory_bandwidth", "target": "latency", "value": "100 us", **ASK, **change}
    with pytest.raises(error) as raised:
        Engine.find(**ask)
    assert message in str(raised.value)


def test_elasticities_of_a_memory_bound_network() -> None:
    """Memory binds everywhere: latency goes with bytes over bandwidth, and nothing else."""
    slow = Device(
        "slow memory",
        peak_flops={"fp16": "1000 TFLOP/s"},
        memory_bandwidth="1 GB/s",
        memory_capacity="80 GB",
    )
    profile = Engine.solve(model=Models.ResNet50, hardware=slow)
    table = profile.sensitivity().set_index("input").elasticity
    assert table["memory_bandwidth"] == pytest.approx(-1, abs=1e-6)
    assert table["peak_flops"] == 0
    assert table["memory_capacity"] == 0
    assert table["bytes_per_parameter"] + table["bytes_per_element"] == pytest.approx(1, abs=1e-4)


def test_latency_is_homogeneous_in_both_rates() -> None:
    """Both rates twice as high: half the time, wherever operators lie."""
    table = Engine.solve(**ASK, batch_size=32).sensitivity().set_index("input").elasticity
    assert table["memory_bandwidth"] + table["peak_flops"] == pytest.approx(-1, abs=1e-4)


def test_overrides_that_agree_are_taken_and_others_refused() -> None:
    given = {"flops": "1 GFLOP", "peak_flops": "1 TFLOP/s"}
    profile = Engine.solve(**ASK, **given, compute_time="1 ms")
    assert profile.latency.to("ms").magnitude == pytest.approx(56)
    with pytest.raises(InvalidValueError, match=r"compute_time = 2 ms contradicts flops / peak"):
        Engine.solve(**ASK, **given, compute_time="2 ms")
    with pytest.raises(InvalidValueError, match="throughput = 10 sample/s contradicts"):
        Engine.solve(**ASK, latency="1 s", throughput=10)
