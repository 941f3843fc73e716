"""Time of an all-reduce that a program asks of a library, alone.

The atlas's kernels say how the time is made of a start, a ramp and bytes. They were timed as
kernels. A program that calls a library and waits starts twice as late or so, whatever the
device: how much later is the middle over publications. What many bytes reach
is a device's own: the middle over publications about it, where there are any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log

from mlsim.equations import kernels as physics
from mlsim.hardware.device_files import device_with
from mlsim.hardware.kernel_constants import kernel_series, measured_devices
from mlsim.hardware.measured_kernels import AllReduceRow, all_reduces
from mlsim.systems.link_calibration import exchange_constants
from mlsim.systems.system import System

# What it costs that a factor differs from 1: a part of the square of one row's error.
_HELD = 0.01
_CONSTANTS = (
    *("link_fraction", "link_latency", "peer_start"),
    *("own_steps", "ramp_start", "ramp_bytes"),
)


@dataclass(frozen=True, slots=True)
class LoneExchange:
    """Seconds of an exchange, and whose measurements they were made of."""

    seconds: float
    words: str


@dataclass(frozen=True, slots=True)
class Publication:
    """By which factors starts and bytes take longer than the atlas's; None if it can't tell."""

    series: str
    device: str
    of_starts: float | None
    of_bytes: float | None


def all_reduce_seconds(system: System, members: int, message_bytes: float) -> LoneExchange:
    """Return the time in which a library adds up a message among some devices of a system.

    Raises
    ------
    NotMeasuredError
        If neither the device nor its relatives were measured with such links.

    >>> from mlsim import Systems
    >>> found = all_reduce_seconds(Systems.HGX_A100, 8, 1e9)
    >>> 7e-3 < found.seconds < 9e-3
    True
    """
    found = exchange_constants(system, members, "all-reduce", graph=False)
    constants = {name: getattr(found, name) for name in _CONSTANTS}
    start, sending = _parts(constants, system.link_bandwidth(members), members, message_bytes)
    known = published_exchanges(members)
    starts = [each for each in known if each.of_starts]
    own = [each for each in known if each.of_bytes and each.device == system.device.key]
    return LoneExchange(
        _middle([each.of_starts or 1.0 for each in starts]) * start
        + _middle([each.of_bytes or 1.0 for each in own]) * sending,
        f"the atlas's exchanges, starts of {len(starts)} publications and bytes of {len(own)}",
    )


@lru_cache(maxsize=32)
def published_exchanges(members: int) -> tuple[Publication, ...]:
    """Return what each publication says of starts and bytes, of about so many devices.

    >>> {each.device for each in published_exchanges(8)} >= {"Cloud.A100", "Cloud.H200"}
    True
    """
    known = set(measured_devices("exchange"))
    rows = [row for row in all_reduces() if row.device in known]
    names = dict.fromkeys((row.series, row.device, row.link) for row in rows)
    return tuple(
        _publication([row for row in rows if (row.series, row.device, row.link) == name], members)
        for name in names
    )


def _publication(rows: list[AllReduceRow], members: int) -> Publication:
    nearest = min({row.devices for row in rows}, key=lambda n: max(n / members, members / n))
    rows = [row for row in rows if row.devices == nearest]
    first = rows[0]
    constants = kernel_series(first.device, "exchange", "all_reduce").values
    figure = device_with(first.device).figures[f"links.{first.link}"]
    rate = figure.si / 2 if figure.direction == "both ways" else figure.si
    parts = [_parts(constants, rate, row.devices, row.message_bytes) for row in rows]
    of_starts, of_bytes = _fitted(parts, [row.seconds for row in rows])
    # Whoever sent few bytes only says nothing of many, and the other way round.
    return Publication(
        first.series,
        first.device,
        of_starts if any(start > sending for start, sending in parts) else None,
        of_bytes if any(sending > start for start, sending in parts) else None,
    )


def _parts(
    c: Mapping[str, float], rate: float, members: int, message_bytes: float
) -> tuple[float, float]:
    """Return how long an exchange takes to start, and then to send."""
    sent = 2 * (members - 1) / members * message_bytes
    devices = float(members)
    start = physics.exchange_start(c["link_latency"], c["peer_start"], devices)
    sending = physics.library_send_time(
        sent, rate, c["link_fraction"], c["own_steps"], devices, c["ramp_start"], c["ramp_bytes"]
    )
    return float(start), float(sending)


def _fitted(parts: list[tuple[float, float]], times: list[float]) -> tuple[float, float]:
    """Return the two factors whose relative errors have the least squares, held near 1."""
    shares = [(a / time, b / time) for (a, b), time in zip(parts, times, strict=True)]
    aa, bb = (sum(pair[n] ** 2 for pair in shares) + _HELD for n in (0, 1))
    ab = sum(a * b for a, b in shares)
    ya, yb = (sum(pair[n] for pair in shares) + _HELD for n in (0, 1))
    determinant = aa * bb - ab * ab
    return (
        max((ya * bb - yb * ab) / determinant, _HELD),
        max((yb * aa - ya * ab) / determinant, _HELD),
    )


def _middle(factors: list[float]) -> float:
    """Return the geometric mean; 1 of none.

    >>> round(_middle([1.0, 4.0]), 6)
    2.0
    """
    return exp(sum(map(log, factors)) / len(factors)) if factors else 1.0
