"""Predictions beside the shelf: bands of answers and what they hold, bounds, scores of rivals."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mlsim import Engine, show
from mlsim.engine import rival_scores
from mlsim.engine.accuracy import KINDS, Scored, borrowed_scores, score, shelf
from mlsim.engine.bands import (
    KIND,
    SHARE,
    band as band_of_cases,
    bound_of,
    device_of,
    estimate_of,
    held,
    lent,
)
from mlsim.engine.predict import predict
from mlsim.errors import NotMeasuredError, UnknownNameError
from mlsim.hardware.kernel_constants import LEVELS, NOBODY, Loan, Relatives
from mlsim.measured import measurements, network_steps, serving_measurements, training_measurements

CALIBRATED: dict[str, Any] = {"estimate": "calibrated"}
SERVED = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 8}
TRAINED = {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "global_batch": 64}
ANSWERS = Path(__file__).parents[3] / "benchmarks" / "rivals" / "answers.csv"
LAYOUT: dict[str, Any] = {**TRAINED, "shard": "zero3", "recompute": "full"}


def test_a_calibrated_answer_tells_its_band_in_every_form() -> None:
    """And none beyond the bound, for which it is asked again; where attention needs fewer scores."""
    network: dict[str, Any] = {"model": "ResNet50", "hardware": "A100"}
    for door, asked, name in (
        (Engine.solve, {**network, "batch_size": 8}, "latency"),
        (Engine.serve, SERVED, "time_per_output_token"),
        (Engine.train, {**LAYOUT, "attention": "standard"}, "step_time"),
        (Engine.train, {**network, "global_batch": 64}, "step_time"),
    ):
        answer = door(**asked, **CALIBRATED)
        band, told = answer.band(name), answer.explain(name)
        assert band.low < band.high
        assert "published rows" in band.words
        assert f"band{' ' * 5}" in str(answer)
        entry = answer.to_dict()[name]
        assert (entry["low"], entry["high"], entry["band"]) == (band.low, band.high, band.words)
        assert "\nBand: " in str(told)
        assert told.to_dict()["band"]["high"] == band.high
        assert "Band: " in told._repr_markdown_()
        found = bound_of(answer)
        assert band.low >= (found if isinstance(found, float) else found.value(name))
        assert device_of(answer).key.endswith(asked["hardware"].removeprefix("HGX_"))
        assert estimate_of(answer) == "calibrated"
        if door is not Engine.train:
            assert found.value(name) == door(**asked, estimate="bound").value(name)
        elif "attention" in asked:
            flash = Engine.train(**LAYOUT, attention="flash").value("ideal_step_time")
            assert found == flash < answer.value("ideal_step_time")
    wide = Engine.solve(**network, batch_size=1_000_000, check_memory=False)
    assert 0 < bound_of(wide).value("latency") <= wide.value("latency")


def test_the_band_is_that_of_the_cases_of_its_kind() -> None:
    answer = Engine.serve(**SERVED, **CALIBRATED)
    shelved = band_of_cases("decode", "decode_tokens_per_s_total", "calibrated")
    assert shelved is not None
    low, high = shelved.around(answer.value("decode_throughput"))
    band = answer.band("decode_throughput")
    limit = Engine.serve(**SERVED, estimate="bound").value("decode_throughput")
    assert (band.low, band.high) == pytest.approx((low, min(high, limit)))
    # A size has none; many points have one each.
    assert answer.band("memory_required") is None
    points = Engine.solve(model="ResNet50", hardware="A100", batch_size=[1, 8], **CALIBRATED)
    band = points.band("latency")
    assert len(band.low) == len(band.high) == 2
    assert points[1].band("latency").high == pytest.approx(band.high[1])
    assert len(points.to_dict()["latency"]["low"]) == 2


def test_times_and_rates_have_one_band_turned_round() -> None:
    """As slow as the least of what was measured: so much less of a rate, and more of a time."""
    network: dict[str, Any] = {"model": "ResNet50", "hardware": "A100", **CALIBRATED}
    served = Engine.serve(**SERVED, **CALIBRATED)
    trained = Engine.train(**LAYOUT, **CALIBRATED)
    for answer, kind, times, rates in (
        (Engine.solve(**network), "cnn_infer", ("latency",), ("throughput",)),
        (served, "prefill", ("time_to_first_token",), ()),
        (served, "decode", ("time_per_output_token", "generation_latency"),
         ("user_token_rate", "decode_throughput", "output_throughput")),
        (trained, "train_lm", ("step_time",), ("token_rate",)),
    ):  # fmt: skip
        shelved = band_of_cases(kind, "a rate", "calibrated")
        assert shelved is not None
        least, most = shelved.around(1.0)
        assert not 0.99 < least * most < 1.01, "no test otherwise"
        for name in times:
            low, high = around(answer, name)
            assert high == pytest.approx(1 / least), name
            assert low >= 1 / most - 1e-12
        for name in rates:
            low, high = around(answer, name)
            assert low == pytest.approx(least), name
            assert high <= most + 1e-12
    # Four published runs of networks in five lie in theirs.
    run = Engine.train(**network, global_batch=64)
    (low, high), times = (around(run, each) for each in ("throughput", "step_time"))
    assert times[1] == pytest.approx(1 / low)
    assert times[0] >= 1 / high - 1e-12
    speeds = [row.value / row.train("calibrated").throughput for row in network_steps()]
    assert sum(each < low for each in speeds) / len(speeds) == pytest.approx(0.1, abs=0.05)
    assert f"80% of {len(speeds)} published rows" in run.band("step_time").words


def test_what_no_row_was_compared_with_has_no_band() -> None:
    network: dict[str, Any] = {"model": "ResNet50", "hardware": "A100"}
    for answer in (
        Engine.solve(**network),
        Engine.serve(**SERVED),
        Engine.train(**LAYOUT, estimate="bound"),
        Engine.solve(**network, memory_bandwidth="3 TB/s", **CALIBRATED),
        Engine.solve(**network, activations="on-chip", **CALIBRATED),
    ):
        assert answer.band() is None
        assert "band" not in str(answer).split()
        assert "low" not in answer.to_dict()[answer.first or "latency"]


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
    with pytest.raises(NotMeasuredError, match="constants of device are that nobody measured"):
        lent("training", (0.9, 1.1), [Loan("memory_fraction", Relatives(NOBODY, ()))])


def scored(measured: float, calibrated: float | None) -> Scored:
    return Scored("i", "s", "k", "w", "o", "c", "1/s", measured, 100.0, 20.0, calibrated)


def test_a_score_by_hand() -> None:
    found = score([scored(10.0, 12.0), scored(10.0, 5.0), scored(10.0, None)])
    # Errors of 20 %, 50 % and, of the roofline, 100 %.
    assert (found.rows, found.error, found.close, found.ratio) == (3, 0.5, 1 / 3, 1.2)
    assert found.ratio.origin.brief == (
        "median of predicted over measured speed, the best answer: computed over 3 published rows"
    )
    assert found.error.text == "50 %"
    assert score([scored(10.0, None)], "calibrated") is None
    assert score([]) is None
    with pytest.raises(UnknownNameError, match="training"):
        shelf("trainin")


def test_no_bound_is_beaten_and_no_roofline_faster() -> None:
    for kind in KINDS:
        rows = shelf(kind)
        assert rows
        assert [each.id for each in rows if each.measured > each.bound] == []
        assert [each.id for each in rows if each.roofline > each.bound * 1.0001] == []
        assert {each.kind for each in rows} == {kind}


def test_rows_are_rates_of_the_same_question() -> None:
    """Tokens a second: of a first token those of all prompts, of a step those of one device."""
    ids = {each.id: each for kind in KINDS for each in shelf.__wrapped__(kind)}
    read = {"time_to_first_token": 0, "pass_throughput": 0, "output_throughput": 0}
    for row in serving_measurements():
        found, tokens = ids.get(row.id), row.batch_size * row.prompt_tokens
        if found is None or row.metric not in read:
            continue
        read[row.metric] += 1
        if row.metric == "time_to_first_token":
            expected = (tokens / row.value, tokens / row.predicted("bound"))
        else:
            each = row.prompt_tokens if row.metric == "pass_throughput" else 1
            expected = (each * row.value, each * row.predicted("bound"))
        assert (found.measured, found.bound) == pytest.approx(expected), row.id
    assert min(read.values()) > 1
    steps = {row.id: row for row in training_measurements()}
    # TRN-131: 143.31 s for 2,048 x 2,048 tokens, or whatever the row has, on all devices.
    for key in ("TRN-089", "TRN-131"):
        row = steps[key]
        tokens = row.global_batch * row.sequence_tokens / row.devices
        assert ids[key].measured == pytest.approx(tokens / row.step_time)
        step = row.train(estimate="roofline").value("step_time")
        assert ids[key].roofline == pytest.approx(tokens / step)
    # Shares of the peak say what a step took: the work over what was reached.
    mfu = next(row for row in steps.values() if row.metric == "mfu" and row.id in ids)
    counted = "flash" if mfu.attention_counted == "causal" else "standard"
    ideal = mfu.train(attention=counted, recompute="none").value("ideal_step_time")
    tokens = mfu.global_batch * mfu.sequence_tokens / mfu.devices
    assert ids[mfu.id].measured == pytest.approx(tokens * mfu.base_value / ideal)
    for row in measurements()[:3]:
        asked = {"batch_size": row.batch_size, "precision": row.precision}
        alone = Engine.solve(row.model, row.device, **asked, check_memory=False)
        assert ids[row.id].roofline == pytest.approx(alone.throughput)
        assert ids[row.id].measured == row.value


def test_a_band_holds_what_it_says_and_less_without_a_series() -> None:
    for kind, where in (("decode", "generation"), ("train_lm", "training"), ("ttft", "prompts")):
        found = band_of_cases(kind, "a rate", "calibrated")
        rows = [each for each in shelf(where) if each.calibrated is not None]
        around_each = [(found.around(each.calibrated), each.measured) for each in rows]
        inside = sum(low <= measured <= high for (low, high), measured in around_each)
        assert inside / len(rows) == pytest.approx(SHARE, abs=0.1), kind
        assert where == "prompts" or 0.5 < held(where, "calibrated") <= SHARE + 0.1, kind


def test_scores_of_rivals_are_parts_of_those_of_all_and_values() -> None:
    for rival, settings in {(each.rival, each.settings) for each in rival_scores()}:
        own = [each for each in rival_scores() if (each.rival, each.settings) == (rival, settings)]
        (whole,) = (each for each in own if each.kind == "all")
        assert sum(each.rows for each in own) - whole.rows <= whole.rows
        for each in own:
            assert each.rows > 2
            assert min(each.error, each.our_error) > 0
            assert max(each.close, each.our_close) <= 1
    each = rival_scores()[0]
    found = show(each, "our_error")
    assert found == each.our_error
    assert f"over {each.rows:,} rows" in found.origin.brief
    with pytest.raises(UnknownNameError, match="our_error"):
        show(each, "their_error")


@pytest.mark.skipif(not ANSWERS.exists(), reason="benchmarks aren't part of the package")
def test_answers_that_were_scored_are_kept() -> None:
    with ANSWERS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counted = Counter(row["rival"] for row in rows)
    assert all(float(row["predicted"]) > 0 for row in rows)
    # mlsim may have no answer to a row of theirs, but never the other way round.
    for whole in (each for each in rival_scores() if each.kind == "all"):
        assert any(
            name.startswith(whole.rival) and count >= whole.rows for name, count in counted.items()
        )
