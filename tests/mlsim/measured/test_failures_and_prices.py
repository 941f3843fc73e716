"""Published failures and prices, and the size of a model that they pay for."""

from __future__ import annotations

import math

import pytest

from mlsim import Engine, failures, prices
from mlsim.errors import InvalidValueError, UnitError


def test_llama_3_failed_once_in_three_hours() -> None:
    row = next(row for row in failures() if "Llama 3 405B" in row.run)
    hours = row.days * 24 / row.failures
    assert (row.devices, row.failures, row.days) == (16384, 419, 54)
    assert hours == pytest.approx(3.09, abs=0.01)
    assert row.mean_time_to_failure.to("h").magnitude == pytest.approx(hours * 16384)


def test_prices_are_of_one_device() -> None:
    rows = prices(device="H100")
    assert {row.device for row in rows} == {"Cloud.H100"}
    for row in rows:
        assert 0.5 < row.per_device.to("USD/h").magnitude < 20, row.id
    eight = next(row for row in rows if row.devices == 8)
    assert eight.per_device.magnitude == eight.value / 8


def test_spot_is_cheaper_and_a_range() -> None:
    rows = prices(device="TPUv5e")
    (asked,) = (row for row in rows if row.terms == "on demand")
    (spot,) = (row for row in rows if row.terms == "spot")
    assert (asked.value, asked.most) == (1.2, None)
    assert (spot.value, spot.most) == (0.51, 0.78)
    assert spot.most < asked.value
    assert spot.date == asked.date


def test_every_price_is_dated_and_none_is_far_from_its_kind() -> None:
    """A price of eight devices taken for one of one, or the other way round, would be."""
    found: dict[str, list[float]] = {}
    for row in prices():
        if row.terms == "on demand":
            found.setdefault(row.device, []).append(row.per_device.to("USD/h").magnitude)
    assert len(found) >= 20
    for device, each in found.items():
        assert max(each) < 6 * min(each), device


def test_the_optimal_size_of_chinchilla() -> None:
    """70 billion parameters and 1.4 trillion tokens are 5.88e23 FLOP."""
    best = Engine.optimal_size(training_flops="5.88e23 FLOP")
    assert best.optimal_parameters == pytest.approx(70e9)
    assert best.optimal_tokens == pytest.approx(1.4e12)
    assert best.value("training_flops") == 6 * 70e9 * 1.4e12
    assert "hoffmann2022training" in str(best.explain("optimal_tokens"))


def test_four_times_the_work_doubles_both() -> None:
    small = Engine.optimal_size(training_flops="1e21 FLOP")
    large = Engine.optimal_size(training_flops="4e21 FLOP")
    assert math.isclose(large.value("optimal_parameters"), 2 * small.value("optimal_parameters"))
    assert math.isclose(large.value("optimal_tokens"), 2 * small.value("optimal_tokens"))
    given = Engine.optimal_size(
        training_flops="1e21 FLOP", tokens_per_parameter="80 token/parameter"
    )
    assert given.value("optimal_tokens") == 80 * given.value("optimal_parameters")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"training_flops": 1e21}, UnitError),
        ({"training_flops": "1e21 B"}, UnitError),
        ({"training_flops": "-1 FLOP"}, InvalidValueError),
        ({"training_flops": ["1e21 FLOP", "2e21 FLOP"]}, InvalidValueError),
        ({"training_flops": "1e21 FLOP", "tokens_per_parameter": 20}, UnitError),
    ],
)
def test_bad_work_is_refused(given: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        Engine.optimal_size(**given)  # type: ignore[arg-type]
