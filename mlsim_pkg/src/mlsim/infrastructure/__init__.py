"""Layer 3, the surroundings of a machine: its data center, its grid, its manufacturing."""

from mlsim.infrastructure.cloud_operators import ACCOUNTS, CloudOperator, load_operator
from mlsim.infrastructure.embodied import EmbodiedCarbon, load_embodied
from mlsim.infrastructure.hourly import HourlyIntensity, load_hours
from mlsim.infrastructure.place_files import (
    grid_loader,
    load_data_centre,
    load_data_centres,
    load_grid_figures,
    load_grids,
    load_regions,
)
from mlsim.infrastructure.places import BASES, SCOPES, CloudRegion, DataCentre, Grid

__all__ = [
    "ACCOUNTS",
    "BASES",
    "SCOPES",
    "CloudOperator",
    "CloudRegion",
    "DataCentre",
    "EmbodiedCarbon",
    "Grid",
    "HourlyIntensity",
    "grid_loader",
    "load_data_centre",
    "load_data_centres",
    "load_embodied",
    "load_grid_figures",
    "load_grids",
    "load_hours",
    "load_operator",
    "load_regions",
]
