"""Constants of a series: least squares of the log of the ratio, robust against odd rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from clean import FOLDS, Series
from errors import middle
from scipy.optimize import least_squares

# Rows beyond this many say little more, and take longer.
MOST_ROWS = 3000
# Beyond so much of a ratio, an error counts by its size instead of its square.
SOFT = 0.05
# What a constant costs that is e times the middle of other devices: as much as this error of a row.
HELD = 0.05

Constants = dict[str, float]


# A second kernel's constants have to lower the median error of the fitted rows by so much.
LEAST_GAIN = 0.005

Range = tuple[float, float, float]


def fit(
    series: Series, fold: int, near: Constants | None = None, optional: bool | None = None
) -> Constants:
    """Return constants fitted to one fifth of the shapes, and near a middle if one is given.

    With those of a second kernel, without, or (None) as the fitted rows say.
    """
    which = np.flatnonzero(series.folds == fold)[:: _step(series, fold)]
    told, more = series.kind.told(series.path, series.shapes), series.kind.optional
    if not more or optional is not None:
        return _best(series, which, {**told, **more} if optional else told, near)[0]
    plain, error = _best(series, which, told, near)
    richer, nearer = _best(series, which, {**told, **more}, near)
    return richer if error - nearer >= LEAST_GAIN else plain


def _best(
    series: Series, which: np.ndarray, fitted: dict[str, Range], near: Constants | None
) -> tuple[Constants, float]:
    """Return the constants with the best of the steps, and their median error."""
    best, error = {}, np.inf
    for extra in _steps(series):
        begun = _begun(fitted, best) if series.kind.warm else fitted
        found = _fitted(series, which, begun, extra, near)
        off = np.median(np.abs(errors(series, found, which)))
        if off < error:
            best, error = found, off
    return best, float(error)


def errors(series: Series, constants: dict[str, float], which: np.ndarray) -> np.ndarray:
    """Return by which part the equations are off: 0.1 is 10 % too long."""
    return series.predicted(constants, which) / series.seconds[which] - 1


def all_folds(series: Series, near: list[Constants] | None = None) -> list[Constants]:
    """Return constants fitted to each fifth; the first is the one that ships."""
    nears = near or [None] * FOLDS
    first = fit(series, 0, nears[0])
    optional = set(series.kind.optional) <= set(first)
    return [first, *(fit(series, fold, nears[fold], optional) for fold in range(1, FOLDS))]


def _begun(fitted: dict[str, Range], best: Constants) -> dict[str, Range]:
    """Begin where a fit ended, a little inside of the ranges."""
    return {
        name: (low, high, float(np.clip(best.get(name, start), low * 1.0001, high * 0.9999)))
        for name, (low, high, start) in fitted.items()
    }


def middles(several: Sequence[Series]) -> dict[tuple[str, ...], list[Constants]]:
    """Return for each series and fifth the middle of other devices, of the same fifth of shapes.

    So the shapes that test a fit are in none of it. Others have the same kind of link; a series
    with fewer than two others has no middle.
    """
    free = [(each, all_folds(each)) for each in several]
    found = {}
    for series in several:
        others = [folds for each, folds in free if _beside(each, series)]
        if len(others) > 1:
            found[series.key] = [middle([folds[n] for folds in others]) for n in range(FOLDS)]
    return found


def _beside(one: Series, other: Series) -> bool:
    alike = one.key[1:3] == other.key[1:3] and one.place.link == other.place.link
    return alike and one.place.key != other.place.key


def _step(series: Series, fold: int) -> int:
    return max(1, int((series.folds == fold).sum()) // MOST_ROWS)


def _steps(series: Series) -> list[dict[str, float]]:
    if series.kind.grid is None:
        return [{}]
    name, values = series.kind.grid
    return [{name: value} for value in values]


def _fitted(
    series: Series,
    which: np.ndarray,
    fitted: dict[str, Range],
    extra: dict[str, float],
    near: Constants | None,
) -> Constants:
    names = list(fitted)
    low, high, start = (np.log([fitted[name][i] for name in names]) for i in range(3))

    def constants(x: np.ndarray) -> dict[str, float]:
        return {**dict(zip(names, np.exp(x).tolist(), strict=True)), **extra}

    def off(x: np.ndarray) -> np.ndarray:
        ratios = np.log(series.predicted(constants(x), which) / series.seconds[which])
        return ratios if near is None else np.concatenate([ratios, HELD * (x - start)])

    if near is not None:
        start = np.clip(np.log([near[name] for name in names]), low, high)
    found = least_squares(
        off, start, bounds=(low - 1e-9, high + 1e-9), loss="soft_l1", f_scale=SOFT, max_nfev=80
    )
    return constants(found.x)
