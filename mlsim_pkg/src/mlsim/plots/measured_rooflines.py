"""Measured kernels under the roof of their device: levels of memory, ceilings, regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsim.equations import roofline
from mlsim.hardware import Device
from mlsim.plots.plot_data import attach, axes_for
from mlsim.plots.roof import MARKERS, SIZE, X_LABEL, Y_LABEL, draw_ceilings, draw_roof
from mlsim.profiling.diagnosis import Finding, Point, diagnose, points_of, without_place as unplaced
from mlsim.profiling.measured_profile import LEVELS, MeasuredProfile
from mlsim.profiling.roofs import ceilings_of, device_of, level_bandwidths, main_precision
from mlsim.units import text, to_base

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# By region; a word stands beside each point, so color is not needed to tell them apart.
REGION_COLOURS = {
    "memory-bound": "#0072B2",
    "compute-bound": "#D55E00",
    "far below the roof": "#009E73",
    "above the peak": "#CC79A7",
    "above the slope": "#CC79A7",
    "not known": "#777777",
}
_SMALLEST, _LARGEST = 25.0, 500.0
# Kernels named in the figure; the rest are points without a name.
_NAMED = 4


def plot_measured(
    profile: MeasuredProfile,
    hardware: Device | str | None = None,
    *,
    precision: str | None = None,
    levels: Sequence[str] = ("dram",),
    ceilings: bool = True,
    bandwidths: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw the kernels of a profile under the roof of their device; see `plot_roofline`."""
    device = device_of(profile, hardware)
    diagnosis = diagnose(profile, hardware=device)
    points = points_of(diagnosis, levels)
    computed = precision or main_precision(profile.kernels, device)
    peak = device.compute.figure(computed).si
    slopes = level_bandwidths(device) | {
        level: to_base(value, "B/s", f"bandwidth of {level}")
        for level, value in (bandwidths or {}).items()
    }
    ax = axes_for(ax, *SIZE)
    draw_roof(ax, device, peak, [point.intensity for point in points])
    for level in levels:
        if level != "dram" and level in slopes:
            _draw_slope(ax, level, slopes[level], peak)
    if ceilings:
        draw_ceilings(ax, ceilings_of(device, computed), device.bandwidth_si)
    lowest = min(point.rate for point in points) / 1e12
    low, top = ax.get_ylim()
    ax.set_ylim(min(low, lowest / 3), top)
    whole = diagnosis.whole if len(diagnosis.findings) > 1 else None
    _draw_points(ax, points, levels, whole)
    ax.set_title(f"Measured on {device.name}, roof of {computed}")
    lost = unplaced(diagnosis, points)
    if lost:
        share = sum(each.time_share or 0.0 for each in lost)
        ax.text(
            0.99,
            0.01,
            f"{len(lost)} kernels ({share:.0%} of the time) have no place",
            transform=ax.transAxes,
            ha="right",
            va="bottom",
            fontsize="small",
        )
    return attach(ax, _rows(points, device, peak, whole))


def _draw_slope(ax: Any, level: str, bandwidth: float, peak: float) -> None:
    """Draw the slope of a level nearer to the cores."""
    low, _ = ax.get_xlim()
    ridge = roofline.ridge_point(peak, bandwidth)
    rates = [roofline.attainable_flops(each, bandwidth, peak) / 1e12 for each in (low, ridge)]
    ax.plot([low, ridge], rates, color="#555555", linewidth=1, linestyle="-.", zorder=1)
    ax.annotate(
        f"{level.upper()} {text(bandwidth, 'B/s')}",
        (low * 2, roofline.attainable_flops(low * 2, bandwidth, peak) / 1e12),
        xytext=(2, 4),
        textcoords="offset points",
        fontsize="small",
    )


def _draw_points(
    ax: Any, points: list[Point], levels: Sequence[str], whole: Finding | None
) -> None:
    """Draw each kernel, as large as its part of the time, and all of them together as a star."""
    named: dict[int, int] = {}
    for point in sorted(points, key=lambda each: -each.time_share):
        color = REGION_COLOURS[point.finding.region]
        ax.scatter(
            [point.intensity],
            [point.rate / 1e12],
            s=_SMALLEST + (_LARGEST - _SMALLEST) * point.time_share,
            color=color,
            marker=MARKERS[list(levels).index(point.level)],
            alpha=0.75,
            edgecolor="white",
            zorder=3,
        )
        key = id(point.finding)
        if key not in named and len(named) < _NAMED:
            named[key] = len(named) + 1
            name = f"{named[key]} {point.finding.kernel.short[:24]}: {point.finding.region}"
            ax.scatter([], [], color=color, s=40, label=name)
            ax.annotate(
                str(named[key]),
                (point.intensity, point.rate / 1e12),
                ha="center",
                va="center",
                fontsize="small",
                zorder=4,
            )
    if whole is not None and whole.intensity and whole.rate:
        ax.plot(
            [whole.intensity],
            [whole.rate / 1e12],
            marker="*",
            markersize=14,
            markerfacecolor="none",
            markeredgecolor="#000000",
            linestyle="none",
            label="all kernels together",
            zorder=5,
        )
    for level in levels if len(levels) > 1 else ():
        marker = MARKERS[list(levels).index(level)]
        ax.scatter([], [], color="#777777", marker=marker, s=40, label=LEVELS[level])
    ax.legend(loc="upper left", frameon=False, fontsize="small")


def _rows(
    points: list[Point], device: Device, peak: float, whole: Finding | None
) -> list[dict[str, Any]]:
    """Return what is drawn as numbers and words."""
    ridge = roofline.ridge_point(peak, device.bandwidth_si)
    rows: list[dict[str, Any]] = [
        {"Point": f"ridge of {device.name}", X_LABEL: ridge, Y_LABEL: peak / 1e12}
    ]
    if whole is not None and whole.intensity and whole.rate:
        rows.append(
            {
                "Point": "all kernels together",
                X_LABEL: whole.intensity,
                Y_LABEL: whole.rate / 1e12,
                "Level": "dram",
                "Region": whole.region,
                "Limit": whole.limit,
            }
        )
    for point in points:
        first, second = (*(each.words for each in point.finding.remedies), "", "")[:2]
        rows.append(
            {
                "Point": point.finding.kernel.short,
                X_LABEL: point.intensity,
                Y_LABEL: point.rate / 1e12,
                "Level": point.level,
                "Part of the time": point.time_share,
                "Region": point.finding.region,
                "Limit": point.finding.limit,
                "First": first,
                "Second": second,
            }
        )
    return rows
