"""A roofline as SVG, in the colors of the page around it: for a report that needs no library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from mlsim.equations import roofline
from mlsim.hardware import Device
from mlsim.profiling.diagnosis import Point
from mlsim.units import text

_WIDE, _HIGH = 760, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 24, 52
_SMALLEST, _LARGEST = 5.0, 22.0
_CLASSES = {"memory-bound": "m", "compute-bound": "c", "far below the roof": "f"}


class _Scale:
    """Logarithmic axes."""

    def __init__(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        self.x = math.log10(min(xs)), math.log10(max(xs))
        self.y = math.log10(min(ys)), math.log10(max(ys))

    def across(self, value: float) -> float:
        low, high = self.x
        return _LEFT + (math.log10(value) - low) / (high - low) * (_WIDE - _LEFT - _RIGHT)

    def up(self, value: float) -> float:
        low, high = self.y
        return _HIGH - _BOTTOM - (math.log10(value) - low) / (high - low) * (_HIGH - _TOP - _BOTTOM)


def roofline_svg(
    points: Sequence[Point], device: Device, peak: float, ceilings: dict[str, float]
) -> str:
    """Return the figure: roof, ceilings, and a numbered point for each kernel."""
    bandwidth = device.bandwidth_si
    ridge = float(roofline.ridge_point(peak, bandwidth))
    low = min([ridge / 300, *(each.intensity / 3 for each in points)])
    high = max([ridge * 10, *(each.intensity * 3 for each in points)])
    slowest = min(
        [
            float(roofline.attainable_flops(low, bandwidth, peak)),
            *(each.rate / 3 for each in points),
        ]
    )
    scale = _Scale([low, high], [slowest, 3 * max([peak, *(each.rate for each in points)])])
    parts = [*_grid(scale), *_roof(scale, low, high, peak=peak, bandwidth=bandwidth)]
    for name, rate in ceilings.items():
        if math.log10(rate) > scale.y[0]:
            parts += _line(scale, [(rate / bandwidth, rate), (high, rate)], "ceiling")
            parts.append(_words(_WIDE - _RIGHT - 4, scale.up(rate) - 4, name, "end"))
    for number, point in enumerate(points, start=1):
        parts += _point(scale, number, point)
    said = (
        f"Roofline of {device.name} with {len(points)} measured points; the table below lists them."
    )
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-labelledby="fig-title">'
        f'<title id="fig-title">{escape(said)}</title>{"".join(parts)}</svg>'
    )


def _words(x: float, y: float, said: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'


def _line(scale: _Scale, points: Sequence[tuple[float, float]], kind: str) -> list[str]:
    places = " ".join(f"{scale.across(x):.1f},{scale.up(y):.1f}" for x, y in points)
    return [f'<polyline class="{kind}" points="{places}"/>']


def _grid(scale: _Scale) -> list[str]:
    parts = []
    for power in range(math.ceil(scale.x[0]), math.floor(scale.x[1]) + 1):
        x = scale.across(10.0**power)
        parts.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HIGH - _BOTTOM}"/>'
        )
        parts.append(_words(x, _HIGH - _BOTTOM + 18, f"{10.0**power:g}", "middle"))
    for power in range(math.ceil(scale.y[0]), math.floor(scale.y[1]) + 1):
        y = scale.up(10.0**power)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDE - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(_words(_LEFT - 6, y + 4, text(10.0**power, "FLOP/s", 3), "end"))
    middle = (_LEFT + _WIDE - _RIGHT) / 2
    parts.append(_words(middle, _HIGH - 12, "Arithmetic intensity (FLOP/byte)", "middle"))
    return parts


def _roof(scale: _Scale, low: float, high: float, *, peak: float, bandwidth: float) -> list[str]:
    ridge = float(roofline.ridge_point(peak, bandwidth))
    left = float(roofline.attainable_flops(low, bandwidth, peak))
    parts = _line(scale, [(low, left), (ridge, peak), (high, peak)], "roof")
    parts.append(
        _words(scale.across(ridge) + 6, scale.up(peak) - 8, f"peak {text(peak, 'FLOP/s')}")
    )
    start = low * 3
    rate = float(roofline.attainable_flops(start, bandwidth, peak))
    parts.append(_words(scale.across(start) + 12, scale.up(rate) + 4, text(bandwidth, "B/s")))
    return parts


def _point(scale: _Scale, number: int, point: Point) -> list[str]:
    x, y = scale.across(point.intensity), scale.up(point.rate)
    radius = _SMALLEST + (_LARGEST - _SMALLEST) * math.sqrt(point.time_share)
    kind = _CLASSES.get(point.finding.region, "u")
    said = f"{number}: {point.finding.kernel.short}, {point.level}, {point.finding.region}"
    return [
        (
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
            f"<title>{escape(said)}</title></circle>"
        ),
        f'<text class="number" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{number}</text>',
    ]
