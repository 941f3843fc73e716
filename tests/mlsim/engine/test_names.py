"""A wrong name for an argument: every door tells the one that was meant."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from mlsim import Clusters, Engine, Hardware, Models, Systems, anatomy, lab
from mlsim.errors import Suggesting, UnknownArgumentError, UnknownNameError
from mlsim.quantities import VOCABULARY, term

NETWORK = {"model": "ResNet50", "hardware": "A100"}
LANGUAGE = {"model": "Llama3_8B", "hardware": "HGX_H100"}
DOORS: dict[str, dict[str, Any]] = {
    "solve": NETWORK,
    "sweep": NETWORK,
    "find": {**NETWORK, "vary": "batch_size", "target": "latency", "value": "1 ms"},
    "serve": LANGUAGE,
    "fit": LANGUAGE,
    "train": {**LANGUAGE, "global_batch": 8},
    "footprint": {"hardware": "A100", "device_hours": 1},
    "optimal_size": {"training_flops": "1e24 FLOP"},
}


def refused(door: str, **given: Any) -> str:
    """Return what a door says of arguments beside those that it needs."""
    with pytest.raises(UnknownArgumentError) as e:
        getattr(Engine, door)(**DOORS[door], **given)
    return str(e.value)


# A wrong name, and the one that was meant; another word for an argument, and ours.
MEANT = """
solve batchsize batch_size, peak_flop peak_flops, memory_bandwith memory_bandwidth
sweep batchsize batch_size
find betwen between
serve batchsize batch_size, tensor_paralel tensor_parallel, prompt prompt_tokens
serve output output_tokens, memory_bandwith memory_bandwidth
fit prompt prompt_tokens
train global_bach global_batch, tensor_paralel tensor_parallel, sequence sequence_tokens
train memory_bandwith memory_bandwidth
footprint carbon carbon_intensity, lifetimes lifetime
optimal_size tokens_per_parameters tokens_per_parameter
"""
OTHERS = """
solve batch batch_size
sweep batch batch_size
serve batch batch_size
train batch global_batch, batch_size global_batch
"""


def told(table: str) -> list[tuple[str, str, str]]:
    """Return the lines of a table: the door, what is said, what is meant."""
    rows = [line.partition(" ")[::2] for line in table.strip().splitlines()]
    pairs = [(door, *each.split()) for door, rest in rows for each in rest.split(",")]
    return [(door, name, meant) for door, name, meant in pairs]


def test_the_argument_that_was_meant() -> None:
    for door, name, meant in told(MEANT):
        message = refused(door, **{name: 3})
        first = f"no argument or quantity is called '{name}'. Did you mean '{meant}'"
        assert message.startswith(first), door
        assert f"help(Engine.{door}) lists the arguments" in message
        assert len(message) < 250
    for door, other, ours in told(OTHERS):
        assert refused(door, **{other: 3}) == f"{door} takes {ours}=..., not {other}=."


@pytest.mark.parametrize("door", [name for name in DOORS if name != "optimal_size"])
def test_hardware_is_the_one_word(door: str) -> None:
    """In place of it or beside it, another word is refused; a wrong letter too."""
    assert "hardware" in inspect.signature(getattr(Engine, door)).parameters
    arguments = {name: value for name, value in DOORS[door].items() if name != "hardware"}
    for other in ("system", "device", "cluster"):
        with pytest.raises(UnknownArgumentError) as e:
            getattr(Engine, door)(**arguments, **{other: "HGX_H100"})
        assert str(e.value) == f"{door} takes hardware=..., not {other}=."
    with pytest.raises(UnknownArgumentError, match="Did you mean 'hardware'"):
        getattr(Engine, door)(**arguments, hardwar="A100")


@pytest.mark.parametrize("door", [name for name in DOORS if name != "footprint"])
def test_what_is_left_out_is_named_by_python(door: str) -> None:
    first = next(iter(DOORS[door]))
    arguments = {name: value for name, value in DOORS[door].items() if name != first}
    with pytest.raises(
        TypeError, match=rf"missing 1 required (keyword-only|positional) argument: '{first}'"
    ):
        getattr(Engine, door)(**arguments)


POSITIONAL: dict[str, dict[str, Any]] = {
    "solve": {},
    "sweep": {"batch_size": [1, 2]},
    "find": {"vary": "batch_size", "target": "latency", "value": "1 ms"},
    "sensitivity": {},
    "serve": {},
    "fit": {},
    "train": {"global_batch": 8},
    "load": {"rate": 1},
    "plan": {"rate": 1, "price": "2 USD/h"},
    "check_claim": {"samples_per_second": 1},
}


@pytest.mark.parametrize("door", POSITIONAL)
def test_model_and_hardware_need_no_word(door: str) -> None:
    ask, more = getattr(Engine, door), POSITIONAL[door]
    pair = NETWORK if door in ("solve", "sweep", "find", "sensitivity", "check_claim") else LANGUAGE
    first, second = ask(*pair.values(), **more), ask(**pair, **more)
    assert repr(first) == repr(second)
    with pytest.raises(TypeError, match=r"takes .*2 positional arguments but 3"):
        ask(*pair.values(), 32, **more)


def test_an_attribute_that_is_none_suggests_the_nearest() -> None:
    """Of answers, of records, of a plan and its options, of the doors themselves."""
    plan = Engine.plan(model="Llama3_8B", rate=5, hardware=["H100"])
    gpu = Hardware.Cloud.A100
    for has, name, meant in (
        (Engine.solve("ResNet50", "A100"), "latencey", "latency"),
        (Engine.train("ResNet50", "A100", global_batch=8), "step_tim", "step_time"),
        (Engine.serve("Llama3_8B", "H100"), "time_to_first_tokn", "time_to_first_token"),
        (Engine.gemm(64, 64, 64, hardware="A100"), "latancy", "latency"),
        (Engine.load("Llama3_8B", "H100", rate=5), "saturation_rat", "saturation_rate"),
        (anatomy("LeNet5"), "profile_mems", "profile_mem"),
        (gpu, "memmory", "memory"),
        (gpu.memory, "bandwith", "bandwidth"),
        (gpu.compute, "peak_flop", "peak_flops"),
        (Systems.HGX_H100, "device_bandwith", "device_bandwidth"),
        (Clusters.Eos, "nodess", "nodes"),
        (Models.Llama3_8B, "parameter_cuont", "parameter_count"),
        (Models.ResNet50, "flop_cont", "flop_count"),
        (plan, "option", "options"),
        (plan, "tabel", "table"),
        (plan.best, "price", "fleet_price"),
        (plan.best, "servic", "service"),
        (plan.goals, "rat", "rate"),
        (plan.best.service, "devic", "device"),
        (Engine, "srve", "serve"),
        (Engine(), "srve", "serve"),
        (lab, "gem", "gemm"),
    ):
        with pytest.raises(AttributeError, match=rf"attribute '{name}'\. Did you mean '{meant}'"):
            getattr(has, name)
        assert not hasattr(has, "_repr_nothing_")
    with pytest.raises(UnknownNameError, match=r"called 'price'\. Did you mean 'fleet_price'"):
        plan.best.value("price")


def test_a_result_that_refuses_does_so_in_its_own_words() -> None:
    """A refusal that is an AttributeError, too, is not taken for a missing attribute."""

    class Refusing(Suggesting):
        @property
        def asked(self) -> float:
            raise UnknownNameError("nobody knows")

    with pytest.raises(UnknownNameError, match="nobody knows"):
        Refusing().asked  # noqa: B018


def test_formats_are_one_however_they_are_written() -> None:
    """Each door gives the answer of fp16 to FP16, half and float16."""
    for door, pair in (("solve", NETWORK), ("serve", LANGUAGE)):
        ask = getattr(Engine, door)
        usual = repr(ask(*pair.values(), precision="fp16"))
        for other in ("FP16", "half", "float16", "torch.float16"):
            assert repr(ask(*pair.values(), precision=other)) == usual, (door, other)
    for each in ("fp8", "FP8", "torch.float8_e4m3fn"):
        # The first column says what was asked.
        fits = Engine.fit(*LANGUAGE.values(), precision=each).drop(columns="precision")
        assert fits.equals(
            Engine.fit(*LANGUAGE.values(), precision="fp8").drop(columns="precision")
        )
    trained = [
        Engine.train("ResNet50", "A100", global_batch=8, precision=each).value("step_time")
        for each in ("bf16", "bfloat16", "BF16")
    ]
    assert len(set(trained)) == 1
    swept = Engine.sweep("ResNet50", "A100", batch_size=[1, 2], precision=["FP16", "half"])
    assert set(swept["precision"]) == {"fp16"}


def test_a_quantity_beside_a_missing_argument_is_no_wrong_name() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'hardware'"):
        Engine.solve(model="ResNet50", memory_bandwidth="1 TB/s")


def test_a_door_keeps_its_name_and_its_help() -> None:
    assert Engine.solve.__name__ == "solve"
    assert Engine.solve.__doc__.startswith("Predict one forward pass")


def test_the_vocabulary_is_not_printed_whole() -> None:
    with pytest.raises(UnknownNameError) as e:
        term("memory_bandwith")
    assert str(e.value) == (
        "no quantity is called 'memory_bandwith'. Did you mean 'memory_bandwidth'? The nearest "
        "are: memory_bandwidth, memory_bound_time, used_bandwidth. mlsim.quantities.VOCABULARY has all, and the glossary."
    )
    assert len(VOCABULARY) > 200
