"""Fits of growth: values worked by hand, invariants, and what can't be fitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest

from mlsim import Hardware, language_models
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.measured.growth import accelerators, fit_growth, growth_of, records, years

MODELS: Any = language_models()
DEVICES: Any = accelerators()


def test_a_doubling_each_two_years_by_hand() -> None:
    fit = fit_growth([2016, 2018, 2020, 2022], [3, 6, 12, 24])
    assert fit.doubling_time == pytest.approx(2)
    assert fit.factor == pytest.approx(math.sqrt(2))
    assert (fit.middle, fit.points) == (2019, 4)
    assert fit.level == pytest.approx(math.sqrt(6 * 12))
    assert fit.error == pytest.approx(0, abs=1e-12)
    assert fit.spread == pytest.approx(1)
    assert fit.at(2024) == pytest.approx(48)


def test_a_slope_with_an_error_by_hand() -> None:
    """Logarithms 0, 2, 1 at 0, 1, 2: slope 1/2, rest 1/4 + 1 + 1/4, its root over root 2."""
    fit = fit_growth([0, 1, 2], [1, 4, 2])
    assert fit.slope == pytest.approx(0.5)
    assert fit.error == pytest.approx(math.sqrt(1.5 / 2))
    assert fit.spread == pytest.approx(2 ** math.sqrt(1.5))
    fast, slow = fit.doubling_band
    assert fast == pytest.approx(1 / (0.5 + 2 * math.sqrt(0.75)))
    assert math.isinf(slow)


def test_a_unit_or_another_zero_of_time_changes_nothing() -> None:
    times, values = [2018.3, 2019.1, 2021.7, 2024.0], [2.0, 9.0, 40.0, 30.0]
    plain = fit_growth(times, values)
    scaled = fit_growth([each - 2000 for each in times], [1e9 * each for each in values])
    assert scaled.slope == pytest.approx(plain.slope)
    assert scaled.error == pytest.approx(plain.error)
    assert scaled.at(20) == pytest.approx(1e9 * plain.at(2020))


def test_what_shrinks_halves_and_what_stands_never_doubles() -> None:
    assert fit_growth([0, 1, 2], [4, 2, 1]).doubling_time == pytest.approx(-1)
    still = fit_growth([0, 1, 2], [5, 5, 5])
    assert still.doubling_time == math.inf
    assert still.factor == 1


@pytest.mark.parametrize(
    ("times", "values", "says"),
    [
        ([2020, 2021], [1, 2], "2 points are too few for a growth: give 3 or more"),
        ([2020, 2021, 2022], [1, 2], "there are 3 years and 2 values"),
        ([2020, 2020, 2020], [1, 2, 3], "all points are of one time, 2020"),
        ([2020, 2021, 2022], [1, 0, 3], "the value at 2021 is 0"),
        ([2020, 2021, 2022], [1, -2, 3], "the value at 2021 is -2"),
        ([2020, 2021, 2022], [1, math.nan, 3], "the value at 2021 is nan"),
        ([2020, math.inf, 2022], [1, 2, 3], "finite numbers above 0"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    times: Sequence[float], values: Sequence[float], says: str
) -> None:
    with pytest.raises(InvalidValueError, match=says):
        fit_growth(times, values)


def test_records_by_hand() -> None:
    table = pd.DataFrame(
        {"year": [2018, 2020, 2019, 2020, 2021], "size": [5.0, 7.0, 3.0, 9.0, 9.0]},
        index=[*"abcde"],
    )
    assert list(records(table, "size").index) == ["a", "d"]
    table.loc["a", "size"] = math.nan
    assert list(records(table, "size").index) == ["c", "d"]


def test_times_are_the_middle_of_a_month_or_year() -> None:
    assert years(MODELS)["GPT3_175B"] == pytest.approx(2020 + 4.5 / 12)
    assert years(DEVICES)["Cloud.A100"] == 2020.5
    with pytest.raises(UnknownNameError, match="column of times"):
        years(pd.DataFrame({"size": [1]}))


def test_unknown_columns_are_refused() -> None:
    asks: tuple[Callable[..., Any], ...] = (growth_of, records)
    for ask in asks:
        with pytest.raises(UnknownNameError, match="Did you mean 'tokens'"):
            ask(MODELS, "token")
    with pytest.raises(UnknownNameError, match="group of devices"):
        accelerators("Clouds")


def test_a_span_takes_its_first_year_and_not_its_last() -> None:
    whole = growth_of(MODELS, "parameters")
    parts = [
        growth_of(MODELS, "parameters", since=since, until=until)
        for since, until in ((2018, 2022), (2022, 2100))
    ]
    assert sum(each.points for each in parts) == whole.points == len(MODELS)
    with pytest.raises(InvalidValueError, match="too few"):
        growth_of(MODELS, "parameters", since=2030)


def test_sizes_grew_until_2022_and_tokens_after() -> None:
    """What the chapter says of the curves, with room for models to come."""
    before = growth_of(MODELS, "parameters", until=2022)
    after = growth_of(MODELS, "parameters", since=2022)
    assert before.doubling_time < 0.5 < 1.5 < after.doubling_time
    assert growth_of(MODELS, "tokens", since=2022).doubling_time < 1
    assert growth_of(MODELS, "active_parameters", since=2022).factor < 1


def test_models_outgrew_machines() -> None:
    work = growth_of(MODELS, "flops")
    memory, peak = (growth_of(DEVICES, each) for each in ("capacity", "peak"))
    assert work.doubling_time < 1.5 < peak.doubling_time < memory.doubling_time
    # A machine's rate and a memory's doubled in one to five years; of 16 bits since 2016.
    for name in ("peak", "capacity", "bandwidth"):
        assert 1 < growth_of(DEVICES, name).doubling_time < 5


def test_devices_are_those_of_the_zoo() -> None:
    assert "Cloud.GroqLPU" not in DEVICES.index
    for key, row in DEVICES.iterrows():
        device = Hardware.find(str(key))
        assert row.capacity == device.memory.printed.to("B").magnitude
        assert math.isnan(row.peak) or row.peak > 1e13
    assert math.isnan(DEVICES.loc["Cloud.K80", "peak"])
    assert set(accelerators("Workstation")["name"]) & {"NVIDIA GeForce RTX 4090", "Apple M1"}


def test_a_doubling_time_is_a_value_that_says_what_grew_and_of_how_many_points() -> None:
    fit = growth_of(language_models(), "tokens", since=2022)
    time = fit.doubling_time
    assert time == pytest.approx(1 / fit.slope)
    assert time.name == "years in which tokens doubled"
    assert time.origin.brief.endswith(f", line fitted to {fit.points} logarithms")
    assert (12 * time).si == pytest.approx(12 / fit.slope)
