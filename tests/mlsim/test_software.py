"""Classes of software: what their files say, what they do to an answer, and what is refused."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import kept
import pytest

from mlsim import Engine, Hardware
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
from mlsim.solvers.serving.steps import step_question

CALIBRATED: dict[str, Any] = {"estimate": "calibrated"}
NETWORK: dict[str, Any] = {**CALIBRATED, "model": "ResNet50", "hardware": "A100"}


def inside(profile: Profile, name: str) -> float:
    """Return a quantity that only answers with a host have."""
    return float(profile.configuration.question.evaluate(name)[name])


def test_each_term_has_a_note_and_its_sources_are_known() -> None:
    terms = [each for made_by in classes().values() for each in made_by.terms.values()]
    assert all(each.note for each in terms)
    assert {key for each in terms for key in each.source.split(", ")} <= set(references())


def test_a_program_is_never_faster_than_its_kernels() -> None:
    latency = {
        key: Engine.solve(**NETWORK, batch_size=[1, 64], software=key).value("latency")
        for key in classes()
    }
    alone = latency["kernels"]
    assert [key for key, each in latency.items() if not (each >= alone * (1 - 1e-12)).all()] == []


def test_the_host_decides_a_small_batch_by_hand() -> None:
    """53 convolutions of three kernels each, two poolings and a product, one after another."""
    eager = software("eager")
    found = Engine.solve(**NETWORK, software="eager")
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
    found = Engine.solve(**NETWORK, batch_size=8, software="request_path")
    brought = 8 * 150528 * 4 / made_by.value("call_bandwidth")
    assert found.value("latency") == pytest.approx(
        inside(found, "operators_time") + made_by.value("call_time") + brought
    )


def test_a_scheduler_takes_its_turn_or_decides_where_it_works_ahead_and_is_slower() -> None:
    """With many sequences of a small model, the scheduler takes longer than the device."""
    asked = {**CALIBRATED, "model": "Qwen3_8B", "hardware": "B200", "prompt_tokens": 64}
    for key, batch in (("vllm", 64), ("vllm_async", 4), ("vllm_async", 512)):
        made_by = software(key)
        found = Engine.serve(**asked, batch_size=batch, software=key).decode
        host = made_by.value("step_host_time") + batch * made_by.value("sequence_host_time")
        device = found.value("operators_time")
        assert (host > device) == (batch > 4)
        step = max(device, host) if made_by.ahead else device + host
        assert found.value("latency") == pytest.approx(step)
        assert found.causes["host"] == pytest.approx(1 - device / step, abs=1e-12)


def test_weights_are_worked_on_by_cores_by_hand() -> None:
    """Llama 2 7B on an A100: the down matrix has 45 million weights, 19.5 TFLOP/s / 128 cycles."""
    asked = {**CALIBRATED, "model": "Llama2_7B", "hardware": "A100", "precision": "fp16"}
    found = Engine.serve(**asked, software="llama_cpp").decode
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
    fused, apart = (
        Engine.solve(**NETWORK, software=key).value("total_bytes") for key in ("kernels", "eager")
    )
    assert 2 * fused < apart + 51e6  # weights move once in both


def test_answers_name_their_software_and_those_without_one_refuse_it() -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100"}
    found = Engine.serve(**asked, **CALIBRATED)
    assert found.to_dict()["software"] == "engine"
    assert software("engine").name in str(found)
    origins = {row["quantity"]: row["origin"] for row in found.decode.explain().to_dict()["inputs"]}
    assert "software engine" in origins["compute_fraction"]
    assert "software" not in Engine.serve(**asked).to_dict()
    for estimate in ("roofline", "bound"):
        with pytest.raises(InvalidValueError, match="goes with estimate='calibrated' only"):
            Engine.solve(**NETWORK | {"estimate": estimate}, software="eager")
    with pytest.raises(UnknownNameError, match="Did you mean 'eager'"):
        Engine.solve(**NETWORK, software="eagr")


def test_a_program_finds_its_class_and_a_narrower_one() -> None:
    cases = kept.cases("programs.toml")
    found = {(usual, words): of_program(words, usual) for usual, words, _ in cases}
    assert found == {(usual, words): key for usual, words, key in cases}
    assert set(found.values()) <= set(classes())
    # Of its own class only.
    assert narrower("eager", "Megatron-LM") == "eager"


def test_a_class_without_a_series_differs_in_fitted_terms_only() -> None:
    whole, apart = software("vllm"), without("vllm", "mlenergy_Llama-3.1-8B-Instruct")
    assert apart is not whole
    assert set(apart.terms) == set(whole.terms)
    for name, each in whole.terms.items():
        assert each.low <= apart.value(name) <= each.high or math.isclose(
            apart.value(name), each.value, rel_tol=1e-3
        )


def test_a_fault_in_a_file_is_named(tmp_path: Path) -> None:
    good, path = kept.text("software.toml"), tmp_path / "x.toml"
    path.write_text(good, "utf-8")
    found = load(path)
    assert (found.exchanges, found.ahead, found.value("call_time")) == ("nccl", True, 1e-3)
    assert (found.kernels("convolution"), found.started("state")) == (1, 1.5)
    for old, new, words in kept.cases("software_faults.toml"):
        assert old in good
        path.write_text(good.replace(old, new, 1), "utf-8")
        with pytest.raises(
            DataFileError, match=rf"^{re.escape(str(path))}:\d+: .*{re.escape(words)}"
        ):
            load(path)


def test_neutral_terms_add_nothing() -> None:
    assert not software("kernels").terms
    # A share takes all, a rate is without limit, and a time or a count is none.
    for name, value in NEUTRAL.items():
        rate = name.endswith(("_per_cycle", "_bandwidth"))
        assert value == (1 if name.endswith("_share") else math.inf if rate else 0), name
    bare = Software("x", "X", "", {}, {"norm": 3.0}, prompt_launches={"norm": 5.0})
    assert {bare.value(name) for name in NEUTRAL} == set(NEUTRAL.values())
    assert (bare.exchanges, bare.scheduling, bare.ahead) == ("graph", "between", False)
    assert [bare.kernels(kind) for kind in ("norm", "other")] == [3, 1]
    assert [bare.started(kind) for kind in ("norm", "other")] == [5, 1]
    assert bare.origin("call_time") == "software x: adds nothing"
    one = SoftwareTerm(3e-6, "s", 2e-6, 5e-6, 1e-6, 1e-3, "doc2026", "By hand")
    told = replace(bare, terms={"call_time": one})
    words = "software x: By hand (2e-06 to 5e-06 with one series left out); doc2026"
    assert told.origin("call_time") == words
    alone = {name: replace(bare, terms={name: one}) for name in NEUTRAL}
    hosted = {"call_time", "call_bandwidth", "host_launch_time"}
    hosted |= {"step_host_time", "sequence_host_time"}
    assert {name for name, each in alone.items() if each.hosted} == hosted
    unfused = {name for name, each in alone.items() if each.unfused}
    assert unfused == {"activation_passes", "score_passes"}
    assert not bare.hosted
    assert not bare.unfused


def test_kernels_of_a_prompt_are_counted_apart_by_hand() -> None:
    """61 layers: two norms, seven kernels of latent attention, and experts in all but three."""
    asked: dict[str, Any] = {"hardware": "hgx_h200", "tensor_parallel": 8, "precision": "fp8"}
    asked |= {"prompt_tokens": 1024, "output_tokens": 2, "users": 1, "requests": 1}
    loaded = Engine.load(model="DeepSeek_V3", scheduler="sglang", **CALIBRATED, **asked)
    service = loaded.service
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
    asked |= {**CALIBRATED, "output_tokens": 2}
    usual = Engine.serve(**asked, software="vllm").value("time_to_first_token")
    slower = Engine.serve(**asked, software=marlin).value("time_to_first_token")
    assert slower > 1.3 * usual
