"""Figures of what machines allow: stale updates that converge, and peaks by number format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlsim.errors import InvalidValueError, need
from mlsim.hardware import Device
from mlsim.plots.plot_data import attach, axes_for, legend_above
from mlsim.systems.stale_updates import largest_stable_rate, stale_descent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Widest first.
FORMATS = ("fp64", "fp32", "tf32", "fp16", "fp8", "fp4")
_STYLES = ("-", "--", "-.", ":")


def plot_staleness(rate: float, delays: Sequence[int], *, steps: int = 60) -> Figure:
    """Draw gradient descent with stale gradients, and the largest rate that converges.

    Above, the distance from the minimum of a quadratic at a learning rate, for some delays.
    Below, the limit by the formula, and where a simulation begins to grow.

    Raises
    ------
    InvalidValueError
        If there are not one to four delays, or one is not a whole number from 0 up.

    >>> len(plot_staleness(0.3, [0, 4]).axes)
    2
    """
    if not 1 <= len(delays) <= len(_STYLES):
        raise InvalidValueError(f"give one to {len(_STYLES)} delays, not {len(delays)}.")
    pyplot = need("matplotlib.pyplot", "a figure", "plots")
    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(3.7, 4.8), layout="constrained")
    rows: list[dict[str, float]] = []
    for delay, style in zip(delays, _STYLES, strict=False):
        away = [abs(weight) for weight in stale_descent(rate, delay, steps)]
        upper.plot(away, style, label=f"{delay} old")
        rows += [{"Updates old": delay, "Update": at, "Distance": d} for at, d in enumerate(away)]
    upper.set(yscale="log", ylim=(1e-6, 1e3), xlabel="Update", ylabel="Distance from the minimum")
    upper.set_title("Descent", fontsize=9)
    upper.legend(frameon=False, fontsize=8)
    attach(upper, rows)
    every = range(32)
    limits = [largest_stable_rate(delay) for delay in every]
    tried = [0, 1, 2, 4, 7, 15, 31]
    lower.plot(every, limits, label="formula")
    lower.plot(tried, [grows_from(delay) for delay in tried], "x", label="simulation")
    lower.set(yscale="log", xlabel="Updates old", ylabel="Largest rate, × c")
    lower.set_title("Limit", fontsize=9)
    lower.legend(frameon=False, fontsize=8)
    attach(
        lower, [{"Updates old": d, "Limit": limit} for d, limit in zip(every, limits, strict=True)]
    )
    drawn: Figure = figure
    return drawn


def grows_from(delay: int, *, steps: int = 3000) -> float:
    """Find the learning rate from which a simulation grows, by halving an interval.

    >>> abs(grows_from(1) - 1) < 0.01
    True
    """
    low, high = 0.0, 2.5
    for _ in range(13):
        middle = (low + high) / 2
        late = stale_descent(middle, delay, steps)[-100:]
        low, high = (middle, high) if max(map(abs, late)) < 1 else (low, middle)
    return middle


def plot_formats(devices: Sequence[Device], *, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw the dense peak of devices by number format, from the widest to the narrowest.

    Raises
    ------
    InvalidValueError
        If there is no device, or there are more than marks.

    >>> from mlsim import Hardware
    >>> plot_formats([Hardware.Cloud.A100])[1].get_ylabel()
    'Dense peak (TFLOP/s)'
    """
    marks = "osD^vPX"
    if not 1 <= len(devices) <= len(marks):
        raise InvalidValueError(f"give one to {len(marks)} devices, not {len(devices)}.")
    ax = axes_for(ax, 3.7, 3.6)
    rows: list[dict[str, str | float]] = []
    for device, mark in zip(devices, marks, strict=False):
        known = [name for name in FORMATS if name in device.compute.precisions]
        peaks = [device.compute.figure(name).si / 1e12 for name in known]
        ax.plot([FORMATS.index(name) for name in known], peaks, marker=mark, label=device.name)
        rows += [
            {"Device": device.name, "Format": name, "Dense peak (TFLOP/s)": peak}
            for name, peak in zip(known, peaks, strict=True)
        ]
    ax.set(yscale="log", ylabel="Dense peak (TFLOP/s)", xlabel="Number format")
    ax.set_xticks(range(len(FORMATS)), [name.upper() for name in FORMATS])
    legend_above(ax, fontsize=7)
    return attach(ax, rows)
