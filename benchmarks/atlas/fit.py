"""Constants of a series: least squares of the log of the ratio, robust against odd rows."""

from __future__ import annotations

import numpy as np
from clean import FOLDS, Series
from scipy.optimize import least_squares

# Rows beyond this many say little more, and take longer.
MOST_ROWS = 3000
# Beyond so much of a ratio, an error counts by its size instead of its square.
SOFT = 0.05


def fit(series: Series, fold: int) -> dict[str, float]:
    """Return constants that are fitted to one fifth of the shapes."""
    which = np.flatnonzero(series.folds == fold)[:: _step(series, fold)]
    fitted = dict(series.kind.fitted)
    if series.path == "bf16" or series.path.endswith("_weights"):
        fitted.pop("quantized_bytes", None)
    best, error = {}, np.inf
    for extra in _steps(series):
        found = _fitted(series, which, fitted, extra)
        off = np.median(np.abs(errors(series, found, which)))
        if off < error:
            best, error = found, off
    return best


def errors(series: Series, constants: dict[str, float], which: np.ndarray) -> np.ndarray:
    """Return by which part the equations are off: 0.1 is 10 % too long."""
    return series.predicted(constants, which) / series.seconds[which] - 1


def all_folds(series: Series) -> list[dict[str, float]]:
    """Return constants fitted to each fifth; the first is the one that ships."""
    return [fit(series, fold) for fold in range(FOLDS)]


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
    fitted: dict[str, tuple[float, float, float]],
    extra: dict[str, float],
) -> dict[str, float]:
    names = list(fitted)
    low, high, start = (np.log([fitted[name][i] for name in names]) for i in range(3))

    def constants(x: np.ndarray) -> dict[str, float]:
        return {**dict(zip(names, np.exp(x).tolist(), strict=True)), **extra}

    def off(x: np.ndarray) -> np.ndarray:
        return np.log(series.predicted(constants(x), which) / series.seconds[which])

    found = least_squares(
        off, start, bounds=(low - 1e-9, high + 1e-9), loss="soft_l1", f_scale=SOFT, max_nfev=80
    )
    return constants(found.x)
