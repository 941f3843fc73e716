"""Figures: the roofline of a device, with workloads under it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mlsim import zoo
from mlsim.engine import Engine
from mlsim.equations import roofline
from mlsim.errors import InvalidValueError, need
from mlsim.hardware import Device
from mlsim.solvers import Profile
from mlsim.units import scale_for, text
from mlsim.workloads import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any colour vision tell apart; the
# markers differ too, so a print in grey can be read.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")


def plot_roofline(
    hardware: Device | str,
    *,
    workloads: Iterable[Model | str | Profile] = (),
    batch_size: int | Sequence[int] = 1,
    precision: str = "fp16",
    operators: bool = False,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw a device's roofline, and workloads as points under it.

    A point stands at the arithmetic intensity of the whole workload and at the
    rate that `Engine.solve` predicts for it: below the roof, because some of
    its operators wait for memory while others compute.

    Parameters
    ----------
    hardware
        The device whose roof is drawn.
    workloads
        Models, solved at each batch size, or profiles of this device.
    batch_size
        One batch size, or several; each is a point.
    precision
        Number format of the roof and of the models.
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
        If a profile belongs to another device or precision.
    MissingLibraryError
        If Matplotlib is not installed.

    >>> from mlsim import Hardware, Models
    >>> fig, ax = plot_roofline(Hardware.Cloud.A100, workloads=[Models.ResNet50])
    >>> ax.get_xscale()
    'log'
    """
    pyplot = need("matplotlib.pyplot", "a figure", "plots")
    device = zoo.device(hardware)
    peak = device.compute.figure(precision).si
    profiles = [
        profile
        for workload in workloads
        for profile in _profiles(workload, device, precision, batch_size)
    ]
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    _draw_roof(ax, device, peak, _intensities(profiles, operators=operators))
    for index, profile in enumerate(profiles):
        _draw_profile(ax, profile, index, operators=operators)
    ax.set_title(f"Roofline of {device.name}, {precision}")
    if profiles:
        ax.legend(loc="upper left", frameon=False)
    figure = ax.figure
    return figure, ax  # type: ignore[return-value]


def _profiles(
    workload: Model | str | Profile, device: Device, precision: str, batch_size: Any
) -> list[Profile]:
    """Solve a model at each batch size, or take a profile as it is."""
    if isinstance(workload, Profile):
        if workload.hardware is not device or workload.precision != precision:
            raise InvalidValueError(
                f"{workload!r} does not belong under the roof of {device.name} in {precision}."
            )
        return [workload]
    sizes = batch_size if hasattr(batch_size, "__len__") else [batch_size]
    return [
        Engine.solve(model=workload, hardware=device, batch_size=size, precision=precision)
        for size in sizes
    ]


def _intensities(profiles: list[Profile], *, operators: bool) -> list[float]:
    """Return where points will stand on the axis of intensity."""
    found = [float(profile.value("network_intensity")) for profile in profiles]
    for profile in profiles if operators else ():
        found += [row["arithmetic_intensity"] for row in profile.operators if row["flops"] > 0]
    return found


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
    ax.set_xlabel("Arithmetic intensity (FLOP/byte)")
    ax.set_ylabel("Rate (TFLOP/s)")
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


def _draw_profile(ax: Any, profile: Profile, index: int, *, operators: bool) -> None:
    """Draw one workload, and its operators if asked for."""
    colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
    if operators:
        rows = [row for row in profile.operators if row["flops"] > 0]
        ax.scatter(
            [row["arithmetic_intensity"] for row in rows],
            [row["flops"] / row["roofline_time"] / 1e12 for row in rows],
            s=22,
            color=colour,
            marker=marker,
            alpha=0.35,
            linewidths=0,
            zorder=2,
        )
    ax.scatter(
        [float(profile.value("network_intensity"))],
        [float(profile.value("achieved_flops")) / 1e12],
        s=70,
        color=colour,
        marker=marker,
        edgecolor="white",
        zorder=3,
        label=f"{profile.model.name}, batch {profile.batch_size}",
    )
