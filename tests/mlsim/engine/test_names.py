"""A wrong name for an argument: every door tells the one that was meant."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from refusals import answered

from mlsim import Clusters, Engine, Hardware, Models, Systems, anatomy, lab
from mlsim.errors import MlsimError, Suggesting, UnknownArgumentError, UnknownNameError
from mlsim.parameters import parameters, parameters_of
from mlsim.quantities import VOCABULARY

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


def test_the_argument_that_was_meant() -> None:
    """`hardware` is the one word; in place of it or beside it, another is refused."""
    ask = lambda door, **given: getattr(Engine, door)(**DOORS[door], **given)  # noqa: E731
    assert answered(ask, "names") == []
    for door in DOORS.keys() - {"optimal_size"}:
        assert "hardware" in inspect.signature(getattr(Engine, door)).parameters
        arguments = {name: value for name, value in DOORS[door].items() if name != "hardware"}
        for other in ("system", "device", "cluster"):
            with pytest.raises(UnknownArgumentError) as e:
                getattr(Engine, door)(**arguments, **{other: "HGX_H100"})
            assert str(e.value) == f"{door} takes hardware=..., not {other}=."
        with pytest.raises(UnknownArgumentError, match="Did you mean 'hardware'"):
            getattr(Engine, door)(**arguments, hardwar="A100")


def test_a_table_says_what_each_door_takes_and_what_is_usual() -> None:
    taking = {door for rows in parameters().values() for row in rows for door in row.doors}
    for door in taking - {"explain"}:
        asked = inspect.signature(getattr(Engine, door, anatomy)).parameters
        rows = {row.name.partition(".")[0]: row for row in reversed(parameters_of(door))}
        assert asked.keys() - rows.keys() <= {"measured"}, door
        # A quantity may be given as such; a sweep hands on what its doors take.
        more = {*VOCABULARY, "lifetime", *(rows if door == "sweep" else ())}
        assert {row.quantity or name for name, row in rows.items() if name not in asked} <= (
            more if "given" in asked else set()
        ), door
        for name, row in rows.items():
            usual = asked[name].default if name in asked else None
            if type(usual) in (str, int, float) and usual:
                assert format(usual) in row.usual or f"{usual:g}" in row.usual, (door, name)


def test_each_parameter_of_a_row_is_checked() -> None:
    for door, name in [
        (each, row.name)
        for each in DOORS.keys() - {"sweep"}
        for row in parameters_of(each)
        if "." not in row.name and row.kind != "name"
    ]:
        with pytest.raises(MlsimError):
            getattr(Engine, door)(**{**DOORS[door], name: "no such thing"})


def test_what_is_left_out_is_named_by_python() -> None:
    for door in DOORS.keys() - {"footprint"}:
        first, *_ = DOORS[door]
        arguments = {name: value for name, value in DOORS[door].items() if name != first}
        words = rf"missing 1 required (keyword-only|positional) argument: '{first}'"
        with pytest.raises(TypeError, match=words):
            getattr(Engine, door)(**arguments)
    # A quantity beside it is no wrong name.
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'hardware'"):
        Engine.solve(model="ResNet50", memory_bandwidth="1 TB/s")


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


def test_model_and_hardware_need_no_word() -> None:
    for door, more in POSITIONAL.items():
        ask, language = getattr(Engine, door), door in ("serve", "fit", "train", "load", "plan")
        pair = LANGUAGE if language else NETWORK
        assert repr(ask(*pair.values(), **more)) == repr(ask(**pair, **more)), door
        with pytest.raises(TypeError, match=r"takes model and hardware .*, as in \w+=32\."):
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
        (Systems.HGX_H100, "device_bandwith", "device_bandwidth"),
        (Clusters.Eos, "nodess", "nodes"),
        (Models.Llama3_8B, "parameter_cuont", "parameter_count"),
        (plan, "tabel", "table"),
        (plan.best, "price", "fleet_price"),
        (plan.goals, "rat", "rate"),
        (plan.best.service, "devic", "device"),
        (Engine, "srve", "serve"),
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
        answers = {
            repr(getattr(Engine, door)(*pair.values(), precision=each))
            for each in ("fp16", "FP16", "half", "float16", "torch.float16")
        }
        assert len(answers) == 1, door
    # The first column says what was asked.
    usual, *others = (
        Engine.fit(*LANGUAGE.values(), precision=each).drop(columns="precision")
        for each in ("fp8", "FP8", "torch.float8_e4m3fn")
    )
    assert all(each.equals(usual) for each in others)
    swept = Engine.sweep("ResNet50", "A100", batch_size=[1, 2], precision=["FP16", "half"])
    assert set(swept["precision"]) == {"fp16"}
