"""How fast something grew: a straight line through logarithms, and what sets a record.

A value that doubles in equal times is a straight line on a logarithmic axis. Its slope is
fitted by least squares, and so every point counts alike, the small ones too. Two questions
have two answers: how fast the usual one grew (all points), and how fast the largest did
(the records alone).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from mlsim.errors import InvalidValueError, need, unknown_name
from mlsim.values import quantity
from mlsim.zoo import spaces

if TYPE_CHECKING:
    import pandas

    from mlsim.hardware import Device
    from mlsim.values.plain import Plain

# Formats of 16 bits in which models are trained; a device may have a peak for one alone.
_SIXTEEN = ("bf16", "fp16")
_BANDWIDTH = "memory.bandwidth"
# Fewer points than these leave nothing by which to judge a line.
_FEWEST = 3
# A band of two standard errors on either side has the slope 19 times of 20, given many points.
_ERRORS = 2.0


@dataclass(frozen=True, slots=True)
class Growth:
    """An exponential through points, as fitted by least squares on logarithms.

    Attributes
    ----------
    slope, error
        Doublings in a year, and the standard error of that.
    middle, level
        The mean of the times, as a year, and the value of the fit there.
    spread
        By which factor a point usually lies above or below the fit: 2 to the standard
        deviation of what is left.
    points
        How many there were.
    what
        What grew, in words.
    """

    slope: float
    error: float
    middle: float
    level: float
    spread: float
    points: int
    what: str = "it"

    @property
    def factor(self) -> float:
        """By how much it grew in a year.

        >>> fit_growth([2020, 2021, 2022], [1, 4, 16]).factor
        4.0
        """
        return float(2.0**self.slope)

    @property
    def doubling_time(self) -> Plain:
        """Years in which it doubled, a value; below 0 if it halved, infinite if it stood still.

        >>> float(fit_growth([2020, 2021, 2022], [1, 4, 16]).doubling_time)
        0.5
        """
        years = 1.0 / self.slope if self.slope else math.inf
        turned = "halved" if years < 0 else "doubled"
        return self._as_value(years, f"years in which {self.what} {turned}")

    @property
    def doublings(self) -> Plain:
        """The slope as a value: how often it doubled in a year."""
        return self._as_value(self.slope, f"doublings of {self.what} in a year")

    def _as_value(self, number: float, words: str) -> Plain:
        made = quantity(number, "1")
        return cast("Plain", made.named(words, because=f"line fitted to {self.points} logarithms"))

    @property
    def doubling_band(self) -> tuple[float, float]:
        """Doubling times for a slope that is two standard errors more, and less.

        The second is infinite if the points don't show that it grew at all.
        """
        fast, slow = self.slope + _ERRORS * self.error, self.slope - _ERRORS * self.error
        return (1.0 / fast if fast > 0 else math.inf, 1.0 / slow if slow > 0 else math.inf)

    def at(self, year: float) -> float:
        """Return the value of the fit at a time; outside of the points it is a guess.

        >>> fit_growth([2020, 2021, 2022], [1, 4, 16]).at(2023)
        64.0
        """
        return float(self.level * 2.0 ** (self.slope * (year - self.middle)))


def fit_growth(years: Sequence[float], values: Sequence[float]) -> Growth:
    """Fit an exponential to values at times.

    Parameters
    ----------
    years
        Times as years, such as 2024.5 for the middle of 2024; at least three, not all the
        same.
    values
        As many positive numbers, in any unit.

    Raises
    ------
    InvalidValueError
        If there are too few points, not as many values as years, all at one time, or a
        number that is not finite or not above 0.

    >>> fit = fit_growth([2018, 2020, 2022], [1, 2, 4])
    >>> round(fit.doubling_time, 6), fit.points
    (2, 3)
    """
    times, logs = _checked(years, values)
    count = len(times)
    middle, mean = math.fsum(times) / count, math.fsum(logs) / count
    square = math.fsum((each - middle) ** 2 for each in times)
    if square == 0:
        raise InvalidValueError(
            f"all points are of one time, {times[0]:g}: give points of several years."
        )
    slope = math.fsum((t - middle) * (y - mean) for t, y in zip(times, logs, strict=True)) / square
    rest = math.fsum(
        (y - mean - slope * (t - middle)) ** 2 for t, y in zip(times, logs, strict=True)
    ) / (count - 2)
    return Growth(
        slope=slope,
        error=math.sqrt(rest / square),
        middle=middle,
        level=2.0**mean,
        spread=2.0 ** math.sqrt(rest),
        points=count,
    )


def _checked(years: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return times, and the logarithms of values to base 2."""
    times, numbers = [float(each) for each in years], [float(each) for each in values]
    if len(times) != len(numbers):
        raise InvalidValueError(
            f"there are {len(times)} years and {len(numbers)} values: give one value a year."
        )
    if len(times) < _FEWEST:
        raise InvalidValueError(
            f"{len(times)} points are too few for a growth: give {_FEWEST} or more."
        )
    for year, value in zip(times, numbers, strict=True):
        if not (math.isfinite(year) and math.isfinite(value) and value > 0):
            raise InvalidValueError(
                f"the value at {year:g} is {value:g}: a growth needs finite numbers above 0. "
                "Leave out what is not known."
            )
    return times, [math.log2(each) for each in numbers]


def growth_of(
    table: pandas.DataFrame, column: str, *, since: float = -math.inf, until: float = math.inf
) -> Growth:
    """Fit a column of a table that has times; rows without a value are left out.

    Parameters
    ----------
    table
        With a column "month" of dates (as of `language_models()`), or "year".
    column
        What grew.
    since, until
        Years between which to look, the first included.

    Raises
    ------
    UnknownNameError
        If the table has no such column.
    InvalidValueError
        If fewer than three points are left.

    >>> from mlsim.measured.language_models import language_models
    >>> growth_of(language_models(), "tokens").factor > 1
    True
    """
    _column(table, column)
    times = years(table)
    kept = table[column].notna() & (times >= since) & (times < until)
    fit = fit_growth(times[kept].to_list(), table.loc[kept, column].to_list())
    return replace(fit, what=column.replace("_", " "))


def records(table: pandas.DataFrame, column: str) -> pandas.DataFrame:
    """Return the rows that were the largest so far when they came out, in order of time.

    Of several at one time the largest counts.

    Raises
    ------
    UnknownNameError
        If the table has no such column.

    >>> from mlsim.measured.language_models import language_models
    >>> records(language_models(), "parameters")["name"].to_list()[:3]
    ['GPT-1', 'BERT-Large', 'GPT-2 XL (1.5B)']
    """
    _column(table, column)
    times = years(table)
    known = table[table[column].notna() & times.notna()].assign(_time=times)
    known = known.sort_values(["_time", column], ascending=[True, False], kind="stable")
    best = known[column].cummax()
    first = known[column].gt(best.shift(fill_value=-math.inf))
    return known[first].drop(columns="_time")


def years(table: pandas.DataFrame) -> pandas.Series[float]:
    """Return the times of a table as years: the middle of a month, or of a year.

    Raises
    ------
    UnknownNameError
        If it has neither a column "month" nor "year".

    >>> from mlsim.measured.language_models import language_models
    >>> float(round(years(language_models())["chinchilla"], 3))
    2022.208
    """
    if "month" in table:
        month: Any = table["month"].dt
        middle: pandas.Series[float] = month.year + (month.month - 0.5) / 12
        return middle
    if "year" in table:
        return table["year"] + 0.5
    raise unknown_name("column of times", "month", list(table.columns))


def _column(table: pandas.DataFrame, column: str) -> None:
    if column not in table:
        raise unknown_name("column", column, list(table.columns))


def accelerators(group: str = "Cloud") -> pandas.DataFrame:
    """Return the devices of a group of the zoo by year, with the three rates that count.

    Returns
    -------
    pandas.DataFrame
        By key: `name`, `year`, `peak` (FLOP/s, dense, in the better of BF16 and FP16),
        `capacity` (bytes) and `bandwidth` (B/s) of the main memory. What is not known is
        NaN. Chips without DRAM are left out: their memory is another kind of thing.

    Raises
    ------
    UnknownNameError
        If the zoo has no such group.
    MissingLibraryError
        If pandas is not installed.

    >>> table = accelerators()
    >>> f"{table.loc['Cloud.H100', 'peak']:.4g}"
    '9.89e+14'
    """
    keys: list[str] = spaces.Hardware.keys()
    groups = {key.partition(".")[0] for key in keys}
    if group not in groups:
        raise unknown_name("group of devices", group, groups)
    library = need("pandas", "a table", "arrays")
    found = [
        each
        for each in spaces.Hardware
        if each.key.startswith(f"{group}.") and "SRAM" not in each.figures[_BANDWIDTH].note
    ]
    table: pandas.DataFrame = library.DataFrame([_device(each) for each in found]).set_index("key")
    return table.sort_values(["year", "peak"], kind="stable")


def _device(device: Device) -> dict[str, Any]:
    peaks = [
        device.figures[f"compute.{each}"].si
        for each in _SIXTEEN
        if f"compute.{each}" in device.figures
    ]
    return {
        "key": device.key,
        "name": device.name,
        "year": device.release_year,
        "peak": max(peaks, default=math.nan),
        "capacity": device.memory.printed_figure.si,
        "bandwidth": device.bandwidth_si,
    }
