"""Asking backwards, and what matters, through every door."""

from __future__ import annotations

import math
from typing import Any

import pytest
from refusals import answered

from mlsim import Engine
from mlsim.errors import (
    DoesNotFitError,
    InvalidValueError,
    UnknownArgumentError,
    UnreachableError,
)

SERVED = {"model": "Llama3_8B", "hardware": "H100", "prompt_tokens": 2048}
TRAINED = {"model": "Llama3_8B", "hardware": "DGX_H100_SuperPOD"}
TRAINED |= {"shard": "zero3", "recompute": "full"}


def found(**asked: Any) -> Any:
    return Engine.find(**asked)


def test_the_largest_batch_within_a_time_per_token() -> None:
    batch = found(vary="batch_size", target="time_per_output_token", value="8 ms", **SERVED)
    before, after = (
        Engine.serve(**SERVED, batch_size=each).value("time_per_output_token")
        for each in (batch - 1, batch)
    )
    assert isinstance(batch, int)
    assert before < 8e-3 <= after


def test_what_is_found_gives_the_result() -> None:
    rate = found(vary="memory_bandwidth", target="time_per_output_token", value="3 ms", **SERVED)
    again = Engine.serve(**SERVED, memory_bandwidth=rate)
    assert again.value("time_per_output_token") == pytest.approx(3e-3, rel=1e-9)
    run = {**TRAINED, "devices": 64, "global_batch": 512}
    link = found(vary="fabric_bandwidth", target="step_time", value="5 s", **run)
    assert Engine.train(**run, fabric_bandwidth=link).value("step_time") == pytest.approx(5)
    tokens = found(vary="tokens", target="training_time", value="30 day", **run)
    days = Engine.train(**run, tokens=float(tokens.magnitude)).training_time.to("day").magnitude
    assert days == pytest.approx(30, rel=1e-9)


def test_devices_and_layouts_are_tried_where_they_divide() -> None:
    on = {"model": "Llama3_70B", "hardware": "HGX_H100"}
    target = {"target": "time_per_output_token", "value": "10 ms"}
    assert found(vary="tensor_parallel", **target, **on) == 8
    batch = found(vary="global_batch", target="step_time", value="10 s", devices=64, **TRAINED)
    assert batch % 64 == 0
    times = [
        Engine.train(**TRAINED, devices=64, global_batch=each).value("step_time")
        for each in (batch - 64, batch)
    ]
    assert times[0] < 10 <= times[1]


def test_users_under_load() -> None:
    on = {"model": "Llama3_8B", "hardware": "H100", "requests": 60}
    users = found(vary="users", target="time_per_output_token", value="6 ms", between=(1, 64), **on)
    assert Engine.load(**on, users=users).value("time_per_output_token") >= 6e-3
    assert Engine.load(**on, users=users - 1).value("time_per_output_token") < 6e-3


def test_a_layer_and_a_footprint() -> None:
    layer = {"M": 8192, "K": 4096, "hardware": "H100", "recipe": "fp8_rowwise"}
    assert found(vary="N", target="format_speedup", value=1, **layer) == 886
    work = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=64)
    place = {"work": work, "grid": "Sweden", "host": False, "embodied": False}
    pue = found(vary="pue", target="facility_energy", value="1 kJ", between=(1, 2), **place)
    assert Engine.footprint(**place, pue=pue).value("facility_energy") == pytest.approx(1000)


def test_what_does_not_fit_is_not_found() -> None:
    with pytest.raises(UnreachableError) as error:
        found(vary="batch_size", target="time_per_output_token", value="100 ms", **SERVED)
    assert "does not reach 100 ms: for batch_size from 1 to " in str(error.value)
    assert "is refused: does not fit" in str(error.value)
    with pytest.raises(UnreachableError, match="nothing from tensor_parallel = 2 to 9 can run"):
        found(
            vary="tensor_parallel", target="time_per_output_token", value="1 ms",
            between=(2, 9), **SERVED,
        )  # fmt: skip


def test_bad_questions() -> None:
    asked = {"vary": "batch_size", "target": "time_per_output_token", "value": "8 ms", **SERVED}
    assert answered(lambda **change: found(**{**asked, **change}), "find", "doors") == []


def test_decoding_one_sequence_waits_for_memory() -> None:
    table = Engine.sensitivity(target="time_per_output_token", **SERVED).set_index("input")
    assert table.elasticity["memory_bandwidth"] == pytest.approx(-1, abs=1e-5)
    assert table.elasticity["peak_flops"] == 0
    assert table.elasticity["bytes_per_parameter"] > 0.9
    assert table.value["memory_bandwidth"] == 3.35e12
    # What is nothing can't grow by a hundredth.
    assert (table.value > 0).all()
    assert "kernel_overhead" not in table.index


def test_what_is_counted_goes_one_up_and_one_down() -> None:
    asked = {**SERVED, "target": "time_per_output_token"}
    table = Engine.sensitivity(**asked, batch_size=50).set_index("input")
    below, above = (
        Engine.serve(**SERVED, batch_size=each).value("time_per_output_token") for each in (49, 51)
    )
    slope = math.log(above / below) / math.log(51 / 49)
    assert table.elasticity["batch_size"] == pytest.approx(slope, abs=1e-6)


def test_formats_that_differ_between_operators_scale_together() -> None:
    asked = {**SERVED, "batch_size": 4, "precision": "w4a16", "target": "decode_throughput"}
    table = Engine.sensitivity(**asked).set_index("input")
    # What is not quantised is counted in another number of bytes.
    assert table.value.isna()["bytes_per_parameter"]
    bytes_moved = table.elasticity[["bytes_per_parameter", "bytes_per_cached_element"]]
    assert (bytes_moved < 0).all()
    slowed = bytes_moved.sum() + table.elasticity["bytes_per_element"]
    assert slowed == pytest.approx(-table.elasticity["memory_bandwidth"], rel=1e-3)


def test_a_run_waits_for_what_takes_its_time() -> None:
    run = {**TRAINED, "devices": 8, "global_batch": 64, "tokens": 1e12, "price": "2 USD/h"}
    table = Engine.sensitivity(target="training_cost", **run).set_index("input").elasticity
    assert table["device_price"] == pytest.approx(1, abs=1e-5)
    assert table["training_tokens"] == pytest.approx(1, abs=1e-5)
    rates = table[["peak_flops", "memory_bandwidth", "node_bandwidth"]]
    assert (rates < 0).all()


def test_a_service_under_load_and_a_footprint() -> None:
    on = {"model": "Llama3_8B", "hardware": "H100", "rate": 5, "requests": 60}
    table = Engine.sensitivity(target="time_per_output_token", **on).set_index("input").elasticity
    assert table["rate"] > 0
    assert table["memory_bandwidth"] == pytest.approx(-1, abs=0.3)
    work = Engine.serve(model="Llama3_8B", hardware="H100")
    place = {"work": work, "grid": "Sweden", "data_centre": "Google", "host": False}
    carbon = Engine.sensitivity(target="total_carbon", embodied=False, **place).set_index("input")
    assert carbon.elasticity[["pue", "carbon_intensity"]].tolist() == pytest.approx([1, 1])


def test_networks_and_layers_tell_of_themselves() -> None:
    network = Engine.sensitivity(model="ResNet50", hardware="A100", batch_size=32)
    own = Engine.solve(model="ResNet50", hardware="A100", batch_size=32).sensitivity()
    assert network.equals(own)
    layer = {"M": 512, "N": 512, "K": 512, "hardware": "H100"}
    assert Engine.sensitivity(**layer).equals(Engine.gemm(**layer).sensitivity())


def test_times_of_what_does_not_fit_have_no_sensitivity() -> None:
    with pytest.raises(DoesNotFitError):
        Engine.sensitivity(model="Llama3_70B", hardware="L40S", precision="bf16")
    with pytest.raises(InvalidValueError, match="many points"):
        Engine.sensitivity(model="Llama3_8B", hardware="H100", batch_size=[1, 2])
    with pytest.raises(UnknownArgumentError, match="Did you mean 'prompt_tokens'"):
        Engine.sensitivity(model="Llama3_8B", hardware="H100", prompt_token=3)
