"""Predictions beside the shelf: none is beyond its bound, and bands hold what they say."""

from __future__ import annotations

import pytest

from mlsim.engine.accuracy import KINDS, Scored, score, shelf
from mlsim.engine.predict.bands import SHARE, Band, band, held, quantile
from mlsim.errors import UnknownNameError


def row(measured: float, calibrated: float | None) -> Scored:
    return Scored("i", "s", "k", "w", "o", "c", "1/s", measured, 100.0, 20.0, calibrated)


@pytest.mark.parametrize("kind", KINDS)
def test_no_bound_is_beaten(kind: str) -> None:
    assert shelf(kind)
    for each in shelf(kind):
        assert each.measured <= each.bound, each.id


@pytest.mark.parametrize("kind", KINDS)
def test_each_estimate_is_slower_than_the_bound(kind: str) -> None:
    for each in shelf(kind):
        assert each.roofline <= each.bound * 1.0001, each.id


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
