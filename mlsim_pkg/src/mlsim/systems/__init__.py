"""Layer 4: devices joined by links, and nodes joined by a fabric."""

from mlsim.systems.cluster import Cluster, Placement, placement
from mlsim.systems.system import TOPOLOGIES, System
from mlsim.systems.system_files import load_cluster, load_system

__all__ = [
    "TOPOLOGIES",
    "Cluster",
    "Placement",
    "System",
    "load_cluster",
    "load_system",
    "placement",
]
