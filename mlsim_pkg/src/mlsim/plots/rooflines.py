"""Figures of rooflines: workloads, or measured kernels, under the roof of a device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from mlsim.equations import roofline
from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.hardware.device import DEFAULT_PRECISION
from mlsim.plots.drawing import (
    COLOURS,
    MARKERS,
    SIZE,
    X_LABEL,
    Y_LABEL,
    attach,
    axes_for,
    draw_ceilings,
    draw_roof,
    note,
)
from mlsim.plots.points import draw_points, read_points
from mlsim.profiling.diagnosis import (
    Finding,
    Point,
    ceilings_of,
    device_of,
    diagnose,
    level_bandwidths,
    main_precision,
    points_of,
    without_place,
)
from mlsim.profiling.measured_profile import LEVELS, MeasuredProfile
from mlsim.solvers.forward.profile import Profile, solve
from mlsim.solvers.serving.serving import Serving, StepProfile
from mlsim.units import text, to_base
from mlsim.workloads.model import Model
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_roofline(
    hardware: Device | str | None = None,
    *,
    workloads: Iterable[Model | str | Profile | Serving | StepProfile] = (),
    points: Any = (),
    batch_size: int | Sequence[int] = 1,
    precision: str | None = None,
    operators: bool = False,
    measured: MeasuredProfile | None = None,
    levels: Sequence[str] = ("dram",),
    ceilings: bool | None = None,
    bandwidths: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw a device's roofline, and workloads or measured kernels as points under it.

    A point stands at the arithmetic intensity of the whole workload and at the
    rate that the solver predicts for it: below the roof, because some of its
    operators wait for memory while others compute.

    Parameters
    ----------
    hardware
        The device whose roof is drawn; of a measured profile, the one that it names if left out.
    workloads
        Networks, solved at each batch size; or profiles, services and phases
        of services on this device. A service is two points, prefill and decode.
    points
        What you measured, by name: (operations, bytes, seconds) or (intensity, "1.4 TFLOP/s"); or
        what `time_network` returned, one or several. A rate without a unit is refused. A point
        stands at the median, with a line for its interval.
    batch_size
        One batch size, or several; each is a point.
    precision
        Number format of the roof and of the networks; if it is left out, that
        in which the first answer among the workloads computes, or a timed network, else fp16.
    operators
        Whether every operator is drawn too, as a small dot: predicted ones on the roof, those of
        a timed network where they were measured.
    measured
        A profile that was read (`mlsim.profiling.read_profile`): a point for each kernel, as
        large as its part of the time, with its region and the two things to try first.
    levels
        Of a measured profile, at which its bytes are taken: "dram", "l2", "l1", "shared".
    ceilings
        Whether lower ceilings are drawn: no tensor cores, no FMA, one core. With a measured
        profile they are by default.
    bandwidths
        Of levels that are not on record, such as `{"l2": "5 TB/s"}`.
    ax
        Axes to draw on; a new figure otherwise.

    Returns
    -------
    tuple
        The figure and its axes, both logarithmic.

    Raises
    ------
    InvalidValueError
        If an answer belongs to another device or precision, or has many points; or no device is
        given; or a point is no point.
    UnitError
        If the rate of a point has no unit.
    NotMeasuredError
        If no kernel of the profile has work, bytes and time; says what is missing.
    MissingLibraryError
        If Matplotlib is not installed.

    >>> from mlsim import Hardware, Models
    >>> fig, ax = plot_roofline(Hardware.Cloud.A100, workloads=[Models.ResNet50])
    >>> ax.get_xscale()
    'log'
    """
    workloads, timed = list(workloads), read_points(points)
    if measured is not None:
        if workloads or timed:
            raise InvalidValueError(
                "draw predictions and a profile one after the other: plot_roofline(hardware, "
                "workloads=..., ax=ax) on the axes of plot_roofline(measured=...)."
            )
        asked = {"precision": precision, "levels": levels, "bandwidths": bandwidths or {}}
        return _measured(measured, hardware, ax, ceilings=ceilings is not False, **asked)
    if hardware is None:
        raise InvalidValueError("plot_roofline needs hardware=..., such as 'A100'.")
    device = resolve.device(hardware)
    formats = [*map(_computes_in, workloads), *(each.precision for each in timed)]
    computed = precision or next(filter(None, formats), DEFAULT_PRECISION)
    for point in timed:
        if point.precision not in ("", computed):
            raise InvalidValueError(
                f"{point.name} ran in {point.precision}: the roof of {computed} is none for it. "
                f"Draw plot_roofline(..., precision={point.precision!r})."
            )
    peak = device.compute.figure(computed).si
    marks: list[_Mark] = []
    inside: list[list[_Mark]] = []
    for each in workloads:
        for label, answer in _passes(each, device, computed, batch_size):
            marks.append(
                (label, float(answer.value("network_intensity")), answer.value("achieved_flops"))
            )
            # Operators that compute nothing have no place.
            counted = [row for row in answer.operators if operators and row["flops"] > 0]
            inside.append(
                [
                    (
                        f"{label}: {row['name']}",
                        row["arithmetic_intensity"],
                        row["flops"] / row["roofline_time"],
                    )
                    for row in counted
                ]
            )
    every = [*marks, *chain.from_iterable(inside)]
    ax = axes_for(ax, *SIZE)
    places = [*(each[1] for each in every), *(each.intensity for each in timed)]
    places += [across for each in timed if operators for across, _ in each.layers]
    draw_roof(ax, device, peak, places)
    if ceilings:
        draw_ceilings(ax, ceilings_of(device, computed), device.bandwidth_si)
    for index, (mark, dots) in enumerate(zip(marks, inside, strict=True)):
        style: dict[str, Any] = {
            "color": COLOURS[index % len(COLOURS)],
            "marker": MARKERS[index % len(MARKERS)],
        }
        if operators:
            _, across, up = zip(*dots, strict=True) if dots else ((), (), ())
            rates = [each / 1e12 for each in up]
            ax.scatter(across, rates, s=22, alpha=0.35, linewidths=0, zorder=2, **style)
        label, intensity, rate = mark
        here = ([intensity], [rate / 1e12])
        ax.scatter(*here, s=70, edgecolor="white", zorder=3, label=label, **style)
    draw_points(ax, timed, device.bandwidth_si, peak, layers=operators)
    ax.set_title(f"Roofline of {device.name}, {computed}")
    if marks or timed:
        ax.legend(loc="upper left", frameon=False)
    every += [(f"{each.name}, measured", each.intensity, each.rate) for each in timed]
    return attach(ax, [_ridge(device, peak), *(_as_row(*each) for each in every)])


# What is drawn at one place: its name, its intensity, and its rate in FLOP/s.
_Mark = tuple[str, float, float]


def _as_row(name: str, intensity: float, rate: float) -> dict[str, Any]:
    return {"Point": name, X_LABEL: intensity, Y_LABEL: rate / 1e12}


def _ridge(device: Device, peak: float) -> dict[str, Any]:
    ridge = roofline.ridge_point(peak, device.bandwidth_si)
    return _as_row(f"ridge of {device.name}", ridge, peak)


def _computes_in(workload: Any) -> str:
    """Return the format in which an answer computes, or "" for a network to be solved."""
    if isinstance(workload, Profile):
        return workload.precision
    service = getattr(workload, "service", None)
    if service is None:
        return ""
    computes: str = service.formats.computing(service.device)[0].computes_as
    return computes


def _passes(
    workload: Any, device: Device, precision: str, batch_size: Any
) -> list[tuple[str, Profile | StepProfile]]:
    """Return the passes to draw, by name: a network solved at each batch size, or an answer's."""
    if not isinstance(workload, (Profile, Serving, StepProfile)):
        sizes = batch_size if hasattr(batch_size, "__len__") else [batch_size]
        network = resolve.network(workload)
        solved = [solve(network, device, batch_size=size, precision=precision) for size in sizes]
        return [(f"{network.name}, batch {each.batch_size}", each) for each in solved]
    owner = workload.service.device if isinstance(workload, StepProfile) else workload.hardware
    if owner is not device or _computes_in(workload) != precision:
        raise InvalidValueError(
            f"{workload!r} does not belong under the roof of {device.name} in {precision}."
        )
    if isinstance(workload, Profile):
        return [(f"{workload.model.name}, batch {workload.batch_size}", workload)]
    steps = [workload] if isinstance(workload, StepProfile) else [workload.prefill]
    if isinstance(workload, Serving) and workload.model.decoder:
        steps.append(workload.decode)
    return [(_of_step(step), step) for step in steps]


def _of_step(step: StepProfile) -> str:
    """Name a phase; its counts are those of one device."""
    if step.shape:
        raise InvalidValueError(f"{step!r} has many points; pick one, such as {step.picked}.")
    service = step.service
    layout = f", {service.parallelism}" if service.parallelism.devices > 1 else ""
    batch = f"batch {service.batch_size:,.0f}{layout}"
    return f"{service.model.name}, {batch}, {step.name}"


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


def _measured(
    profile: MeasuredProfile,
    hardware: Device | str | None,
    ax: Any,
    *,
    precision: Any,
    levels: Any,
    bandwidths: Any,
    ceilings: bool,
) -> tuple[Figure, Axes]:
    """Draw the kernels of a profile under the roof of their device."""
    device = device_of(profile, hardware)
    diagnosis = diagnose(profile, hardware=device)
    points = points_of(diagnosis, levels)
    computed = precision or main_precision(profile.kernels, device)
    peak = device.compute.figure(computed).si
    slopes = level_bandwidths(device) | {
        level: to_base(value, "B/s", f"bandwidth of {level}") for level, value in bandwidths.items()
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
    lost = without_place(diagnosis, points)
    if lost:
        share = sum(each.time_share or 0.0 for each in lost)
        words = f"{len(lost)} kernels ({share:.0%} of the time) have no place"
        style = {"ha": "right", "va": "bottom", "fontsize": "small"}
        ax.text(0.99, 0.01, words, transform=ax.transAxes, **style)
    return attach(ax, _measured_rows(points, device, peak, whole))


def _draw_slope(ax: Any, level: str, bandwidth: float, peak: float) -> None:
    """Draw the slope of a level nearer to the cores."""
    low, _ = ax.get_xlim()
    ridge = roofline.ridge_point(peak, bandwidth)
    rates = [roofline.attainable_flops(each, bandwidth, peak) / 1e12 for each in (low, ridge)]
    ax.plot([low, ridge], rates, color="#555555", linewidth=1, linestyle="-.", zorder=1)
    at = (low * 2, roofline.attainable_flops(low * 2, bandwidth, peak) / 1e12)
    note(ax, f"{level.upper()} {text(bandwidth, 'B/s')}", at, (2, 4), fontsize="small")


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
            number = {"ha": "center", "va": "center", "fontsize": "small", "zorder": 4}
            ax.annotate(str(named[key]), (point.intensity, point.rate / 1e12), **number)
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


def _measured_rows(
    points: list[Point], device: Device, peak: float, whole: Finding | None
) -> list[dict[str, Any]]:
    """Return what is drawn as numbers and words."""
    rows = [_ridge(device, peak)]
    if whole is not None and whole.intensity and whole.rate:
        row = _as_row("all kernels together", whole.intensity, whole.rate)
        rows.append({**row, "Level": "dram", "Region": whole.region, "Limit": whole.limit})
    for point in points:
        first, second = (*(each.words for each in point.finding.remedies), "", "")[:2]
        rows.append(
            {
                **_as_row(point.finding.kernel.short, point.intensity, point.rate),
                "Level": point.level,
                "Part of the time": point.time_share,
                "Region": point.finding.region,
                "Limit": point.finding.limit,
                "First": first,
                "Second": second,
            }
        )
    return rows
