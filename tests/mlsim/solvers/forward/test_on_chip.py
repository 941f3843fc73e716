"""A forward pass on a device whose last cache keeps the activations that fit."""

from __future__ import annotations

import numpy as np
import pytest
from own_chips import chip
from refusals import answered

from mlsim import Engine, Hardware, Models
from mlsim.errors import InvalidValueError, UnknownArgumentError
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
    # Moved, as they are by default, they take longer; and the label is another.
    for usual in (moved(), moved(activations="memory")):
        assert usual.latency.to("us").magnitude == pytest.approx(55.5, abs=0.05)
        assert usual.bottleneck == "Memory Bound" != profile.bottleneck == "Compute Bound"


def test_every_batch_by_hand() -> None:
    many = kept(BATCHES)
    for index, batch in enumerate(BATCHES):
        latency, share = by_hand(batch)
        one = kept(batch)
        assert one.value("latency") == pytest.approx(latency)
        assert one.memory_bound_share == pytest.approx(share)
        assert many.value("latency")[index] == pytest.approx(latency)
        assert many.bottleneck[index] == one.bottleneck


def test_a_larger_cache_never_slows_and_helps_large_batches_not_at_all() -> None:
    """A given cache takes the place of the device's, of 40 MiB."""
    batches = np.arange(1, 300)
    with_cache, without = kept(batches).value("latency"), moved(batches).value("latency")
    assert (with_cache <= without * (1 + 1e-12)).all()
    assert with_cache[-1] == pytest.approx(without[-1], rel=1e-12)
    swept = kept(last_level_cache=["1 kB", "1 MiB", "40 MiB"]).value("latency")
    by_size = [moved().value("latency"), by_hand(1, 2**20)[0], kept().value("latency")]
    assert list(swept) == pytest.approx(by_size)
    assert by_size == sorted(by_size, reverse=True)
    assert by_size[2] < 0.7 * by_size[0]


def test_what_is_alive_just_fits() -> None:
    """A tie is kept; a byte less is not."""
    live = kept().value("live_bytes")
    most = float(np.max(live))
    fits, misses = kept(last_level_cache=f"{most} B"), kept(last_level_cache=f"{most - 1} B")
    assert fits.value("total_bytes") == kept().value("total_bytes")
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
        profile = kept(model=model, last_level_cache="1 TB", check_memory=False)
        read = 2 * sum(op.parameters * op.repeats for op in model.operators)
        assert profile.value("total_bytes") == read + 2 * (into + last.activations_written)


def test_a_device_without_a_cache_says_how_to_give_one() -> None:
    own = chip(fp16="1 TFLOP/s")
    assert own.memory.last_level is None
    assert kept(hardware="MI300X").value("last_level_cache") == 256 * 2**20  # that of Infinity
    with pytest.raises(InvalidValueError, match=r'no cache on record.*last_level_cache="40 MiB"'):
        kept(hardware=own)
    assert kept(hardware=own, last_level_cache="40 MiB").value("last_level_cache") == CACHE


def test_what_can_not_be_is_refused() -> None:
    assert answered(kept, "on_chip") == []
    with pytest.raises(UnknownArgumentError):  # of no meaning where activations move
        moved(last_level_cache="40 MiB")


def test_the_calibrated_estimate_has_it_too() -> None:
    profile = kept(estimate="calibrated")
    assert profile.value("total_bytes") == kept().value("total_bytes")
    assert kept().latency < profile.latency < moved(estimate="calibrated").latency
    # Its label is held against that of a roofline whose activations stay as well.
    four = kept(4, estimate="calibrated").explain("bottleneck")
    assert four.roofline == kept(4).bottleneck == "Compute Bound" != moved(4).bottleneck
    assert moved(estimate="calibrated").explain("bottleneck").roofline == "Memory Bound"
    assert "calibrated, activations on chip" in str(profile)


def test_an_answer_says_that_activations_stay() -> None:
    assert "roofline, activations on chip" in str(kept())
    assert kept().to_dict()["estimate"] == "roofline, activations on chip"
    assert moved().to_dict()["estimate"] == "roofline"
    told = kept().explain("total_bytes").to_dict()
    origins = {each["quantity"]: each["origin"] for each in told["inputs"]}
    assert origins["last_level_cache"].startswith("NVIDIA A100 SXM 80 GB: datasheet")
    assert origins["operator_live"].startswith("ResNet-50 v1.5, from its layers")
    assert "kept_activation_bytes" in {step["equation"] for step in told["steps"]}


def test_asking_backwards() -> None:
    """From which batch on is it memory-bound? From none at which the two answers differ much."""
    share = {"target": "memory_bound_share", "value": 0.5, "activations": "on-chip"}
    found = Engine.find(vary="batch_size", model=MODEL, hardware=A100, **share)
    assert kept(found - 1).bottleneck == "Compute Bound"
    assert kept(found).bottleneck == "Memory Bound"
