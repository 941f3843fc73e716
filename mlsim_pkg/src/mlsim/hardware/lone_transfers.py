"""Rates of lone transfers: a stream through a device's memory, and a copy over PCI Express.

What a stream reaches is read from published streams, each brought to one that only reads. No
constant is typed: the loss by turning between reads and writes is what best brings the streams of
one publication on one device together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from statistics import median

from mlsim.equations import kernels as physics
from mlsim.hardware.device import Device
from mlsim.hardware.device_files import device_with
from mlsim.hardware.measured_kernels import StreamRow, streams
from mlsim.hardware.measured_shares import weights_share

# Of the bytes of a stream, the part that it writes.
WRITTEN = {
    **dict.fromkeys(("copy", "memcpy", "scale", "mul", "transform"), 1 / 2),
    **dict.fromkeys(("triad", "add", "stream"), 1 / 3),
    **dict.fromkeys(("read", "dot"), 0.0),
    **dict.fromkeys(("write", "init"), 1.0),
}

# PCI Express, from its third generation: 128 bits of data in 130; packets of the least size that
# every device takes; 5 to 7 double words of 4 bytes around them, of which the middle.
_CODED, _PAYLOAD, _PACKET = 128 / 130, 128.0, 24.0


@dataclass(frozen=True, slots=True)
class LoneRate:
    """B/s of a transfer, and whose measurements they were made of."""

    rate: float
    words: str


def stream_rate(device: Device, kernel: str) -> LoneRate:
    """Return the rate at which a kernel streams through a device's memory.

    By published streams of the device, unless its products read weights faster: a stream that
    does not fill the memory is no measure of it. Else by the middle of all devices'.

    >>> from mlsim import Hardware
    >>> copied = stream_rate(Hardware.Cloud.A100, "copy").rate
    >>> copied < stream_rate(Hardware.Cloud.A100, "read").rate < Hardware.Cloud.A100.bandwidth_si
    True
    """
    own = _reading(device)
    if own is None:
        shares = [share for key in _measured() if (share := _reading(device_with(key)))]
        own, words = median(shares), f"the middle of published streams of {len(shares)} devices"
    else:
        words = "published streams of the device"
    seconds = physics.turned_memory_time(
        1.0, device.bandwidth_si, min(own, 1.0), turnaround(), WRITTEN[kernel]
    )
    return LoneRate(float(1 / seconds), words)


def host_link_rate(rate: float) -> LoneRate:
    """Return the rate of data over PCI Express, of what its bits could carry.

    >>> round(host_link_rate(32e9).rate / 1e9, 1)
    26.5
    """
    found = physics.packed_bandwidth(rate, _CODED, _PAYLOAD, _PACKET)
    words = f"packets of {_PAYLOAD:.0f} bytes with {_PACKET:.0f} around them"
    return LoneRate(float(found), words)


@lru_cache(maxsize=1)
def turnaround() -> float:
    """Return the part by which a stream is slower if it writes half of its bytes.

    Of each two streams of one publication on one device it is what makes them equal, and of
    these the median, weighted by how much the two differ in what they write.

    >>> 0.05 < turnaround() < 0.15
    True
    """
    found = sorted(_turnarounds())
    half, passed = sum(weight for _, weight in found) / 2, 0.0
    for value, weight in found:
        passed += weight
        if passed >= half:
            return max(value, 0.0)
    return 0.0


def _turnarounds() -> Iterator[tuple[float, float]]:
    for one, other in combinations(streams(), 2):
        if (one.series, one.device) != (other.series, other.device):
            continue
        # Two rates that are the same rate of reading: r1 (1 + w m1) = r2 (1 + w m2).
        slope = one.rate * _mixed(one) - other.rate * _mixed(other)
        if _mixed(one) != _mixed(other) and slope:
            yield (other.rate - one.rate) / slope, abs(_mixed(one) - _mixed(other))


def _mixed(row: StreamRow) -> float:
    """Return 1 for a stream that writes as much as it reads, 0 for one that does only one."""
    return 2 * min(WRITTEN[row.kernel], 1 - WRITTEN[row.kernel])


def _measured() -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.device for row in streams()))


def _reading(device: Device) -> float | None:
    """Return the part of the bandwidth that a device reaches in reading, by its own streams."""
    rows = [row for row in streams() if row.device == device.key]
    if not rows:
        return None
    found = median(
        row.rate / device.bandwidth_si * (1 + turnaround() * _mixed(row)) for row in rows
    )
    return found if found >= weights_share(device) else None
