"""The forward pass: worked by hand, against published truths, and by invariants."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import kept
import numpy as np
import pytest
from hypothesis import given, strategies as st
from own_chips import chip

from mlsim import Device, Engine, Hardware, Model, Models, Profile
from mlsim.equations import EQUATIONS
from mlsim.errors import DoesNotFitError
from mlsim.solvers import blocks, question
from mlsim.solvers.forward.configuration import GIVABLE
from mlsim.solvers.forward.profile import solve as plain_solve
from mlsim.values import quantity
from mlsim.workloads.layers import Convolution, Linear, Pool, Shape
from mlsim.workloads.model import Network

Solve = Callable[..., Profile]


def test_a_pass_by_hand(tiny: Network, slow_chip: Device) -> None:
    """Two layers, batch 2 in fp16 (2 bytes a number) on 100 FLOP/s and 40 B/s.

        FLOP                 bytes                              compute   memory
    conv  2 * 288 * 2 = 1152   2 * 18 + 2 * (16 + 32) * 2 = 228   11.52 s    5.70 s
    fc    2 *  96 * 2 =  384   2 * 99 + 2 * (32 +  3) * 2 = 338    3.84 s    8.45 s

    conv computes for 11.52 s, fc waits for memory for 8.45 s. 117 parameters; at most 48
    elements a sample are alive, in the convolution.
    """
    profile = plain_solve(tiny, slow_chip, batch_size=2)
    by_hand = {
        "latency": 19.97,
        "throughput": 2 / 19.97,
        "memory_bound_share": 8.45 / 19.97,
        "total_flops": 1536,
        "total_bytes": 228 + 338,
        "network_intensity": 1536 / 566,
        "total_compute_time": 15.36,
        "total_memory_time": 14.15,
        "ridge_point": 2.5,
        "achieved_flops": 1536 / 19.97,
        "weight_memory": 234,
        "activation_memory": 192,
        "memory_required": 426,
        "memory_free": 1000 - 426,
    }
    found = {name: profile.value(name) for name in by_hand}
    assert found == pytest.approx(by_hand, rel=1e-12)
    assert profile.bottleneck == "Compute Bound"
    assert profile.causes == pytest.approx(
        {"arithmetic": 11.52 / 19.97, "memory": 8.45 / 19.97, "network": 0}
    )
    assert "one device: nothing is sent" in profile._caused.known.origins["network_share"]
    # All weights once, the image in, the answer out: 2 * 117 + 2 * (16 + 3) * 2 = 310 B or
    # 7.75 s, less than the 15.36 s of computing.
    bound = plain_solve(tiny, slow_chip, batch_size=2, estimate="bound")
    assert (bound.value("latency"), bound.value("total_bytes")) == (pytest.approx(15.36), 310)
    assert bound.value("total_memory_time") == pytest.approx(7.75)
    # fp32 doubles the bytes and halves the peak: both times double.
    single = plain_solve(tiny, slow_chip, batch_size=2, precision="fp32")
    assert single.value("latency") == pytest.approx(2 * 19.97)
    # One sample, if nobody says how many: 5.76 s of computing, and (198 + 70) / 40 s.
    assert plain_solve(tiny, slow_chip).value("latency") == pytest.approx(5.76 + 6.7)
    with pytest.raises(DoesNotFitError, match="Tiny at batch 10 in fp16 needs"):
        _ = plain_solve(tiny, slow_chip, batch_size=10).latency


# What the first chapter finds.


def crossing(device: Device) -> int | None:
    """Return the first batch at which computing takes longer than memory in total."""
    profile = Engine.solve(
        model=Models.ResNet50, hardware=device, batch_size=np.arange(1, 1025), check_memory=False
    )
    over = profile.value("total_compute_time") > profile.value("total_memory_time")
    return int(np.argmax(over)) + 1 if over.any() else None


def test_resnet_is_memory_bound_though_its_weights_alone_say_otherwise(
    solve: Solve, resnet: Model, a100: Device
) -> None:
    assert resnet.flop_count / (resnet.parameter_count * 2) == pytest.approx(160.0, abs=0.01)
    assert a100.ridge_point("fp16").magnitude == pytest.approx(153.0, abs=0.05)
    profile = solve(batch_size=[1, 256])
    assert profile.memory_bound_share.tolist() == pytest.approx([0.84, 0.54], abs=0.005)
    assert profile.bottleneck.tolist() == ["Memory Bound", "Memory Bound"]
    # 8.178 GFLOP at 312 TFLOP/s against 51.4 MB at 2,039 GB/s: 26.2 and 25.2 us.
    compute = 8_178_368_512 / 312e12
    assert compute > (25_557_032 + 150_528 + 1000) * 2 / 2.039e12
    assert solve(estimate="bound").value("latency") == pytest.approx(compute, rel=1e-12)
    # Totals cross between batch 16 and 32 on the V100, and never on the A100.
    at = crossing(Hardware.Cloud.V100)
    assert at is not None
    assert 16 < at <= 32
    assert crossing(a100) is None
    limit = solve(batch_size=10**9, check_memory=False)
    assert limit.value("total_compute_time") < limit.value("total_memory_time")


# Invariants, for networks and devices of any kind.

batches = st.integers(min_value=1, max_value=4096)
rates = st.floats(min_value=1e9, max_value=1e16)


@st.composite
def asked(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a small network of convolutions and pools, and a device with room for anything."""
    layers: list[Convolution | Pool | Linear] = []
    for number in range(draw(st.integers(1, 4))):
        layers.append(
            Convolution(
                name=f"c{number}",
                out_channels=draw(st.integers(1, 64)),
                kernel=draw(st.sampled_from([1, 3])),
                padding=1,
                batch_norm=draw(st.booleans()),
                adds_residual=draw(st.booleans()),
            )
        )
        if draw(st.booleans()):
            layers.append(Pool(name=f"p{number}", kernel=2, stride=1))
    layers.append(Linear(name="fc", out_features=draw(st.integers(1, 100))))
    shape = Shape(draw(st.integers(1, 16)), draw(st.integers(6, 24)))
    words = dict.fromkeys(("key", "name"), "N")
    network = Network(
        **words, architecture="CNN", input=shape, layers=tuple(layers), source="he2016resnet"
    )
    peak = quantity(draw(rates), "FLOP/s")
    device = chip("D", quantity(draw(rates) / 100, "B/s"), "1 PB", fp16=peak)
    return {"model": network, "hardware": device, "batch_size": draw(batches)}


@given(asked(), st.floats(min_value=1.0, max_value=64.0))
def test_less_work_and_faster_devices_never_take_longer(
    what: dict[str, Any], factor: float
) -> None:
    def seconds(**arguments: Any) -> float:
        return float(Engine.solve(**what, **arguments).value("latency"))

    whole = seconds()
    assert whole >= seconds(estimate="bound") * (1 - 1e-12)
    half = {"bytes_per_parameter": "1 B/parameter", "bytes_per_element": "1 B/element"}
    halved = seconds(**half)
    # Bytes are all that changed, so that it does not more than halve.
    assert whole / 2 * (1 - 1e-12) <= halved <= whole
    for name, value in half.items():
        assert halved * (1 - 1e-12) <= seconds(**{name: value}) <= whole
    device = what["hardware"]
    bandwidth = quantity(device.bandwidth_si * factor, "B/s")
    peak = quantity(device.compute.figure("fp16").si * factor, "FLOP/s")
    for faster in ({"memory_bandwidth": bandwidth}, {"peak_flops": peak}):
        assert whole / factor * (1 - 1e-12) <= seconds(**faster) <= whole * (1 + 1e-12)
    # Both together are faster by the factor, exactly.
    both = seconds(memory_bandwidth=bandwidth, peak_flops=peak)
    assert both == pytest.approx(whole / factor, rel=1e-12)


@given(asked(), st.integers(1, 4096))
def test_a_pass_agrees_with_its_parts_and_with_a_larger_batch(
    what: dict[str, Any], more: int
) -> None:
    profile = Engine.solve(**what)
    latency = profile.value("latency")
    assert profile.throughput == pytest.approx(what["batch_size"] / latency, rel=1e-12)
    assert 0 <= profile.memory_bound_share <= 1 + 1e-12
    parts = [profile.value(f"total_{name}_time") for name in ("compute", "memory")]
    assert max(parts) * (1 - 1e-12) <= latency <= sum(parts) * (1 + 1e-12)
    assert profile.value("achieved_flops") <= profile.value("peak_flops") * (1 + 1e-12)
    large = Engine.solve(**{**what, "batch_size": what["batch_size"] + more})
    assert large.latency >= profile.latency
    assert large.throughput >= profile.throughput * (1 - 1e-12)
    assert large.memory_required > profile.memory_required
    # Equal operators are reckoned with once.
    names = ("latency", "total_bytes", "memory_required")
    each = profile.question.evaluate(*names, table=what["model"].operators)
    assert each == pytest.approx(profile.question.evaluate(*names), rel=1e-12)


# Arrays equal scalars.

NAMES = ("latency", "throughput", "memory_bound_share", "memory_required", "network_intensity")


def test_arrays_equal_scalars(solve: Solve) -> None:
    """Of shapes that broadcast: batches down, bandwidths across; and both estimates."""
    chance = np.random.default_rng(3)
    for rows, columns in (((3, 1), (2,)), ((2, 1, 3), (2, 1)), ((), (3,)), ((1, 2), (1, 2))):
        batch, bandwidth = chance.integers(1, 512, rows), chance.uniform(0.1, 5.0, columns)
        given = {"batch_size": batch, "memory_bandwidth": quantity(bandwidth, "TB/s")}
        for estimate in ("roofline", "bound"):
            together = solve(**given, estimate=estimate, check_memory=False)
            for index in np.ndindex(together.shape):
                one, rate = (np.broadcast_to(each, together.shape)[index] for each in
                             (batch, bandwidth))  # fmt: skip
                alone = solve(batch_size=int(one), memory_bandwidth=f"{rate} TB/s",
                              estimate=estimate, check_memory=False)  # fmt: skip
                for name in NAMES:
                    value = np.broadcast_to(together.value(name), together.shape)[index]
                    assert value == pytest.approx(alone.value(name), rel=1e-12)
                assert np.broadcast_to(together.bottleneck, together.shape)[index] == (
                    alone.bottleneck
                )


def test_blocks_and_threads_give_the_same_as_one(
    solve: Solve, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = np.arange(1, 501).reshape(20, 25)
    monkeypatch.setattr(blocks.os, "cpu_count", lambda: 1)
    whole = solve(batch_size=batch)
    # A quantity of operators has rows, and then points.
    flops = whole.value("flops")
    assert flops.shape[1:] == (20, 25)
    np.testing.assert_allclose(flops[:, 0, 5], solve(batch_size=6).value("flops"), rtol=1e-12)
    for processors, block in ((1, 1), (1, 7), (1, 1000), (3, 7), (8, 64)):
        monkeypatch.setattr(blocks, "BLOCK", block)
        monkeypatch.setattr(blocks.os, "cpu_count", lambda count=processors: count)
        parted = solve(batch_size=batch)
        for name in (*NAMES, "flops"):
            np.testing.assert_allclose(parted.value(name), whole.value(name), rtol=1e-12)

    def fail(start: int, stop: int) -> None:
        if start:
            raise ZeroDivisionError

    monkeypatch.setattr(blocks, "BLOCK", 1)
    with pytest.raises(ZeroDivisionError):  # an error in a thread is not lost
        blocks.run_jobs([blocks.Job(fail, 1000)])


# Overriding what the data or the equations say.


def test_an_override_takes_the_place_of_a_figure_or_of_an_intermediate(
    solve: Solve, a100: Device
) -> None:
    assert solve(memory_bandwidth=a100.memory.bandwidth).latency == solve().latency
    twice = solve(memory_bandwidth=2 * a100.memory.bandwidth, peak_flops="624 TFLOP/s")
    assert twice.value("latency") == pytest.approx(solve().value("latency") / 2, rel=1e-12)
    profile = solve(latency="2 ms", batch_size=4)
    assert profile.throughput == pytest.approx(2000.0)
    # What does not follow from it is as it was.
    assert profile.value("total_bytes") == solve(batch_size=4).value("total_bytes")


def test_what_is_given_for_every_operator_counts_for_each(solve: Solve) -> None:
    """56 operators; the bound has one, the whole network."""
    assert solve(roofline_time="1 us").value("latency") == pytest.approx(56e-6)
    profile = solve(roofline_time=["1 us", "2 us"], batch_size=[[1], [2], [3]])
    np.testing.assert_allclose(profile.value("latency"), [[56e-6, 112e-6]] * 3)
    assert solve(roofline_time="1 us", estimate="bound").value("latency") == pytest.approx(1e-6)
    assert solve(flops="1 GFLOP").value("total_flops") == pytest.approx(56e9)
    profile = solve(flops=["1 GFLOP", "2 GFLOP"])
    assert profile.value("total_flops").tolist() == pytest.approx([56e9, 112e9])
    assert solve(weight_bytes="1 MB").value("weight_memory") == pytest.approx(56e6)


# Without NumPy, as in a browser.


@pytest.mark.parametrize("estimate", ["roofline", "bound"])
def test_lists_equal_arrays(solve: Solve, monkeypatch: pytest.MonkeyPatch, estimate: str) -> None:
    for overrides in ({}, {"flops": "1 GFLOP"}, {"roofline_time": "1 us"}):
        wanted = [name for name in GIVABLE if name not in overrides]
        asked = {"batch_size": 32, "estimate": estimate, **overrides}
        monkeypatch.setattr(question, "ARRAYS", True)
        with_arrays = solve(**asked)
        expected, rows = [with_arrays.value(name) for name in wanted], with_arrays.operators
        monkeypatch.setattr(question, "ARRAYS", False)
        with_lists = solve(**asked)
        for name, value in zip(wanted, expected, strict=True):
            found = with_lists.value(name)
            assert not isinstance(found, np.ndarray)
            np.testing.assert_allclose(found, value, rtol=1e-12)
        for row, other in zip(with_lists.operators, rows, strict=True):
            words = {name: value for name, value in row.items() if isinstance(value, str)}
            numbers = {name: value for name, value in row.items() if name not in words}
            assert words.items() <= other.items()
            assert {**other, **words} == pytest.approx({**words, **numbers})
        assert "latency" in str(with_lists.explain())


def test_a_solve_runs_where_numpy_is_not_installed() -> None:
    program = kept.text("without_numpy.py.txt")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    latency, *rest = done.stdout.split()
    here = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=32)
    assert float(latency) == pytest.approx(here.value("latency"), rel=1e-12)
    assert rest == ["Memory", "Bound", "56", "True", "True"]


# Configurations and plans.


def test_plans_are_made_once_and_reach_everything_that_may_be_given(solve: Solve) -> None:
    first, second = solve(batch_size=1).question, solve(batch_size=2).question
    assert first.plan("latency") is second.plan("latency")
    profile = solve(batch_size=8)
    for name in GIVABLE:
        assert np.all(np.isfinite(profile.value(name)))
    assert {each.yields for each in EQUATIONS.values() if each.counts}.isdisjoint(GIVABLE)
    # TF32 lies in memory as 32 bits.
    single, tensor = solve(precision="fp32"), solve(precision="tf32")
    assert single.value("total_bytes") == tensor.value("total_bytes")
    assert tensor.latency < single.latency
