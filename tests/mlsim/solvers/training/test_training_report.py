"""A training run as text, as JSON, and explained: each number says where it comes from."""

from __future__ import annotations

import json
from math import prod
from typing import Any

import pytest
from training_runs import MIXTURE, train

from mlsim import Engine, Training
from mlsim.quantities import term
from mlsim.values import counts

EXACT = 1e-12
ROOFLINE: dict[str, Any] = {"tensor_parallel": 2, "pipeline_parallel": 2, "data_parallel": 4}
ROOFLINE |= {"shard": "zero1", "tokens": 1e9, "price": "2 USD/h", "restart_time": "10 min"}
ROOFLINE |= {"mean_time_to_failure": "1000 h", "checkpoint_bandwidth": "1 GB/s"}


def calibrated(**changes: Any) -> Training:
    asked = {"model": "Llama3_8B", "hardware": "DGX_H100_SuperPOD", "global_batch": 64}
    asked |= {"sequence_tokens": 8192, "tensor_parallel": 2, "data_parallel": 16}
    asked |= {"shard": "zero3", "recompute": "full", "estimate": "calibrated", "tokens": 15e12}
    return Engine.train(**{**asked, **changes})


RUNS = {
    "roofline": lambda: train(**ROOFLINE),
    "alone": lambda: train(tokens=1e9, price="1 USD/h"),
    "experts": lambda: train(model=MIXTURE, data_parallel=4, expert_parallel=4),
    "tree": lambda: train(data_parallel=16, collective="tree", attention="standard"),
    "calibrated": calibrated,
    "fp8": lambda: calibrated(precision="fp8", overlap=0.5),
}


# ---- explanations -----------------------------------------------------------------------


def told(run: Training, name: str = "step_time") -> dict[str, str]:
    """Return where each input of a result comes from."""
    inputs = json.loads(run.explain(name).to_json())["inputs"]
    return {each["quantity"]: each["origin"] for each in inputs}


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_is_explained_and_written_with_units(kind: str) -> None:
    run = RUNS[kind]()
    for name in ("step_time", "memory_required", "model_flops_utilization", "token_rate"):
        explanation = run.explain(name)
        data = json.loads(explanation.to_json())
        assert (data["quantity"], data["unit"]) == (name, term(name).unit)
        assert data["value"] == pytest.approx(run.value(name), rel=EXACT)
        assert str(explanation).startswith(f"{name} = ")
    origins = told(run)
    assert len(origins) > 15
    assert all(origins.values())
    assert origins["global_batch"] == origins["micro_batch"] == "given"
    assert origins["memory_bandwidth"].startswith(run.device.name)
    for equation in run.question.plan("step_time", "memory_free", "token_rate").steps:
        found, unit = run.quantity(equation.yields), term(equation.yields).unit
        # Those of single operators are arrays, of what counts without a unit.
        assert found.check(unit) if hasattr(found, "check") else counts(unit)
    data = json.loads(json.dumps(run.to_dict()))
    for name in ("step_time", "token_rate", "memory_required", "memory_free", "model_flops"):
        # A calibrated time or rate has a band beside it.
        assert data[name].items() >= {"value": run.value(name), "unit": term(name).unit}.items()
    layout = data["layout"]
    sizes = [layout[f"{name}_parallel"] for name in ("tensor", "pipeline", "data", "context")]
    assert layout["devices"] == prod(sizes) == run.devices
    parts = [part["value"] for part in data["breakdown"].values()]
    assert sum(parts) == pytest.approx(run.value("step_time"), rel=EXACT)
    assert data["feasible"] is True


def test_inputs_are_measured_idealised_or_assumed_and_say_so() -> None:
    origins = told(calibrated())
    for name in ("compute_fraction", "memory_fraction", "link_fraction"):
        assert "measured" in origins[name]
    assert "between nodes the same is assumed" in origins["link_fraction"]
    assert "of an all-reduce" in origins["link_latency"]
    assert origins["measured_devices"] == origins["link_latency"]
    ideal = train(**ROOFLINE)
    origins = told(ideal)
    assert "roofline" in origins["memory_fraction"]
    assert "roofline" in origins["hop_latency"]
    assert origins["exchange_overlap"] == "stated: nothing hides behind computing"
    for name in (
        *("training_cost", "goodput", "checkpoint_interval", "bubble_time", "in_flight"),
        "gradient_time",
    ):
        data = json.loads(ideal.explain(name).to_json())
        assert data["value"] == pytest.approx(ideal.value(name), rel=EXACT)
    shown = str(ideal.explain("step_time"))
    for name in ("steady_time", "bubble_time", "exposed_gradient_time", "optimizer_time"):
        assert name in shown
    assert "narayanan2021megatron" in shown


def test_what_is_asked_chooses_its_equations() -> None:
    def steps(run: Training) -> set[str]:
        return {each.name for each in run.question.plan("step_time").steps}

    measured, ideal = steps(calibrated()), steps(train())
    assert {"started_kernel_time", "calibrated_compute_time"} <= measured - ideal
    assert {"ideal_kernel_time", "compute_time"} <= ideal - measured
    for way in ("ring", "hierarchical", "tree"):
        passes = {
            each for each in steps(train(data_parallel=16, collective=way)) if "_pass_" in each
        }
        assert passes == {f"{way}_pass_rate", f"{way}_pass_latency"}


# ---- plain data -------------------------------------------------------------------------


def test_json_of_a_whole_run_and_of_what_does_not_fit() -> None:
    data = train(**ROOFLINE).to_dict()
    assert data["training_cost"]["unit"] == "USD"
    assert data["training_time"]["unit"] == data["device_time"]["unit"] == "s"
    assert 0 < data["goodput"]["value"] < 1
    assert "training_time" not in train().to_dict()
    small = train(memory_capacity="1 MB")
    data = small.to_dict()
    assert (data["feasible"], data["step_time"]["value"], data["breakdown"]) == (False, None, None)
    assert data["memory_free"]["value"] < 0
    shown = str(small)
    assert "feasible    no: " in shown
    assert "too much" in shown
    assert "a step" not in shown


# ---- text -------------------------------------------------------------------------------


def test_text_names_model_machine_and_layout() -> None:
    shown = str(train(**ROOFLINE))
    title, devices, layout, *_ = shown.splitlines()
    assert title == "Training Small, bf16, roofline"
    assert devices == "  devices     16 x Round chip of Round cluster"
    assert layout == "  layout      TP2 PP2 DP4 zero1; keeps all"
    assert max(map(len, shown.splitlines())) <= 80
    assert "32 x 128 tokens in 8 micro-batches of 1" in shown
    assert "none: sending waits for computing" in shown
    assert "1 billion tokens" in shown
    assert "USD" in shown
    assert "goodput" in shown


def test_a_precision_that_nobody_gave_is_said_to_be_the_default() -> None:
    why = "bf16, since no other was given"
    assumed, asked = train(), train(precision="bf16")
    assert f"  formats     {why}" in str(assumed).splitlines()
    assert why not in str(asked)
    assert "formats_assumed" not in asked.to_dict()
    assert assumed.to_dict() == {**asked.to_dict(), "formats_assumed": why}
    origins = {
        each["quantity"]: each["origin"]
        for each in assumed.explain("weight_memory").to_dict()["inputs"]
    }
    assert origins["bytes_per_parameter"] == f"{why}: 16 bits"


def test_text_has_what_was_asked_and_no_more() -> None:
    shown = str(train())
    assert "  run " not in shown
    assert "USD" not in shown
    shown = str(train(global_batch=1, overlap={"gradient": 0.5}))
    assert "one micro-batch" in shown
    assert "gradient 50%" in shown
    for given, name, size in (
        *(({}, "bf16", 2), ({"gradients": "fp32"}, "fp32", 4), ({"precision": "fp32"}, "fp32", 4)),
    ):
        run = train(**given)
        assert run.value("gradient_memory") == size * run.model.parameter_count
        assert f"gradients in {name} " in " ".join(str(run).split())
        assert run.to_dict()["gradients"] == name


def test_shares_in_text_are_the_larger_ones_first() -> None:
    run = train()
    shown = str(run)
    words = [f"{name} {run.shares[name]:.1%}" for name in ("backward", "forward", "optimizer")]
    places = sorted(words, key=lambda word: -float(word.split()[1].rstrip("%")))
    assert [shown.index(word) for word in places] == sorted(shown.index(word) for word in words)
    assert repr(run).startswith("<Training Small on 1 x Round chip")


def test_load_is_what_the_devices_do() -> None:
    run = train(**ROOFLINE)
    load = run.load()
    assert load.devices == run.devices
    assert load.compute_utilisation == run.hardware_flops_utilization
    assert 0 < load.memory_utilisation <= 1
    assert load.time == run.value("training_time")
    step = train().load()
    assert step.time == train().value("step_time")
    assert step.tokens == 32 * 128


def test_zero3_is_as_slow_as_its_overlap_says() -> None:
    """Of the README's run: nothing hidden, and all that computing can hide."""
    layout = {"devices": 64, "global_batch": 512, "tensor_parallel": 1, "data_parallel": 64}
    plain, hides = (
        calibrated(**layout, recompute="selective", tokens=None, **more)
        for more in ({}, {"overlap": {"gradient": 1}})
    )
    assert 0.15 < plain.shares["gradients"] < 0.5
    assert hides.shares["gradients"] == 0
