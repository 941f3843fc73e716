"""Predict the speed, memory and bottleneck of a model on given hardware.

    >>> from mlsim import Engine, Hardware, Models
    >>> profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    >>> profile.bottleneck
    'Memory Bound'

The package is built in floors, and a floor imports only from those below:

    doors            engine, sweep, cli, plots, zoo
    layer 5          solvers: which equations answer which question
    layer 4          systems: devices joined by links
    layer 3          infrastructure: data centres, grids, regions of clouds
    layer 2          hardware: a device, each figure with its source
    layer 1          workloads: a model, and its lowering to operators
    ground           equations, quantities, units, precision, records, references

Importing `mlsim` loads the standard library only; a name below is imported when
it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsim.answers import show
    from mlsim.engine import Engine
    from mlsim.hardware import Device
    from mlsim.measured import measurements
    from mlsim.measured_failures import failures, prices
    from mlsim.measured_power import power_measurements
    from mlsim.measured_runs import published_runs
    from mlsim.measured_serving import serving_measurements
    from mlsim.measured_training import training_measurements
    from mlsim.number import Number
    from mlsim.plots import plot_roofline
    from mlsim.plots_training import plot_breakdown, plot_memory, plot_pipeline
    from mlsim.solvers import Footprint, Interval, Load, Profile, Serving, Training
    from mlsim.systems import Cluster, System
    from mlsim.workloads import Model, Transformer
    from mlsim.zoo import (
        Clusters,
        DataCentres,
        Embodied,
        Grids,
        Hardware,
        Models,
        Operators,
        Regions,
        Systems,
    )

__version__ = "0.1.0"

_HOMES = {
    "Cluster": "mlsim.systems",
    "Clusters": "mlsim.zoo",
    "DataCentres": "mlsim.zoo",
    "Device": "mlsim.hardware",
    "Embodied": "mlsim.zoo",
    "Engine": "mlsim.engine",
    "Footprint": "mlsim.solvers",
    "Grids": "mlsim.zoo",
    "Hardware": "mlsim.zoo",
    "Interval": "mlsim.solvers",
    "Load": "mlsim.solvers",
    "Model": "mlsim.workloads",
    "Models": "mlsim.zoo",
    "Number": "mlsim.number",
    "Operators": "mlsim.zoo",
    "Profile": "mlsim.solvers",
    "Regions": "mlsim.zoo",
    "Serving": "mlsim.solvers",
    "System": "mlsim.systems",
    "Systems": "mlsim.zoo",
    "Training": "mlsim.solvers",
    "Transformer": "mlsim.workloads",
    "failures": "mlsim.measured_failures",
    "measurements": "mlsim.measured",
    "plot_breakdown": "mlsim.plots_training",
    "plot_memory": "mlsim.plots_training",
    "plot_pipeline": "mlsim.plots_training",
    "plot_roofline": "mlsim.plots",
    "power_measurements": "mlsim.measured_power",
    "prices": "mlsim.measured_failures",
    "published_runs": "mlsim.measured_runs",
    "serving_measurements": "mlsim.measured_serving",
    "show": "mlsim.answers",
    "table": "mlsim.table",
    "training_measurements": "mlsim.measured_training",
}

__all__ = [
    "Cluster",
    "Clusters",
    "DataCentres",
    "Device",
    "Embodied",
    "Engine",
    "Footprint",
    "Grids",
    "Hardware",
    "Interval",
    "Load",
    "Model",
    "Models",
    "Number",
    "Operators",
    "Profile",
    "Regions",
    "Serving",
    "System",
    "Systems",
    "Training",
    "Transformer",
    "failures",
    "measurements",
    "plot_breakdown",
    "plot_memory",
    "plot_pipeline",
    "plot_roofline",
    "power_measurements",
    "prices",
    "published_runs",
    "serving_measurements",
    "show",
    "table",
    "training_measurements",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        from mlsim.errors import unknown_name

        raise unknown_name("name in mlsim", name, __all__)
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
