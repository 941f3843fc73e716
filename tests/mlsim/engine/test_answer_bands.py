"""Bands of whole answers: those of published rows, in every form, and none where none is known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlsim import Engine
from mlsim.cli import main
from mlsim.engine.bounds import bound_of
from mlsim.engine.predict.bands import band as band_of_cases

CALIBRATED: dict[str, Any] = {"estimate": "calibrated"}
SERVED = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 8}
TRAINED = {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "global_batch": 64}
LAYOUT = {**TRAINED, "shard": "zero3", "recompute": "full"}


def answers() -> list[tuple[Any, str]]:
    return [
        (Engine.solve(model="ResNet50", hardware="A100", batch_size=8, **CALIBRATED), "latency"),
        (Engine.serve(**SERVED, **CALIBRATED), "time_per_output_token"),
        (Engine.train(**LAYOUT, **CALIBRATED), "step_time"),
        (
            Engine.train(model="ResNet50", hardware="A100", global_batch=64, **CALIBRATED),
            "step_time",
        ),
    ]


@pytest.mark.parametrize(("answer", "name"), answers(), ids=lambda each: str(type(each).__name__))
def test_a_calibrated_answer_tells_its_band_in_every_form(answer: Any, name: str) -> None:
    band = answer.band(name)
    assert band.low < band.high
    assert "published rows" in band.words
    assert f"band{' ' * 5}" in str(answer)
    entry = answer.to_dict()[name]
    assert (entry["low"], entry["high"], entry["band"]) == (band.low, band.high, band.words)
    assert "\nBand: " in str(answer.explain(name))
    assert answer.explain(name).to_dict()["band"]["high"] == band.high
    assert "Band: " in answer.explain(name)._repr_markdown_()
    found = bound_of(answer)
    assert band.low >= (found if isinstance(found, float) else found.value(name))


def test_the_band_is_that_of_the_cases_of_its_kind() -> None:
    answer = Engine.serve(**SERVED, **CALIBRATED)
    shelf = band_of_cases("decode", "decode_tokens_per_s_total", "calibrated")
    assert shelf is not None
    low, high = shelf.around(answer.value("decode_throughput"))
    band = answer.band("decode_throughput")
    limit = Engine.serve(**SERVED, estimate="bound").value("decode_throughput")
    assert (band.low, band.high) == pytest.approx((low, min(high, limit)))


def test_many_points_have_a_band_each_and_so_has_one_of_them() -> None:
    points = Engine.solve(model="ResNet50", hardware="A100", batch_size=[1, 8], **CALIBRATED)
    band = points.band("latency")
    assert len(band.low) == len(band.high) == 2
    assert points[1].band("latency").high == pytest.approx(band.high[1])
    assert len(points.to_dict()["latency"]["low"]) == 2


@pytest.mark.parametrize(
    "answer",
    [
        Engine.solve(model="ResNet50", hardware="A100"),
        Engine.serve(**SERVED),
        Engine.train(**LAYOUT, estimate="bound"),
        Engine.solve(model="ResNet50", hardware="A100", memory_bandwidth="3 TB/s", **CALIBRATED),
        Engine.solve(model="ResNet50", hardware="A100", activations="on-chip", **CALIBRATED),
    ],
    ids=["roofline", "service", "bound", "given", "on chip"],
)
def test_what_no_row_was_compared_with_has_no_band(answer: Any) -> None:
    assert answer.band() is None
    assert "band" not in str(answer).split()
    assert "low" not in answer.to_dict()[answer.first or "latency"]


def test_sizes_have_no_band() -> None:
    assert Engine.serve(**SERVED, **CALIBRATED).band("memory_required") is None


def test_the_command_line_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["solve", "ResNet50", "A100", "--estimate", "calibrated"]
    assert main(asked) == 0
    assert "published rows of networks" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["latency"]["low"] < told["latency"]["high"]
