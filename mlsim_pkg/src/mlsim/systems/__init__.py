"""Layer 4: devices joined by links."""

from mlsim.systems.files import load_system
from mlsim.systems.system import TOPOLOGIES, System

__all__ = ["TOPOLOGIES", "System", "load_system"]
