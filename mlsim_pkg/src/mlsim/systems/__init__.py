"""Layer 4: devices joined by links, and nodes joined by a fabric."""

from mlsim.systems.cluster import Cluster, Placement, placement
from mlsim.systems.system import TOPOLOGIES, System

__all__ = ["TOPOLOGIES", "Cluster", "Placement", "System", "placement"]
