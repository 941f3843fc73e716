"""How the numbers of a service came to be."""

from __future__ import annotations

import json
import re
from typing import Any

import kept
import pytest
from sampled import sampled
from services import NODE, WHOLE, llama

from mlsim import Hardware, Models
from mlsim.equations import EQUATIONS
from mlsim.errors import WrongKindError
from mlsim.quantities import term
from mlsim.records.references import references
from mlsim.solvers.serving.contexts import STEPS, WINDOWED_STEPS
from mlsim.solvers.serving.phase import equations_for
from mlsim.solvers.serving.result_names import RESULTS
from mlsim.solvers.serving.serving import Serving

KINDS_OF_SERVICE = {
    "default": {},
    "bound": {"estimate": "bound"},
    "experts on a node": {
        "model": Models.Mixtral_8x7B,
        "hardware": NODE,
        "tensor_parallel": 2,
        "data_parallel": 4,
        "expert_parallel": 4,
    },
    "latent": {"model": Models.DeepSeek_V3, "hardware": "B200", "check_memory": False},
    "window in all layers": {"model": Models.Mistral_7B},
    "8 bits": {"precision": "fp8"},
    "pipeline": {"hardware": NODE, "pipeline_parallel": 8},
    "encoder": {"model": Models.BERT_Base, "prompt_tokens": 128},
}
each_kind = pytest.mark.parametrize("kind", KINDS_OF_SERVICE)


def check_explanation(explanation: Any, value: float) -> dict[str, Any]:
    """Check an explanation: it leads to the value, is plain data, and prints."""
    data = explanation.to_dict()
    assert data["value"] == pytest.approx(value, rel=1e-12, abs=1e-300)
    assert explanation.value == data["value"]
    if data["steps"]:
        assert data["steps"][-1]["value"] == data["value"]
        assert data["steps"][-1]["quantity"] == data["quantity"]
    assert json.loads(explanation.to_json()) == data
    json.dumps(data, allow_nan=False)
    for step in data["steps"]:
        assert step["unit"] == term(step["quantity"]).unit
        assert step["source"]["key"] in references()
    for known in data["inputs"]:
        assert known["origin"]
    shown = str(explanation)
    assert shown.startswith(f"{data['quantity']} = {term(data['quantity']).text(data['value'])}\n")
    assert data["model"] in shown
    assert explanation._repr_markdown_().startswith("**")
    return data


def decode_steps(serving: Serving) -> tuple[str, ...]:
    """Return the names of the steps that the mean is made of."""
    if not serving.model.decoder:
        return ()
    return WINDOWED_STEPS if serving.model.attention.window else STEPS


@each_kind
def test_every_result_and_quantity_of_a_step_is_explained(kind: str) -> None:
    serving = llama(**KINDS_OF_SERVICE[kind])
    decoder = serving.model.decoder
    parts = decode_steps(serving)
    for name in sampled((*RESULTS, *parts), 9):
        if not decoder and name in WHOLE:
            with pytest.raises(WrongKindError, match="is an encoder"):
                serving.explain(name)
            continue
        data = check_explanation(serving.explain(name), serving.value(name))
        assert data["quantity"] == ("latency" if name in parts else name)
    steps = [serving.prefill]
    steps += [serving.decode] if decoder else []
    there = equations_for(serving.service.variant)
    names = [each.yields for each in there if each.yields not in WHOLE]
    names = [name for name in names if serving.model.experts or name != "group_tokens"]
    checked = 0
    for step in steps:
        for name in sampled(dict.fromkeys(names), 12):
            try:
                value = step.value(name)
            except LookupError:
                # Where nothing is sent there are no links.
                assert "sends" not in serving.service.variant
                assert name in ("network_time", "operator_time", "link_bandwidth")
                continue
            explanation = step.explain(name)
            if getattr(value, "ndim", 0):
                value = value[explanation._example]
            data = check_explanation(explanation, float(value))
            assert data["quantity"] == name
            assert re.search(rf", {step.name}$", data["estimate"])
            checked += 1
    assert checked >= 9


def test_an_explanation_can_be_recomputed() -> None:
    """With the values at hand, each equation gives the value beside it."""
    data = llama(batch_size=4, hardware=NODE, tensor_parallel=2).decode.explain().to_dict()
    example = next(row for row in data["operators"] if row["name"] == data["steps"][0]["example"])
    values = {known["quantity"]: known["value"] for known in data["inputs"]}
    values |= {name: cell["value"] for name, cell in example.items() if isinstance(cell, dict)}
    for step in data["steps"]:
        equation = EQUATIONS[step["equation"]]
        values.setdefault(step["quantity"], step["value"])
        if not equation.sums:
            again = equation(*(values[name] for name in equation.inputs))
            assert again == pytest.approx(step["value"], rel=1e-12)
    rows = data["operators"]
    total = sum(row["repeats"] * row["operator_time"]["value"] for row in rows)
    assert total == pytest.approx(data["value"], rel=1e-12)


def test_where_numbers_come_from() -> None:
    serving = llama(hardware=NODE, tensor_parallel=2, kv_cache="fp8", batch_size=4)
    data = serving.decode.explain().to_dict()
    origins = {known["quantity"]: known["origin"] for known in data["inputs"]}
    bandwidth = Hardware.Cloud.H100.figures["memory.bandwidth"]
    assert origins["memory_bandwidth"] == f"NVIDIA H100 SXM 80 GB: {bandwidth.origin()}"
    assert origins["link_bandwidth"] == "Node: given"
    assert origins["bytes_per_cached_element"].lower() == "kv cache in fp8: 8 bits"
    assert origins["bytes_per_element"] == "activations in bf16: 16 bits"
    assert origins["data_parallel"] == "layout: TP2"
    assert origins["batch_size"] == origins["new_tokens"] == origins["cached_tokens"] == "given"
    assert data["hardware"] == "2 x NVIDIA H100 SXM 80 GB of Node (TP2)"
    assert data["estimate"] == "roofline, decode"
    assert data["model_source"] == "meta2024llama3"
    whole = serving.explain().to_dict()
    origins = {known["quantity"]: known["origin"] for known in whole["inputs"]}
    assert origins["first_token_time"] == "decode, the first step: explained on its own"
    assert origins["time_to_first_token"] == "prefill: explained on its own"
    assert whole["operators"] == []


# Peaks, of which a quantised format has several.

H100 = Hardware.Cloud.H100


def origins_of(serving: Serving, name: str = "latency") -> dict[str, str]:
    inputs = serving.decode.explain(name).to_dict()["inputs"]
    return {known["quantity"]: known["origin"] for known in inputs}


def figure(name: str) -> str:
    return H100.compute.figure(name).origin()


@pytest.mark.parametrize(("formats", "used"), kept.cases("peaks_of_formats.toml"), ids=str)
def test_where_a_peak_comes_from(formats: dict[str, str], used: list[str]) -> None:
    serving = llama(**formats)
    expected = "; or ".join(figure(each) for each in used)
    assert origins_of(serving)["peak_flops"] == f"NVIDIA H100 SXM 80 GB: {expected}"
    shown = str(serving.decode.explain())
    for each in used:
        assert f"[{H100.compute.figure(each).source}]" in shown
    # One peak for all is a number; several are a column.
    rows = serving.decode.explain().to_dict()["operators"]
    peaks = [row.get("peak_flops", {}).get("value") for row in rows]
    assert set(peaks) <= {None, *(H100.compute.figure(each).si for each in used)}
    assert (None in peaks) == (len({H100.compute.figure(each).si for each in used}) == 1)


# The mean of an output's steps.


def test_how_the_mean_of_a_filling_window_came_to_be() -> None:
    """Mistral 7B, 4,000 tokens cached, then 5,000: the window is full with 4,095."""
    serving = llama(model=Models.Mistral_7B, prompt_tokens=4000, output_tokens=1002)
    data = check_explanation(
        serving.explain("time_per_output_token"), serving.value("time_per_output_token")
    )
    (step,) = data["steps"]
    assert step["equation"] == "windowed_time_per_output_token"
    assert step["source"]["key"] == "beltagy2020longformer"
    known = {each["quantity"]: each["value"] for each in data["inputs"]}
    assert known == {
        **{name: serving.value(name) for name in WINDOWED_STEPS},
        "filling_share": 0.095,
    }
    assert data["value"] == EQUATIONS[step["equation"]](
        *(known[name] for name in EQUATIONS[step["equation"]].inputs)
    )
    assert {each["quantity"]: each["origin"] for each in data["inputs"]} == {
        "first_token_time": "decode, the first step: explained on its own",
        "filling_token_time": "decode, halfway to a full window: explained on its own",
        "full_window_time": "decode, the step that fills the window: explained on its own",
        "later_token_time": "decode, halfway from there to the last step: explained on its own",
        "last_token_time": "decode, the last step: explained on its own",
        "filling_share": "part of the output that is written before 4,096 tokens are in the window",
    }
    # Each of them on its own, at its length of the cache.
    for name, cached in zip(WINDOWED_STEPS, (4000, 4047.5, 4095, 4547.5, 5000), strict=True):
        data = check_explanation(serving.explain(name), serving.value(name))
        assert data["estimate"] == f"roofline, decode, {name.replace('_', ' ')}"
        known = {each["quantity"]: each["value"] for each in data["inputs"]}
        assert known["cached_tokens"] == cached
    # The whole generation is put together from the same.
    whole = serving.explain().to_dict()
    assert [each["equation"] for each in whole["steps"]] == [
        "windowed_time_per_output_token",
        "generation_latency",
    ]


# What moves nothing.
