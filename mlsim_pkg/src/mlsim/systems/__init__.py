"""Layer 4: devices joined by links, and nodes joined by a fabric; what they wait for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlsim.systems.cluster import Cluster, Placement, placement
from mlsim.systems.system import TOPOLOGIES, System

if TYPE_CHECKING:
    from mlsim.systems.data_loading import load_and_compute
    from mlsim.systems.pools import PrefillPool
    from mlsim.systems.stale_updates import largest_stable_rate, stale_descent

__all__ = [
    "TOPOLOGIES",
    "Cluster",
    "Placement",
    "PrefillPool",
    "System",
    "largest_stable_rate",
    "load_and_compute",
    "placement",
    "stale_descent",
]

_HOMES = {
    "PrefillPool": "pools",
    "load_and_compute": "data_loading",
    **dict.fromkeys(("largest_stable_rate", "stale_descent"), "stale_updates"),
}


def __getattr__(name: str) -> Any:
    """Import a name of this room when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
