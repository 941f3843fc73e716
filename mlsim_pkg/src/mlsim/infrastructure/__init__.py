"""Layer 3: what surrounds a machine: its data centre, and the grid that feeds it."""

from mlsim.infrastructure.files import load_data_centre, load_grids, load_regions
from mlsim.infrastructure.places import BASES, SCOPES, CloudRegion, DataCentre, Grid

__all__ = [
    "BASES",
    "SCOPES",
    "CloudRegion",
    "DataCentre",
    "Grid",
    "load_data_centre",
    "load_grids",
    "load_regions",
]
