"""A training run as text, as JSON, and explained: each number says where it comes from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from training_runs import MIXTURE, train

from mlsim import Engine, Training
from mlsim.quantities import term
from mlsim.values import counts

EXACT = 1e-12
ROOFLINE: dict[str, Any] = {
    "tensor_parallel": 2,
    "pipeline_parallel": 2,
    "data_parallel": 4,
    "shard": "zero1",
    "tokens": 1e9,
    "price": "2 USD/h",
    "mean_time_to_failure": "1000 h",
    "checkpoint_bandwidth": "1 GB/s",
    "restart_time": "10 min",
}


def calibrated(**changes: Any) -> Training:
    arguments = {
        "model": "Llama3_8B",
        "hardware": "DGX_H100_SuperPOD",
        "global_batch": 64,
        "sequence_tokens": 8192,
        "tensor_parallel": 2,
        "data_parallel": 16,
        "shard": "zero3",
        "recompute": "full",
        "estimate": "calibrated",
        "tokens": 15e12,
    }
    return Engine.train(**{**arguments, **changes})


RUNS = {
    "roofline": lambda: train(**ROOFLINE),
    "alone": lambda: train(tokens=1e9, price="1 USD/h"),
    "experts": lambda: train(model=MIXTURE, data_parallel=4, expert_parallel=4),
    "tree": lambda: train(data_parallel=16, collective="tree", attention="standard"),
    "calibrated": calibrated,
    "fp8": lambda: calibrated(precision="fp8", overlap=0.5),
}


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest) -> Training:
    return RUNS[request.param]()


# ---- explanations -----------------------------------------------------------------------


def test_each_result_of_a_step_is_explained(run: Training) -> None:
    for name in ("step_time", "memory_required", "model_flops_utilization", "token_rate"):
        explanation = run.explain(name)
        data = json.loads(explanation.to_json())
        assert (data["quantity"], data["unit"]) == (name, term(name).unit)
        assert data["value"] == pytest.approx(run.value(name), rel=EXACT)
        assert str(explanation).startswith(f"{name} = ")


def test_each_input_says_where_it_comes_from(run: Training) -> None:
    inputs = json.loads(run.explain("step_time").to_json())["inputs"]
    assert len(inputs) > 15
    for each in inputs:
        assert each["origin"], each
    origins = {each["quantity"]: each["origin"] for each in inputs}
    assert origins["global_batch"] == origins["micro_batch"] == "given"
    assert origins["memory_bandwidth"].startswith(run.device.name)


def test_what_was_measured_says_so() -> None:
    inputs = json.loads(calibrated().explain("step_time").to_json())["inputs"]
    origins = {each["quantity"]: each["origin"] for each in inputs}
    for name in ("compute_fraction", "memory_fraction", "link_fraction"):
        assert "measured" in origins[name]
    assert "between nodes the same is assumed" in origins["link_fraction"]
    assert "of an all-reduce" in origins["link_latency"]
    assert origins["measured_devices"] == origins["link_latency"]


def test_what_is_idealised_says_so() -> None:
    inputs = json.loads(train(**ROOFLINE).explain("step_time").to_json())["inputs"]
    origins = {each["quantity"]: each["origin"] for each in inputs}
    assert "roofline" in origins["memory_fraction"]
    assert "roofline" in origins["hop_latency"]
    assert origins["exchange_overlap"] == "stated: nothing hides behind computing"


@pytest.mark.parametrize(
    "name",
    [
        "training_cost",
        "goodput",
        "checkpoint_interval",
        "bubble_time",
        "in_flight",
        "gradient_time",
    ],
)
def test_parts_are_explained_too(name: str) -> None:
    run = train(**ROOFLINE)
    data = json.loads(run.explain(name).to_json())
    assert data["value"] == pytest.approx(run.value(name), rel=EXACT)


def test_an_explanation_holds_its_equations_and_sources() -> None:
    shown = str(train(**ROOFLINE).explain("step_time"))
    for name in ("steady_time", "bubble_time", "exposed_gradient_time", "optimizer_time"):
        assert name in shown
    assert "narayanan2021megatron" in shown


# ---- quantities -------------------------------------------------------------------------


def test_each_quantity_of_its_equations_is_to_be_had(run: Training) -> None:
    for equation in run.question.plan("step_time", "memory_free", "token_rate").steps:
        found = run.quantity(equation.yields)
        unit = term(equation.yields).unit
        # Those of single operators are arrays, of what counts without a unit.
        assert found.check(unit) if hasattr(found, "check") else counts(unit)


def test_measured_and_ideal_kernels_have_equations_of_their_own() -> None:
    measured, ideal = (
        {each.name for each in run.question.plan("step_time").steps}
        for run in (calibrated(), train())
    )
    assert {"started_kernel_time", "calibrated_compute_time"} <= measured - ideal
    assert {"ideal_kernel_time", "compute_time"} <= ideal - measured


@pytest.mark.parametrize("collective", ["ring", "hierarchical", "tree"])
def test_the_way_of_a_collective_chooses_its_equations(collective: str) -> None:
    steps = train(data_parallel=16, collective=collective).question.plan("step_time").steps
    passes = {each.name for each in steps if "_pass_" in each.name}
    assert passes == {f"{collective}_pass_rate", f"{collective}_pass_latency"}


# ---- plain data -------------------------------------------------------------------------


def test_json_holds_values_with_units(run: Training) -> None:
    data = json.loads(json.dumps(run.to_dict()))
    for name in ("step_time", "token_rate", "memory_required", "memory_free", "model_flops"):
        # A calibrated time or rate has a band beside it.
        assert data[name].items() >= {"value": run.value(name), "unit": term(name).unit}.items()
    layout = data["layout"]
    sizes = [layout[f"{name}_parallel"] for name in ("tensor", "pipeline", "data", "context")]
    product = 1
    for size in sizes:
        product *= size
    assert layout["devices"] == product == run.devices
    parts = [part["value"] for part in data["breakdown"].values()]
    assert sum(parts) == pytest.approx(run.value("step_time"), rel=EXACT)
    assert data["feasible"] is True


def test_json_of_a_whole_run() -> None:
    data = train(**ROOFLINE).to_dict()
    assert data["training_cost"]["unit"] == "USD"
    assert data["training_time"]["unit"] == data["device_time"]["unit"] == "s"
    assert 0 < data["goodput"]["value"] < 1
    assert "training_time" not in train().to_dict()


def test_json_of_what_does_not_fit_has_its_memory_only() -> None:
    data = train(memory_capacity="1 MB").to_dict()
    assert data["feasible"] is False
    assert data["step_time"]["value"] is None
    assert data["breakdown"] is None
    assert data["memory_free"]["value"] < 0


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


def test_text_of_a_step_has_no_run() -> None:
    shown = str(train())
    assert "  run " not in shown
    assert "USD" not in shown


def test_text_of_overlap_and_of_one_micro_batch() -> None:
    shown = str(train(global_batch=1, overlap={"gradient": 0.5}))
    assert "one micro-batch" in shown
    assert "gradient 50%" in shown


def test_text_of_what_does_not_fit() -> None:
    shown = str(train(memory_capacity="1 MB"))
    assert "feasible    no: " in shown
    assert "too much" in shown
    assert "a step" not in shown


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


@pytest.mark.parametrize(
    ("given", "name", "size"),
    [({}, "bf16", 2), ({"gradients": "fp32"}, "fp32", 4), ({"precision": "fp32"}, "fp32", 4)],
)
def test_the_format_of_gradients_is_said(given: dict[str, str], name: str, size: int) -> None:
    run = train(**given)
    assert run.value("gradient_memory") == size * run.model.parameter_count
    assert f"gradients in {name} " in " ".join(str(run).split())
    assert run.to_dict()["gradients"] == name


def test_zero3_is_as_slow_as_its_overlap_says() -> None:
    """Of the README's run: nothing hidden, and all that computing can hide."""
    ask: dict[str, Any] = {
        "model": "Llama3_8B",
        "hardware": "DGX_H100_SuperPOD",
        "devices": 64,
        "global_batch": 512,
        "sequence_tokens": 8192,
        "shard": "zero3",
        "estimate": "calibrated",
    }
    plain, hides = Engine.train(**ask), Engine.train(**ask, overlap={"gradient": 1})
    assert plain.shares["gradients"] > 0.15
    assert hides.shares["gradients"] == 0
