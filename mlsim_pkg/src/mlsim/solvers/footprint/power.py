"""What a device draws under a load: idle and full power, and the weights between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlsim.equations import energy
from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.solvers.footprint.entries import Entry, entry, exactly

# The usual share of full power that an idle device draws, and of how many devices.
IdleShare = Callable[[], tuple[float, int]]


@dataclass(frozen=True)
class Weights:
    """The fitted weights, and how well they tell power.

    Attributes
    ----------
    running, compute, memory
        Of running at all, of the use of arithmetic, and of memory.
    error, kernels, device
        Median of the relative errors of power on kernels whose shapes were left out, how many
        there are, and the device on which all were measured.
    services, rows, low, high
        The same median on services, to which nothing is fitted; how many; between which
        factors of the predicted power eight in ten of them were measured.
    sources
        Keys of the documents.
    """

    running: float
    compute: float
    memory: float
    error: float
    kernels: int
    device: str
    services: float
    rows: int
    low: float
    high: float
    sources: tuple[str, ...]

    @property
    def origin(self) -> str:
        """Where the weights come from, in one line."""
        return (
            f"fitted by least squares to the measured power of {self.kernels:,} matrix products "
            f"on {self.device} (median error {self.error:.0%} on shapes left out); of "
            f"{self.rows} services, to which nothing is fitted, the median error is "
            f"{self.services:.0%}, and eight in ten drew {self.low:.2f} to {self.high:.2f} times "
            f"the prediction, {', '.join(self.sources)}"
        )


def limits(device: Device, idle: Any, full: Any, idle_share: IdleShare) -> tuple[Entry, Entry]:
    """Return idle and full power of a device: as given, on record, or estimated.

    Raises
    ------
    InvalidValueError
        If its full power is not known, or less than when it is idle.
    """
    figure = device.figures.get("power.tdp")
    if full is not None:
        most = entry("max_power", full)
    elif figure:
        most = exactly(figure.si, f"{device.name}, TDP: {figure.origin()}")
    else:
        raise InvalidValueError(
            f"the power of {device.name} is not on record: give max_power='300 W', "
            "or device_power='250 W' for its average."
        )
    known = device.figures.get("power.idle")
    if idle is not None:
        least = entry("idle_power", idle)
    elif known:
        least = exactly(known.si, f"{device.name}: {known.origin()}")
    else:
        share, count = idle_share()
        words = f"estimate: the median of {count} devices, {share:.0%} of full power"
        low, high = (energy.estimated_idle_power(share, end) for end in (most.low, most.high))
        least = Entry(low, high, words)
    if least.high > most.low:
        raise InvalidValueError(
            f"{device.name}: idle_power {least.high:,.4g} W is above max_power "
            f"{most.low:,.4g} W. Give both in the right order."
        )
    return least, most
