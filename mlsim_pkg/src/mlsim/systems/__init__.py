"""Layer 4: devices joined by links, and nodes joined by a fabric; what they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing
from mlsim.systems.cluster import Cluster, Placement, placement
from mlsim.systems.system import TOPOLOGIES, System

if TYPE_CHECKING:
    from mlsim.systems.data_loading import load_and_compute
    from mlsim.systems.lone_exchanges import published_exchanges
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
    "published_exchanges",
    "stale_descent",
]

_HOMES = {
    "PrefillPool": "pools",
    "load_and_compute": "data_loading",
    "published_exchanges": "lone_exchanges",
    **dict.fromkeys(("largest_stable_rate", "stale_descent"), "stale_updates"),
}


__getattr__ = importing(__name__, _HOMES)
