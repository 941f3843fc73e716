"""Cases of training: what is worked out once, and shared by cases that differ in little."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine, Models, anatomy
from mlsim.engine.predict import predict, training
from mlsim.engine.predict.case import lengthened
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.training_lowering import parameters_on_device

ROW: dict[str, Any] = {
    "kind": "train_lm",
    "metric_kind": "mfu_fraction",
    "model": "Llama3_8B",
    "device": "H100-SXM",
    "count": "64",
    "a_dtype": "bf16",
    "extra": '{"gb": 512, "mb": 1, "fsdp": 1}',
}


def rows(count: int) -> list[dict[str, Any]]:
    lengths = (4096 + 128 * number for number in range(count))
    return [{**ROW, "case_id": str(each), "input_len": str(each)} for each in lengths]


ENCODER: dict[str, Any] = {
    "case_id": "x",
    "kind": "train_enc",
    "metric_kind": "throughput_items_per_s",
    "model": "bert-base",
    "device": "A100-80",
    "a_dtype": "fp16",
    "input_len": "128",
}


def rate(**cells: str) -> float:
    (found,) = predict([{**ENCODER, **cells}])
    assert found.source == "calibrated", found.note
    return float(found.predicted)


def test_training_an_encoder_depends_on_its_software() -> None:
    """A framework starts each kernel from the host, which few short texts can't hide."""
    small = {each: rate(batch="8", sw_class=each) for each in ("eager", "engine", "framework", "")}
    assert small["eager"] < 0.5 * small["engine"]
    # Nobody said which: as networks are trained.
    assert small[""] == small["eager"] != small["framework"]
    # Of many, the host is ahead, and what is left are slower kernels.
    large = {each: rate(batch="256", sw_class=each) for each in ("eager", "engine")}
    assert 0.8 < large["eager"] / large["engine"] < 0.95


def test_an_anatomy_runs_in_the_program_that_it_is_told() -> None:
    asked = {"batch_size": 8, "tokens": 128, "precision": "fp16", "hardware": "A100"}
    asked |= {"training": True, "optimizer": "adam", "estimate": "calibrated"}
    found = anatomy("BERT_Base", **asked, software="eager")
    assert 8 / found.time.si == pytest.approx(rate(batch="8", sw_class="eager"), rel=1e-5)
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


def test_lengths_of_one_power_of_two_share_a_model() -> None:
    """Llama 3.1 8B has 128 K tokens of context and no embedding of positions."""
    model = Models.Llama3_8B
    assert lengthened(model, 4096) is model
    assert lengthened(model, 140_000) is lengthened(model, 200_000)
    assert lengthened(model, 140_000).context == 2**18


def test_an_embedding_of_positions_is_as_long_as_the_sequences() -> None:
    model = Models.GPT3_175B
    assert model.positions
    assert lengthened(model, 3000).positions == 3000


def test_a_case_counts_its_work_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    plain = Engine.train

    def train(**arguments: Any) -> Any:
        asked.append(arguments["estimate"])
        return plain(**arguments)

    monkeypatch.setattr(training, "Engine", type("Counted", (), {"train": staticmethod(train)}))
    (found,) = predict(rows(1))
    assert found.source == "calibrated"
    # One for the answer, one for the work that it and the bound divide by, one for the bound's.
    assert sorted(asked) == ["calibrated", "roofline", "roofline"]


def test_many_rows_are_those_of_one_at_a_time() -> None:
    together = list(predict(rows(8)))
    assert together == [each for row in rows(8) for each in predict([row])]
    assert len({each.predicted for each in together}) == 8
