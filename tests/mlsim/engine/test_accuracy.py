"""Predictions beside the shelf: none is beyond its bound, and bands hold what they say."""

from __future__ import annotations

import pytest

from mlsim import Engine, measurements, serving_measurements, training_measurements
from mlsim.engine.accuracy import KINDS, Scored, score, shelf
from mlsim.engine.predict.bands import SHARE, Band, band, held, quantile
from mlsim.errors import UnknownNameError


def row(measured: float, calibrated: float | None) -> Scored:
    return Scored("i", "s", "k", "w", "o", "c", "1/s", measured, 100.0, 20.0, calibrated)


def test_no_bound_is_beaten_and_no_roofline_faster() -> None:
    for kind in KINDS:
        rows = shelf(kind)
        assert rows
        assert [each.id for each in rows if each.measured > each.bound] == []
        assert [each.id for each in rows if each.roofline > each.bound * 1.0001] == []
        assert {each.kind for each in rows} == {kind}


def test_rows_are_rates_of_the_same_question() -> None:
    """Tokens a second: of a first token those of all prompts, of a step those of one device."""
    ids = {each.id: each for kind in KINDS for each in shelf(kind)}
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


def test_a_score_by_hand() -> None:
    found = score([row(10.0, 12.0), row(10.0, 5.0), row(10.0, None)])
    # Errors of 20 %, 50 % and, of the roofline, 100 %.
    assert (found.rows, found.error, found.close, found.ratio) == (3, 0.5, 1 / 3, 1.2)
    assert found.ratio.origin.brief == (
        "median of predicted over measured speed, the best answer: computed over 3 published rows"
    )
    assert found.error.text == "50 %"
    assert score([row(10.0, None)], "calibrated") is None
    assert score([]) is None


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="training"):
        shelf("trainin")


@pytest.mark.parametrize(
    ("kind", "where"), [("decode", "generation"), ("train_lm", "training"), ("ttft", "prompts")]
)
def test_a_band_holds_what_it_says(kind: str, where: str) -> None:
    found = band(kind, "a rate", "calibrated")
    rows = [each for each in shelf(where) if each.calibrated is not None]
    inside = 0
    for each in rows:
        low, high = found.around(each.calibrated)
        inside += low <= each.measured <= high
    assert inside / len(rows) == pytest.approx(SHARE, abs=0.1)


def test_kernels_have_no_band() -> None:
    assert band("gemm", "kernel_time_s", "calibrated") is None


def test_a_band_of_times_is_turned() -> None:
    assert Band(0.5, 1.0, True, "").around(4.0) == (4.0, 8.0)
    assert quantile([1.0, 3.0], 0.5) == 2.0


def test_a_band_without_a_series_holds_less_than_one_with_it() -> None:
    for kind in ("generation", "training"):
        assert 0.5 < held(kind, "calibrated") <= SHARE + 0.1
