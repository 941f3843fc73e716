"""Asking backwards, and what matters, through every door."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest
from refusals import answered

from mlsim import Engine
from mlsim.engine.find import COUNTED, Search, _multiple, _range
from mlsim.engine.sweeps.question import DOORS
from mlsim.errors import (
    DoesNotFitError,
    InvalidValueError,
    UnknownArgumentError,
    UnreachableError,
)

SERVED = {"model": "Llama3_8B", "hardware": "H100", "prompt_tokens": 2048}
TRAINED = {"model": "Llama3_8B", "hardware": "DGX_H100_SuperPOD"}
TRAINED |= {"shard": "zero3", "recompute": "full"}


def test_the_least_that_reaches_a_target() -> None:
    """One less does not; where only some divide, the next that does."""
    loaded = {"model": "Llama3_8B", "hardware": "H100", "requests": 60, "between": (1, 64)}
    for door, vary, target, value, step, asked in (
        (Engine.serve, "batch_size", "time_per_output_token", 0.008, 1, SERVED),
        (Engine.load, "users", "time_per_output_token", 0.006, 1, loaded),
        (Engine.train, "global_batch", "step_time", 10, 64, {**TRAINED, "devices": 64}),
    ):
        number = Engine.find(vary=vary, target=target, value=f"{value} s", **asked)
        own = {name: each for name, each in asked.items() if name != "between"}
        before, after = (
            door(**own, **{vary: each}).value(target) for each in (number - step, number)
        )
        assert isinstance(number, int)
        assert number % step == 0
        assert before < value <= after, vary
    # Of eight devices in two stages four copies take two sequences each; interleaved, for each stage.
    run = {**TRAINED, "devices": 8, "pipeline_parallel": 2, "micro_batch": 2}
    multiples = [_multiple(DOORS["train"], {**run, "interleaved": each}) for each in (1, 2)]
    assert multiples == [8, 16]
    target = {"target": "time_per_output_token", "value": "10 ms"}
    assert Engine.find("Llama3_70B", "HGX_H100", vary="tensor_parallel", **target) == 8
    layer = {"M": 8192, "K": 4096, "hardware": "H100", "recipe": "fp8_rowwise"}
    assert Engine.find(vary="N", target="format_speedup", value=1, **layer) == 886


def test_what_is_found_gives_the_result() -> None:
    run: dict[str, Any] = {**TRAINED, "devices": 64, "global_batch": 512}
    work = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=64)
    place = {"work": work, "grid": "Sweden", "host": False, "embodied": False}
    token = "time_per_output_token"
    for door, vary, target, value, expected, asked in (
        (Engine.serve, "memory_bandwidth", token, "3 ms", 0.003, SERVED),
        (Engine.train, "fabric_bandwidth", "step_time", "5 s", 5, run),
        (Engine.train, "tokens", "training_time", "30 day", 30 * 86400, run),
        (Engine.footprint, "pue", "facility_energy", "1 kJ", 1000, place),
    ):
        more = {"between": (1, 2)} if vary == "pue" else {}
        found = Engine.find(vary=vary, target=target, value=value, **more, **asked)
        given = float(found.magnitude) if vary == "tokens" else found
        again = door(**asked, **{vary: given}).value(target)
        assert again == pytest.approx(expected, rel=1e-9), vary
    for asked, words in (
        ({"vary": "batch_size", "value": "100 ms"}, "does not reach 100 ms: for batch_size from 1"),
        ({"vary": "batch_size", "value": "100 ms"}, "is refused: does not fit"),
        (
            {"vary": "tensor_parallel", "value": "1 ms", "between": (2, 9)},
            "from tensor_parallel = 2",
        ),
    ):
        with pytest.raises(UnreachableError, match=words):
            Engine.find(target=token, **asked, **SERVED)


def looked(vary: str, unit: str = "", known: float | None = None, step: int = 1) -> Any:
    """Return where is looked for an argument if nobody says between what."""
    asked = {"model": "Llama3_8B", "hardware": "H100", "seed": 2}
    return _range(Search(cast(Any, None), vary, unit, step), asked, known, None)


def test_how_far_is_looked() -> None:
    limits = {
        1_024: "tensor_parallel pipeline_parallel data_parallel context_parallel expert_parallel "
        "interleaved",
        4_096: "micro_batch block_tokens users burst running_limit",
        65_536: "M N K tokens_per_step",
        100_000: "devices",
        1_000_000: "batch_size batch global_batch chunk_tokens",
        10_000_000: "prompt_tokens output_tokens sequence_tokens",
    }
    names = {name: most for most, words in limits.items() for name in words.split()}
    assert {name: looked(name) for name in COUNTED} == {
        name: (1, most) for name, most in names.items()
    }
    assert looked("global_batch", step=6) == (6, 1_000_000)
    # A thousand times less and more than what is known; tokens of a moment, and more than there are.
    assert looked("memory_bandwidth", "B/s", known=7.0) == (0.007, 7000)
    assert looked("tokens", "token") == (1e6, 1e16)
    # Of what comes, a thousandth of what saturates, and a thousandth less than it.
    saturated = Engine.load("Llama3_8B", "H100", burst=1).value("saturation_rate")
    expected = (saturated / 1000, saturated * 0.999)
    assert looked("rate", "request/s") == pytest.approx(expected, rel=1e-12)


def test_bad_questions() -> None:
    asked = {"vary": "batch_size", "target": "time_per_output_token", "value": "8 ms", **SERVED}
    assert answered(lambda **change: Engine.find(**{**asked, **change}), "find", "doors") == []


def test_decoding_one_sequence_waits_for_memory() -> None:
    table = Engine.sensitivity(target="time_per_output_token", **SERVED).set_index("input")
    assert table.elasticity["memory_bandwidth"] == pytest.approx(-1, abs=1e-5)
    assert table.elasticity["peak_flops"] == 0
    assert table.elasticity["bytes_per_parameter"] > 0.9
    assert table.value["memory_bandwidth"] == 3.35e12
    # What is nothing can't grow by a hundredth.
    assert (table.value > 0).all()
    assert "kernel_overhead" not in table.index
    # What is counted goes one up and one down.
    table = Engine.sensitivity(target="time_per_output_token", **SERVED, batch_size=50)
    below, above = (
        Engine.serve(**SERVED, batch_size=each).value("time_per_output_token") for each in (49, 51)
    )
    slope = math.log(above / below) / math.log(51 / 49)
    elasticity = table.set_index("input").elasticity["batch_size"]
    assert elasticity == pytest.approx(slope, abs=1e-6)
    for change, error, words in (
        (
            {"model": "Llama3_70B", "hardware": "L40S", "precision": "bf16"},
            DoesNotFitError,
            "too much",
        ),
        ({"batch_size": [1, 2]}, InvalidValueError, "many points"),
        ({"prompt_token": 3}, UnknownArgumentError, "Did you mean 'prompt_tokens'"),
    ):
        with pytest.raises(error, match=words):
            Engine.sensitivity(**{**SERVED, **change})


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
    # Networks and layers tell of themselves.
    network: dict[str, Any] = {"model": "ResNet50", "hardware": "A100", "batch_size": 32}
    assert Engine.sensitivity(**network).equals(Engine.solve(**network).sensitivity())
    layer: dict[str, Any] = {"M": 512, "N": 512, "K": 512, "hardware": "H100"}
    assert Engine.sensitivity(**layer).equals(Engine.gemm(**layer).sensitivity())
