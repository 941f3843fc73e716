"""What a device and its host did besides computing: copies, exchanges, launches and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Transfer:
    """Copies between host and device, or an exchange between devices; all calls added up.

    Attributes
    ----------
    name
        "host to device", "device to host", "device to device", "fill", or the collective.
    calls, seconds
        How often, and the time of all calls in s (None if the file holds none).
    bytes
        Of all calls; None if the file does not say.
    """

    name: str
    calls: int
    seconds: float | None
    bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Launches:
    """Calls by which a host starts work on a device.

    Attributes
    ----------
    calls, seconds
        How often, and the host's time in them in s.
    queued
        Median time from a launch to the start of its kernel in s; None if the file has no
        pairs of the two.
    usual
        Median time of a launch in s; None if the file has only their sum.
    longest
        Time of the longest launch in s, likewise.
    """

    calls: int
    seconds: float
    queued: float | None = None
    usual: float | None = None
    longest: float | None = None

    @classmethod
    def of(cls, times: Sequence[float], waits: Sequence[float]) -> Launches | None:
        """Return launches from the time of each and from each wait in s; None without a launch.

        >>> Launches.of([9e-6, 3.0, 8e-6], []).usual
        9e-06
        """
        if not times:
            return None
        queued = median(waits) if waits else None
        return cls(len(times), sum(times), queued, median(times), max(times))


@dataclass(frozen=True, slots=True)
class Activity:
    """How busy a device was: intervals of kernels, copies and exchanges, merged.

    Attributes
    ----------
    device
        Its number in the file.
    span
        From the first start to the last end in s.
    busy
        Time in which at least one kernel, copy or exchange ran, in s.
    computing
        Time in which at least one kernel that is no exchange ran, in s.
    exposed
        Time in which only copies or exchanges ran, in s.
    gaps
        The longest idle intervals, longest first: start since the first event, and length, in s.
    """

    device: int
    span: float
    busy: float
    computing: float
    exposed: float
    gaps: tuple[tuple[float, float], ...] = ()

    @property
    def share(self) -> float:
        """Busy part of the span.

        >>> Activity(0, 2.0, 1.5, 1.25, 0.25).share
        0.75
        """
        return self.busy / self.span if self.span else 0.0
