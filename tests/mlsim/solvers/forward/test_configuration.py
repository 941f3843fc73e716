"""The forward pass: worked by hand, against published truths, and by invariants."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mlsim import Device, Engine, Hardware, Model, Models
from mlsim.equations import EQUATIONS
from mlsim.precision import precision as find_precision
from mlsim.solvers import blocks, question
from mlsim.solvers.forward.configuration import GIVABLE
from mlsim.values import quantity
from mlsim.workloads.layers import Convolution, Linear, Pool, Shape
from mlsim.workloads.model import Network

# A network of two layers, worked by hand. Batch 2 in fp16 (2 bytes a number) on
# 100 FLOP/s and 40 B/s; the counts are those of the fixture `tiny`.
#
#         FLOP                 bytes                              compute   memory
#   conv  2 * 288 * 2 = 1152   2 * 18 + 2 * (16 + 32) * 2 = 228   11.52 s    5.70 s
#   fc    2 *  96 * 2 =  384   2 * 99 + 2 * (32 +  3) * 2 = 338    3.84 s    8.45 s


def test_latency_by_hand(tiny: Model, slow_chip: Device) -> None:
    profile = Engine.solve(model=tiny, hardware=slow_chip, batch_size=2)
    # conv computes for 11.52 s, fc waits for memory for 8.45 s.
    assert profile.latency.to("s").magnitude == pytest.approx(11.52 + 8.45, rel=1e-12)
    assert profile.throughput == pytest.approx(2 / 19.97, rel=1e-12)
    assert profile.memory_bound_share == pytest.approx(8.45 / 19.97, rel=1e-12)
    assert profile.bottleneck == "Compute Bound"
    assert profile.value("total_flops") == 1536
    assert profile.value("total_bytes") == 228 + 338
    assert profile.value("total_compute_time") == pytest.approx(15.36)
    assert profile.value("total_memory_time") == pytest.approx(14.15)
    assert profile.value("network_intensity") == pytest.approx(1536 / 566)
    assert profile.value("achieved_flops") == pytest.approx(1536 / 19.97)
    assert profile.value("ridge_point") == 2.5


def test_memory_by_hand(tiny: Model, slow_chip: Device) -> None:
    profile = Engine.solve(model=tiny, hardware=slow_chip, batch_size=2)
    # 117 parameters; at most 48 elements a sample are alive, in the convolution.
    assert profile.value("weight_memory") == 117 * 2
    assert profile.value("activation_memory") == 48 * 2 * 2
    assert profile.memory_required.to("B").magnitude == 234 + 192
    assert profile.value("memory_free") == 1000 - 426


def test_bound_by_hand(tiny: Model, slow_chip: Device) -> None:
    profile = Engine.solve(model=tiny, hardware=slow_chip, batch_size=2, estimate="bound")
    # All weights once, the image in, the answer out: 2 * 117 + 2 * (16 + 3) * 2
    # = 310 B or 7.75 s, less than the 15.36 s of computing.
    assert profile.latency.to("s").magnitude == pytest.approx(15.36, rel=1e-12)
    assert profile.value("total_bytes") == 310
    assert profile.bottleneck == "Compute Bound"


def test_precision_by_hand(tiny: Model, slow_chip: Device) -> None:
    # fp32 doubles the bytes and halves the peak: both times double.
    half = Engine.solve(model=tiny, hardware=slow_chip, batch_size=2)
    single = Engine.solve(model=tiny, hardware=slow_chip, batch_size=2, precision="fp32")
    assert single.latency / half.latency == pytest.approx(2.0)


# What the first chapter finds.


def test_weights_alone_make_resnet_compute_bound(resnet: Model, a100: Device) -> None:
    flops_per_byte = resnet.flop_count / (resnet.parameter_count * 2)
    assert flops_per_byte == pytest.approx(160.0, abs=0.01)
    assert a100.ridge_point("fp16").magnitude == pytest.approx(153.0, abs=0.05)


def test_operator_by_operator_it_is_memory_bound_at_any_batch(solve) -> None:
    profile = solve(batch_size=[1, 256])
    assert profile.memory_bound_share.tolist() == pytest.approx([0.84, 0.54], abs=0.005)
    assert profile.bottleneck.tolist() == ["Memory Bound", "Memory Bound"]


def crossing(device: Device) -> int | None:
    """Return the first batch at which computing takes longer than memory in total."""
    profile = Engine.solve(
        model=Models.ResNet50, hardware=device, batch_size=np.arange(1, 1025), check_memory=False
    )
    over = profile.value("total_compute_time") > profile.value("total_memory_time")
    return int(np.argmax(over)) + 1 if over.any() else None


def test_totals_cross_on_the_v100_and_never_on_the_a100() -> None:
    at = crossing(Hardware.Cloud.V100)
    assert at is not None
    # Between batch 16 and 32, the sizes that a sweep would try.
    assert 16 < at <= 32
    assert crossing(Hardware.Cloud.A100) is None
    # Nor can a larger batch help: without the weights the ratio is the limit.
    limit = Engine.solve(
        model=Models.ResNet50,
        hardware=Hardware.Cloud.A100,
        batch_size=10**9,
        check_memory=False,
    )
    assert limit.value("total_compute_time") < limit.value("total_memory_time")


def test_bound_at_batch_1(solve, resnet: Model) -> None:
    # 8.178 GFLOP at 312 TFLOP/s against 51.4 MB at 2,039 GB/s: 26.2 and 25.2 us.
    compute = 8_178_368_512 / 312e12
    memory = (25_557_032 + 150_528 + 1000) * 2 / 2.039e12
    assert compute > memory
    assert solve(estimate="bound").latency.to("s").magnitude == pytest.approx(compute, rel=1e-12)


# Invariants, for networks and devices of any kind.

batches = st.integers(min_value=1, max_value=4096)
rates = st.floats(min_value=1e9, max_value=1e16)
factors = st.floats(min_value=1.0, max_value=64.0)


@st.composite
def networks(draw: st.DrawFn) -> Model:
    """Draw a small network: convolutions and pools, then a linear layer."""
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
    return Network(
        key="N",
        name="N",
        architecture="CNN",
        input=shape,
        layers=tuple(layers),
        source="he2016resnet",
    )


@st.composite
def devices(draw: st.DrawFn) -> Device:
    """Draw a device with room for anything."""
    return Device(
        "D",
        peak_flops={"fp16": quantity(draw(rates), "FLOP/s")},
        memory_bandwidth=quantity(draw(rates) / 100, "B/s"),
        memory_capacity="1 PB",
    )


def seconds(**arguments) -> float:
    return float(Engine.solve(**arguments).value("latency"))


@given(networks(), devices(), batches)
def test_latency_is_not_below_the_bound(model: Model, device: Device, batch: int) -> None:
    bound = seconds(model=model, hardware=device, batch_size=batch, estimate="bound")
    assert seconds(model=model, hardware=device, batch_size=batch) >= bound * (1 - 1e-12)


@given(networks(), devices(), batches)
def test_halving_the_bytes_never_slows(model: Model, device: Device, batch: int) -> None:
    what = {"model": model, "hardware": device, "batch_size": batch}
    whole = seconds(**what)
    half = {"bytes_per_parameter": "1 B/parameter", "bytes_per_element": "1 B/element"}
    halved = seconds(**what, **half)
    # Nor does it more than halve: bytes are all that changed.
    assert whole / 2 * (1 - 1e-12) <= halved <= whole
    for name, value in half.items():
        assert halved * (1 - 1e-12) <= seconds(**what, **{name: value}) <= whole


@given(networks(), devices(), batches, st.integers(1, 4096))
def test_a_larger_batch_takes_longer_but_less_each(
    model: Model, device: Device, batch: int, more: int
) -> None:
    small = Engine.solve(model=model, hardware=device, batch_size=batch)
    large = Engine.solve(model=model, hardware=device, batch_size=batch + more)
    assert large.latency >= small.latency
    assert large.throughput >= small.throughput * (1 - 1e-12)
    assert large.memory_required > small.memory_required


@given(networks(), devices(), batches, factors)
def test_faster_memory_or_units_never_slow(
    model: Model, device: Device, batch: int, factor: float
) -> None:
    what = {"model": model, "hardware": device, "batch_size": batch}
    slow = seconds(**what)
    bandwidth = quantity(device.bandwidth_si * factor, "B/s")
    peak = quantity(device.compute.figure("fp16").si * factor, "FLOP/s")
    for faster in ({"memory_bandwidth": bandwidth}, {"peak_flops": peak}):
        assert slow / factor * (1 - 1e-12) <= seconds(**what, **faster) <= slow * (1 + 1e-12)
    # Both together are faster by the factor, exactly.
    both = seconds(**what, memory_bandwidth=bandwidth, peak_flops=peak)
    assert both == pytest.approx(slow / factor, rel=1e-12)


@given(networks(), devices(), batches)
def test_throughput_is_batch_over_latency(model: Model, device: Device, batch: int) -> None:
    profile = Engine.solve(model=model, hardware=device, batch_size=batch)
    latency = profile.latency.to("s").magnitude
    assert profile.throughput == pytest.approx(batch / latency, rel=1e-12)
    assert 0 <= profile.memory_bound_share <= 1 + 1e-12
    total_compute, total_memory = (
        profile.value("total_compute_time"),
        profile.value("total_memory_time"),
    )
    assert max(total_compute, total_memory) * (1 - 1e-12) <= latency
    assert latency <= (total_compute + total_memory) * (1 + 1e-12)
    assert profile.value("achieved_flops") <= profile.value("peak_flops") * (1 + 1e-12)


@given(networks(), devices(), batches)
def test_merging_equal_operators_changes_nothing(model: Model, device: Device, batch: int) -> None:
    configuration = Engine.solve(model=model, hardware=device, batch_size=batch).configuration
    merged = configuration.question.evaluate("latency", "total_bytes", "memory_required")
    each = configuration.question.evaluate(
        "latency", "total_bytes", "memory_required", table=model.operators
    )
    for name, value in merged.items():
        assert value == pytest.approx(each[name], rel=1e-12)


# Arrays equal scalars.

NAMES = ("latency", "throughput", "memory_bound_share", "memory_required", "network_intensity")


@st.composite
def grids(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw batches and bandwidths of any two shapes that broadcast together."""
    shape = draw(st.lists(st.integers(1, 3), max_size=3))
    shapes = []
    for _ in range(2):
        kept = shape[draw(st.integers(0, len(shape))) :]
        shapes.append(tuple(size if draw(st.booleans()) else 1 for size in kept))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(1, 512, shapes[0]), rng.uniform(0.1, 5.0, shapes[1])


@given(grids())
def test_arrays_equal_scalars(grid: tuple[np.ndarray, np.ndarray]) -> None:
    batch, bandwidth = grid
    what = {"model": Models.ResNet50, "hardware": Hardware.Cloud.A100}
    together = Engine.solve(
        **what, batch_size=batch, memory_bandwidth=quantity(bandwidth, "TB/s"), check_memory=False
    )
    every_batch, every_bandwidth = np.broadcast_arrays(batch, bandwidth)
    for index in np.ndindex(every_batch.shape):
        alone = Engine.solve(
            **what,
            batch_size=int(every_batch[index]),
            memory_bandwidth=quantity(float(every_bandwidth[index]), "TB/s"),
            check_memory=False,
        )
        for name in NAMES:
            value = np.broadcast_to(together.value(name), every_batch.shape)[index]
            assert value == pytest.approx(alone.value(name), rel=1e-12)
        bottleneck = np.broadcast_to(together.bottleneck, every_batch.shape)[index]
        assert bottleneck == alone.bottleneck


@pytest.mark.parametrize("estimate", ["roofline", "bound"])
def test_lists_of_lists_equal_scalars(solve, estimate: str) -> None:
    batch = [[1, 2, 3], [64, 128, 256]]
    profile = solve(batch_size=batch, estimate=estimate)
    for row in range(2):
        for column in range(3):
            alone = solve(batch_size=batch[row][column], estimate=estimate)
            assert profile.value("latency")[row, column] == pytest.approx(
                alone.value("latency"), rel=1e-12
            )


def test_a_quantity_of_operators_has_rows_then_points(solve, resnet: Model) -> None:
    rows = len(resnet.operators.merged)
    profile = solve(batch_size=[[1, 2, 3], [4, 5, 6]])
    for name in ("flops", "weight_bytes", "roofline_time", "arithmetic_intensity"):
        value = profile.value(name)
        assert value.shape == (rows, 2, 3)
        alone = solve(batch_size=6).value(name)
        np.testing.assert_allclose(value[:, 1, 2], alone, rtol=1e-12)


@pytest.mark.parametrize("block", [1, 2, 7, 1000])
def test_blocks_give_the_same_as_one_block(solve, monkeypatch, block: int) -> None:
    batch = np.arange(1, 501).reshape(20, 25)
    whole = solve(batch_size=batch)
    monkeypatch.setattr(blocks, "BLOCK", block)
    parted = solve(batch_size=batch)
    for name in NAMES:
        np.testing.assert_allclose(parted.value(name), whole.value(name), rtol=1e-12)
    np.testing.assert_allclose(parted.value("flops"), whole.value("flops"), rtol=1e-12)


def test_threads_give_the_same_as_one(solve, monkeypatch) -> None:
    batch = np.arange(1, 5002)
    monkeypatch.setattr(blocks.os, "cpu_count", lambda: 1)
    alone = solve(batch_size=batch)
    for processors, block in ((3, 7), (8, 64)):
        monkeypatch.setattr(blocks, "BLOCK", block)
        monkeypatch.setattr(blocks.os, "cpu_count", lambda count=processors: count)
        shared = solve(batch_size=batch)
        for name in NAMES:
            np.testing.assert_allclose(shared.value(name), alone.value(name), rtol=1e-12)


def test_an_error_in_a_thread_is_not_lost(monkeypatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 1)
    monkeypatch.setattr(blocks.os, "cpu_count", lambda: 4)

    def fail(start: int, stop: int) -> None:
        if start:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        blocks.run_jobs([blocks.Job(fail, 1000)])


# Overriding what the data or the equations say.


def test_an_override_takes_the_place_of_a_figure(solve, a100: Device) -> None:
    same = solve(memory_bandwidth=a100.memory.bandwidth)
    assert same.latency == solve().latency
    twice = solve(memory_bandwidth=2 * a100.memory.bandwidth, peak_flops="624 TFLOP/s")
    assert twice.value("latency") == pytest.approx(solve().value("latency") / 2, rel=1e-12)


def test_an_override_of_an_intermediate(solve) -> None:
    profile = solve(latency="2 ms", batch_size=4)
    assert profile.throughput == pytest.approx(2000.0)
    # What does not follow from it is as it was.
    assert profile.value("total_bytes") == solve(batch_size=4).value("total_bytes")


def test_a_time_given_for_every_operator_counts_for_each(solve) -> None:
    # 56 operators of 1 us each.
    assert solve(roofline_time="1 us").value("latency") == pytest.approx(56e-6)
    profile = solve(roofline_time=["1 us", "2 us"], batch_size=[[1], [2], [3]])
    np.testing.assert_allclose(profile.value("latency"), [[56e-6, 112e-6]] * 3)
    # The bound has one operator, the whole network.
    assert solve(roofline_time="1 us", estimate="bound").value("latency") == pytest.approx(1e-6)


def test_work_given_for_every_operator_counts_for_each(solve) -> None:
    assert solve(flops="1 GFLOP").value("total_flops") == pytest.approx(56e9)
    profile = solve(flops=["1 GFLOP", "2 GFLOP"])
    assert profile.value("total_flops").tolist() == pytest.approx([56e9, 112e9])
    assert solve(weight_bytes="1 MB").value("weight_memory") == pytest.approx(56e6)


# Without NumPy, as in a browser.


@pytest.mark.parametrize("estimate", ["roofline", "bound"])
@pytest.mark.parametrize("overrides", [{}, {"flops": "1 GFLOP"}, {"roofline_time": "1 us"}])
def test_lists_equal_arrays(solve, monkeypatch, estimate: str, overrides: dict[str, str]) -> None:
    wanted = [name for name in GIVABLE if name not in overrides]
    with_arrays = solve(batch_size=32, estimate=estimate, **overrides)
    expected = {name: with_arrays.value(name) for name in wanted}
    rows = with_arrays.operators
    monkeypatch.setattr(question, "ARRAYS", False)
    with_lists = solve(batch_size=32, estimate=estimate, **overrides)
    for name in wanted:
        found = with_lists.value(name)
        assert not isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected[name], rtol=1e-12)
    for row, other in zip(with_lists.operators, rows, strict=True):
        assert row.keys() == other.keys()
        for name, value in row.items():
            assert value == (other[name] if isinstance(value, str) else pytest.approx(other[name]))
    assert "latency" in str(with_lists.explain())


def test_a_solve_runs_where_numpy_is_not_installed() -> None:
    program = """
import sys
for name in ("numpy", "pandas", "sympy", "matplotlib"):
    sys.modules[name] = None  # importing it fails
from mlsim import Engine, Hardware, Models
profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=32)
print(profile.value("latency"), profile.bottleneck, len(profile.operators))
print(profile.explain().value == profile.value("latency"), len(str(profile)) > 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    latency, *rest = done.stdout.split()
    here = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=32)
    assert float(latency) == pytest.approx(here.value("latency"), rel=1e-12)
    assert rest == ["Memory", "Bound", "56", "True", "True"]


# Configurations and plans.


def test_a_plan_is_made_once(solve) -> None:
    first, second = solve(batch_size=1).question, solve(batch_size=2).question
    assert first.plan("latency") is second.plan("latency")


def test_everything_givable_is_in_the_vocabulary_and_reached(solve) -> None:
    profile = solve(batch_size=8)
    for name in GIVABLE:
        assert np.all(np.isfinite(profile.value(name)))
    layer_equations = {each.yields for each in EQUATIONS.values() if each.counts}
    assert layer_equations.isdisjoint(GIVABLE)


def test_tf32_lies_in_memory_as_32_bits(solve) -> None:
    single, tensor = solve(precision="fp32"), solve(precision="tf32")
    assert single.value("total_bytes") == tensor.value("total_bytes")
    assert tensor.latency < single.latency
    assert find_precision("tf32").bytes == 4
