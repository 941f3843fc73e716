"""Layer 4: devices joined by links, and nodes joined by a fabric; what they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing
from mlsim.systems.system import Cluster, Placement, PrefillPool, System, placement

if TYPE_CHECKING:
    from mlsim.systems.in_steps import largest_stable_rate, load_and_compute, stale_descent
    from mlsim.systems.link_calibration import published_exchanges

__all__ = ["Cluster", "Placement", "PrefillPool", "System", "largest_stable_rate"]
__all__ += ["load_and_compute", "placement", "published_exchanges", "stale_descent"]

_IN_STEPS = ("largest_stable_rate", "load_and_compute", "stale_descent")
_HOMES = {"published_exchanges": "link_calibration", **dict.fromkeys(_IN_STEPS, "in_steps")}

__getattr__ = importing(__name__, _HOMES)
