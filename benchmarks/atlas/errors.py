"""How far off constants are on shapes that they were not fitted to, with their own and without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from statistics import median, median_low

import numpy as np
from clean import Series, places

Constants = dict[str, float]
# From the nearest relative to the farthest.
LEVELS = ("own", "sibling", "family", "class")


@dataclass(frozen=True)
class Error:
    """Errors of a series at a level.

    Attributes
    ----------
    level, of
        Whose constants, in a word and by keys.
    rows
        Shapes that were predicted.
    median, p80, bias
        Of |error|, its 80th percentile, and the median of the error itself.
    low, high
        The tenth and the ninetieth percentile of what was measured over what was predicted:
        a band that holds 80 %.
    """

    level: str
    of: str
    rows: int
    median: float
    p80: float
    bias: float
    low: float
    high: float


def error(series: Series, constants: Constants, level: str, of: str) -> Error:
    """Return the errors on the four fifths of the shapes that are not fitted."""
    which = np.flatnonzero(series.folds != 0)
    ratio = series.predicted(constants, which) / series.seconds[which]
    off = np.abs(ratio - 1)
    return Error(
        level,
        of,
        len(which),
        float(np.median(off)),
        float(np.quantile(off, 0.8)),
        float(np.median(ratio) - 1),
        float(np.quantile(1 / ratio, 0.1)),
        float(np.quantile(1 / ratio, 0.9)),
    )


def left_out(series: Series, fitted: dict[tuple[str, ...], Constants]) -> Iterator[Error]:
    """Yield the errors with the constants of others: sibling, family, class."""
    place, kin = series.place, series.key[1:]
    others = {key[0]: found for key, found in fitted.items() if key[1:] == kin}
    others.pop(place.key, None)
    families = {each.key: each.family for each in places()}
    groups = {
        "sibling": [key for key in others if key == place.sibling],
        "family": [key for key in others if families[key] == place.family],
        "class": list(others),
    }
    for level, keys in groups.items():
        if keys:
            step = series.kind.grid[0] if series.kind.grid else ""
            found = middle([others[key] for key in keys], step)
            yield error(series, found, level, " ".join(keys))


def middle(several: list[Constants], step: str = "") -> Constants:
    """Return the median of each constant on a log scale: that of most devices.

    A constant that is a step has one of its values, and none between.

    >>> middle([{"a": 1.0}, {"a": 4.0}])
    {'a': 2.0}
    >>> middle([{"a": 1.0}, {"a": 4.0}], "a")
    {'a': 1.0}
    """
    names = [name for name in several[0] if all(name in each for each in several)]
    found = {name: float(exp(median(log(each[name]) for each in several))) for name in names}
    if step in found:
        found[step] = median_low(each[step] for each in several)
    return found
