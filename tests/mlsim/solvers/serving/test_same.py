"""A service asked in another way is the same: of many points, without NumPy, or step by step."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from language_models import LANGUAGE
from sampled import sampled
from services import MEMORY, NODE, TIMES, llama

from mlsim import Engine, Hardware, LoRA, Models
from mlsim.errors import DoesNotFitError, InvalidValueError, MlsimError
from mlsim.parameters import parameter
from mlsim.solvers import question
from mlsim.solvers.serving import serving as serving_module
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.steps import RESULTS
from mlsim.values import quantity
from mlsim.workloads import Offload, Speculation

# Arrays.


def test_a_service_of_many_points() -> None:
    serving = llama(batch_size=[1, 8, 1000])
    assert serving.shape == serving.time_per_output_token.shape == (3,)
    assert serving.decode_throughput.shape == (3,)
    assert serving.feasible.tolist() == [True, True, False]
    assert np.isnan(serving.value("generation_latency")).tolist() == [False, False, True]
    assert np.isfinite(serving.value("memory_required")).all()
    assert serving.largest_batch.tolist() == [llama().largest_batch] * 3
    assert serving.bottleneck["decode"].tolist()[:2] == [MEMORY, MEMORY]
    assert ", (3,) points, bf16, roofline>" in repr(serving)
    for wrong, words in (((0, 1), r"not \(0, 1\)"), (slice(1), "not slice")):
        with pytest.raises(InvalidValueError, match=rf"is 1 whole number\(s\), {words}"):
            serving[wrong]
    with pytest.raises(IndexError):
        serving[3]
    with pytest.raises(InvalidValueError, match=r"such as serving\[0\]\.decode\.operators"):
        serving.decode.operators  # noqa: B018
    with pytest.raises(InvalidValueError, match=r"such as serving\[0\]\.prefill\.explain\(\)"):
        serving.prefill.explain()


GRID = {
    "batch_size": [[1], [7], [600]],
    "prompt_tokens": [1, 100, 5000, 9000],
    "output_tokens": np.array([[1], [2], [130]]),
}


@pytest.mark.parametrize(
    "arguments",
    [
        {"model": Models.Gemma3_27B, "precision": "w4a16"},
        {
            "model": Models.Mixtral_8x7B,
            "hardware": NODE,
            "data_parallel": 4,
            "expert_parallel": 8,
            "tensor_parallel": 2,
            "batch_size": [[1], [7], [60]],
        },
        {"memory_bandwidth": quantity(np.array([[1.0, 2.0, 3.0, 4.0]]), "TB/s")},
    ],
    ids=", ".join,
)
def test_arrays_equal_points(arguments: dict[str, Any]) -> None:
    asked = {**GRID, **arguments}
    together = llama(**asked)
    assert together.shape == (3, 4)

    def of(serving: Serving, name: str) -> Any:
        return serving.value(name) if name in RESULTS else getattr(serving, name)

    for index in sampled(np.ndindex(3, 4), 6):
        alone = together[index]
        for name, value in asked.items():
            if name in GRID:
                assert alone.value(name) == np.broadcast_to(value, (3, 4))[index]
        for name in (*RESULTS, "feasible", "longest_context", "largest_batch"):
            value = np.broadcast_to(of(together, name), (3, 4))[index]
            if (name in TIMES or name.endswith("_time")) and not alone.feasible:
                assert np.isnan(value), name
                with pytest.raises(DoesNotFitError):
                    alone.value(name)
            else:
                assert value == pytest.approx(of(alone, name), rel=1e-12), name
        for phase in ("prefill", "decode") if alone.feasible else ():
            assert together.bottleneck[phase][index] == alone.bottleneck[phase]


@pytest.mark.parametrize(
    "arguments",
    [
        {"memory_bandwidth": "1 TB/s", "estimate": "bound"},
        {"model": Models.DeepSeek_V3, "hardware": NODE, "tensor_parallel": 8, "weights": "int4"},
        {"hardware": NODE, "pipeline_parallel": 4, "data_parallel": 2},
        {"model": Models.BERT_Base, "prompt_tokens": 384},
    ],
    ids=", ".join,
)
def test_lists_equal_arrays(monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]) -> None:
    """Without NumPy, as in a browser."""
    decoder = arguments.get("model") is not Models.BERT_Base
    names = RESULTS if decoder else ("time_to_first_token", "weight_memory", "memory_free")
    of_step = ("latency", "total_flops", "total_bytes", "total_network_time", "memory_bound_share")

    def found() -> tuple[list[Any], list[str]]:
        serving = llama(batch_size=8, **arguments)
        steps = [serving.prefill, *([serving.decode] if decoder else [])]
        values = [serving.value(name) for name in names]
        values += [step.value(name) for step in steps for name in of_step]
        return values, [str(serving), str(serving.bottleneck), str(steps[-1].explain())]

    values, shown = found()
    monkeypatch.setattr(question, "ARRAYS", False)
    monkeypatch.setattr(serving_module, "ARRAYS", False)
    with_lists = found()
    assert not any(isinstance(each, np.ndarray) for each in with_lists[0])
    assert with_lists == (pytest.approx(values, rel=1e-12), shown)


# Prepared for a configuration: as if each step was asked by itself.

STEPS = (
    *("first_token_time", "middle_token_time", "last_token_time"),
    *("filling_token_time", "full_window_time", "later_token_time"),
)
PARTS = ("time_to_first_token", "memory_free", "largest_batch", "memory_required")
WHOLE = ("time_per_output_token", "generation_latency", "decode_throughput")
LAYOUTS: tuple[dict[str, Any], ...] = (
    {},
    {"hardware": NODE, "tensor_parallel": 4, "precision": "w8a8"},
    {"hardware": NODE, "data_parallel": 2, "pipeline_parallel": 3, "chunk_tokens": 500},
    {"prefix_share": 0.3, "prefix_count": 2, "reserve": 0.2, "block_tokens": 64},
)


def values(serving: Serving) -> dict[str, Any]:
    """Return what a service comes to, by name."""
    names = (*PARTS, *(each for each in STEPS if each in serving.names))
    names = (*names, *(WHOLE if serving.model.decoder else ()))
    found = {name: serving.value(name) for name in names}
    return found | {"prefill": serving.prefill.value("latency")}


@pytest.mark.parametrize("estimate", parameter("estimate").words)
def test_any_service_is_as_if_asked_step_by_step(
    estimate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models and estimates, in several layouts; some a model does not have."""
    compared = 0
    for model, layout in sampled(itertools.product(LANGUAGE, LAYOUTS), 40):
        asked = {"hardware": Hardware.Cloud.H100, **layout, "model": model, "estimate": estimate}
        try:
            service = Engine.serve(**asked, prompt_tokens=300, check_memory=False).service
        except MlsimError:
            continue
        for batch in (1.0, 37.0, 1003.0):
            point = replace(service, batch_size=batch)
            together = values(Serving(point, check_memory=False))
            with monkeypatch.context() as alone:
                alone.setattr(Serving, "_prepared", False)
                apart = values(Serving(point, check_memory=False))
            assert together == pytest.approx(apart, rel=1e-13), (model.key, layout, batch)
            compared += 1
    assert compared > 60


LARGE = {"model": Models.Llama3_70B, "hardware": NODE, "tensor_parallel": 8}


@pytest.mark.parametrize(
    "switched",
    [
        {"speculation": Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7), **LARGE},
        {"offload": Offload(cache=0.3)},
        {"adapters": LoRA(rank=16, targets="attention"), "adapter_count": 4},
        {"prefix_share": [0.0, 0.5]},
        {"prompt_tokens": [10, 20]},
        {"memory_bandwidth": "3 TB/s"},
        {"roofline_time": "1 ms", "device_batch": 3},
    ],
    ids=lambda each: next(iter(each)),
)
def test_what_is_switched_on_or_given_is_as_if_asked_step_by_step(
    switched: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = str(llama(**switched, batch_size=3))
    monkeypatch.setattr(Serving, "_prepared", False)
    assert together == str(llama(**switched, batch_size=3))


def test_what_was_asked_before_lets_nothing_pass() -> None:
    for good, bad in (
        *(({"tensor_parallel": 1}, {"tensor_parallel": each}) for each in (True, 1.0)),
        ({"prompt_tokens": 1}, {"prompt_tokens": True}),
        ({"expert_imbalance": 1.0}, {"expert_imbalance": True}),
        ({"reserve": 0}, {"reserve": False}),
        *(({}, {"batch_size": each}) for each in (0, 1.5, True, [1, 0])),
        *(({}, bad) for bad in ({"check_memory": 1}, {"batch": 3}, {"prompt_tokens": 10**7})),
        ({}, {"flops": 1.0, "compute_time": "2 s"}),
        ({"batch_size": 4, "device_batch": 4}, {"batch_size": 5}),
    ):
        for _ in range(3):
            llama(**good)
        with pytest.raises(MlsimError):
            llama(**{**good, **bad})


def test_a_list_or_an_array_may_change_between_questions() -> None:
    prompts: Any = [100, 200]
    first = llama(prompt_tokens=prompts).value("time_to_first_token")
    prompts[1] = 300
    assert llama(prompt_tokens=prompts).value("time_to_first_token")[1] > first[1]
    array = np.array([100.0, 200.0])
    llama(prompt_tokens=array)
    array *= 2
    assert llama(prompt_tokens=array).value("time_to_first_token")[0] == pytest.approx(first[1])
