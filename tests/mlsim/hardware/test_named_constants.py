"""Figures of others: named sets of constants, and half a century of processors."""

from __future__ import annotations

import pytest
from faults import overlooked

from mlsim.errors import InvalidValueError, UnknownNameError, UnsupportedPrecisionError
from mlsim.hardware import processor_trends
from mlsim.hardware.device import device_with
from mlsim.hardware.named_constants import FOLDER, all_constants, constants, load_constants
from mlsim.hardware.processor_trends import PATH, UNITS, doubling_years, growth, trend


def test_every_ridge_is_possible_but_one_that_torchao_has() -> None:
    for each in all_constants().values():
        for device in each.devices.values():
            for peak in device.peaks.values():
                assert 1 < peak / device.memory_bandwidth < 5000
            # A variant of a device may be slower; none is a thousand times as fast.
            ratio = device.memory_bandwidth / device_with(device.device).bandwidth_si
            assert 0.5 < ratio < 1.1
    # Of torchao 0.18.0, for the GeForce RTX 5090: 1.792e15 B/s, where the data sheet has 1,792
    # GB/s. The same figure in a device's file is an error: see test_file_report.
    card = device_with("Workstation.RTX5090")
    assert card.bandwidth_si == 1.792e12
    assert card.compute.figure("bf16").si / 1.792e15 < 1
    with pytest.raises(UnsupportedPrecisionError, match=r"no fp4 peak of NVIDIA H100. There are"):
        constants("torchao-0.18.0").of("Cloud.H100").peak("fp4")
    assert "copied from the H100" in constants("torchao-0.18.0").of("Cloud.B200").note
    text = (FOLDER / "torchao_0_18_0.toml").read_text(encoding="utf-8")
    assert overlooked(load_constants, text, "named_constants") == []


def test_transistors_double_every_two_years_and_the_clock_stopped_in_2005() -> None:
    """As Moore said in 1975; over all fifty years, and in the last fifteen."""
    first = trend("transistors")[0]
    assert (first.year, first.chips, first.most) == (1971, 1, pytest.approx(2300, rel=0.01))
    whole, late = (growth("transistors", year, 2021, column="most") for year in (1971, 2005))
    assert doubling_years(whole) == pytest.approx(2, abs=0.1)
    assert 1.8 < doubling_years(late) < 2.5
    assert doubling_years(1.02) == pytest.approx(35.0, abs=0.01)
    assert growth("frequency", 1971, 2004) > 1.25
    assert growth("frequency", 2005, 2021) == pytest.approx(1, abs=0.02)
    assert growth("single_thread", 1988, 2004) > 1.4 > 1.2 > growth("single_thread", 2005, 2021)
    assert all(row.median == 1 for row in trend("cores") if row.year < 2004)
    for name in UNITS:
        rows = trend(name)
        # A median is never above the largest.
        assert all(row.median <= row.most for row in rows)
        assert all(row.median == row.most for row in rows if row.chips == 1)
        assert [row.year for row in rows] == sorted({row.year for row in rows})


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'frequency'"):
        trend("frequancy")
    with pytest.raises(InvalidValueError, match="2 years from 1971 to 1972"):
        growth("power", 1971, 1972)
    assert growth("power", 1971, 1974) > 1
    with pytest.raises(InvalidValueError, match='must be "median" or "most"'):
        growth("power", 1971, 2021, column="mean")
    for flat in (1.0, 0.99, float("nan")):
        with pytest.raises(InvalidValueError, match="never doubles"):
            doubling_years(flat)
    head = PATH.read_text(encoding="utf-8").splitlines()[0]
    good = f"{head}\npower-2004,2004,power,101,115,3,rupp2022trends\n"
    assert overlooked(processor_trends.load, good, "processor_rows", "csv") == []
    # The licence lies beside the data.
    notice = (PATH.parent / "NOTICE.txt").read_text(encoding="utf-8")
    assert "Creative Commons Attribution 4.0" in notice
    assert {row.quantity for row in processor_trends.load(PATH)} == set(UNITS)
