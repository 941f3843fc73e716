"""Requests that are asked again: to the last digit as if for the first time, and as strictly."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from language_models import LANGUAGE
from sampled import sampled
from services import NODE, llama

from mlsim import Engine, Hardware, LoRA, Models
from mlsim.engine import serve as door
from mlsim.errors import InvalidValueError, MlsimError
from mlsim.solvers.inputs import ESTIMATES
from mlsim.solvers.serving.remembered import Remembered
from mlsim.solvers.serving.serving import Serving
from mlsim.values import quantity
from mlsim.workloads import Offload, Speculation
from mlsim.workloads.language import Transformer

STEPS = (
    *("first_token_time", "middle_token_time", "last_token_time"),
    *("filling_token_time", "full_window_time", "later_token_time"),
)
RESULTS = ("time_to_first_token", "memory_free", "largest_batch", "memory_required")
WHOLE = ("time_per_output_token", "generation_latency", "decode_throughput")
LAYOUTS: tuple[dict[str, Any], ...] = (
    {},
    {"hardware": NODE, "tensor_parallel": 4, "precision": "w8a8"},
    {"hardware": NODE, "data_parallel": 2, "pipeline_parallel": 3, "chunk_tokens": 500},
    {"prefix_share": 0.3, "prefix_count": 2, "reserve": 0.2, "block_tokens": 64},
)


def values(serving: Serving) -> dict[str, Any]:
    """Return what a service comes to, by name."""
    decoder = serving.model.decoder
    names = (*RESULTS, *(each for each in STEPS if each in serving.names))
    found = {name: serving.value(name) for name in (*names, *(WHOLE if decoder else ()))}
    found["prefill"] = serving.prefill.value("latency")
    return found


def fresh(serving: Serving, batch: Any) -> Serving:
    """Answer for another batch as if nobody had asked before."""
    return Serving(replace(serving.service, batch_size=batch), check_memory=False)


def asked(**arguments: Any) -> Serving | None:
    """Return the answer to a question, if the model has one."""
    try:
        return Engine.serve(**arguments, prompt_tokens=300, check_memory=False)
    except MlsimError:
        return None


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_any_service_is_as_if_asked_for_the_first_time(estimate: str) -> None:
    """Models and estimates, in several layouts."""
    compared = 0
    for model, layout in sampled(itertools.product(LANGUAGE, LAYOUTS), 40):
        first = asked(
            **{"hardware": Hardware.Cloud.H100, **layout, "model": model, "estimate": estimate}
        )
        for batch in (1.0, 37.0, 1003.0) if first else ():
            found = Remembered(first.service).answer(batch, check_memory=False)
            assert values(found) == values(fresh(first, batch)), (model.key, layout, batch)
            compared += 1
    assert compared > 60


@pytest.mark.parametrize(
    "switched",
    [
        {
            "speculation": Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7),
            "model": Models.Llama3_70B,
            "hardware": NODE,
            "tensor_parallel": 8,
        },
        {"offload": Offload(cache=0.3)},
        {"adapters": LoRA(rank=16, targets="attention"), "adapter_count": 4},
        {"prefix_share": [0.0, 0.5]},
        {"prompt_tokens": [10, 20]},
        {"memory_bandwidth": "3 TB/s"},
    ],
    ids=lambda each: next(iter(each)),
)
def test_what_is_switched_on_or_given_is_as_if_asked_for_the_first_time(
    switched: dict[str, Any],
) -> None:
    first = llama(**switched, batch_size=3)
    again = Remembered(first.service)
    for batch in (1.0, 70.0):
        assert str(again.answer(batch)) == str(Serving(replace(first.service, batch_size=batch)))
        through_the_door = llama(**switched, batch_size=int(batch))
        assert str(again.answer(batch)) == str(through_the_door)


def test_no_step_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = llama(batch_size=5, prompt_tokens=555).value("time_per_output_token")
    monkeypatch.delattr(Serving, "_all_at_once")
    monkeypatch.delattr(door, "service", raising=False)
    again = llama(batch_size=5, prompt_tokens=555)
    assert again.value("time_per_output_token") == before
    assert again.prefill.value("latency") > 0


# As strictly.


def test_what_was_asked_before_lets_nothing_pass() -> None:
    for good, bad in (
        *(({"tensor_parallel": 1}, {"tensor_parallel": each}) for each in (True, 1.0)),
        ({"prompt_tokens": 1}, {"prompt_tokens": True}),
        ({"expert_imbalance": 1.0}, {"expert_imbalance": True}),
        ({"reserve": 0}, {"reserve": False}),
        *(({}, {"batch_size": each}) for each in (0, 1.5, True, [1, 0])),
        *(({}, bad) for bad in ({"check_memory": 1}, {"batch": 3}, {"prompt_tokens": 10**7})),
        ({}, {"flops": 1.0, "compute_time": "2 s"}),
    ):
        for _ in range(3):
            llama(**good)
        with pytest.raises(MlsimError):
            llama(**{**good, **bad})


def test_a_given_quantity_may_contradict_another_batch() -> None:
    for _ in range(2):
        assert llama(batch_size=4, device_batch=4).value("device_batch") == 4
    with pytest.raises(InvalidValueError, match="device_batch"):
        llama(batch_size=5, device_batch=4)


def test_what_can_change_is_not_remembered() -> None:
    prompts: Any = [100, 200]
    first = llama(prompt_tokens=prompts).value("time_to_first_token")
    prompts[1] = 300
    assert llama(prompt_tokens=prompts).value("time_to_first_token")[1] > first[1]
    array = np.array([100.0, 200.0])
    llama(prompt_tokens=array)
    array *= 2
    assert llama(prompt_tokens=array).value("time_to_first_token")[0] == pytest.approx(first[1])
    size = quantity(100.0, "token/sample")
    assert llama(prompt_tokens=size).value("time_to_first_token") == pytest.approx(first[0])


def test_so_many_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Transformer = Models.Llama3_8B
    monkeypatch.setattr(door, "_MOST", 3)
    for prompt in range(1, 9):
        assert llama(model=model, prompt_tokens=prompt).service.prompt_tokens == prompt
        assert llama(model=model, prompt_tokens=1).service.prompt_tokens == 1
