"""Requests that are asked again: to the last digit as if for the first time, and as strictly."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from language_models import LANGUAGE, tiny
from services import CHIP, NODE, llama

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
    """All models and estimates, in several layouts."""
    compared = 0
    for index, model in enumerate(LANGUAGE):
        for number, layout in enumerate(LAYOUTS):
            arguments = {"hardware": Hardware.Cloud.H100, **layout, "model": model}
            first = asked(**arguments, estimate=estimate)
            for batch in (1.0, 2.0 + index, 1000.0 + number) if first else ():
                found = Remembered(first.service).answer(batch, check_memory=False)
                assert values(found) == values(fresh(first, batch)), (model.key, layout, batch)
                compared += 1
    assert compared > 600


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


def test_an_array_of_batches_is_as_its_points() -> None:
    batches = [1, 8, 1000]
    one_by_one = [llama(batch_size=each, prompt_tokens=777) for each in batches]
    together = llama(batch_size=batches, prompt_tokens=777)
    assert together.shape == (3,)
    assert together.feasible.tolist() == [each.feasible for each in one_by_one]
    for name in ("time_to_first_token", "time_per_output_token", "memory_required"):
        alone = [each.value(name) for each in one_by_one if each.feasible or name in RESULTS[3:]]
        assert together.value(name)[: len(alone)] == pytest.approx(alone, rel=1e-12)


def test_no_step_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = llama(batch_size=5, prompt_tokens=555).value("time_per_output_token")
    monkeypatch.delattr(Serving, "_all_at_once")
    monkeypatch.delattr(door, "service", raising=False)
    again = llama(batch_size=5, prompt_tokens=555)
    assert again.value("time_per_output_token") == before
    assert again.prefill.value("latency") > 0


# As strictly.


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"tensor_parallel": 1}, {"tensor_parallel": True}),
        ({"tensor_parallel": 1}, {"tensor_parallel": 1.0}),
        ({"prompt_tokens": 1}, {"prompt_tokens": True}),
        ({"expert_imbalance": 1.0}, {"expert_imbalance": True}),
        ({"reserve": 0}, {"reserve": False}),
        ({}, {"batch_size": 0}),
        ({}, {"batch_size": 1.5}),
        ({}, {"batch_size": True}),
        ({}, {"batch_size": [1, 0]}),
        ({}, {"check_memory": 1}),
        ({}, {"batch": 3}),
        ({}, {"prompt_tokens": 10**7}),
        ({}, {"flops": 1.0, "compute_time": "2 s"}),
    ],
    ids=str,
)
def test_what_was_asked_before_lets_nothing_pass(good: dict[str, Any], bad: dict[str, Any]) -> None:
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


def test_a_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    config = {
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_attention_heads": 8,
        "num_hidden_layers": 4,
        "num_key_value_heads": 8,
        "vocab_size": 1000,
        "max_position_embeddings": 4096,
    }
    found = []
    for layers in (4, 4, 8):
        path.write_text(json.dumps({**config, "num_hidden_layers": layers}))
        found.append(llama(model=str(path)).value("weight_memory"))
    assert found[0] == found[1] < found[2]


def test_a_changed_record_is_another_one() -> None:
    model = tiny()
    arguments: dict[str, Any] = {"hardware": CHIP, "prompt_tokens": 3, "output_tokens": 3}
    found = [
        Engine.serve(model=each, batch_size=2, check_memory=False, **arguments).value("memory_free")
        for each in (model, model, replace(model, layers=1), model)
    ]
    assert found[0] == found[1] == found[3] < found[2]


def test_memory_is_checked_each_time() -> None:
    fits, too_many = llama(batch_size=1), llama(batch_size=4000)
    assert fits.feasible
    assert not too_many.feasible
    with pytest.raises(MlsimError, match="too much"):
        too_many.value("time_to_first_token")
    assert llama(batch_size=4000, check_memory=False).value("time_to_first_token") > 0


def test_so_many_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Transformer = Models.Llama3_8B
    monkeypatch.setattr(door, "_MOST", 3)
    for prompt in range(1, 9):
        assert llama(model=model, prompt_tokens=prompt).service.prompt_tokens == prompt
        assert llama(model=model, prompt_tokens=1).service.prompt_tokens == 1
