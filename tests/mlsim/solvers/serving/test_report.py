"""A service as text, as data and as a derivation; what is given for it, and what does not fit."""

from __future__ import annotations

import json
import re
from typing import Any

import kept
import pytest
from sampled import sampled
from services import MEMORY, NODE, PAIR, WHOLE, by_hand, llama

from mlsim import Engine, Hardware, Models, show
from mlsim.equations import EQUATIONS
from mlsim.errors import DoesNotFitError, UnknownNameError, WrongKindError
from mlsim.quantities import term
from mlsim.records.references import references
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.steps import RESULTS, STEPS, WINDOWED_STEPS, equations_for
from mlsim.workloads.steps import STEP_COLUMNS

# As text and as data.


def test_a_service_as_text_and_as_data() -> None:
    serving = by_hand()
    assert str(serving).splitlines() == [
        "Tiny on Slow chip, fp16, roofline",
        "  batch size    2 x (3 prompt + 3 output) tokens",
        "  prefill       67.52 s to the first token (Memory Bound, 83%)",
        "  decode        36 s per token (Memory Bound, 100%)",
        "  in all        139.5 s to the last token",
        "  throughput    0 token/s while decoding, 0.0 for each user",
        "  memory        1.188 KiB of 1.758 KiB (10% of 1.953 KiB reserved)",
        "                weights 680 B, cache 256 B, activations 280 B",
        "  room for      4 such sequences, or a context of 11 tokens at this batch",
    ]
    assert str(serving.prefill).splitlines() == [
        "prefill of Tiny on Slow chip, 2 x 3 new and 0 cached tokens, fp16, roofline",
        "  latency     67.52 s",
        "  limits      Memory Bound 83%, Compute Bound 17%",
        "  work        3.424 kFLOP",
        "  traffic     2.672 kB",
    ]
    assert "formats_assumed" not in serving.to_dict()
    (assumed,) = llama(precision="fp8").service.assumptions
    assert assumed.startswith("KV cache in fp8, since that was asked of all")
    assert Engine.serve(model="BERT_Base", hardware="H100", precision="fp8").assumptions == ()
    step = serving.decode.to_dict()
    assert step["cached_tokens"] == {"value": 3.5, "unit": "token/sample"}
    assert (step["phase"], step["bottleneck"]) == ("decode", MEMORY)
    assert repr(serving) == "<Serving Tiny on Slow chip, 2 x 3 + 3 tokens, fp16, roofline>"
    assert repr(serving.decode).startswith("<StepProfile decode of Tiny on Slow chip, 2 x 1 new")
    node = by_hand(hardware=PAIR, tensor_parallel=2)
    assert repr(node).startswith("<Serving Tiny on 2 x Slow chip of Slow pair (TP2), 2 x 3 +")
    data = serving.to_dict()
    assert (data["model"], data["hardware"], data["estimate"]) == ("Tiny", "Slow chip", "roofline")
    layout = ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel")
    assert data["layout"] == dict.fromkeys(layout, 1)
    assert data["formats"] == {"weights": "fp16", "activations": "fp16", "kv_cache": "fp16"}
    for name, value, unit in (
        ("batch_size", 2, "sample"),
        ("prompt_tokens", 3.0, "token/sample"),
        ("longest_context", 11, "token"),
        ("largest_batch", 4, "sample"),
    ):
        assert data[name] == {"value": value, "unit": unit}
    assert data["feasible"] is True
    assert data["bottleneck"] == {"prefill": MEMORY, "decode": MEMORY}


def test_many_points_as_text() -> None:
    shown = str(by_hand(batch_size=[1, 2, 20])).splitlines()
    assert len(shown) == 2 + 3
    assert " ".join(shown[1].split()) == "batch prompt output first token per token token/s"
    assert shown[3].split()[:5] == ["2", "3", "3", "67.52", "s"]
    assert shown[4].split() == ["20", "3", "3", "-", "-", "-"]
    # A long one is shown by its ends.
    long = str(llama(batch_size=range(1, 101))).splitlines()
    assert len(long) == 2 + 21 + 1
    assert long[-1] == "  formats     bf16, since no other was given"
    assert [row.split()[0] for row in (long[2], long[12], long[-2])] == ["1", "...", "100"]


def test_a_name_that_is_no_result() -> None:
    with pytest.raises(UnknownNameError, match=r"'cache_memry'. Did you mean 'cache_memory'"):
        show(llama(), "cache_memry")
    for name in ("prefill", "feasible.latency"):
        with pytest.raises(UnknownNameError, match=f"no result of a service is called '{name}'"):
            show(llama(), name)
    # A quantity of one phase is asked of the phase.
    with pytest.raises(UnknownNameError, match="no result of a service is called 'total_flops'"):
        llama().value("total_flops")
    with pytest.raises(UnknownNameError, match="no quantity is called 'total_flop'"):
        llama().decode.value("total_flop")


# What does not fit.


def test_what_does_not_fit_says_so() -> None:
    serving = llama(batch_size=1000, prompt_tokens=8192)
    for ask in ("latency", "time_to_first_token", "time_per_output_token", "decode_throughput"):
        with pytest.raises(DoesNotFitError) as e:
            getattr(serving, ask)
    message = str(e.value)
    assert message.startswith(
        "Llama 3.1 8B with 1,000 sequence(s) of 8,192 + 128 tokens (bf16) needs 1.007 TiB on each "
        "device of NVIDIA H100 SXM 80 GB, which has 79.65 GiB, 10% of it reserved: "
    )
    assert f"The largest batch of these lengths is {serving.largest_batch:,}." in message
    assert "check_memory=False gives the time it would take." in message
    # 680 + 20 x 128 + 2 (20 x 60 + 200) B, of which 1,800 fit: 4,240 B.
    assert "feasible      no: 4.141 KiB too much" in str(by_hand(batch_size=20))
    assert "per token" not in str(serving)
    assert serving.bottleneck == {"prefill": "Does Not Fit", "decode": "Does Not Fit"}
    with pytest.raises(DoesNotFitError):
        Serving(serving.service).value("generation_latency")
    assert "per token" in str(llama(batch_size=1000, prompt_tokens=8192, check_memory=False))
    none = llama(model="Llama3_70B")
    assert (none.largest_batch, none.longest_context) == (0, 0)
    assert "room for      no such sequence: use fewer bits or more devices" in str(none)
    with pytest.raises(DoesNotFitError, match="leave no room for one sequence: use fewer bits"):
        none.latency  # noqa: B018
    with pytest.raises(DoesNotFitError, match=r"which has 16 GiB, 10% of it reserved"):
        llama(memory_capacity="16 GiB").latency  # noqa: B018


def test_an_encoder_does_not_decode() -> None:
    serving = Engine.serve(model="BERT_Base", hardware="A100")
    assert serving.bottleneck.keys() == {"prefill"}
    assert "per token" not in str(serving)
    many = Engine.serve(model="BERT_Base", hardware="A100", batch_size=[1, 8], prompt_tokens=384)
    assert str(many).splitlines()[1].split() == ["batch", "prompt", "output", "first", "token"]
    message = "BERT-Base is an encoder: it reads a text at once and generates nothing."
    for ask in ("decode", "time_per_output_token", "decode_throughput"):
        with pytest.raises(WrongKindError, match=re.escape(message)):
            getattr(serving, ask)
    with pytest.raises(WrongKindError, match="it keeps no cache that could grow"):
        serving.longest_context  # noqa: B018
    with pytest.raises(WrongKindError) as e:
        Engine.serve(model="BERT_Base", hardware="A100", output_tokens=8)
    assert str(e.value) == f"{message} Leave output_tokens out."
    assert Engine.serve(model="BERT_Base", hardware="A100", output_tokens=0).feasible


# As a derivation.

KINDS_OF_SERVICE = {
    "experts on a node": {
        "model": Models.Mixtral_8x7B,
        "hardware": NODE,
        "tensor_parallel": 2,
        "data_parallel": 4,
        "expert_parallel": 4,
    },
    "window in all layers": {"model": Models.Mistral_7B},
    "pipeline": {"hardware": NODE, "pipeline_parallel": 8, "estimate": "bound"},
    "encoder": {"model": Models.BERT_Base, "prompt_tokens": 128},
}


def check_explanation(explanation: Any, value: float) -> dict[str, Any]:
    """Check an explanation: it leads to the value, is plain data, and prints."""
    data = explanation.to_dict()
    assert data["value"] == explanation.value == pytest.approx(value, rel=1e-12, abs=1e-300)
    if data["steps"]:
        assert data["steps"][-1]["value"] == data["value"]
        assert data["steps"][-1]["quantity"] == data["quantity"]
    assert json.loads(explanation.to_json()) == data
    for step in data["steps"]:
        assert step["unit"] == term(step["quantity"]).unit
        assert step["source"]["key"] in references()
    assert all(known["origin"] for known in data["inputs"])
    shown = str(explanation)
    assert shown.startswith(f"{data['quantity']} = {term(data['quantity']).text(data['value'])}\n")
    return data


@pytest.mark.parametrize("kind", KINDS_OF_SERVICE)
def test_every_result_and_quantity_of_a_step_is_explained(kind: str) -> None:
    serving = llama(**KINDS_OF_SERVICE[kind])
    decoder = serving.model.decoder
    parts = (WINDOWED_STEPS if serving.model.attention.window else STEPS) if decoder else ()
    for name in sampled((*RESULTS, *parts), 9):
        if not decoder and name in WHOLE:
            with pytest.raises(WrongKindError, match="is an encoder"):
                serving.explain(name)
            continue
        data = check_explanation(serving.explain(name), serving.value(name))
        assert data["quantity"] == ("latency" if name in parts else name)
    names = [each.yields for each in equations_for(serving.service.variant)]
    unknown = {*WHOLE, *(() if serving.model.experts else ("group_tokens",))}
    if "sends" not in serving.service.variant:
        unknown |= {"network_time", "operator_time", "link_bandwidth"}
    for step in [serving.prefill, serving.decode] if decoder else [serving.prefill]:
        for name in sampled(dict.fromkeys(each for each in names if each not in unknown), 9):
            value, explanation = step.value(name), step.explain(name)
            if getattr(value, "ndim", 0):
                value = value[explanation._example]
            data = check_explanation(explanation, float(value))
            assert data["quantity"] == name
            assert data["estimate"].endswith(f", {step.name}")


def origins_of(explanation: Any) -> dict[str, str]:
    return {known["quantity"]: known["origin"] for known in explanation.to_dict()["inputs"]}


def test_where_columns_of_operators_come_from() -> None:
    """Whatever is not the model's own, in a table of shared sequences and one that was measured."""
    asked: dict[str, Any] = {"hardware": "HGX_H100", "model": Models.Mixtral_8x7B}
    for layout in ({"context_parallel": 2}, {"tensor_parallel": 4, "estimate": "calibrated"}):
        service = llama(**asked, **layout).service
        added = set(service.table.columns) - {*STEP_COLUMNS, "product_depth"}
        assert len(added) > 2
        assert not added - set(service.known.origins), layout
    shared = llama(**asked, context_parallel=2).service.known
    for name in ("ring_cached_elements", "ring_query_elements"):
        assert shared.origin(name) == "Mixtral 8x7B, from its attention"


def test_where_numbers_come_from() -> None:
    serving = llama(hardware=NODE, tensor_parallel=2, kv_cache="fp8", batch_size=4)
    data, origins = serving.decode.explain().to_dict(), origins_of(serving.decode.explain())
    bandwidth = Hardware.Cloud.H100.figures["memory.bandwidth"]
    assert origins["memory_bandwidth"] == f"NVIDIA H100 SXM 80 GB: {bandwidth.origin()}"
    assert origins["link_bandwidth"] == "Node: given"
    assert origins["bytes_per_sent_element"].startswith("sums in 16 bits or more")
    assert origins["bytes_per_cached_element"].lower() == "kv cache in fp8: 8 bits"
    assert origins["bytes_per_element"] == "activations in bf16: 16 bits"
    assert origins["data_parallel"] == "layout: TP2"
    assert origins["batch_size"] == origins["new_tokens"] == origins["cached_tokens"] == "given"
    assert data["hardware"] == "2 x NVIDIA H100 SXM 80 GB of Node (TP2)"
    assert data["model_source"] == "meta2024llama3"
    whole = origins_of(serving.explain())
    assert whole["first_token_time"] == "decode, the first step: explained on its own"
    assert whole["time_to_first_token"] == "prefill: explained on its own"


H100 = Hardware.Cloud.H100.compute


@pytest.mark.parametrize(("formats", "used"), kept.cases("peaks_of_formats.toml"), ids=str)
def test_where_a_peak_comes_from(formats: dict[str, str], used: list[str]) -> None:
    """Of a quantised format there are several: one for all is a number, several are a column."""
    explained = llama(**formats).decode.explain()
    expected = "; or ".join(H100.figure(each).origin() for each in used)
    assert origins_of(explained)["peak_flops"] == f"NVIDIA H100 SXM 80 GB: {expected}"
    for each in used:
        assert f"[{H100.figure(each).source}]" in str(explained)
    rows = explained.to_dict()["operators"]
    peaks = [row.get("peak_flops", {}).get("value") for row in rows]
    assert set(peaks) <= {None, *(H100.figure(each).si for each in used)}
    assert (None in peaks) == (len({H100.figure(each).si for each in used}) == 1)


def test_how_the_mean_of_a_filling_window_came_to_be() -> None:
    """Mistral 7B, 4,000 tokens cached, then 5,000: the window is full with 4,095."""
    serving = llama(model=Models.Mistral_7B, prompt_tokens=4000, output_tokens=1002)
    explained = serving.explain("time_per_output_token")
    data = check_explanation(explained, serving.value("time_per_output_token"))
    (step,) = data["steps"]
    assert step["equation"] == "windowed_time_per_output_token"
    known = {each["quantity"]: each["value"] for each in data["inputs"]}
    steps = {name: serving.value(name) for name in WINDOWED_STEPS}
    assert known == {**steps, "filling_share": 0.095}
    equation = EQUATIONS[step["equation"]]
    assert data["value"] == equation(*(known[name] for name in equation.inputs))
    alone = ": explained on its own"
    assert origins_of(explained) == {
        "first_token_time": f"decode, the first step{alone}",
        "filling_token_time": f"decode, halfway to a full window{alone}",
        "full_window_time": f"decode, the step that fills the window{alone}",
        "later_token_time": f"decode, halfway from there to the last step{alone}",
        "last_token_time": f"decode, the last step{alone}",
        "filling_share": "part of the output that is written before 4,096 tokens are in the window",
    }
    # Each of them on its own, at its length of the cache.
    for name, cached in zip(WINDOWED_STEPS, (4000, 4047.5, 4095, 4547.5, 5000), strict=True):
        data = check_explanation(serving.explain(name), serving.value(name))
        assert data["estimate"] == f"roofline, decode, {name.replace('_', ' ')}"
        known = {each["quantity"]: each["value"] for each in data["inputs"]}
        assert known["cached_tokens"] == cached


# What is given takes the place of what the data or the equations say.


def test_figures_given_as_they_are_change_nothing() -> None:
    h100 = Hardware.Cloud.H100
    same = llama(
        memory_bandwidth=h100.memory.bandwidth,
        memory_capacity=h100.memory.capacity,
        peak_flops=h100.compute.peak("bf16"),
        bytes_per_parameter="2 B/parameter",
        bytes_per_element="2 B/element",
        bytes_per_cached_element="2 B/element",
    )
    plain = llama()
    for name in RESULTS:
        assert same.value(name) == pytest.approx(plain.value(name), rel=1e-12)


def test_bytes_and_links_that_are_given() -> None:
    sizes = {
        "weight_memory": "bytes_per_parameter",
        "cache_memory": "bytes_per_cached_element",
        "activation_memory": "bytes_per_element",
    }
    plain = llama()
    for halved, name in sizes.items():
        half = llama(**{name: f"1 B/{'parameter' if 'parameter' in name else 'element'}"})
        for each in sizes:
            assert half.value(each) == plain.value(each) / (2 if each == halved else 1)
    node = {"hardware": NODE, "tensor_parallel": 4}
    was, is_ = llama(**node).prefill, llama(**node, link_bandwidth="45 GB/s").prefill
    more = 9 * was.value("total_network_time")
    assert is_.value("latency") - was.value("latency") == pytest.approx(more, rel=1e-9)
    # A start and a rate are a line: 3 x 2,048 tokens of 4,096 numbers go round, 6/4 of 2 B each.
    line = {"estimate": "calibrated", "link_fraction": 0.8, "link_latency": "20 us"}
    longest = max(llama(**node, batch_size=3, **line).prefill.value("network_time"))
    assert longest == pytest.approx(20e-6 + 3 * 2048 * 4096 * 2 * 6 / 4 / (0.8 * 450e9), rel=1e-12)
    # Of links that are given nothing is borrowed.
    borrowing = {"hardware": "MI300X_Platform", "tensor_parallel": 8, "estimate": "calibrated"}
    for given, lent in (({}, True), ({"link_fraction": 0.8, "link_latency": "20 us"}, False)):
        found = {each.constant for each in llama(**borrowing, **given).service.loans}
        assert ("exchange" in found) == lent


def test_an_expert_share_that_is_given() -> None:
    arguments = {"model": Models.Mixtral_8x7B, "hardware": "B200"}
    experts = 32 * 3 * 8 * 4096 * 14336
    rows = llama(**arguments).decode
    few, all_ = llama(**arguments, expert_share=0.25), llama(**arguments, expert_share=1)
    assert few.decode.value("total_bytes") == pytest.approx(rows.value("total_bytes"), rel=1e-12)
    more = all_.decode.value("total_bytes") - few.decode.value("total_bytes")
    assert more == pytest.approx(2 * experts * 0.75, rel=1e-12)
    # The router's choice is no weight: memory is as it was.
    assert all_.value("memory_required") == few.value("memory_required")
    data = few.decode.explain().to_dict()
    assert origins_of(few.decode.explain())["expert_share"] == "given"
    assert "expert_share" not in {each["quantity"] for each in data["steps"]}


def test_a_quantity_that_all_steps_share() -> None:
    serving = llama(roofline_time="1 us")
    # An embedding, 65 norms, an output layer, and five operators in 32 layers.
    assert serving.value("time_per_output_token") == pytest.approx(227e-6, rel=1e-12)
    assert serving.value("time_to_first_token") == pytest.approx(227e-6, rel=1e-12)
    free = llama(memory_free="1 GB", batch_size=10**6)
    assert (free.value("memory_free"), free.feasible) == (1e9, True)
