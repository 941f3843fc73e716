"""Layer 2: devices, with peaks, memories, links and power; arrays of multipliers, cell by cell."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlsim.hardware.device import DEFAULT_PRECISION, Compute, Device, Memory

if TYPE_CHECKING:
    from mlsim.hardware.array_products import array_cost, network_on_array
    from mlsim.hardware.systolic import multiply

__all__ = [
    "DEFAULT_PRECISION",
    "Compute",
    "Device",
    "Memory",
    "array_cost",
    "multiply",
    "network_on_array",
]

_HOMES = {
    **dict.fromkeys(("array_cost", "network_on_array"), "array_products"),
    "multiply": "systolic",
}


def __getattr__(name: str) -> Any:
    """Import a name of this room when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
