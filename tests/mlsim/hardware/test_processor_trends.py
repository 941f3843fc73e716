"""Half a century of processors: what everybody knows of it, and what a bad table is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim.errors import DataFileError, InvalidValueError, UnknownNameError
from mlsim.hardware.processor_trends import (
    PATH,
    UNITS,
    doubling_years,
    growth,
    load,
    trend,
)


def test_the_first_microprocessor_had_2300_transistors() -> None:
    first = trend("transistors")[0]
    assert (first.year, first.chips) == (1971, 1)
    assert first.most == pytest.approx(2300, rel=0.01)


def test_transistors_double_every_two_years() -> None:
    """As Moore said in 1975; over all fifty years, and in the last fifteen."""
    assert doubling_years(growth("transistors", 1971, 2021, column="most")) == pytest.approx(
        2, abs=0.1
    )
    assert 1.8 < doubling_years(growth("transistors", 2005, 2021, column="most")) < 2.5


def test_the_clock_stopped_in_2005_and_one_thread_slowed_down() -> None:
    assert growth("frequency", 1971, 2004) > 1.25
    assert growth("frequency", 2005, 2021) == pytest.approx(1, abs=0.02)
    assert growth("single_thread", 1988, 2004) > 1.4 > 1.2 > growth("single_thread", 2005, 2021)
    assert all(row.median == 1 for row in trend("cores") if row.year < 2004)


def test_a_median_is_never_above_the_largest() -> None:
    for name in UNITS:
        rows = trend(name)
        assert all(row.median <= row.most for row in rows)
        assert all(row.median == row.most for row in rows if row.chips == 1)
        assert [row.year for row in rows] == sorted({row.year for row in rows})


def test_two_percent_a_year_double_in_35() -> None:
    assert doubling_years(1.02) == pytest.approx(35.0, abs=0.01)


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'frequency'"):
        trend("frequancy")
    with pytest.raises(InvalidValueError, match="2 years from 1971 to 1972"):
        growth("power", 1971, 1972)
    with pytest.raises(InvalidValueError, match='must be "median" or "most"'):
        growth("power", 1971, 2021, column="mean")
    for flat in (1.0, 0.99, float("nan")):
        with pytest.raises(InvalidValueError, match="never doubles"):
            doubling_years(flat)


HEAD = PATH.read_text(encoding="utf-8").splitlines()[0]
GOOD = "power-2004,2004,power,101,115,3,rupp2022trends"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (",power,", ",powr,", r"quantity must be one of .* Did you mean 'power'"),
        ("power-2004", "power-2005", r"id must be 'power-2004'"),
        (",101,115,", ",116,115,", r"the median, 116, is above the largest value, 115"),
        (",101,", ",-101,", r"median must be a positive number"),
        (",3,", ",0,", r"chips must be a whole number from 1 up"),
        ("rupp2022trends", "nobody", r"not in references\.bib"),
    ],
)
def test_a_bad_row_names_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"{HEAD}\n{GOOD.replace(old, new, 1)}\n", encoding="utf-8")
    with pytest.raises(DataFileError, match=r"bad\.csv:2: .*" + says):
        load(path)


def test_the_licence_lies_beside_the_data() -> None:
    notice = (PATH.parent / "NOTICE.txt").read_text(encoding="utf-8")
    for words in ("Creative Commons Attribution 4.0", "K. Rupp", "What was changed"):
        assert words in notice
    assert {row.quantity for row in load(PATH)} == set(UNITS)
