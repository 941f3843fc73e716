"""Fits of growth: values worked by hand, invariants, and what can't be fitted."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from refusals import answered

from mlsim import Hardware
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.measured import language_models
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
    old = pd.DataFrame({"year": [-9, -8, -7], "size": [1, 2, 4]})
    assert growth_of(old, "size").points == 3


def test_what_shrinks_halves_and_what_stands_never_doubles() -> None:
    assert fit_growth([0, 1, 2], [4, 2, 1]).doubling_time == pytest.approx(-1)
    still = fit_growth([0, 1, 2], [5, 5, 5])
    assert (still.doubling_time, still.factor) == (math.inf, 1)
    assert answered(fit_growth, "growth") == []


def test_records_by_hand() -> None:
    table = pd.DataFrame(
        {"year": [2018, 2020, 2019, 2020, 2021], "size": [5.0, 7.0, 3.0, 9.0, 9.0]},
        index=[*"abcde"],
    )
    assert list(records(table, "size").index) == ["a", "d"]
    table.loc["a", "size"] = math.nan
    assert list(records(table, "size").index) == ["c", "d"]


def test_a_span_takes_its_first_year_and_not_its_last() -> None:
    whole = growth_of(MODELS, "parameters")
    parts = [
        growth_of(MODELS, "parameters", since=since, until=until)
        for since, until in ((2018, 2022), (2022, 2100))
    ]
    assert sum(each.points for each in parts) == whole.points == len(MODELS)
    time = whole.doubling_time
    assert time.name == "years in which parameters doubled"
    assert time.origin.brief.endswith(f", line fitted to {whole.points} logarithms")
    with pytest.raises(InvalidValueError, match="too few"):
        growth_of(MODELS, "parameters", since=2030)
    # What the chapter says of the curves, with room for models to come.
    assert growth_of(MODELS, "parameters", until=2022).doubling_time < 0.5
    assert growth_of(MODELS, "active_parameters", since=2022).factor < 1


def test_devices_are_those_of_the_zoo() -> None:
    """Each has its time: the middle of its month, or of its year."""
    assert "Cloud.GroqLPU" not in DEVICES.index
    for key, row in DEVICES.iterrows():
        device = Hardware.find(str(key))
        assert row.capacity == device.memory.printed.to("B").magnitude
        assert math.isnan(row.peak) or row.peak > 1e13
    assert math.isnan(DEVICES.loc["Cloud.K80", "peak"])
    assert set(accelerators("Workstation")["name"]) & {"NVIDIA GeForce RTX 4090", "Apple M1"}
    assert years(MODELS)["GPT3_175B"] == pytest.approx(2020 + 4.5 / 12)
    assert years(DEVICES)["Cloud.A100"] == 2020.5
    for ask, words in (
        (lambda: years(pd.DataFrame({"size": [1]})), "column of times"),
        (lambda: growth_of(MODELS, "token"), "Did you mean 'tokens'"),
        (lambda: records(MODELS, "token"), "Did you mean 'tokens'"),
        (lambda: accelerators("Clouds"), "group of devices"),
    ):
        with pytest.raises(UnknownNameError, match=words):
            ask()
