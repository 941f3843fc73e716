"""Layer 4: devices joined by links, and nodes joined by a fabric."""

from mlsim.systems.cluster import Cluster, Placement, placement
from mlsim.systems.cluster_files import load_cluster
from mlsim.systems.files import load_system
from mlsim.systems.system import TOPOLOGIES, System

__all__ = [
    "TOPOLOGIES",
    "Cluster",
    "Placement",
    "System",
    "load_cluster",
    "load_system",
    "placement",
]
