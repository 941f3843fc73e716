"""Layer 3, the surroundings of a machine: its data center, its grid, its manufacturing."""

from mlsim.infrastructure.accounts import CloudOperator, EmbodiedCarbon
from mlsim.infrastructure.places import CloudRegion, DataCentre, Grid

__all__ = ["CloudOperator", "CloudRegion", "DataCentre", "EmbodiedCarbon", "Grid"]
