"""Layer 3, the surroundings of a machine: its data center, its grid, its manufacturing."""

from mlsim.infrastructure.accounts import (
    ACCOUNTS,
    CloudOperator,
    EmbodiedCarbon,
    load_embodied,
    load_operator,
)
from mlsim.infrastructure.places import (
    BASES,
    SCOPES,
    CloudRegion,
    DataCentre,
    Grid,
    HourlyIntensity,
    grid_loader,
    load_data_centre,
    load_data_centres,
    load_grid_figures,
    load_grids,
    load_hours,
    load_regions,
)

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
