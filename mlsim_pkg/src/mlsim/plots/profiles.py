"""Measured runs: a report of a profile as one HTML file, tasks over time, and the five regions.

The report is for any browser, without a script, a network or a library; its roofline is SVG in
the colors of the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from mlsim.equations import roofline
from mlsim.errors import InvalidValueError, NotMeasuredError
from mlsim.hardware import Device
from mlsim.plots.drawing import attach, axes_for, style
from mlsim.profiling.diagnosis import (
    Diagnosis,
    Finding,
    Point,
    ceilings_of,
    main_precision,
    points_of,
    run_words,
    unplaced,
)
from mlsim.profiling.measured_profile import MeasuredProfile, printable
from mlsim.profiling.stopwatch import Task, critical_path
from mlsim.units import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# What a browser may load: nothing but the style in the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_MOST_ROWS = 200
_NO_ROOF = (
    "The device is not known, so there is no roof to draw and nothing to try. Give --hardware, a "
    "name such as A100 or a file of your own (<code>mlsim zoo</code> lists them)."
)


def report(diagnosis: Diagnosis | MeasuredProfile, *, levels: Sequence[str] = ("dram",)) -> str:
    """Return a report as the text of an HTML page.

    It has what limits the run, the roofline, and a row for each kernel with its region, what
    limits it and the two things to try first. Names out of the profile are escaped.

    >>> from mlsim.profiling import MeasuredKernel, MeasuredProfile, diagnose
    >>> kernel = MeasuredKernel("<b>k</b>", 1, 1e-3, {"fp32": 2e8}, {"dram": 1.2e9})
    >>> page = report(diagnose(MeasuredProfile((kernel,), "test"), hardware="A100"))
    >>> "&lt;b&gt;k" in page, "<b>k" in page
    (True, False)
    """
    if isinstance(diagnosis, MeasuredProfile):
        profile, whole, findings = diagnosis, None, unplaced(diagnosis)
        name, words = profile.device_name, run_words(profile)
        figure, points = f"<p>{_NO_ROOF}</p>", list[Point]()
    else:
        profile, whole, findings = diagnosis.profile, diagnosis.whole, diagnosis.findings
        name, words = diagnosis.device.name, list(diagnosis.run)
        figure, points = _figure(diagnosis, levels)
    title = f"Profile on {name}" if name else "Profile"
    files = ", ".join(Path(each).name for each in profile.files)
    run = "".join(f"<li>{_said(each)}</li>" for each in words)
    notes = "".join(f"<li>{_said(each)}</li>" for each in profile.notes)
    return "".join(
        (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_said(title)}</title><style>{style('report')}</style></head><body><main>",
            f"<h1>{_said(title)}</h1><p>{_said(profile.tool)}: {_said(files)}</p>",
            _totals(profile, whole),
            f"<h2>The run</h2><ul>{run}</ul>" if run else "",
            f"<h2>Roofline</h2>{figure}",
            _table(findings, points),
            f"<h2>Notes</h2><ul>{notes}</ul>" if notes else "",
            "</main></body></html>\n",
        )
    )


def write_report(
    diagnosis: Diagnosis | MeasuredProfile, path: str | Path, *, levels: Sequence[str] = ("dram",)
) -> Path:
    """Write a report to a file.

    Raises
    ------
    InvalidValueError
        If there is no such folder.
    """
    file = Path(path).expanduser()
    if not file.parent.is_dir():
        raise InvalidValueError(f"there is no folder {str(file.parent)!r} to write to.")
    file.write_text(report(diagnosis, levels=levels), encoding="utf-8")
    return file


def _said(words: str) -> str:
    return escape(printable(words), quote=True)


def _totals(profile: MeasuredProfile, placed: Finding | None) -> str:
    """Return time, work and bytes of all kernels; what is not known says why."""
    whole = profile.total
    work = whole.flop_count if whole.counted else None
    facts = [
        ("Kernels", f"{sum(each.calls for each in profile.kernels):,} launches"),
        ("Time of kernels", _or_why(whole.seconds, "s", whole.missing.get("seconds"))),
        ("Work", _or_why(work, "FLOP", whole.missing.get("flops"))),
        ("Main memory", _or_why(whole.traffic.get("dram"), "B", whole.missing.get("dram"))),
    ]
    if placed is not None and placed.rate is not None:
        facts.append(("All together", f"{placed.region}. {placed.limit}"))
    rows = "".join(
        f'<tr><th scope="row">{_said(name)}</th><td>{_said(value)}</td></tr>'
        for name, value in facts
    )
    return f"<table><caption>All kernels added up</caption><tbody>{rows}</tbody></table>"


def _or_why(value: float | None, unit: str, why: str | None) -> str:
    return text(value, unit) if value is not None else f"not known: {why or 'not in the file'}"


def _figure(diagnosis: Diagnosis, levels: Sequence[str]) -> tuple[str, list[Point]]:
    device = diagnosis.device
    try:
        points = points_of(diagnosis, levels)
    except NotMeasuredError as error:
        return f"<p>{_said(str(error))}</p>", []
    points = sorted(points, key=lambda each: -each.time_share)[:_MOST_ROWS]
    precision = main_precision(diagnosis.profile.kernels, device)
    peak = device.compute.figure(precision).si
    svg = roofline_svg(points, device, peak, ceilings_of(device, precision))
    said = (
        f"The roof is that of {precision}. A point is a kernel, as large as its part of the time; "
        "its number is that of the table."
    )
    return f"<figure>{svg}<figcaption>{_said(said)}</figcaption></figure>", points


def _table(findings: Sequence[Finding], points: Sequence[Point]) -> str:
    numbers: dict[int, list[str]] = {}
    for number, point in enumerate(points, start=1):
        numbers.setdefault(id(point.finding), []).append(str(number))
    columns = ("Point", "Kernel", "Calls", "Time", "Work", "FLOP/byte", "Rate", "Region")
    head = "".join(f'<th scope="col">{each}</th>' for each in (*columns, "What to try first"))
    rows = "".join(_row(each, numbers.get(id(each), [])) for each in findings[:_MOST_ROWS])
    more = len(findings) - _MOST_ROWS
    caption = "Kernels, the longest first"
    caption += f"; {more:,} shorter ones are left out" if more > 0 else ""
    return (
        '<h2>Kernels</h2><div class="scroll" role="region" aria-label="Kernels" tabindex="0">'
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(finding: Finding, numbers: list[str]) -> str:
    kernel = finding.kernel
    share = "" if finding.time_share is None else f" ({finding.time_share:.0%})"
    seconds = "-" if kernel.seconds is None else text(kernel.seconds, "s", 3) + share
    work = text(kernel.flop_count, "FLOP", 3) if kernel.counted else "-"
    intensity = "-" if finding.intensity is None else f"{finding.intensity:.3g}"
    rate = "-" if finding.rate is None else text(finding.rate, "FLOP/s", 3)
    tries = "".join(
        f"<li>{_said(each.words)}: {each.speedup:.3g} times faster ({_said(each.basis)})</li>"
        for each in finding.remedies
    )
    advice = f"<p>{_said(finding.limit)}</p>" + (f"<ul>{tries}</ul>" if tries else "")
    name = f'<th scope="row" class="k">{_said(kernel.short)}'
    if kernel.short != kernel.name:
        name += f"<details><summary>full name</summary>{_said(kernel.name[:2000])}</details>"
    cells = "".join(
        f'<td class="n">{_said(each)}</td>' for each in (seconds, work, intensity, rate)
    )
    return (
        f'<tr><td class="n">{", ".join(numbers) or "-"}</td>{name}</th>'
        f'<td class="n">{kernel.calls:,}</td>{cells}<td>{_said(finding.region)}</td>'
        f"<td>{advice}</td></tr>"
    )


_WIDE, _HIGH = 760, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 24, 52
_SMALLEST, _LARGEST = 5.0, 22.0
_CLASSES = {"memory-bound": "m", "compute-bound": "c", "far below the roof": "f"}


@dataclass(frozen=True)
class _Scale:
    """Logarithmic axes: the least and the largest of each."""

    xs: tuple[float, float]
    ys: tuple[float, float]

    def across(self, value: float) -> float:
        return _LEFT + _part(value, self.xs) * (_WIDE - _LEFT - _RIGHT)

    def up(self, value: float) -> float:
        return _HIGH - _BOTTOM - _part(value, self.ys) * (_HIGH - _TOP - _BOTTOM)


def _part(value: float, ends: tuple[float, float]) -> float:
    """Return how far a number is from the least to the largest."""
    low, high = map(math.log10, ends)
    return (math.log10(value) - low) / (high - low)


def roofline_svg(
    points: Sequence[Point], device: Device, peak: float, ceilings: dict[str, float]
) -> str:
    """Return the figure: roof, ceilings, and a numbered point for each kernel."""
    bandwidth = device.bandwidth_si
    ridge = float(roofline.ridge_point(peak, bandwidth))
    low = min([ridge / 300, *(each.intensity / 3 for each in points)])
    high = max([ridge * 10, *(each.intensity * 3 for each in points)])
    rates = [each.rate for each in points]
    left = float(roofline.attainable_flops(low, bandwidth, peak))
    slowest = min([left, *(each / 3 for each in rates)])
    scale = _Scale((low, high), (slowest, 3 * max([peak, *rates])))
    start = low * 3
    rate = float(roofline.attainable_flops(start, bandwidth, peak))
    parts = [
        *_grid(scale),
        _line(scale, [(low, left), (ridge, peak), (high, peak)], "roof"),
        _words(scale.across(ridge) + 6, scale.up(peak) - 8, f"peak {text(peak, 'FLOP/s')}"),
        _words(scale.across(start) + 12, scale.up(rate) + 4, text(bandwidth, "B/s")),
    ]
    for name, rate in ceilings.items():
        if rate > slowest:
            parts.append(_line(scale, [(rate / bandwidth, rate), (high, rate)], "ceiling"))
            parts.append(_words(_WIDE - _RIGHT - 4, scale.up(rate) - 4, name, "end"))
    for number, point in enumerate(points, start=1):
        parts.append(_point(scale, number, point))
    said = (
        f"Roofline of {device.name} with {len(points)} measured points; the table below lists them."
    )
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-labelledby="fig-title">'
        f'<title id="fig-title">{escape(said)}</title>{"".join(parts)}</svg>'
    )


def _words(x: float, y: float, said: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'


def _line(scale: _Scale, points: Sequence[tuple[float, float]], kind: str) -> str:
    places = " ".join(f"{scale.across(x):.1f},{scale.up(y):.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{places}"/>'


def _grid(scale: _Scale) -> list[str]:
    right, bottom, parts = _WIDE - _RIGHT, _HIGH - _BOTTOM, []
    for power in _powers(scale.xs):
        x = scale.across(power)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(_words(x, bottom + 18, f"{power:g}", "middle"))
    for power in _powers(scale.ys):
        y = scale.up(power)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_words(_LEFT - 6, y + 4, text(power, "FLOP/s", 3), "end"))
    middle = (_LEFT + right) / 2
    return [*parts, _words(middle, _HIGH - 12, "Arithmetic intensity (FLOP/byte)", "middle")]


def _powers(ends: tuple[float, float]) -> list[float]:
    """Return the powers of ten between two numbers."""
    low, high = map(math.log10, ends)
    return [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]


def _point(scale: _Scale, number: int, point: Point) -> str:
    x, y = scale.across(point.intensity), scale.up(point.rate)
    radius = _SMALLEST + (_LARGEST - _SMALLEST) * math.sqrt(point.time_share)
    kind = _CLASSES.get(point.finding.region, "u")
    said = f"{number}: {point.finding.kernel.short}, {point.level}, {point.finding.region}"
    return (
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
        f"<title>{escape(said)}</title></circle>"
        f'<text class="number" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{number}</text>'
    )


_CHAIN, _REST = "#D55E00", "#56B4E9"
# A point below this part of the roof is far from it. A convention of this book.
_NEAR = 0.5


def plot_tasks(tasks: Sequence[Task], *, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw recorded tasks over time, a row for each lane; the longest chain is hatched.

    Raises
    ------
    InvalidValueError
        If a task has no beginning.

    >>> figure, axes = plot_tasks([Task("a", 1.0, start=0.0), Task("b", 2.0, ("a",), start=1.0)])
    >>> len(axes.patches)
    2
    """
    for task in tasks:
        if task.start is None:
            raise InvalidValueError(f"{task.name} has no beginning; give start=, or use a Trace.")
    chain = set(critical_path(tasks).names)
    names = list(dict.fromkeys(task.lane for task in tasks))
    ax = axes_for(ax, 4.2, 0.8 + 0.5 * len(names))
    for task in tasks:
        color, hatch = (_CHAIN, "//") if task.name in chain else (_REST, "")
        place, begins = names.index(task.lane), task.start or 0.0
        ax.barh(place, task.seconds, 0.6, left=begins, color=color, hatch=hatch, edgecolor="white")
        middle = begins + task.seconds / 2
        ax.text(middle, place - 0.42, task.name, ha="center", fontsize=8)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="Time (s)", ylim=(len(names) - 0.5, -0.75))
    rows: list[dict[str, str | float]] = [
        {
            "Task": task.name,
            "Lane": task.lane,
            "Begins (s)": task.start or 0.0,
            "Takes (s)": task.seconds,
            "Longest chain": "yes" if task.name in chain else "no",
        }
        for task in tasks
    ]
    return attach(ax, rows)


def plot_regions(
    peak: float,
    bandwidth: float,
    points: Mapping[str, tuple[float, float]] | None = None,
    *,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw the roof of a machine, its five regions, and points in them.

    Parameters
    ----------
    peak, bandwidth
        Of the machine, in FLOP/s and B/s.
    points
        By name, intensity (FLOP/byte) and rate (FLOP/s).

    >>> figure, axes = plot_regions(1e12, 1e11, {"triad": (0.083, 7e9)})
    >>> axes.get_xscale()
    'log'
    """
    ax = axes_for(ax, 4.2, 3.2)
    ridge = float(roofline.ridge_point(peak, bandwidth))
    given = points or {}
    left = min([ridge / 100, *(x / 3 for x, _ in given.values())])
    right = max([ridge * 100, *(x * 3 for x, _ in given.values())])
    across = [left, ridge, right]
    roof = [float(roofline.attainable_flops(x, bandwidth, peak)) for x in across]
    low = min([roof[0] / 30, *(y / 3 for _, y in given.values())])
    ax.fill_between(across, [_NEAR * y for y in roof], roof, color=_REST, alpha=0.35, linewidth=0)
    ax.plot(across, roof, color="black")
    ax.plot([ridge, ridge], [low, peak], color="#777777", linestyle=":", linewidth=1)
    middle = (ridge * left) ** 0.5
    slope = middle * bandwidth
    for x, y, words in (
        (ridge * 6, peak * 2.2, "above the peak"),
        (middle, slope * 4.5, "above the\nslope"),
        (ridge * 10, peak * 0.68, "compute-bound"),
        (ridge * 8, peak / 12, "far below\nthe roof"),
    ):
        ax.text(x, y, words, ha="center", va="center", fontsize=8)
    ax.annotate(
        "memory-bound", (middle, slope * 0.7), (middle * 3, slope * 0.22), fontsize=8,
        ha="left", va="center", arrowprops={"arrowstyle": "-", "linewidth": 0.7},
    )  # fmt: skip
    for index, (name, (x, y)) in enumerate(given.items()):
        ax.plot(x, y, marker="os^Dv"[index % 5], linestyle="", color=_CHAIN, label=name)
    if given:
        ax.legend(frameon=False, fontsize=8, loc="lower right")
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low, peak * 6))
    ax.set(xlabel="Arithmetic intensity (FLOP/byte)", ylabel="FLOP/s")
    rows: list[dict[str, str | float]] = [
        {
            "Point": name,
            "Intensity (FLOP/byte)": x,
            "Rate (FLOP/s)": y,
            "Roof (FLOP/s)": float(roofline.attainable_flops(x, bandwidth, peak)),
        }
        for name, (x, y) in given.items()
    ]
    return attach(ax, rows or [{"Roof at (FLOP/byte)": ridge, "Rate (FLOP/s)": peak}])
