"""A forward pass on a device whose last cache keeps the activations that fit."""

from __future__ import annotations

import numpy as np
import pytest

from mlsim import Device, Engine, Hardware, Models
from mlsim.errors import InvalidValueError, UnknownArgumentError
from mlsim.hardware.measured_kernels import in_place
from mlsim.workloads.model import Network

MODEL, A100 = Models.ResNet50, Hardware.Cloud.A100
CACHE = 40 * 2**20
BATCHES = [1, 2, 4, 8, 11, 12, 16, 32, 64, 256]


def kept(batch=1, **options):
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
    profile = kept()
    assert MODEL.operators.operators[0].activations_read == 3 * 224 * 224
    weights = 2 * MODEL.parameter_count
    assert profile.value("total_bytes") == weights + 2 * (3 * 224 * 224 + 1000)
    assert profile.value("total_memory_time") == pytest.approx(25.2e-6, rel=2e-3)
    assert profile.latency.to("us").magnitude == pytest.approx(37.8, abs=0.05)
    assert profile.memory_bound_share == pytest.approx(0.427, abs=5e-4)


def test_the_label_of_one_image_turns() -> None:
    assert moved().bottleneck == "Memory Bound"
    assert kept().bottleneck == "Compute Bound"


def test_the_default_is_to_move_them() -> None:
    assert moved().latency.to("us").magnitude == pytest.approx(55.5, abs=0.05)
    same = moved(activations="memory")
    assert same.latency == moved().latency
    assert same.value("total_bytes") == moved().value("total_bytes")


@pytest.mark.parametrize("batch", BATCHES)
def test_every_batch_by_hand(batch: int) -> None:
    latency, share = by_hand(batch)
    assert kept(batch).value("latency") == pytest.approx(latency)
    assert kept(batch).memory_bound_share == pytest.approx(share)


def test_a_point_is_that_of_an_array() -> None:
    many = kept(BATCHES)
    points = [kept(batch) for batch in BATCHES]
    assert np.allclose(many.value("latency"), [p.value("latency") for p in points])
    assert list(many.bottleneck) == [p.bottleneck for p in points]


def test_a_cache_never_slows_and_helps_large_batches_not_at_all() -> None:
    batches = np.arange(1, 300)
    with_cache, without = kept(batches).value("latency"), moved(batches).value("latency")
    assert (with_cache <= without * (1 + 1e-12)).all()
    assert with_cache[-1] == pytest.approx(without[-1], rel=1e-12)
    assert with_cache[0] < 0.7 * without[0]


def test_a_given_cache_takes_the_place_of_the_devices() -> None:
    small = kept(last_level_cache="1 MiB")
    assert kept().value("latency") < small.value("latency") < moved().value("latency")
    least = kept(last_level_cache="1 kB").value("latency")
    assert least == pytest.approx(moved().value("latency"), rel=1e-12)
    assert small.value("latency") == pytest.approx(by_hand(1, 2**20)[0])
    swept = kept(last_level_cache=["1 kB", "1 MiB", "40 MiB"]).value("latency")
    assert list(swept) == sorted(swept, reverse=True)


def test_what_is_alive_just_fits() -> None:
    """A tie is kept; a byte less is not."""
    live = kept().value("live_bytes")
    most = float(np.max(live))
    fits, misses = kept(last_level_cache=f"{most} B"), kept(last_level_cache=f"{most - 1} B")
    assert fits.value("total_bytes") == kept().value("total_bytes")
    assert misses.value("total_bytes") > fits.value("total_bytes")


def test_weights_move_in_any_case() -> None:
    for batch in BATCHES:
        assert kept(batch).value("total_bytes") >= 2 * MODEL.parameter_count
        huge = kept(batch, last_level_cache="1 TB")
        assert huge.value("total_bytes") == 2 * MODEL.parameter_count + batch * 2 * 151_528


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
        profile = kept(model=model, last_level_cache="1 TB", check_memory=False)
        read = 2 * sum(op.parameters * op.repeats for op in model.operators)
        assert profile.value("total_bytes") == read + 2 * (into + last.activations_written)


def test_the_infinity_cache_is_the_last_one() -> None:
    device = Hardware.Cloud.MI300X
    assert kept(hardware=device).value("last_level_cache") == 256 * 2**20
    assert device.memory.l2 < device.memory.last_level
    assert A100.memory.last_level == A100.memory.l2


def test_a_device_without_a_cache_says_how_to_give_one() -> None:
    chip = Device(
        "My chip",
        peak_flops={"fp16": "1 TFLOP/s"},
        memory_bandwidth="1 TB/s",
        memory_capacity="1 GB",
    )
    assert chip.memory.last_level is None
    with pytest.raises(InvalidValueError, match=r'no cache on record.*last_level_cache="40 MiB"'):
        kept(hardware=chip)
    assert kept(hardware=chip, last_level_cache="40 MiB").value("last_level_cache") == CACHE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activations": "on_chip"}, "one of memory, on-chip, not 'on_chip'.*'on-chip'"),
        ({"activations": None}, "one of memory, on-chip, not None"),
        ({"estimate": "bound"}, "the bound moves no activations"),
        ({"estimate": "roofing"}, "estimate must be one of"),
    ],
)
def test_what_can_not_be_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        kept(**options)


def test_a_cache_has_no_meaning_where_activations_move() -> None:
    with pytest.raises(UnknownArgumentError):
        moved(last_level_cache="40 MiB")


def test_the_calibrated_estimate_has_it_too() -> None:
    profile = kept(estimate="calibrated")
    assert profile.value("total_bytes") == kept().value("total_bytes")
    assert kept().latency < profile.latency < moved(estimate="calibrated").latency


def test_an_answer_says_that_activations_stay() -> None:
    assert "roofline, activations on chip" in str(kept())
    assert kept().to_dict()["estimate"] == "roofline, activations on chip"
    assert moved().to_dict()["estimate"] == "roofline"
    told = str(kept().explain())
    assert "NVIDIA A100 SXM 80 GB: datasheet" in told
    assert "kept_activation_bytes" in {
        step["equation"] for step in kept().explain("total_bytes").to_dict()["steps"]
    }


def test_asking_backwards() -> None:
    """From which batch on is it memory-bound? From none at which the two answers differ much."""
    found = Engine.find(
        vary="batch_size",
        target="memory_bound_share",
        value=0.5,
        model=MODEL,
        hardware=A100,
        activations="on-chip",
    )
    assert kept(found - 1).bottleneck == "Compute Bound"
    assert kept(found).bottleneck == "Memory Bound"


def test_a_measured_device_kept_what_fits_in_half_of_its_cache() -> None:
    """AlexNet's ReLU on an A100: three tensors at the memory's rate, the smallest beyond it."""
    rows = sorted(in_place(), key=lambda row: row.tensor_bytes)
    device = Hardware.get(rows[0].device)
    cache = device.memory.last_level
    assert {row.device for row in rows} == {"Cloud.A100_40GB"}
    beyond = [row.bandwidth > device.memory.bandwidth for row in rows]
    assert beyond == [True, False, False, False]
    assert rows[0].tensor_bytes < 0.55 * cache < rows[1].tensor_bytes < cache
