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
    from mlsim.measured_serving import serving_measurements
    from mlsim.number import Number
    from mlsim.plots import plot_roofline
    from mlsim.solvers import Profile, Serving
    from mlsim.systems import System
    from mlsim.workloads import Model, Transformer
    from mlsim.zoo import DataCentres, Grids, Hardware, Models, Regions, Systems

__version__ = "0.1.0"

_HOMES = {
    "DataCentres": "mlsim.zoo",
    "Device": "mlsim.hardware",
    "Engine": "mlsim.engine",
    "Grids": "mlsim.zoo",
    "Hardware": "mlsim.zoo",
    "Model": "mlsim.workloads",
    "Models": "mlsim.zoo",
    "Number": "mlsim.number",
    "Profile": "mlsim.solvers",
    "Regions": "mlsim.zoo",
    "Serving": "mlsim.solvers",
    "System": "mlsim.systems",
    "Systems": "mlsim.zoo",
    "Transformer": "mlsim.workloads",
    "measurements": "mlsim.measured",
    "plot_roofline": "mlsim.plots",
    "serving_measurements": "mlsim.measured_serving",
    "show": "mlsim.answers",
}

__all__ = [
    "DataCentres",
    "Device",
    "Engine",
    "Grids",
    "Hardware",
    "Model",
    "Models",
    "Number",
    "Profile",
    "Regions",
    "Serving",
    "System",
    "Systems",
    "Transformer",
    "measurements",
    "plot_roofline",
    "serving_measurements",
    "show",
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
