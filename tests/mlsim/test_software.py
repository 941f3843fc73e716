"""Classes of software: what their files say, what they do to an answer, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlsim import Engine, Hardware
from mlsim.equations.software import mixed_token_time, wave_token_time
from mlsim.errors import DataFileError, InvalidValueError, UnknownNameError
from mlsim.hardware.device_calibration import calibration
from mlsim.records.references import references
from mlsim.software import (
    NEUTRAL,
    Software,
    SoftwareTerm,
    classes,
    load,
    narrower,
    of_program,
    software,
    without,
)
from mlsim.solvers.calibrated import cycles_of
from mlsim.solvers.forward.profile import Profile
from mlsim.solvers.serving.phase import step_question


def inside(profile: Profile, name: str) -> float:
    """Return a quantity that only answers with a host have."""
    return float(profile.configuration.question.evaluate(name)[name])


def test_each_term_is_within_its_range_and_has_sources() -> None:
    broken = [
        f"{key}.toml: {name}"
        for key, made_by in classes().items()
        for name, each in made_by.terms.items()
        if not each.least <= each.low <= each.value <= each.high <= each.most
        or not each.note
        or not set(each.source.split(", ")) <= set(references())
    ]
    assert broken == []


def test_a_program_is_never_faster_than_its_kernels() -> None:
    asked: dict[str, Any] = {"model": "ResNet50", "hardware": "A100", "batch_size": [1, 64]}
    alone = Engine.solve(**asked, estimate="calibrated", software="kernels").value("latency")
    for key in classes():
        inside = Engine.solve(**asked, estimate="calibrated", software=key).value("latency")
        assert (inside >= alone * (1 - 1e-12)).all()


def test_the_host_decides_a_small_batch_by_hand() -> None:
    """53 convolutions of three kernels each, two poolings and a product, one after another."""
    eager = software("eager")
    found = Engine.solve(model="ResNet50", hardware="A100", estimate="calibrated", software="eager")
    starts = 53 * eager.kernels("convolution") + 3
    assert inside(found, "launch_count") == starts
    assert found.value("latency") == pytest.approx(starts * eager.value("host_launch_time"))
    device = inside(found, "operators_time")
    assert device < found.value("latency")
    waits = found.value("latency") - device + inside(found, "started_time_total")
    assert found.value("total_overhead_time") == pytest.approx(waits)


def test_a_request_brings_its_inputs_by_hand() -> None:
    """150,528 numbers of 4 bytes an image, at the rate of calls, and the time of one call."""
    made_by = software("request_path")
    found = Engine.solve(
        model="ResNet50",
        hardware="A100",
        batch_size=8,
        estimate="calibrated",
        software="request_path",
    )
    brought = 8 * 150528 * 4 / made_by.value("call_bandwidth")
    assert found.value("latency") == pytest.approx(
        inside(found, "operators_time") + made_by.value("call_time") + brought
    )


def test_a_scheduler_takes_its_turn_by_hand() -> None:
    made_by = software("vllm")
    found = Engine.serve(
        model="Llama3_8B",
        hardware="H100",
        batch_size=64,
        estimate="calibrated",
        software="vllm",
    ).decode
    host = made_by.value("step_host_time") + 64 * made_by.value("sequence_host_time")
    assert found.value("latency") == pytest.approx(found.value("operators_time") + host)


@pytest.mark.parametrize("batch", [4, 512])
def test_a_scheduler_that_works_ahead_decides_where_it_is_slower(batch: int) -> None:
    """With many sequences of a small model, the scheduler takes longer than the device."""
    made_by = software("vllm_async")
    asked = {"model": "Qwen3_8B", "hardware": "B200", "batch_size": batch, "prompt_tokens": 64}
    found = Engine.serve(**asked, estimate="calibrated", software="vllm_async").decode
    host = made_by.value("step_host_time") + batch * made_by.value("sequence_host_time")
    device = found.value("operators_time")
    assert found.value("latency") == pytest.approx(max(device, host))
    assert (host > device) == (batch > 4)
    waits = found.causes["host"]
    assert waits == pytest.approx(max(host - device, 0) / max(device, host), abs=1e-12)


@pytest.mark.parametrize("key", ["vllm", "vllm_async", "torch_engine"])
def test_an_engine_that_takes_text_cuts_it_into_tokens(key: str) -> None:
    """The same host does it, whoever schedules: a narrower class forgets no term of the path."""
    assert software(key).value("tokenizing_time") == pytest.approx(3.5e-6)


def test_prompts_in_waves_wait_half_as_long() -> None:
    apart = mixed_token_time(0.01, 9, 0.2, 100) - 0.01
    assert wave_token_time(0.01, 9, 0.2, 100) - 0.01 == pytest.approx(apart / 2)


def test_weights_are_worked_on_by_cores_by_hand() -> None:
    """Llama 2 7B on an A100: the down matrix has 45 million weights, 19.5 TFLOP/s / 128 cycles."""
    found = Engine.serve(
        model="Llama2_7B",
        hardware="A100",
        precision="fp16",
        estimate="calibrated",
        software="llama_cpp",
    ).decode
    row = next(each for each in found.operators if each["name"] == "feed-forward, down")
    part = calibration(Hardware.Cloud.A100, "fp16").memory_fraction
    cycles = 19.5e12 / (64 * 2)
    rate = cycles * software("llama_cpp").value("weights_per_cycle")
    read = row["parameters"]
    moved = row["bytes_moved"] / (Hardware.Cloud.A100.bandwidth_si * part)
    assert row["memory_time"] == pytest.approx(moved + read / rate, rel=1e-3)


def test_cores_turn_at_a_clock_that_such_chips_have() -> None:
    """A wrong count of lanes, or of cores, would double or halve it."""
    clocks = {
        each.key: cycles / each.cores / 1e9
        for each in Hardware
        if each.cores and not each.key.startswith("Server.") and (cycles := cycles_of(each))
    }
    # 20.31 TFLOP/s over 2 x 128 x 46, and 22.65 over 2 x 64 x 104.
    assert clocks["Workstation.RTX3070"] == pytest.approx(1.725, rel=1e-3)
    assert clocks["Cloud.MI210"] == pytest.approx(1.7, rel=1e-3)
    assert {key: clock for key, clock in clocks.items() if not 0.9 < clock < 3.0} == {}


def test_what_is_written_again_moves_again() -> None:
    asked: dict[str, Any] = {"model": "ResNet50", "hardware": "A100", "estimate": "calibrated"}
    fused = Engine.solve(**asked, software="kernels").value("total_bytes")
    apart = Engine.solve(**asked, software="eager").value("total_bytes")
    assert 2 * fused < apart + 51e6  # weights move once in both


def test_answers_name_their_software() -> None:
    found = Engine.serve(model="Llama3_8B", hardware="H100", estimate="calibrated")
    assert found.to_dict()["software"] == "engine"
    assert software("engine").name in str(found)
    origins = {row["quantity"]: row["origin"] for row in found.decode.explain().to_dict()["inputs"]}
    assert "software engine" in origins["compute_fraction"]
    assert "software" not in Engine.serve(model="Llama3_8B", hardware="H100").to_dict()


@pytest.mark.parametrize("estimate", ["roofline", "bound"])
def test_software_goes_with_the_calibrated_estimate(estimate: str) -> None:
    with pytest.raises(InvalidValueError, match="goes with estimate='calibrated' only"):
        Engine.solve(model="ResNet50", hardware="A100", estimate=estimate, software="eager")


def test_an_unknown_class_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'eager'"):
        Engine.solve(model="ResNet50", hardware="A100", estimate="calibrated", software="eagr")


@pytest.mark.parametrize(
    ("words", "usual", "key"),
    [
        ("PyTorch 1.12 eager", "engine", "eager"),
        ("TensorFlow 1.15 + XLA", "engine", "graph"),
        ("ONNX Runtime and TensorRT in Triton", "engine", "request_path"),
        ("PyTorch gpt-fast (torch.compile + CUDA graphs)", "engine", "engine"),
        ("TensorRT-LLM v0.6.1", "engine", "early_engine"),
        ("TensorRT-LLM v1.0", "engine", "engine"),
        ("llama.cpp build 6918", "engine", "llama_cpp"),
        ("vLLM 0.13.0", "engine", "vllm"),
        ("vLLM v0.14.1", "engine", "vllm_async"),
        ("nobody knows", "framework", "framework"),
    ],
)
def test_a_program_finds_its_class(words: str, usual: str, key: str) -> None:
    assert of_program(words, usual) == key
    assert key in classes()


def test_narrower_classes_are_of_their_own_only() -> None:
    assert narrower("framework", "Megatron-LM") == "megatron"
    assert narrower("eager", "Megatron-LM") == "eager"


def test_a_class_without_a_series_differs_in_fitted_terms_only() -> None:
    whole, apart = software("vllm"), without("vllm", "mlenergy_Llama-3.1-8B-Instruct")
    assert apart is not whole
    assert set(apart.terms) == set(whole.terms)
    for name, each in whole.terms.items():
        assert each.low <= apart.value(name) <= each.high or math.isclose(
            apart.value(name), each.value, rel_tol=1e-3
        )


TERM = """
[call_time]
value = 1e-3
unit = "s"
low = 1e-3
high = 1e-3
least = 1e-4
most = 1e-2
source = "nvidia2022triton"
note = "x"
"""
HEAD = 'key = "x"\nname = "x"\nabout = "x"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("key = 3", "key must be a text"),
        (HEAD + TERM.replace("call_time", "call_tim"), "no term is called 'call_tim'"),
        (HEAD + TERM.replace('unit = "s"', 'unit = "ms"'), "call_time must be in s, not ms"),
        (HEAD + TERM.replace("value = 1e-3", "value = 1"), "least <= low <= value"),
        (HEAD + TERM.replace("value = 1e-3", 'value = "1"'), "must have numbers"),
        (HEAD + TERM.replace('note = "x"\n', ""), "must have value"),
        (HEAD + "[launches]\nconvolution = 0\n", "launches of convolution must be 1 or more"),
        (HEAD + "[prompt_launches]\nstate = 0\n", "prompt_launches of state must be 1 or more"),
        (HEAD.replace('key = "x"', 'key = "x"\nexchanges = "mpi"'), "exchanges must be one of"),
        (HEAD.replace('key = "x"', 'key = "x"\nscheduling = "late"'), "scheduling must be one of"),
        ("key = ", "Invalid value"),
    ],
)
def test_a_fault_in_a_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=words) as error:
        load(path)
    assert str(path) in str(error.value)


def test_neutral_terms_add_nothing() -> None:
    kernels = software("kernels")
    assert not kernels.hosted
    assert not kernels.unfused
    assert not kernels.terms
    assert all(kernels.value(name) == value for name, value in NEUTRAL.items())
    # A share takes all, a rate is without limit, and a time or a count is none.
    for name, value in NEUTRAL.items():
        rate = name.endswith(("_per_cycle", "_bandwidth"))
        assert value == (1 if name.endswith("_share") else math.inf if rate else 0), name
    bare = Software("x", "X", "", {}, {"norm": 3.0}, prompt_launches={"norm": 5.0})
    assert (bare.exchanges, bare.scheduling, bare.ahead) == ("graph", "between", False)
    assert [bare.kernels(kind) for kind in ("norm", "other")] == [3, 1]
    assert [bare.started(kind) for kind in ("norm", "other")] == [5, 1]
    assert bare.origin("call_time") == "software x: adds nothing"
    one = SoftwareTerm(3e-6, "s", 2e-6, 5e-6, 1e-6, 1e-3, "doc2026", "By hand")
    told = replace(bare, terms={"call_time": one}).origin("call_time")
    assert told == "software x: By hand (2e-06 to 5e-06 with one series left out); doc2026"


def test_kernels_of_a_prompt_are_counted_apart_by_hand() -> None:
    """61 layers: two norms, seven kernels of latent attention, and experts in all but three."""
    asked: dict[str, Any] = {"hardware": "hgx_h200", "tensor_parallel": 8, "precision": "fp8"}
    asked |= {"prompt_tokens": 1024, "output_tokens": 2, "users": 1, "requests": 1}
    loaded = Engine.load(model="DeepSeek_V3", scheduler="sglang", estimate="calibrated", **asked)
    service = loaded.loaded.service
    question = step_question(replace(service, batch_size=1.0), "a prompt", 1024.0, 0.0)
    norms, attention, projections, output = 2 * 61 + 1, 7 * 61, 5 * 61, 2
    dense, routed = 2 * 3, (2 + 2 * 2 + 2) * 58
    whole = norms + attention + projections + output + dense + routed
    assert question.value("launch_count") == whole
    # A step that is captured as a graph starts none of them.
    graph = step_question(replace(service, batch_size=1.0), "a token", 1.0, 1024.0)
    assert graph.value("launch_count") == 0


def test_a_class_may_name_whose_experts_it_takes() -> None:
    """Marlin's kernels multiply in 16 bits whatever the 4 bits of the weights."""
    marlin = replace(software("vllm"), expert_paths={"mxfp4": "int4_weights"})
    assert marlin.expert_path("mxfp4", 16) == "int4_weights"
    assert marlin.expert_path("mxfp4", 8) == ""
    asked: dict[str, Any] = {"model": "GPT_OSS_120B", "hardware": "H200", "batch_size": 1}
    asked |= {"prompt_tokens": 8192, "weights": "mxfp4", "activations": "bf16"}
    asked |= {"estimate": "calibrated", "output_tokens": 2}
    usual = Engine.serve(**asked, software="vllm").value("time_to_first_token")
    slower = Engine.serve(**asked, software=marlin).value("time_to_first_token")
    assert slower > 1.3 * usual
