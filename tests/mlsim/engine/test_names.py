"""A wrong name for an argument: every door tells the one that was meant."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from mlsim import Engine
from mlsim.errors import UnknownArgumentError, UnknownNameError
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


@pytest.mark.parametrize(
    ("door", "name", "meant"),
    [
        ("solve", "batchsize", "batch_size"),
        ("solve", "peak_flop", "peak_flops"),
        ("solve", "memory_bandwith", "memory_bandwidth"),
        ("sweep", "batchsize", "batch_size"),
        ("find", "betwen", "between"),
        ("serve", "batchsize", "batch_size"),
        ("serve", "tensor_paralel", "tensor_parallel"),
        ("serve", "prompt", "prompt_tokens"),
        ("serve", "output", "output_tokens"),
        ("serve", "memory_bandwith", "memory_bandwidth"),
        ("fit", "prompt", "prompt_tokens"),
        ("train", "global_bach", "global_batch"),
        ("train", "tensor_paralel", "tensor_parallel"),
        ("train", "sequence", "sequence_tokens"),
        ("train", "memory_bandwith", "memory_bandwidth"),
        ("footprint", "carbon", "carbon_intensity"),
        ("footprint", "lifetimes", "lifetime"),
        ("optimal_size", "tokens_per_parameters", "tokens_per_parameter"),
    ],
)
def test_the_argument_that_was_meant(door: str, name: str, meant: str) -> None:
    message = refused(door, **{name: 3})
    assert message.startswith(f"no argument or quantity is called '{name}'. Did you mean '{meant}'")
    assert f"help(Engine.{door}) lists the arguments" in message
    assert len(message) < 250


@pytest.mark.parametrize(
    ("door", "other", "ours"),
    [
        ("solve", "batch", "batch_size"),
        ("sweep", "batch", "batch_size"),
        ("serve", "batch", "batch_size"),
        ("train", "batch", "global_batch"),
        ("train", "batch_size", "global_batch"),
    ],
)
def test_another_word_for_an_argument(door: str, other: str, ours: str) -> None:
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
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{first}'"):
        getattr(Engine, door)(**arguments)


def test_a_quantity_beside_a_missing_argument_is_no_wrong_name() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'hardware'"):
        Engine.solve(model="ResNet50", memory_bandwidth="1 TB/s")


def test_a_door_keeps_its_name_and_its_help() -> None:
    assert Engine.solve.__name__ == "solve"
    assert Engine.solve.__doc__.startswith("Predict one forward pass")


def test_the_vocabulary_is_not_printed_whole() -> None:
    with pytest.raises(UnknownNameError) as e:
        term("memory_bandwith")
    assert str(e.value) == (
        "no quantity is called 'memory_bandwith'. Did you mean 'memory_bandwidth'? The nearest "
        "are: memory_bandwidth, memory_bound_time, used_bandwidth, "
        "storage_bandwidth, node_bandwidth. mlsim.quantities.VOCABULARY has all, and the glossary."
    )
    assert len(VOCABULARY) > 200
