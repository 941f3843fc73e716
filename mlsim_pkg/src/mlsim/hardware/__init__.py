"""Layer 2: devices, with peaks, memories, links and power; arrays of multipliers, cell by cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing
from mlsim.hardware.device import DEFAULT_PRECISION, Compute, Device, Memory

if TYPE_CHECKING:
    from mlsim.hardware.lone_kernels import host_link_rate, turnaround
    from mlsim.hardware.systolic import array_cost, multiply, network_on_array

__all__ = [
    "DEFAULT_PRECISION",
    "Compute",
    "Device",
    "Memory",
    "array_cost",
    "host_link_rate",
    "multiply",
    "network_on_array",
    "turnaround",
]

_HOMES = {
    **dict.fromkeys(("array_cost", "network_on_array", "multiply"), "systolic"),
    **dict.fromkeys(("host_link_rate", "turnaround"), "lone_kernels"),
}


__getattr__ = importing(__name__, _HOMES)
