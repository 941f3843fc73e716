"""Bands of whole answers: those of published rows, in every form, and none where none is known."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mlsim import Engine
from mlsim.engine.bounds import bound_of
from mlsim.engine.predict import predict
from mlsim.engine.predict.bands import KIND, band as band_of_cases, lent
from mlsim.engine.recorded_scores import borrowed_scores
from mlsim.hardware.relatives import LEVELS, NOBODY, Loan, Relatives

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


# Borrowed constants.


def around(answer: Any, name: str) -> tuple[float, float]:
    """Return a band's limits over the answer's value."""
    found = answer.band(name)
    value = answer.value(name)
    return found.low / value, found.high / value


def test_borrowed_constants_widen_a_band_where_they_matter() -> None:
    """The MI300X had the band of devices that were measured; its bandwidth decides a token."""
    asked: dict[str, Any] = {"model": "Llama3_8B", "estimate": "calibrated", "prompt_tokens": 4096}
    own = Engine.serve(hardware="H100", **asked)
    lent = Engine.serve(hardware="MI300X", **asked)
    limits = around(own, "time_per_output_token")
    found = lent.band("time_per_output_token")
    assert limits[0] >= around(lent, "time_per_output_token")[0]
    assert limits[1] < around(lent, "time_per_output_token")[1]
    assert "wider for loans: device of a class (172 rows" in found.words
    # A prompt computes: what its memory reaches decides next to nothing of its time.
    assert lent.prefill.causes["memory"] < 0.1
    assert around(lent, "time_to_first_token") == pytest.approx(around(own, "time_to_first_token"))
    assert "loans" not in lent.band("time_to_first_token").words
    told = lent.to_dict()["time_per_output_token"]
    assert (told["low"], told["high"], told["band"]) == (found.low, found.high, found.words)
    # In a table of cases as well.
    row = {"case_id": "x", "kind": "decode", "metric_kind": "decode_tokens_per_s_total"}
    row |= {"model": "Llama3_8B", "batch": "1", "input_len": "4096", "output_len": "128"}
    one, other = (next(predict([{**row, "device": each}])) for each in ("H100", "MI300X"))
    assert float(other.low) / float(other.predicted) < float(one.low) / float(one.predicted)
    assert "borrowed: share of the memory bandwidth from" in other.note
    assert "wider for loans" in other.note
    assert "borrowed" not in one.note


def test_recorded_loans_are_those_of_which_bands_can_be_made() -> None:
    scores = borrowed_scores()
    assert {(each.what, each.level) for each in scores} == {
        *(("device", each) for each in LEVELS[1:]),
        *(("links", each) for each in (*LEVELS[1:], NOBODY) if each != "family"),
    }
    for each in scores:
        assert 0 < each.least < each.most
        assert each.least <= 1 / each.ratio <= each.most
        assert 0 <= each.close <= 1
    # Whoever borrows from farther away is farther off.
    of = {(each.what, each.level, each.kind): each for each in scores}
    assert of["device", "sibling", "generation"].error < of["device", "class", "generation"].error
    assert of["device", "class", "all"].error > of["device", "class", "all"].own_error
    # Each kind of answer finds a score for each loan.
    for constant, level in product(("memory_fraction", "exchange"), LEVELS[1:]):
        for kind in set(KIND.values()):
            assert lent(kind, (0.9, 1.1), [Loan(constant, Relatives(level, ("Cloud.A100",)))])
