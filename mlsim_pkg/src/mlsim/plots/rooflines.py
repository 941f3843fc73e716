"""Figures: the roofline of a device, with workloads under it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsim.equations import roofline
from mlsim.errors import InvalidValueError, need
from mlsim.hardware import Device
from mlsim.hardware.device import DEFAULT_PRECISION
from mlsim.plots.plot_data import attach
from mlsim.solvers.forward.profile import Profile, solve
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.step_profile import StepProfile
from mlsim.units import scale_for, text
from mlsim.workloads.model import Model
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colors, which people with any color vision can distinguish; the
# markers differ too, so a print in gray can be read.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
# Inches. Text of 10 points in so narrow a figure can still be read on a phone.
SIZE = (5.2, 3.9)
_X, _Y = "Arithmetic intensity (FLOP/byte)", "Rate (TFLOP/s)"


def plot_roofline(
    hardware: Device | str,
    *,
    workloads: Iterable[Model | str | Profile | Serving | StepProfile] = (),
    batch_size: int | Sequence[int] = 1,
    precision: str | None = None,
    operators: bool = False,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw a device's roofline, and workloads as points under it.

    A point stands at the arithmetic intensity of the whole workload and at the
    rate that the solver predicts for it: below the roof, because some of its
    operators wait for memory while others compute.

    Parameters
    ----------
    hardware
        The device whose roof is drawn.
    workloads
        Networks, solved at each batch size; or profiles, services and phases
        of services on this device. A service is two points, prefill and decode.
    batch_size
        One batch size, or several; each is a point.
    precision
        Number format of the roof and of the networks; if it is left out, that
        in which the first answer among the workloads computes, else fp16.
    operators
        Whether every operator is drawn too, as a small dot on the roof.
    ax
        Axes to draw on; a new figure otherwise.

    Returns
    -------
    tuple
        The figure and its axes, both logarithmic.

    Raises
    ------
    InvalidValueError
        If an answer belongs to another device or precision, or has many points.
    MissingLibraryError
        If Matplotlib is not installed.

    >>> from mlsim import Hardware, Models
    >>> fig, ax = plot_roofline(Hardware.Cloud.A100, workloads=[Models.ResNet50])
    >>> ax.get_xscale()
    'log'
    """
    pyplot = need("matplotlib.pyplot", "a figure", "plots")
    device = resolve.device(hardware)
    workloads = list(workloads)
    computed = precision or next(filter(None, map(_computes_in, workloads)), DEFAULT_PRECISION)
    peak = device.compute.figure(computed).si
    points = [
        point for workload in workloads for point in _points(workload, device, computed, batch_size)
    ]
    if ax is None:
        _, ax = pyplot.subplots(figsize=SIZE, layout="constrained")
    _draw_roof(ax, device, peak, _intensities(points, operators=operators))
    for index, point in enumerate(points):
        _draw_point(ax, point, index, operators=operators)
    attach(ax, _rows(points, device, peak, operators=operators))
    ax.set_title(f"Roofline of {device.name}, {computed}")
    if points:
        ax.legend(loc="upper left", frameon=False)
    figure = ax.figure
    return figure, ax  # type: ignore[return-value]


@dataclass(frozen=True)
class _Point:
    """What is drawn as one point: an answer of one pass, and what to call it."""

    answer: Profile | StepProfile
    label: str

    @property
    def intensity(self) -> float:
        return float(self.answer.value("network_intensity"))

    @property
    def rate(self) -> float:
        return float(self.answer.value("achieved_flops"))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its operators, without those that compute nothing."""
        return [row for row in self.answer.operators if row["flops"] > 0]


def _computes_in(workload: Any) -> str:
    """Return the format in which an answer computes, or "" for a network to be solved."""
    if isinstance(workload, Profile):
        return workload.precision
    service = getattr(workload, "service", None)
    if service is None:
        return ""
    computes: str = service.formats.computing(service.device)[0].computes_as
    return computes


def _points(workload: Any, device: Device, precision: str, batch_size: Any) -> list[_Point]:
    """Solve a network at each batch size, or take an answer as it is."""
    if not isinstance(workload, (Profile, Serving, StepProfile)):
        sizes = batch_size if hasattr(batch_size, "__len__") else [batch_size]
        network = resolve.network(workload)
        solved = [solve(network, device, batch_size=size, precision=precision) for size in sizes]
        return [_of_profile(profile) for profile in solved]
    owner = workload.service.device if isinstance(workload, StepProfile) else workload.hardware
    if owner is not device or _computes_in(workload) != precision:
        raise InvalidValueError(
            f"{workload!r} does not belong under the roof of {device.name} in {precision}."
        )
    if isinstance(workload, Profile):
        return [_of_profile(workload)]
    if isinstance(workload, StepProfile):
        return [_of_step(workload)]
    phases = [workload.prefill, *([workload.decode] if workload.model.decoder else [])]
    return [_of_step(phase) for phase in phases]


def _of_profile(profile: Profile) -> _Point:
    return _Point(profile, f"{profile.model.name}, batch {profile.batch_size}")


def _of_step(step: StepProfile) -> _Point:
    """Name a phase; its counts are those of one device."""
    if step.shape:
        raise InvalidValueError(f"{step!r} has many points; pick one, such as {step.picked}.")
    service = step.service
    layout = f", {service.parallelism}" if service.parallelism.devices > 1 else ""
    batch = f"batch {service.batch_size:,.0f}{layout}"
    return _Point(step, f"{service.model.name}, {batch}, {step.name}")


def _intensities(points: list[_Point], *, operators: bool) -> list[float]:
    """Return where points will stand on the axis of intensity."""
    found = [point.intensity for point in points]
    for point in points if operators else ():
        found += [row["arithmetic_intensity"] for row in point.rows]
    return found


def _rows(
    points: list[_Point], device: Device, peak: float, *, operators: bool
) -> list[dict[str, Any]]:
    """Return what is drawn as numbers: the ridge, the workloads, and their operators."""
    ridge = roofline.ridge_point(peak, device.bandwidth_si)
    rows = [{"Point": f"ridge of {device.name}", _X: ridge, _Y: peak / 1e12}]
    rows += [{"Point": each.label, _X: each.intensity, _Y: each.rate / 1e12} for each in points]
    for point in points if operators else ():
        rows += [
            {
                "Point": f"{point.label}: {row['name']}",
                _X: row["arithmetic_intensity"],
                _Y: row["flops"] / row["roofline_time"] / 1e12,
            }
            for row in point.rows
        ]
    return rows


def _draw_roof(ax: Any, device: Device, peak: float, intensities: list[float]) -> None:
    """Draw slope, flat and ridge, three decades about the ridge or as points need."""
    ticker = need("matplotlib.ticker", "a figure", "plots")
    bandwidth = device.bandwidth_si
    ridge = roofline.ridge_point(peak, bandwidth)
    low = min([ridge / 300, *(each / 3 for each in intensities)])
    high = max([ridge * 10, *(each * 3 for each in intensities)])
    roof = [roofline.attainable_flops(each, bandwidth, peak) / 1e12 for each in (low, ridge, high)]
    ax.plot([low, ridge, high], roof, color="#555555", linewidth=2, zorder=1)
    # Room above the roof for the legend and the name of the peak.
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(roof[0], 6 * roof[-1]))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(ticker.NullFormatter())
    ax.set_xlabel(_X)
    ax.set_ylabel(_Y)
    ax.axvline(ridge, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
    peak_scale, peak_unit = scale_for(peak, "FLOP/s")
    ax.annotate(
        f"peak {peak / peak_scale:g} {peak_unit}",
        (ridge, roof[-1]),
        xytext=(4, 9),
        textcoords="offset points",
    )
    ax.annotate(
        f"ridge {ridge:.0f} FLOP/byte",
        (ridge, roof[0]),
        xytext=(5, 6),
        textcoords="offset points",
        color="#555555",
    )
    left = low * 4
    ax.annotate(
        text(bandwidth, "B/s"),
        (left, roofline.attainable_flops(left, bandwidth, peak) / 1e12),
        xytext=(8, -4),
        textcoords="offset points",
        va="top",
    )


def _draw_point(ax: Any, point: _Point, index: int, *, operators: bool) -> None:
    """Draw one workload, and its operators if asked for."""
    color, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
    if operators:
        rows = point.rows
        ax.scatter(
            [row["arithmetic_intensity"] for row in rows],
            [row["flops"] / row["roofline_time"] / 1e12 for row in rows],
            s=22,
            color=color,
            marker=marker,
            alpha=0.35,
            linewidths=0,
            zorder=2,
        )
    ax.scatter(
        [point.intensity],
        [point.rate / 1e12],
        s=70,
        color=color,
        marker=marker,
        edgecolor="white",
        zorder=3,
        label=point.label,
    )
