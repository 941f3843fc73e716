"""Cases of training: what is worked out once, and shared by cases that differ in little."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from kept import cases

from mlsim import Engine, Models, anatomy
from mlsim.engine.predict import QUESTIONS, predict, training
from mlsim.engine.predict.case import Case, lengthened
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.workloads.steps import Parallelism
from mlsim.workloads.training_lowering import parameters_on_device

ROW: dict[str, Any] = {"kind": "train_lm", "metric_kind": "mfu_fraction", "model": "Llama3_8B"}
ROW |= {"device": "H100-SXM", "count": "64", "a_dtype": "bf16"}
ROW |= {"extra": '{"gb": 512, "mb": 1, "fsdp": 1}'}


ENCODER: dict[str, Any] = {"case_id": "x", "kind": "train_enc", "model": "bert-base"}
ENCODER |= {"metric_kind": "throughput_items_per_s", "input_len": "128"}
ENCODER |= {"device": "A100-80", "a_dtype": "fp16"}


def rate(**cells: str) -> float:
    (found,) = predict([{**ENCODER, **cells}])
    assert found.source == "calibrated", found.note
    return float(found.predicted)


def test_an_anatomy_runs_in_the_program_that_it_is_told() -> None:
    """A framework starts each kernel from the host, which few short texts can't hide."""
    small = {each: rate(batch="8", sw_class=each) for each in ("eager", "engine", "framework", "")}
    assert small["eager"] < 0.5 * small["engine"]
    # Nobody said which: as networks are trained.
    assert small[""] == small["eager"] != small["framework"]
    asked = {"batch_size": 8, "tokens": 128, "precision": "fp16", "hardware": "A100"}
    asked |= {"training": True, "optimizer": "adam", "estimate": "calibrated"}
    found = anatomy("BERT_Base", **asked, software="eager")
    assert 8 / found.time.si == pytest.approx(small["eager"], rel=1e-5)
    assert anatomy("BERT_Base", **asked).time == found.time
    with pytest.raises(InvalidValueError, match="goes with estimate='calibrated' only"):
        anatomy("BERT_Base", tokens=128, software="eager")
    with pytest.raises(UnknownNameError, match="Did you mean 'eager'"):
        anatomy("BERT_Base", **asked, software="eagre")


def test_what_a_device_holds_counts_how_experts_are_divided() -> None:
    """Mixtral: 1.6 of 46.7 billion parameters are no experts; 4 B each, and 12 B of states."""
    model = Models.Mixtral_8x7B
    dense, expert = parameters_on_device(model, Parallelism())
    assert dense + expert == model.parameter_count
    assert dense < 0.05 * expert
    assert training._held(model, 1, 1) == 16 * model.parameter_count
    assert training._held(model, 4, 1, 8) == pytest.approx(16 * (dense + expert / 8) / 4)
    # Of 16 copies, two have the same experts and share their states.
    shared = dense * (4 + 12 / 16) + expert / 8 * (4 + 12 / 2)
    assert training._held(model, 1, 16, 8) == pytest.approx(shared)
    row = {**ROW, "case_id": "x", "model": "Mixtral_8x7B", "extra": '{"gb": 512, "mb": 1}'}
    row |= {"tp": "2", "pp": "4", "input_len": "4096"}
    alone, spread = (next(predict([{**row, "ep": each}])) for each in ("1", "8"))
    assert "(zero1)" in alone.note
    assert "shared by copies" not in spread.note


def case(extra: dict[str, Any] | None = None, **cells: str) -> Case:
    given = {**ROW, "input_len": "4096", **cells}
    return Case({**given, "extra": json.dumps(extra or {})})


def test_the_batch_of_a_case() -> None:
    """4 M tokens where nobody says, a multiple of what fills a pipeline; or a copy's own."""
    for extra, cells, batch, micro, note in cases("batches.toml"):
        found = case(extra, **cells)
        asked = training._asked(found)
        assert (asked["global_batch"], asked["micro_batch"]) == (batch, micro), (extra, cells)
        assert any(each.startswith("batch") for each in found.notes) == bool(note)
        assert note in " ".join(found.notes)


def test_copies_shard_what_a_device_can_not_hold() -> None:
    layouts: tuple[tuple[dict[str, str], dict[str, Any], str], ...] = (
        # 16 bytes of each of 8.03e9 parameters are 128.5 GB: too many for 85.9 GB of an H100.
        ({"tp": "1"}, {}, "zero1"),
        ({"tp": "2"}, {}, "none"),
        ({"tp": "1", "count": "1"}, {}, "none"),
        # 32.1 GB and 96.4 of states: of two copies 80.3 fit, of a 70B model not even of 64.
        ({"tp": "1", "count": "2"}, {}, "zero1"),
        ({"tp": "1", "model": "Llama3_70B"}, {}, "zero3"),
        ({"tp": "8"}, {"fsdp": 1}, "zero3"),
    )
    for cells, extra, shard in layouts:
        found = case({"gb": 512, "mb": 1, **extra}, **cells)
        assert training._asked(found)["shard"] == shard, cells
        assert bool(found.notes) == (shard != "none" and "fsdp" not in extra)
        assert all(f"({shard})" in each for each in found.notes)
    # Recomputing all needs no parts of sequences, nor does one device of a layer.
    for recompute, tensor, parts in (
        ("full", "2", False),
        ("none", "2", True),
        ("none", "1", False),
    ):
        given = case({**STATED, "recompute": recompute}, **{**SPREAD, "tp": tensor})
        assert training._asked(given)["sequence_parallel"] is parts
    with pytest.raises(InvalidValueError, match="must be full or causal, not half"):
        training.flops_rate(case({**STATED, "mfu_attn": "half"}, **SPREAD), "roofline")


# Tensor by 2, four stages with two parts each: 80 layers are 10 in each part.
SPREAD = {"model": "Llama3_70B", "tp": "2", "pp": "4", "cp": "2", "input_len": "8192"}
STATED = {"gb": 96, "mb": 2, "v": 2, "recompute": "selective"}
RUN: dict[str, Any] = {"hardware": case().cluster(64), "devices": 64, "sequence_tokens": 8192}
RUN |= {"precision": "bf16", "global_batch": 96, "micro_batch": 2, "interleaved": 2}
RUN |= {"tensor_parallel": 2, "pipeline_parallel": 4, "context_parallel": 2}
RUN |= {"sequence_parallel": True, "shard": "none", "recompute": "selective"}
RUN |= {"check_memory": False}


def test_a_step_of_a_stated_layout_and_its_rates() -> None:
    """96 sequences of 8,192 tokens on 64 devices of 989.4 TFLOP/s."""
    given = case(STATED, **SPREAD)
    # Four copies' shares of 16 bytes a parameter do not fit, those of the states shared do.
    model = lengthened(Models.Llama3_70B, 8192)
    run = {**RUN, "model": model, "shard": training._asked(given)["shard"]}
    rates = QUESTIONS["train_lm"]
    for estimate, more in (("calibrated", {"software": "framework"}), ("roofline", {})):
        step = Engine.train(**run, estimate=estimate, **more).value("step_time")
        assert rates["step_s"](given, estimate) == pytest.approx(step, rel=1e-12)
        tokens = 96 * 8192 / step
        assert rates["tokens_per_s_total"](given, estimate) == pytest.approx(tokens)
        assert rates["tokens_per_s_per_device"](given, estimate) == pytest.approx(tokens / 64)
        # Six for each parameter and token but those of the embedding, which multiplies
        # nothing, and 12 layers x width x tokens of attention for each token, all pairs.
        body = model.parameter_count - 128256 * 8192
        flops = 96 * 8192 * (6 * body + 12 * 80 * 8192 * 8192)
        done = rates["model_flop_per_s_per_device"](given, estimate)
        assert done == pytest.approx(flops / step / 64, rel=1e-3)
        assert rates["mfu_fraction"](given, estimate) == pytest.approx(done / 989.4e12, rel=1e-3)
        # Of masked pairs, half.
        causal = case({**STATED, "mfu_attn": "causal"}, **SPREAD)
        fewer = 96 * 8192 * (6 * body + 6 * 80 * 8192 * 8192)
        half = rates["model_flop_per_s_per_device"](causal, estimate)
        assert half == pytest.approx(fewer / step / 64, rel=1e-3)
        hours = QUESTIONS["train_run"]["accelerator_hours"]
        run_of = case({**STATED, "tokens": 2e12}, **SPREAD)
        assert hours(run_of, estimate) == pytest.approx(2e12 / (tokens / 64) / 3600)
    # At least the arithmetic of what is not masked, at the peak of all devices.
    assert rates["step_s"](given, "bound") == pytest.approx(fewer / (64 * 989.4e12), rel=1e-3)


def test_stages_of_unequal_layers_are_timed_as_the_fullest() -> None:
    """126 layers in 8 parts: 16 in the fullest; in 7 parts 18 in each."""
    model = lengthened(Models.find("Llama3_405B"), 4096)
    stated = {"gb": 64, "mb": 1, "recompute": "full"}
    cells = {"model": "llama3-405b", "tp": "8"}
    on = {"sequence_tokens": 4096, "global_batch": 64, "micro_batch": 1, "tensor_parallel": 8}
    on |= {"context_parallel": 1, "interleaved": 1, "recompute": "full", "shard": "none"}
    on |= {"sequence_parallel": False}
    for stages, layers in ((8, 128), (7, 126)):
        devices = 8 * stages
        given = case(stated, **cells, pp=str(stages), count=str(devices))
        run = {**RUN, **on, "hardware": given.cluster(devices), "devices": devices}
        run |= {"pipeline_parallel": stages, "model": replace(model, layers=layers)}
        step = Engine.train(**run, estimate="roofline").value("step_time")
        assert training.step_time(given, "roofline") == pytest.approx(step, rel=1e-12)
        words = "126 layers in 8 parts: timed as the fullest, 16"
        assert (words in given.notes) == (layers != 126)
        # The work that the model asks for is that of its own layers.
        assert training._model_flops(given, "flash") == pytest.approx(
            Engine.train(**{**run, "model": model, "pipeline_parallel": 7, "devices": 56,
                            "hardware": given.cluster(56)}).value("ideal_step_time")
            * 56 * training._peak(given), rel=1e-9,
        )  # fmt: skip


def test_a_layout_that_nobody_states_is_searched_once_for_a_table() -> None:
    layouts: dict[Any, Any] = {}
    cells = {**ROW, "model": "gpt3-175b", "input_len": "2048", "extra": '{"gb": 512}'}
    first, again = (Case({**cells, "case_id": each}, layouts=layouts) for each in "ab")
    found = Engine.train(
        model=lengthened(Models.GPT3_175B, 2048), hardware=first.cluster(64), devices=64,
        sequence_tokens=2048, global_batch=512, precision="bf16", search=True,
    )  # fmt: skip
    # A search is by the roofline, and so is what it finds.
    assert training.step_time(first, "roofline") == pytest.approx(found.value("step_time"))
    assert first.notes[0] == "layout not stated: the fastest that fits is assumed"
    assert training.step_time(again, "roofline") == pytest.approx(found.value("step_time"))
    assert len(layouts) == 1
    full = Case(cells, layouts=dict.fromkeys(range(training.MOST_SEARCHES)))
    with pytest.raises(InvalidValueError, match="24 were searched for this table"):
        training.step_time(full, "roofline")
    # Nothing is searched of what is small, stated, sharded, or alone.
    for extra, more in (
        ({"gb": 512}, {"model": "GPT2_XL"}),
        ({"gb": 512, "local": 8}, {}),
        ({"gb": 512, "fsdp": 1}, {}),
        ({"gb": 512}, {"pp": "2"}),
        ({}, {}),
    ):
        given = Case({**cells, **more, "extra": json.dumps(extra)}, layouts=layouts)
        training._asked(given)
        assert len(layouts) == 1, (extra, more)


def test_what_is_trained_on_each_device_alone() -> None:
    """The bound: three times the products of the pass less those that nobody asks for."""
    cells = {"kind": "train_cnn", "model": "resnet50", "device": "A100-80", "a_dtype": "fp16"}
    cells |= {"batch": "96", "count": "4"}
    found = case(**cells)
    counted = 3 * 8_178_368_512 - 2 * 112**2 * 64 * 147
    bound = training.samples_rate(found, "bound")
    assert bound == pytest.approx(4 * 312e12 / counted, rel=1e-9)
    assert found.notes == ["what devices send one another is not counted: taken as hidden"]
    for tuned, software in (("engine", "framework"), ("", "eager"), ("framework", "eager")):
        asked = {"model": "ResNet50", "hardware": "A100", "global_batch": 96, "precision": "fp16"}
        step = Engine.train(**asked, estimate="calibrated", software=software).value("step_time")
        rate = training.samples_rate(case(**cells, sw_class=tuned), "calibrated")
        assert rate == pytest.approx(4 * 96 / step, rel=1e-12)
    # Without a batch of each, a share of the whole.
    shared = case({"gb": 384}, **{**cells, "batch": ""})
    assert training.samples_rate(shared, "bound") == pytest.approx(bound)
    assert training._local_batch(case({"gb": 3}, **{**cells, "batch": ""})) == 1
    passes = anatomy("ResNet50", batch_size=96, precision="fp16", training=True,
                     optimizer="momentum", hardware="A100")  # fmt: skip
    assert training.samples_rate(found, "roofline") == pytest.approx(4 * 96 / passes.time.si)


def test_lengths_of_one_power_of_two_share_a_model() -> None:
    """Llama 3.1 8B has 128 K tokens of context and no embedding of positions; GPT-3 has one."""
    model = Models.Llama3_8B
    assert lengthened(model, 4096) is model
    assert lengthened(model, 140_000) is lengthened(model, 200_000)
    assert lengthened(model, model.context) is model
    assert lengthened(model, model.context + 1).context == 2**18
    assert lengthened(model, 2**18).context == 2**18
    assert lengthened(Models.GPT3_175B, 3000).positions == 3000


def test_a_case_counts_its_work_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    plain = Engine.train

    def train(**arguments: Any) -> Any:
        asked.append(arguments["estimate"])
        return plain(**arguments)

    monkeypatch.setattr(training, "Engine", type("Counted", (), {"train": staticmethod(train)}))
    (found,) = predict([{**ROW, "case_id": "x", "input_len": "4096"}])
    assert found.source == "calibrated"
    # One for the answer, one for the work that it and the bound divide by, one for the bound's.
    assert sorted(asked) == ["calibrated", "roofline", "roofline"]
