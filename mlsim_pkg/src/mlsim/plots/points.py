"""Measured points for a roofline, each with its units: what a person timed, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlsim.equations import roofline
from mlsim.errors import InvalidValueError, UnitError
from mlsim.plots.drawing import COLOURS, MARKERS
from mlsim.profiling.stopwatch import Timing
from mlsim.units import to_base

_FORMS = (
    "Give (operations, bytes, seconds), such as (2 * n**3, 12 * n**2, timing), or (intensity, "
    "rate) with the unit of the rate, such as (0.5, '1.4 TFLOP/s'), or what time_network returned."
)


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """A measured point: FLOP/B across and FLOP/s up, with the ends of the rate's interval.

    `layers` has those of a network's layers, and `precision` the format in which it ran, if known.
    """

    name: str
    intensity: float
    rate: float
    low: float
    high: float
    layers: tuple[tuple[float, float], ...] = ()
    precision: str = ""


def read_points(given: Any) -> list[RoofPoint]:
    """Return points in base units.

    Parameters
    ----------
    given
        A mapping from names to (operations, bytes, seconds) or (intensity, rate), or what
        `time_network` returned, one or several. Operations, bytes and seconds may be plain
        numbers, or texts with units; for seconds, also a `Timing`. A rate needs its unit.

    Raises
    ------
    UnitError
        If a rate has no unit, or something has the wrong one.
    InvalidValueError
        If a point is none of these, or no positive number.

    >>> [(p.intensity, p.rate) for p in read_points({"a": (8e9, 4e9, "2 ms")})]
    [(2.0, 4000000000000.0)]
    """
    if hasattr(given, "timing"):
        given = [given]
    if isinstance(given, Mapping):
        return [_point(str(name), each) for name, each in given.items()]
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise InvalidValueError(f"{given!r} is no point. {_FORMS}")
    return [_timed(each) for each in given]


def _timed(run: Any, name: str = "") -> RoofPoint:
    if not hasattr(run, "timing"):
        raise InvalidValueError(f"{run!r} has no name: points={{'mine': ...}}. {_FORMS}")
    point = _point(name or run.name, (run.flops, run.bytes_moved, run.timing))
    # A layer that multiplies nothing has no place.
    layers = tuple((each.intensity, each.rate) for each in run.layers if each.flops)
    return replace(point, layers=layers, precision=run.precision)


def _point(name: str, given: Any) -> RoofPoint:
    if hasattr(given, "timing"):
        return _timed(given, name)
    parts = tuple(given) if isinstance(given, (tuple, list)) else ()
    if len(parts) == 2:
        intensity = _number(parts[0], "FLOP/B", f"intensity of {name}")
        try:
            rate = _positive(to_base(parts[1], "FLOP/s", f"rate of {name}"), f"rate of {name}")
        except UnitError as error:
            raise UnitError(
                f"{error} Axes of rooflines are in TFLOP/s, and a stopwatch gives FLOP/s: "
                "a factor of 10^12."
            ) from None
        return RoofPoint(name, intensity, rate, rate, rate)
    if len(parts) != 3:
        raise InvalidValueError(f"{given!r} is no point. {_FORMS}")
    flops = _number(parts[0], "FLOP", f"operations of {name}")
    moved = _number(parts[1], "B", f"bytes of {name}")
    if isinstance(parts[2], Timing):
        spread = parts[2].spread()
        times = [spread.median, spread.high, spread.low]
    else:
        times = [_number(parts[2], "s", f"seconds of {name}")] * 3
    rate, low, high = (flops / _positive(each, f"seconds of {name}") for each in times)
    return RoofPoint(name, roofline.arithmetic_intensity(flops, moved), rate, low, high)


def _number(value: Any, base: str, what: str) -> float:
    """Return a number in base units; a plain one is in these already."""
    plain = isinstance(value, (int, float)) and not hasattr(value, "units")
    # Numbers of NumPy are plain, too.
    if not plain and not isinstance(value, str) and hasattr(value, "item"):
        plain = not hasattr(value, "units")
    return _positive(value if plain else to_base(value, base, what), what)


def _positive(value: Any, what: str) -> float:
    if not 0 < float(value) < float("inf"):
        raise InvalidValueError(f"{what} must be positive and finite, not {value!r}.")
    return float(value)


def draw_points(
    ax: Any, points: list[RoofPoint], bandwidth: float, peak: float, *, layers: bool = False
) -> None:
    """Draw measured points inside the axes, with their intervals; black edges tell them apart.

    A point above its roof says so: a count, a time or the roof is wrong.
    """
    inside = [each.layers if layers else () for each in points]
    rates = [rate / 1e12 for dots in inside for _, rate in dots]
    low, top = ax.get_ylim()
    ax.set_ylim(
        min([low, *(each.low / 3e12 for each in points), *(rate / 3 for rate in rates)]),
        max([top, *(each.high * 6e-12 for each in points), *(rate * 6 for rate in rates)]),
    )
    for number, (each, dots) in enumerate(zip(points, inside, strict=True)):
        color = COLOURS[-1 - number % len(COLOURS)]
        marker = MARKERS[-1 - number % len(MARKERS)]
        if dots:
            across, up = zip(*dots, strict=True)
            small = {"s": 22, "alpha": 0.5, "linewidths": 0, "zorder": 2}
            ax.scatter(across, [rate / 1e12 for rate in up], color=color, marker=marker, **small)
        above = each.low > roofline.attainable_flops(each.intensity, bandwidth, peak)
        ax.plot(
            [each.intensity] * 2, [each.low / 1e12, each.high / 1e12], color="#000000", zorder=3
        )
        ax.scatter(
            [each.intensity],
            [each.rate / 1e12],
            s=80,
            color=color,
            marker=marker,
            edgecolor="#000000",
            zorder=4,
            label=f"{each.name}, measured{' (above its roof)' if above else ''}",
        )
