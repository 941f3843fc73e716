"""The forward pass: by hand, against published truths, as arrays, and with activations on chip."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from typing import Any

import kept
import numpy as np
import pytest
from own_chips import chip
from refusals import answered

from mlsim import Device, Engine, Hardware, Model, Models, Profile
from mlsim.equations import EQUATIONS
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownArgumentError
from mlsim.solvers import arrays, question
from mlsim.solvers.forward.configuration import GIVABLE
from mlsim.solvers.forward.profile import solve as plain_solve
from mlsim.values import quantity
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
    for device, crosses in ((Hardware.Cloud.V100, True), (a100, False)):
        asked = {"model": resnet, "hardware": device, "check_memory": False}
        many = Engine.solve(**asked, batch_size=[16, 32, 10**9])
        computes = many.value("total_compute_time") > many.value("total_memory_time")
        assert computes.tolist() == [False, crosses, crosses]


# Invariants.


def test_less_work_and_faster_devices_never_take_longer() -> None:
    """Bytes of half the size at most halve the time; both rates seven times as high take a seventh."""
    half = {"bytes_per_parameter": "1 B/parameter", "bytes_per_element": "1 B/element"}
    for name, batch in product(("ResNet50", "ViT_B16", "DLRM", "T5_Small"), (1, 7, 300)):
        asked: dict[str, Any] = {"model": name, "hardware": "A100", "check_memory": False}
        profile = Engine.solve(**asked, batch_size=batch)
        latency = profile.value("latency")
        halved = Engine.solve(**asked, batch_size=batch, **half).value("latency")
        assert latency / 2 * (1 - 1e-12) <= halved <= latency
        fast = {"peak_flops": "2184 TFLOP/s", "memory_bandwidth": "14.273 TB/s"}
        whole = Engine.solve(**asked, batch_size=batch, **fast).value("latency")
        assert whole == pytest.approx(latency / 7, rel=1e-12)
        large = Engine.solve(**asked, batch_size=batch + 3)
        assert large.throughput >= profile.throughput * (1 - 1e-12)


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
    monkeypatch.setattr(arrays.os, "cpu_count", lambda: 1)
    whole = solve(batch_size=batch)
    # A quantity of operators has rows, and then points.
    flops = whole.value("flops")
    assert flops.shape[1:] == (20, 25)
    np.testing.assert_allclose(flops[:, 0, 5], solve(batch_size=6).value("flops"), rtol=1e-12)
    for processors, block in ((1, 1), (1, 7), (1, 1000), (3, 7), (8, 64)):
        monkeypatch.setattr(arrays, "BLOCK", block)
        monkeypatch.setattr(arrays.os, "cpu_count", lambda count=processors: count)
        parted = solve(batch_size=batch)
        for name in (*NAMES, "flops"):
            np.testing.assert_allclose(parted.value(name), whole.value(name), rtol=1e-12)

    def fail(known: dict[str, Any]) -> dict[str, float]:
        if known["batch_size"][0] > 1:
            raise ZeroDivisionError
        return defaultdict(float)

    monkeypatch.setattr(arrays, "BLOCK", 1)
    monkeypatch.setattr(arrays, "fold", lambda *_: fail)
    with pytest.raises(ZeroDivisionError):  # an error in a thread is not lost
        solve(batch_size=batch).value("latency")


# Overriding what the data or the equations say.


def test_an_override_takes_the_place_of_a_figure_or_of_an_intermediate(
    solve: Solve, a100: Device
) -> None:
    assert solve(memory_bandwidth=a100.memory.bandwidth).latency == solve().latency
    twice = solve(memory_bandwidth=2 * a100.memory.bandwidth, peak_flops="624 TFLOP/s")
    assert twice.value("latency") == pytest.approx(solve().value("latency") / 2, rel=1e-12)
    # A half of the time is no more than a half.
    tie = solve(memory_bound_share=[0.5, 0.6]).bottleneck.tolist()
    assert tie == ["Compute Bound", "Memory Bound"]
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


def test_lists_equal_arrays(solve: Solve, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ({}, {"flops": "1 GFLOP"}, {"roofline_time": "1 us"})
    for overrides, estimate in product(given, ("roofline", "bound")):
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
            assert list(row.values()) == [pytest.approx(each) for each in other.values()]
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
    assert {each.yields for each in EQUATIONS.values() if each.counts}.isdisjoint(GIVABLE)
    # TF32 lies in memory as 32 bits.
    single, tensor = solve(precision="fp32"), solve(precision="tf32")
    assert single.value("total_bytes") == tensor.value("total_bytes")
    assert tensor.latency < single.latency


MODEL, A100 = Models.ResNet50, Hardware.Cloud.A100
CACHE = 40 * 2**20
BATCHES = [1, 2, 4, 8, 11, 12, 16, 32, 64, 256]


def on_chip(batch=1, **options):
    options = {"model": MODEL, "hardware": A100, "activations": "on-chip", **options}
    return Engine.solve(batch_size=batch, **options)


def moved(batch=1, **options):
    return Engine.solve(model=MODEL, hardware=A100, batch_size=batch, **options)


def by_hand(batch: int, cache: float = CACHE) -> tuple[float, float]:
    """Return latency and share of memory, in a plain loop over the operators."""
    time = waiting = 0.0
    operators = list(MODEL.operators)
    for place, operator in enumerate(operators):
        ends = 0
        if place == 0:
            ends += operator.activations_read
        if place == len(operators) - 1:
            ends += operator.activations_written
        everything = operator.activations_read + operator.activations_written
        fits = 2 * operator.activations_live * batch <= cache
        elements = operator.parameters + batch * (ends if fits else everything)
        compute, memory = 2 * operator.multiply_adds * batch / 312e12, 2 * elements / 2.039e12
        time += max(compute, memory)
        waiting += memory if memory > compute else 0
    return time, waiting / time


def test_one_image_by_hand() -> None:
    """25.6 M parameters, 150,528 numbers in and 1000 out, of two bytes: 51.4 MB."""
    profile = on_chip()
    assert MODEL.operators.operators[0].activations_read == 3 * 224 * 224
    weights = 2 * MODEL.parameter_count
    assert profile.value("total_bytes") == weights + 2 * (3 * 224 * 224 + 1000)
    assert profile.value("total_memory_time") == pytest.approx(25.2e-6, rel=2e-3)
    assert profile.latency.to("us").magnitude == pytest.approx(37.8, abs=0.05)
    assert profile.memory_bound_share == pytest.approx(0.427, abs=5e-4)
    # Moved, as they are by default, they take longer; and the label is another.
    for usual in (moved(), moved(activations="memory")):
        assert usual.latency.to("us").magnitude == pytest.approx(55.5, abs=0.05)
        assert usual.bottleneck == "Memory Bound" != profile.bottleneck == "Compute Bound"


def test_every_batch_by_hand() -> None:
    many = on_chip(BATCHES)
    for index, batch in enumerate(BATCHES):
        latency, share = by_hand(batch)
        one = on_chip(batch)
        assert one.value("latency") == pytest.approx(latency)
        assert one.memory_bound_share == pytest.approx(share)
        assert many.value("latency")[index] == pytest.approx(latency)
        assert many.bottleneck[index] == one.bottleneck


def test_a_larger_cache_never_slows_and_helps_large_batches_not_at_all() -> None:
    """A given cache takes the place of the device's, of 40 MiB."""
    batches = np.arange(1, 300)
    with_cache, without = on_chip(batches).value("latency"), moved(batches).value("latency")
    assert (with_cache <= without * (1 + 1e-12)).all()
    assert with_cache[-1] == pytest.approx(without[-1], rel=1e-12)
    swept = on_chip(last_level_cache=["1 kB", "1 MiB", "40 MiB"]).value("latency")
    by_size = [moved().value("latency"), by_hand(1, 2**20)[0], on_chip().value("latency")]
    assert list(swept) == pytest.approx(by_size)
    assert by_size[2] < by_size[1] < by_size[0]


def test_what_is_alive_just_fits() -> None:
    """A tie is kept; a byte less is not."""
    live = on_chip().value("live_bytes")
    most = float(np.max(live))
    fits, misses = on_chip(last_level_cache=f"{most} B"), on_chip(last_level_cache=f"{most - 1} B")
    assert fits.value("total_bytes") == on_chip().value("total_bytes")
    assert misses.value("total_bytes") > fits.value("total_bytes")


def test_rows_of_tables_are_looked_up_in_memory() -> None:
    """The rows of an embedding are no activations that an operator before it wrote."""
    networks = [model for model in Models if isinstance(model, Network)]
    looked_up = [
        (model, sum(op.activations_read for op in model.operators if op.table_parameters))
        for model in networks
        if model.operators.table_parameters
    ]
    assert looked_up
    for model, rows in looked_up:
        first, last = model.operators.operators[0], model.operators.operators[-1]
        into = rows + (0 if first.table_parameters else first.activations_read)
        profile = on_chip(model=model, last_level_cache="1 TB", check_memory=False)
        read = 2 * sum(op.parameters * op.repeats for op in model.operators)
        assert profile.value("total_bytes") == read + 2 * (into + last.activations_written)


def test_a_device_without_a_cache_says_how_to_give_one() -> None:
    own = chip(fp16="1 TFLOP/s")
    assert own.memory.last_level is None
    assert on_chip(hardware="MI300X").value("last_level_cache") == 256 * 2**20  # that of Infinity
    with pytest.raises(InvalidValueError, match=r'no cache on record.*last_level_cache="40 MiB"'):
        on_chip(hardware=own)
    assert on_chip(hardware=own, last_level_cache="40 MiB").value("last_level_cache") == CACHE


def test_what_can_not_be_is_refused() -> None:
    assert answered(on_chip, "on_chip") == []
    with pytest.raises(UnknownArgumentError):  # of no meaning where activations move
        moved(last_level_cache="40 MiB")


def test_the_calibrated_estimate_has_it_too() -> None:
    profile = on_chip(estimate="calibrated")
    assert profile.value("total_bytes") == on_chip().value("total_bytes")
    assert on_chip().latency < profile.latency < moved(estimate="calibrated").latency
    # Its label is held against that of a roofline whose activations stay as well.
    four = on_chip(4, estimate="calibrated").explain("bottleneck")
    assert four.roofline == on_chip(4).bottleneck == "Compute Bound" != moved(4).bottleneck
    assert moved(estimate="calibrated").explain("bottleneck").roofline == "Memory Bound"
    assert "calibrated, activations on chip" in str(profile)


def test_an_answer_says_that_activations_stay() -> None:
    assert on_chip().to_dict()["estimate"] == "roofline, activations on chip"
    assert moved().to_dict()["estimate"] == "roofline"
    told = on_chip().explain("total_bytes").to_dict()
    origins = {each["quantity"]: each["origin"] for each in told["inputs"]}
    assert origins["last_level_cache"].startswith("NVIDIA A100 SXM 80 GB: datasheet")
    assert origins["operator_live"].startswith("ResNet-50 v1.5, from its layers")
