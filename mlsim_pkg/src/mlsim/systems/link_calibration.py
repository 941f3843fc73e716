"""How long devices take to add up a message together, worked out of measured all-reduces.

Two numbers: the time to start, and the part of the link's bandwidth that a
large message reaches. A line through the measured times gives both: published ones, else
those that the atlas's constants give for the device, or for its relatives with such a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log

from mlsim.equations import kernels as physics
from mlsim.equations.calibration import calibrated_network_time
from mlsim.errors import InvalidValueError, NotMeasuredError
from mlsim.hardware.device import device_with
from mlsim.hardware.kernel_constants import (
    LIBRARY,
    NOBODY,
    SOURCE,
    Relatives,
    has_own,
    kernel_series,
    measured_devices,
    middle,
    relatives,
)
from mlsim.hardware.kernel_times import ALL_CHANNELS, exchanged_time
from mlsim.hardware.measured_kernels import AllReduceRow, all_reduces
from mlsim.systems.system import System
from mlsim.units import text

# A system is joined by the link that was measured if its rate differs by less.
_SAME_RATE = 0.01

# Groups of up to so many times the largest that was measured are answered.
_BEYOND = 2

# The atlas's exchanges are among up to so many devices, over NVLink or, these, over PCIe.
_MOST = 8
OVER_PCIE = ("Cloud.L40S", "Cloud.RTXPRO6000_Server")

# Links of devices, the fastest first.
_LINKS = ("nvlink", "infinity_fabric", "pcie")

# Messages for which the atlas's times make a line, in bytes.
_MESSAGES = tuple(2**power for power in range(10, 30))


@dataclass(frozen=True)
class LinkCalibration:
    """What the links of a system were measured to reach.

    Attributes
    ----------
    link_fraction
        Part of a device's one-way link bandwidth that a large message reaches, at most 1.
    link_latency
        Time to start a collective, in s.
    link_bandwidth
        The one-way bandwidth of which it is a part, in B/s.
    origins
        In words, for both: of which rows, by which rule, with the keys of their sources.
    devices
        How many devices took part in what was measured.
    rows
        The published rows that were used; none where the atlas's constants were.
    kin
        Whose exchanges were taken, and how near they are.
    """

    link_fraction: float
    link_latency: float
    link_bandwidth: float
    origins: Mapping[str, str]
    devices: int
    rows: tuple[AllReduceRow, ...]
    kin: Relatives

    def time(self, row: AllReduceRow) -> float:
        """Return in s what the line says of a measured all-reduce.

        >>> from mlsim import Systems
        >>> found = link_calibration(Systems.HGX_H200)
        >>> row = next(row for row in found.rows if row.id == "bekman-H200-1GiB")
        >>> round(found.time(row) / row.seconds, 2)
        1.05
        """
        return float(
            calibrated_network_time(
                self.link_latency, row.ring_bytes, self.link_bandwidth, self.link_fraction
            )
        )

    def residuals(self) -> dict[str, float]:
        """Return for each row, by its id, by which part the line is off: 0.1 is 10 % too long."""
        return {row.id: self.time(row) / row.seconds - 1 for row in self.rows}


@lru_cache(maxsize=256)
def link_calibration(system: System, group: int | None = None) -> LinkCalibration:
    """Work out what the links of a system reach, of the all-reduces that were measured.

    The line lies so that the squares of the relative errors add up to least.
    Of the numbers of devices that were measured, the nearest is used.

    Parameters
    ----------
    system
        Devices that are joined by the link that was measured.
    group
        How many of them take part; all if it is left out.

    Raises
    ------
    NotMeasuredError
        If there are no rows of the device, of this link, or of nearly so many
        devices, and it has no relatives with such a link; says what there is.
    InvalidValueError
        If the system has not so many devices.

    >>> from mlsim import Systems
    >>> found = link_calibration(Systems.HGX_H200)
    >>> round(found.link_fraction, 2), f"{found.link_latency * 1e6:.0f} us"
    (0.99, '41 us')
    """
    members = system.devices if group is None else group
    if not 2 <= members <= system.devices:
        raise InvalidValueError(
            f"group must be from 2 to {system.devices}, the devices of {system.name}, "
            f"not {group!r}."
        )
    bandwidth = system.link_bandwidth(members)
    try:
        rows = _rows(system, members)
    except NotMeasuredError:
        found = _of_kernels(system, members, bandwidth)
        if found is None:
            raise
        return found
    latency, per_byte = _line(
        [row.ring_bytes for row in rows], [row.seconds for row in rows], 1 / bandwidth
    )
    return LinkCalibration(
        link_fraction=1 / (per_byte * bandwidth),
        link_latency=latency,
        link_bandwidth=bandwidth,
        origins=_origins("measured", _of_rows(system, members, rows)),
        devices=rows[0].devices,
        rows=rows,
        kin=Relatives("own", (system.device.key,)),
    )


@dataclass(frozen=True, slots=True)
class ExchangeConstants:
    """Constants of `exchange_kernels` for exchanges of a kind on a system's links.

    Without those that have a value here it is a line: a start, and the bytes at a rate.

    Attributes
    ----------
    link_fraction, link_latency, peer_start, own_steps, ramp_start, ramp_bytes, direct_fraction
        As the equations have them.
    direct_mark
        1 where an engine's kernel may read other devices' memory, else 0.
    origin
        In words: of which kernels, or by which line.
    kin
        Whose they are; None where nothing is sent.
    """

    link_fraction: float
    link_latency: float
    peer_start: float = 0.0
    own_steps: float = 0.0
    ramp_start: float = 0.0
    ramp_bytes: float = ALL_CHANNELS
    direct_fraction: float = 1.0
    direct_mark: float = 0.0
    origin: str = ""
    kin: Relatives | None = None


# What the atlas calls an exchange, by the name of an operator of a step.
_KINDS = {
    "all-reduce": ("graph_all_reduce", "all_reduce"),
    "gather of the output": ("exchange", "all_gather"),
    "tokens to their experts and back": ("exchange", "alltoall"),
    "stage to stage": ("exchange", "all_gather"),
}


@lru_cache(maxsize=512)
def exchange_constants(
    system: System, group: int, operator: str, *, graph: bool = True
) -> ExchangeConstants:
    """Return the constants of a step's exchange, for few bytes and for many.

    Those of the atlas's kernels on the device or its relatives, of an engine in a captured
    graph if it is an all-reduce and `graph`; else the line of `link_calibration`.

    Raises
    ------
    NotMeasuredError
        As `link_calibration`.

    >>> from mlsim import Systems
    >>> found = exchange_constants(Systems.HGX_A100, 8, "all-reduce")
    >>> 1e-6 < found.link_latency < 1e-5
    True
    """
    kind, path = _KINDS.get(operator, _KINDS["stage to stage"])
    kind = kind if graph else "exchange"
    kin = _kin(system, kind, [name for name in _LINKS if _as_fast(system, name)])
    if kin is None:
        line = link_calibration(system, group)
        return ExchangeConstants(
            line.link_fraction,
            line.link_latency,
            origin=line.origins["link_latency"],
            kin=line.kin,
        )
    constants = middle(kin, kind, path)
    first = kernel_series(kin.keys[0], kind, path).words
    words = first if len(kin.keys) == 1 else f"{len(kin.keys)} devices; {SOURCE}"
    return ExchangeConstants(
        **constants,
        direct_mark=float("direct_fraction" in constants),
        origin=f"fitted to {path} kernels: {words}{kin.words}",
        kin=kin,
    )


def exchange_or_roofline(
    system: System, group: int, operator: str, *, graph: bool = True
) -> ExchangeConstants:
    """Return the constants of a step's exchange; where nobody measured any, those of a roofline.

    Then the link alone counts at its full rate, and all else is as it was measured.

    >>> from mlsim import Systems
    >>> found = exchange_or_roofline(Systems.Gaudi3_Node, 8, "all-reduce")
    >>> found.link_fraction, found.link_latency, found.kin.level
    (1.0, 0.0, 'roofline')
    """
    try:
        return exchange_constants(system, group, operator, graph=graph)
    except NotMeasuredError as error:
        why = str(error).partition(". ")[0].removeprefix("estimate='calibrated' ")
        words = f"roofline: the full rate of the link, and no start, since the estimate {why}"
        return ExchangeConstants(1.0, 0.0, origin=words, kin=Relatives(NOBODY, ()))


def _rows(system: System, members: int) -> tuple[AllReduceRow, ...]:
    """Choose the rows of the device, of the link, and of the nearest number of devices."""
    device = system.device
    own = [row for row in all_reduces() if row.device == device.key and has_own("links")]
    known = ", ".join(dict.fromkeys(row.device for row in all_reduces()))
    other = f"Measured are all-reduces of: {known}. Use estimate='roofline' or 'bound'."
    if not own:
        raise NotMeasuredError(
            f"estimate='calibrated' needs measured all-reduces of {device.name}, which are not "
            f"on record. {other}"
        )
    same = [row for row in own if _joined_by(system, row.link)]
    if not same:
        links = ", ".join(dict.fromkeys(row.link for row in own))
        raise NotMeasuredError(
            f"estimate='calibrated': all-reduces of {device.name} were measured over {links}, but "
            f"a device of {system.name} sends {text(system.device_bandwidth_si, 'B/s')}, which is "
            f"another link. {other}"
        )
    counts = sorted({row.devices for row in same})
    if members > _BEYOND * counts[-1]:
        raise NotMeasuredError(
            f"estimate='calibrated': all-reduces of {device.name} were measured with at most "
            f"{counts[-1]} devices, and {members} are more than twice as many. {other}"
        )
    nearest = min(counts, key=lambda count: max(count / members, members / count))
    return tuple(row for row in same if row.devices == nearest)


def _of_kernels(system: System, members: int, bandwidth: float) -> LinkCalibration | None:
    """Return a line through the atlas's times, of the nearest devices with such a link."""
    links = [name for name in _LINKS if _joined_by(system, name)]
    kin = _kin(system, "exchange", links)
    if kin is None or members > _BEYOND * _MOST:
        return None
    constants = middle(kin, "exchange", "all_reduce")
    sent = [2 * (members - 1) / members * size for size in _MESSAGES]
    times = [float(exchanged_time(float(members), each, bandwidth, constants)) for each in sent]
    latency, per_byte = _line(sent, times, 1 / bandwidth)
    first = kernel_series(kin.keys[0], "exchange", "all_reduce").words
    own = f"; {first}" if len(kin.keys) == 1 else ""
    words = (
        f"a line through the atlas's times of all-reduces among {members}, "
        f"{text(_MESSAGES[0], 'B')} to {text(_MESSAGES[-1], 'B')}, least squares of the relative "
        f"error{own}{kin.words}; {SOURCE}"
    )
    return LinkCalibration(
        link_fraction=1 / (per_byte * bandwidth),
        link_latency=latency,
        link_bandwidth=bandwidth,
        origins=_origins("fitted", words),
        devices=members,
        rows=(),
        kin=kin,
    )


def _kin(system: System, kind: str, joined: list[str]) -> Relatives | None:
    """Return the nearest devices whose exchanges were measured over such a link, if any."""
    pcie = joined[:1] == ["pcie"]
    measured = [key for key in measured_devices(kind) if (key in OVER_PCIE) == pcie]
    return relatives(system.device.key, measured, LIBRARY, what="links") if joined else None


def _joined_by(system: System, link: str) -> bool:
    """Tell whether a system is joined by a device's own link of this kind."""
    return system.topology == "switch" and _as_fast(system, link)


def _as_fast(system: System, link: str) -> bool:
    """Tell whether a device's links in a system are as fast as its own of this kind."""
    figure = system.device.figures.get(f"links.{link}")
    if figure is None:
        return False
    rate = figure.one_way
    return abs(system.device_bandwidth_si / rate - 1) < _SAME_RATE


def _line(sizes: list[float], times: list[float], fastest: float) -> tuple[float, float]:
    """Return start and time per byte of the line nearest to all points, in relative terms.

    A start below zero becomes zero, and a byte takes at least `fastest`; the other
    number is then the best one beside it.
    """
    weights = [1 / time**2 for time in times]
    ones, size = sum(weights), sum(w * x for w, x in zip(weights, sizes, strict=True))
    square = sum(w * x * x for w, x in zip(weights, sizes, strict=True))
    time = sum(w * t for w, t in zip(weights, times, strict=True))
    both = sum(w * x * t for w, x, t in zip(weights, sizes, times, strict=True))
    spread = ones * square - size**2
    # With one size only there is no slope.
    per_byte = (ones * both - size * time) / spread if spread > 1e-12 * ones * square else 0.0
    start = (time - per_byte * size) / ones
    if start < 0:
        start, per_byte = 0.0, both / square
    if per_byte < fastest:
        start, per_byte = max(0.0, (time - fastest * size) / ones), fastest
    return start, per_byte


def _origins(how: str, line: str) -> dict[str, str]:
    """Say in words where both numbers come from."""
    return {
        "link_fraction": f"{how}: its slope, at most the link's rate: {line}",
        "link_latency": f"{how}: where it starts: {line}",
    }


def _of_rows(system: System, members: int, rows: tuple[AllReduceRow, ...]) -> str:
    """Say through which published rows a line lies."""
    sizes = sorted(row.message_bytes for row in rows)
    count = rows[0].devices
    assumed = "" if count == members else f", assumed for {members}"
    sources = ", ".join(dict.fromkeys(row.source for row in rows))
    return (
        f"a line through {len(rows)} all-reduces of {count} x {system.device.name} over "
        f"{rows[0].link}, {text(sizes[0], 'B')} to {text(sizes[-1], 'B')}, least squares of the "
        f"relative error{assumed}; {sources}"
    )


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
    rate = figure.one_way
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
