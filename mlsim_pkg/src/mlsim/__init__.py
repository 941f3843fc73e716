"""Predict the speed, memory and bottleneck of a model on given hardware.

    >>> from mlsim import Engine, Hardware, Models
    >>> profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    >>> profile.bottleneck
    'Memory Bound'

The package is built in floors, and a floor imports only from those below:

    doors            engine: one question in, one answer out; cli: the command `mlsim`
    faces            display: numbers that open; plots: figures; draw: machines as drawings;
                     live: what readers move
    shelves          measured: what others measured; profiling: own machine, profiles that were
                     read; zoo: data by dotted names, and its review
    layer 5          solvers: which equations answer which question
    layer 4          systems: devices joined by links
    layer 3          infrastructure: data centers, grids, regions of clouds
    layer 2          hardware: a device, each figure with its source
    layer 1          workloads: a model, and its lowering to operators
    ground           equations, quantities, records, precision, units, errors

Importing `mlsim` loads the standard library only; a name below is imported when
it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsim.display.tables import column, show, table
    from mlsim.engine import Engine
    from mlsim.engine.anatomy import anatomy
    from mlsim.hardware.device import Device
    from mlsim.measured.lab import lab
    from mlsim.plots.rooflines import plot_roofline
    from mlsim.solvers.footprint.footprint import Footprint
    from mlsim.solvers.forward.profile import Profile
    from mlsim.solvers.load import Load
    from mlsim.solvers.serving.serving import Serving
    from mlsim.solvers.training.training import Training
    from mlsim.systems.system import Cluster, System
    from mlsim.values import given
    from mlsim.workloads.adapters import LoRA, QLoRA
    from mlsim.workloads.huggingface import load_config
    from mlsim.workloads.language import Transformer
    from mlsim.workloads.model import Model
    from mlsim.zoo.spaces import (
        CloudOperators,
        Clusters,
        DataCentres,
        Embodied,
        Grids,
        Hardware,
        Models,
        Regions,
        Systems,
    )

__version__ = "0.1.0"

_HOMES = {
    "mlsim.display.tables": ("column", "show", "table"),
    "mlsim.engine": ("Engine",),
    # What a lecture calls by these names, too; they are listed in `mlsim.engine`.
    "mlsim.engine.anatomy": (
        *("anatomy", "estimate_training_for", "largest_batch", "over_memory"),
        *("profile_layer_mem", "profile_mem", "profile_ops", "summary"),
    ),
    "mlsim.hardware.device": ("Device",),
    "mlsim.measured.lab": ("lab",),
    "mlsim.plots.rooflines": ("plot_roofline",),
    "mlsim.solvers.footprint.footprint": ("Footprint",),
    "mlsim.solvers.forward.profile": ("Profile",),
    "mlsim.solvers.load": ("Load",),
    "mlsim.solvers.serving.serving": ("Serving",),
    "mlsim.solvers.training.training": ("Training",),
    "mlsim.systems.system": ("Cluster", "System"),
    "mlsim.values": ("given",),
    "mlsim.workloads.adapters": ("LoRA", "QLoRA"),
    "mlsim.workloads.huggingface": ("load_config",),
    "mlsim.workloads.language": ("Transformer",),
    "mlsim.workloads.model": ("Model",),
    "mlsim.zoo.spaces": (
        *("CloudOperators", "Clusters", "DataCentres", "Embodied", "Grids", "Hardware", "Models"),
        *("Regions", "Systems"),
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CloudOperators",
    "Cluster",
    "Clusters",
    "DataCentres",
    "Device",
    "Embodied",
    "Engine",
    "Footprint",
    "Grids",
    "Hardware",
    "LoRA",
    "Load",
    "Model",
    "Models",
    "Profile",
    "QLoRA",
    "Regions",
    "Serving",
    "System",
    "Systems",
    "Training",
    "Transformer",
    "anatomy",
    "column",
    "given",
    "lab",
    "load_config",
    "plot_roofline",
    "show",
    "table",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME:
        from mlsim.errors import unknown_name

        raise unknown_name("name in mlsim", name, __all__)
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
