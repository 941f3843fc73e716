"""A run of training: days and cost, text and JSON, what is refused, and the search for a layout."""

from __future__ import annotations

import json
import math
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from refusals import answered
from training_runs import CHIP, CLUSTER, MIXTURE, NODE, SMALL, exactly, train

from mlsim import Engine, LoRA, Models, Training
from mlsim.equations import runs as equations
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError, WrongKindError
from mlsim.quantities import term

TOKENS = 1e12
FAILS: dict[str, Any] = {
    "data_parallel": 32,
    "tokens": TOKENS,
    "mean_time_to_failure": "1000 h",
    "checkpoint_bandwidth": "1 MB/s",
    "restart_time": "10 min",
}


def failing(**changes: Any) -> Training:
    return train(**{**FAILS, **changes})


def test_a_run_takes_its_tokens_by_its_rate() -> None:
    run = train(tokens=TOKENS, data_parallel=8, price="3 USD/h")
    seconds = TOKENS / run.value("token_rate")
    assert run.training_time.to("s").magnitude == exactly(seconds)
    assert run.goodput == 1
    assert run.device_time.to("h").magnitude == exactly(8 * seconds / 3600)
    assert run.training_cost.to("USD").magnitude == exactly(8 * seconds / 3600 * 3)
    assert train(tokens=20 * SMALL.parameter_count).run_tokens_per_parameter == exactly(20)
    lossy = train(tokens=TOKENS, data_parallel=8, goodput=0.5)
    assert lossy.value("training_time") == exactly(2 * seconds)


def test_what_was_not_given_is_asked_for_and_what_never_ends_is_refused() -> None:
    def result(what: str, **asked: Any) -> Any:
        run = train(**asked)
        assert run.value("step_time") > 0
        return getattr(run, what)

    def endless(what: str, **asked: Any) -> Any:
        return result(what, **{**FAILS, **asked})

    assert answered(result, "training", "results") == []
    assert answered(endless, "training", "endless") == []


def test_goodput_by_hand() -> None:
    """Any of 32 devices fails; a checkpoint holds two bytes of weights and twelve of Adam once.

    At Young's interval a write, half an interval and a restart of 600 s are lost.
    """
    run = failing()
    write, fails = 14 * SMALL.parameter_count / 1e6, 1000 * 3600 / 32
    every = math.sqrt(2 * write * fails)
    assert run.value("checkpoint_bytes") == exactly(14 * SMALL.parameter_count)
    assert run.value("checkpoint_time") == exactly(write)
    assert run.value("failure_interval") == exactly(fails)
    assert failing(data_parallel=8).value("failure_interval") == exactly(1000 * 3600 / 8)
    assert run.value("checkpoint_interval") == exactly(every)
    lost = (600 + (every + write) / 2) / fails
    assert run.goodput == exactly(every / (every + write) * (1 - lost))
    ideal = TOKENS / run.value("token_rate")
    assert run.training_time.to("s").magnitude == exactly(ideal / run.value("goodput"))
    # To first order it is the best: more or less makes the goodput no better.
    less, near, more = (equations.goodput(write, every * by, 600, fails) for by in (0.7, 1, 1.4))
    assert near > max(less, more)


def test_optimizer_state_that_is_given_is_also_what_a_checkpoint_holds() -> None:
    """Given 6 bytes of state for each parameter, beside its weight in 2: 8 in all."""
    run = train(state_bytes="6 B/parameter")
    assert run.value("checkpoint_bytes") == 8 * run.run.model.parameter_count
    assert run.value("optimizer_memory") == 6 * run.value("device_parameters")
    left_out = {"moment_bytes", "master_bytes"}
    assert left_out < set(train().question.known)
    assert not left_out & set(run.question.known)


ROOFLINE: dict[str, Any] = {"tensor_parallel": 2, "pipeline_parallel": 2, "data_parallel": 4}
ROOFLINE |= {"shard": "zero1", "tokens": 1e9, "price": "2 USD/h", "restart_time": "10 min"}
ROOFLINE |= {"mean_time_to_failure": "1000 h", "checkpoint_bandwidth": "1 GB/s"}


def calibrated(**changes: Any) -> Training:
    asked = {"model": "Llama3_8B", "hardware": "DGX_H100_SuperPOD", "global_batch": 64}
    asked |= {"sequence_tokens": 8192, "tensor_parallel": 2, "data_parallel": 16}
    asked |= {"shard": "zero3", "recompute": "full", "estimate": "calibrated", "tokens": 15e12}
    return Engine.train(**{**asked, **changes})


def told(run: Any, name: str = "step_time") -> dict[str, str]:
    """Return where each input of a result comes from."""
    inputs = json.loads(run.explain(name).to_json())["inputs"]
    return {each["quantity"]: each["origin"] for each in inputs}


@pytest.mark.parametrize("kind", ["ideal", "measured"])
def test_a_run_is_explained_and_written_with_units(kind: str) -> None:
    run = train(**ROOFLINE) if kind == "ideal" else calibrated(precision="fp8", overlap=0.5)
    for name in ("step_time", "memory_required", "model_flops_utilization", "token_rate"):
        explanation = run.explain(name)
        assert (explanation.name, explanation.value) == (name, exactly(run.value(name)))
        assert str(explanation).startswith(f"{name} = ")
    origins = told(run)
    assert len(origins) > 15
    assert all(origins.values())
    assert origins["global_batch"] == origins["micro_batch"] == "given"
    assert origins["memory_bandwidth"].startswith(run.device.name)
    data = json.loads(json.dumps(run.to_dict()))
    for name in ("step_time", "token_rate", "memory_required", "memory_free", "model_flops"):
        # A calibrated time or rate has a band beside it.
        assert data[name].items() >= {"value": run.value(name), "unit": term(name).unit}.items()
    layout = data["layout"]
    sizes = [layout[f"{name}_parallel"] for name in ("tensor", "pipeline", "data", "context")]
    assert layout["devices"] == prod(sizes) == run.devices
    parts = [part["value"] for part in data["breakdown"].values()]
    assert sum(parts) == exactly(run.value("step_time"))
    assert data["feasible"] is True


def test_inputs_are_measured_idealised_or_assumed_and_say_so() -> None:
    origins = told(calibrated())
    for name in ("compute_fraction", "memory_fraction", "link_fraction"):
        assert "measured" in origins[name]
    assert "; for attention " in origins["compute_fraction"]
    plain = told(calibrated(attention="standard", check_memory=False))
    assert "; for attention " not in plain["compute_fraction"]
    assert "between nodes the same is assumed" in origins["link_fraction"]
    assert "of an all-reduce" in origins["link_latency"]
    assert origins["measured_devices"] == origins["link_latency"]
    staged = {"pipeline_parallel": 2, "data_parallel": 1, "shard": "none", "check_memory": False}
    for split, link in ((2, "NVIDIA HGX H100"), (8, "NVIDIA DGX H100 SuperPOD")):
        run = calibrated(**staged, tensor_parallel=split)
        assert told(run, "pipeline_time")["stage_bandwidth"].startswith(link)
    ideal = train(**ROOFLINE)
    origins = told(ideal)
    assert "roofline" in origins["memory_fraction"]
    assert "roofline" in origins["hop_latency"]
    assert "; or between nodes " in origins["link_bandwidth"]
    assert "between nodes" not in told(train(hardware=NODE, tensor_parallel=2))["link_bandwidth"]
    assert origins["exchange_overlap"] == "stated: nothing hides behind computing"
    for name in ("training_cost", "goodput", "checkpoint_interval", "in_flight", "gradient_time"):
        assert ideal.explain(name).value == exactly(ideal.value(name))
    assert "narayanan2021megatron" in str(ideal.explain("step_time"))


def test_json_of_a_whole_run_and_of_what_does_not_fit() -> None:
    data = train(**ROOFLINE).to_dict()
    assert data["training_cost"]["unit"] == "USD"
    assert data["training_time"]["unit"] == data["device_time"]["unit"] == "s"
    assert 0 < data["goodput"]["value"] < 1
    small = train(memory_capacity="1 MB")
    data = small.to_dict()
    assert (data["feasible"], data["step_time"]["value"], data["breakdown"]) == (False, None, None)
    assert data["memory_free"]["value"] < 0
    shown = str(small)
    assert "feasible    no: " in shown
    assert "too much" in shown
    assert "a step" not in shown


def test_text_names_model_machine_and_layout() -> None:
    shown = str(train(**ROOFLINE))
    title, devices, layout, *_ = shown.splitlines()
    assert title == "Training Small, bf16, roofline"
    assert devices == "  devices     16 x Round chip of Round cluster"
    assert layout == "  layout      TP2 PP2 DP4 zero1; keeps all"
    assert max(map(len, shown.splitlines())) <= 80
    for words in (
        *("32 x 128 tokens in 8 micro-batches of 1", "none: sending waits for computing"),
        *("1 billion tokens", "USD", "goodput"),
    ):
        assert words in shown
    assert repr(train()).startswith("<Training Small on 1 x Round chip")
    assert "goodput" not in str(train(tokens=1e9))


def test_a_precision_that_nobody_gave_is_said_to_be_the_default() -> None:
    why = "bf16, since no other was given"
    assumed, asked = train(), train(precision="bf16")
    assert f"  formats     {why}" in str(assumed).splitlines()
    assert why not in str(asked)
    assert assumed.to_dict() == {**asked.to_dict(), "formats_assumed": why}
    assert told(assumed, "weight_memory")["bytes_per_parameter"] == f"{why}: 16 bits"


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


def test_load_is_what_the_devices_do() -> None:
    run = train(**ROOFLINE)
    load = run.load()
    assert load.devices == run.devices
    assert load.compute_utilisation == run.hardware_flops_utilization
    assert 0 < load.memory_utilisation <= 1
    assert (load.time, load.tokens) == (run.value("training_time"), 1e9)
    step = train().load()
    assert (step.time, step.tokens) == (train().value("step_time"), 32 * 128)


SIZES = (
    *("devices", "tensor_parallel", "pipeline_parallel", "data_parallel", "context_parallel"),
    *("expert_parallel", "interleaved"),
)
NO_NUMBERS = (0, -4, 1.5, math.nan, math.inf, True, "8", [8, 16], (8,))


def refusal(**asked: Any) -> str:
    with pytest.raises(InvalidValueError) as caught:
        train(**asked)
    return str(caught.value)


def test_counts_and_sizes_are_whole_numbers() -> None:
    for value, name in product(NO_NUMBERS, SIZES):
        one = "one number" if isinstance(value, (list, tuple)) else "a whole number"
        assert f"{name} must be {one}" in refusal(**{name: value}), (name, value)
    for name in ("global_batch", "micro_batch", "sequence_tokens"):
        for value in NO_NUMBERS:
            assert name in refusal(**{name: value}), (name, value)
        assert f"{name} must be a whole number" in refusal(**{name: 2.5})
        assert "one at a time" in refusal(**{name: np.array([8, 16])})


def test_what_can_not_be_is_refused() -> None:
    def layout(**asked: Any) -> Any:
        given = {"model": "Llama3_8B", "hardware": "DGX_A100_SuperPOD", "global_batch": 64}
        return Engine.train(**{**given, "tensor_parallel": 8, **asked})

    def experts(**asked: Any) -> Any:
        return train(model=MIXTURE, global_batch=96, **asked)

    assert answered(train, "training") == []
    assert answered(layout, "training", "layouts") == []
    assert answered(experts, "training", "experts") == []
    with pytest.raises(UnknownNameError, match="Did you mean 'bubble_time'"):
        train().value("buble_time")
    with pytest.raises(UnknownNameError, match="Did you mean 'step_time'"):
        train().explain("step_tim")
    with pytest.raises(WrongKindError, match="adapters must be LoRA"):
        train(adapters=LoRA)


def too_large(**changes: Any) -> Any:
    arguments = {"model": "GPT3_175B", "hardware": "Selene", "devices": 64, "global_batch": 64}
    return Engine.train(**{**arguments, "tensor_parallel": 8, **changes})


def test_too_large_says_by_how_much_and_what_helps() -> None:
    run = too_large()
    assert not run.feasible
    with pytest.raises(DoesNotFitError):
        _ = Training(run.run).step_time
    with pytest.raises(DoesNotFitError) as caught:
        _ = run.step_time
    found = str(caught.value)
    required, free = run.value("memory_required"), run.value("memory_free")
    assert f"needs {required / 2**30:.1f} GiB on each device, which has 80 GiB, 10% of it" in found
    assert f"{-free / 2**30:.4g} GiB too much" in found
    for way in ("recompute='full'", "shard='zero1'", "sequence_parallel=True", "search=True"):
        assert way in found
    assert "check_memory=False gives the time" in found
    # What is done already is no advice.
    again = too_large(recompute="full", shard="zero3", memory_capacity="1 GB").too_large()
    assert "recompute='full'" not in again
    assert "shard=" not in again
    # It has its memory, and no time.
    assert run.memory["memory_free"].magnitude < 0
    unchecked = too_large(check_memory=False)
    for name in ("model_flops_utilization", "token_rate", "breakdown", "shares"):
        with pytest.raises(DoesNotFitError):
            getattr(run, name)
        assert getattr(unchecked, name)


def times_by_hand(case: dict[str, Any]) -> list[float]:
    """Return the times of what fits of the layouts that a person would try, and more shards."""
    found = []
    for tensor, pipeline, micro, shard, recompute in product(
        (1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4), ("none", "zero1", "zero2", "zero3"), ("none", "full")
    ):
        try:
            layout = {"tensor_parallel": tensor, "pipeline_parallel": pipeline, "shard": shard}
            layout |= {"sequence_parallel": tensor > 1, "recompute": recompute}
            run = Engine.train(**case, **layout, micro_batch=micro)
        except InvalidValueError:
            continue
        if run.feasible:
            found.append(run.value("step_time"))
    return found


def test_no_layout_by_hand_is_faster() -> None:
    """It fits, uses all devices, and is answered the same when it is given."""
    case = {"model": "Llama2_13B", "hardware": "Selene", "devices": 32, "global_batch": 64}
    case |= {"estimate": "calibrated", "overlap": {"gradient": 0.5}}
    found = Engine.train(**case, search=True)
    tried = times_by_hand(case)
    assert len(tried) > 50
    assert found.value("step_time") <= min(tried) * (1 + 1e-12)
    assert (found.feasible, found.devices) == (True, case["devices"])
    layout = found.run.parallelism
    case |= {f"{name}_parallel": getattr(layout, name) for name in ("tensor", "pipeline", "data")}
    case |= {"sequence_parallel": layout.sequence, "recompute": found.run.recipe.recompute}
    case |= {name: getattr(layout, name) for name in ("interleaved", "shard")}
    again = Engine.train(**case, micro_batch=int(found.run.micro_batch))
    assert again.value("step_time") == found.value("step_time")


def test_the_size_of_a_model_for_an_amount_of_work() -> None:
    """With 40 tokens for each of 3e9 parameters, 6 x 40 x 9e18 operations: 2.16e21."""
    asked = {"training_flops": "2.16e21 FLOP", "tokens_per_parameter": "40 token/parameter"}
    best = Engine.optimal_size(**asked)
    found = [best.value(f"optimal_{name}") for name in ("parameters", "tokens")]
    assert found == [exactly(3e9), exactly(1.2e11)]
    assert str(best).endswith(" train 3 billion parameters on 120 billion tokens")
    usual = Engine.optimal_size(training_flops="2.16e21 FLOP")
    for size, origin in ((best, "given"), (usual, "hoffmann2022training")):
        assert origin in told(size, "optimal_parameters")["tokens_per_parameter"]
    with pytest.raises(InvalidValueError, match="one amount of work, not an array"):
        Engine.optimal_size(training_flops=["1e21 FLOP", "2e21 FLOP"])


def test_what_is_asked_besides_is_kept() -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "HGX_H100", "global_batch": 64}
    besides = {"attention": "standard", "context_parallel": 2, "memory_capacity": "1 TB"}
    found = Engine.train(**asked, **besides, search=True, tokens=1e12, price="2 USD/h")
    assert (found.run.recipe.attention, found.run.parallelism.context) == ("standard", 2)
    hours = 1e12 / found.value("token_rate") / 3600
    assert found.training_cost.to("USD").magnitude == pytest.approx(2 * 8 * hours)
    assert found.value("memory_capacity") == 1e12
    # All devices are used if nobody says how many; and one device has one layout.
    assert found.devices == 8
    alone = Engine.train(model=SMALL, hardware=CHIP, global_batch=8, search=True)
    assert (str(alone.run.parallelism), alone.run.recipe.recompute) == ("1 device", "none")
    # What fits to the last byte, fits.
    full = {"memory_capacity": f"{alone.value('memory_required')} B", "reserve": 0}
    last = Engine.train(model=SMALL, hardware=CHIP, global_batch=8, search=True, **full)
    assert last.value("memory_free") == 0
    assert last.value("step_time") == alone.value("step_time")
    # Devices that share a sequence hold the same weights, whose state is shared.
    two = {"model": SMALL, "hardware": NODE, "devices": 2, "context_parallel": 2}
    assert Engine.train(**two, global_batch=1, search=True).run.parallelism.shard == "zero1"


def test_the_search_takes_a_pipeline_where_it_is_faster() -> None:
    """256 thousand words make Gemma's output layer long; that is no reason to avoid stages."""
    ask: dict[str, Any] = {"hardware": "Eos", "devices": 64, "global_batch": 32}
    ask |= {"model": Models.Gemma2_9B, "estimate": "calibrated", "software": "kernels"}
    best = Engine.train(**ask, search=True)
    assert best.run.parallelism.pipeline == 2
    flat = Engine.train(**ask, tensor_parallel=2, sequence_parallel=True, shard="zero1",
                        recompute="none").value("step_time")  # fmt: skip
    assert best.value("step_time") < flat


def test_bad_input_is_named() -> None:
    def search(**asked: Any) -> Any:
        given = {"model": SMALL, "hardware": CLUSTER, "global_batch": 32, "search": True}
        return Engine.train(**{**given, **asked})

    assert answered(search, "training", "search") == []
