"""Bands by hand: limits of a few rows, what loans add, and when there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from mlsim.engine import bands
from mlsim.engine.accuracy import BorrowedScore, Scored
from mlsim.engine.bands import SpeedBand, held, lent
from mlsim.engine.predict import _banded
from mlsim.engine.predict.case import Case
from mlsim.hardware.kernel_constants import Loan, Relatives


@pytest.fixture
def on_record(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what puts rows on the shelf, by series: measured over calibrated speed.

    The roofline says twice as much; rows of the series "bare" have no other answer.
    """

    def put(**series: list[float]) -> None:
        rows = [
            Scored("i", name, "k", "w", "o", "c", "1/s", 100 * ratio, 900.0, 200.0, best)
            for name, ratios in series.items()
            for ratio in ratios
            for best in [None if name == "bare" else 100.0]
        ]
        monkeypatch.setattr(bands, "shelf", lambda kind: rows if kind == "generation" else [])
        monkeypatch.setattr(bands, "limits", bands.limits_of_shelf)
        bands.band.cache_clear()
        bands.held.cache_clear()

    return put


@pytest.fixture(autouse=True)
def forget() -> Any:
    yield
    bands.band.cache_clear()
    bands.held.cache_clear()


def test_limits_of_eleven_rows(on_record: Callable[..., None]) -> None:
    """86 % of the rows on record are between two shares of 7 %: 0.7 of ten steps from either end."""
    on_record(a=[0.5, 0.6, 0.7, 0.8, 0.9], b=[1.0, 1.1, 1.2, 1.3, 1.4, 1.7])
    found = bands.band("decode", "decode_tokens_per_s_total", "calibrated")
    assert found is not None
    assert (found.least, found.most) == pytest.approx((0.5 + 0.7 * 0.1, 1.4 + 0.3 * 0.3))
    assert found.words == "band: 80%, of 11 published rows of generation, series left out"
    assert not found.times
    late = bands.band("gen_e2e", "latency_s", "calibrated")
    assert late is not None
    assert late.times
    assert late.around(2.0) == pytest.approx((2 / found.most, 2 / found.least))
    # Of a roofline twice as fast, half of it.
    assert bands.band("decode", "x", "roofline").least == pytest.approx(found.least / 2)
    assert bands.band("train_lm", "step_s", "calibrated") is None
    assert bands.band("gemm", "kernel_time_s", "calibrated") is None


def test_a_band_needs_eight_rows_of_two_series(on_record: Callable[..., None]) -> None:
    on_record(a=[1.0] * 7, b=[2.0])
    assert bands.band("decode", "x", "calibrated") is not None
    on_record(a=[1.0] * 6, b=[2.0])
    assert bands.band("decode", "x", "calibrated") is None
    on_record(a=[1.0] * 8)
    assert bands.band("decode", "x", "calibrated") is None


def test_a_roofline_has_the_band_of_rows_that_have_nothing_better(
    on_record: Callable[..., None],
) -> None:
    """Where they are of one series, that of all rows."""
    on_record(a=[1.0] * 8, bare=[0.2] * 9)
    assert bands.band("decode", "x", "roofline").most == pytest.approx(1 / 2)
    assert "17 published rows" in bands.band("decode", "x", "roofline").words
    assert bands.band("decode", "x", "calibrated") is None


def test_what_a_band_without_a_series_holds(on_record: Callable[..., None]) -> None:
    """Without b, a's eight at 0.9 to 1.1 hold the two of b that are in; so do b's of a's."""
    eight = [0.9, 0.95, 1.0, 1.0, 1.0, 1.0, 1.05, 1.1]
    on_record(a=eight, b=[1.0] * 6 + [3.0, 0.3])
    # Of b's band, 0.49 of a step from either end: 0.3 + 0.49 x 0.7 to 1 + 0.51 x 2, all of a.
    assert held("generation", "calibrated") == pytest.approx((8 + 6) / 16)
    on_record(a=eight, b=[1.0] * 7)
    assert held("generation", "calibrated") is None
    assert held("training", "calibrated") is None


def loan(constant: str, level: str) -> Loan:
    return Loan(constant, Relatives(level, ("Cloud.A100",)))


def test_loans_move_limits_by_what_rows_with_such_loans_lay_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of(what: str, level: str, kind: str, rows: int, least: float, most: float) -> BorrowedScore:
        return BorrowedScore(what, level, kind, rows, 2, 0.3, 0.2, 0.5, 1.0, least, most)

    scores = [
        of("device", "sibling", "generation", 7, 0.1, 9.0),
        of("device", "family", "generation", 8, 0.6, 2.0),
        of("device", "class", "all", 20, 0.4, 3.0),
        of("links", "class", "all", 20, 0.9, 1.5),
        of("links", "roofline", "all", 9, 0.2, 1.1),
    ]
    monkeypatch.setattr(bands, "borrowed_scores", lambda: scores)
    limits = (0.8, 1.25)
    # Seven rows of siblings are too few: those of a family, 0.6 / 0.8 and 2 / 1.25.
    found = lent("generation", limits, [loan("memory_fraction", "sibling")])
    assert (found.least, found.most) == pytest.approx((0.75, 1.6))
    assert found.words == "; wider for loans: device of a family (8 rows 30% off, not 20%)"
    # The farther of two loans of a device counts, in whatever order; of links the least, which
    # is above the limit, moves nothing.
    far, near = loan("memory_fraction", "class"), loan("compute_fraction", "sibling")
    for loans in ([near, far], [far, near]):
        both = lent("generation", limits, [*loans, loan("exchange", "class")])
        assert (both.least, both.most) == pytest.approx((0.5, 2.4 * 1.2))
    nobody = lent("generation", limits, [loan("exchange", "roofline")])
    assert (nobody.least, nobody.most) == pytest.approx((0.25, 1.0))
    assert "links at full rate (9 rows" in nobody.words
    wider = SpeedBand(*limits, False, "band").wider("decode", [far])
    assert (wider.least, wider.most) == pytest.approx((0.8 * 0.5, 1.25 * 2.4))
    assert wider.words.startswith("band; wider for loans: device of a class")


def test_no_limit_is_beyond_the_bound(on_record: Callable[..., None]) -> None:
    on_record(a=[0.5] * 4, b=[1.5] * 4)
    rate, time = ("decode", "decode_tokens_per_s_total"), ("gen_e2e", "latency_s")
    for (kind, metric), bound, expected in (
        # A rate between 0.5 and 1.5 of it, and at most the bound.
        (rate, None, (5.0, 15.0)),
        (rate, 12.0, (5.0, 12.0)),
        (rate, 4.0, (4.0, 4.0)),
        # A time from 10 / 1.5 to 20, and at least the bound.
        (time, 8.0, (8.0, 20.0)),
        (time, 2.0, (10 / 1.5, 20.0)),
        (time, 30.0, (30.0, 30.0)),
        (("gemm", "kernel_time_s"), 8.0, None),
    ):
        case = Case({"kind": kind, "metric_kind": metric})
        found = _banded(case, 10.0, "calibrated", bound)
        assert found == (None if expected is None else pytest.approx(expected))
        words = "no band: too few published rows" if expected is None else "band: 80%, of 8"
        assert case.notes[0].startswith(words)


def test_a_quantile_ends_at_the_last() -> None:
    assert [bands.quantile([1.0, 2.0, 4.0], each) for each in (0, 0.75, 1)] == [1.0, 3.0, 4.0]
    assert math.isclose(bands.quantile([5.0], 0.3), 5.0)
