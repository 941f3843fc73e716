"""Predict the speed, memory and bottleneck of a model on given hardware.

    >>> from mlsim import Engine, Hardware, Models
    >>> profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    >>> profile.bottleneck
    'Memory Bound'

The package is built in floors, and a floor imports only from those below:

    doors            engine: one question in, one answer out; cli: the command `mlsim`
    faces            display: numbers that open; plots: figures
    shelves          measured: what others measured; profiling: own machine, profiles that were
                     read; zoo: data by dotted names, and its review
    layer 5          solvers: which equations answer which question
    layer 4          systems: devices joined by links
    layer 3          infrastructure: data centres, grids, regions of clouds
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
    from mlsim.display.showing import show
    from mlsim.display.tables import column, table
    from mlsim.engine import Engine
    from mlsim.engine.anatomy import (
        anatomy,
        estimate_training_for,
        largest_batch,
        over_memory,
        profile_layer_mem,
        profile_mem,
        profile_ops,
        summary,
    )
    from mlsim.hardware.device import Device
    from mlsim.measured.failures_and_prices import failures, prices
    from mlsim.measured.growth import language_models
    from mlsim.measured.inference import measurements, serving_measurements
    from mlsim.measured.lab import lab
    from mlsim.measured.power import power_measurements
    from mlsim.measured.training import published_runs, training_measurements
    from mlsim.plots.anatomy_plots import plot_anatomy
    from mlsim.plots.growth_plots import plot_growth
    from mlsim.plots.rooflines import plot_roofline
    from mlsim.plots.training_plots import plot_breakdown, plot_memory, plot_pipeline
    from mlsim.solvers.footprint.footprint import Footprint
    from mlsim.solvers.footprint.interval import Interval
    from mlsim.solvers.forward.profile import Profile
    from mlsim.solvers.load import Load
    from mlsim.solvers.serving.serving import Serving
    from mlsim.solvers.training.training import Training
    from mlsim.systems.cluster import Cluster
    from mlsim.systems.system import System
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
    "CloudOperators": "mlsim.zoo.spaces",
    "Cluster": "mlsim.systems.cluster",
    "Clusters": "mlsim.zoo.spaces",
    "DataCentres": "mlsim.zoo.spaces",
    "Device": "mlsim.hardware.device",
    "Embodied": "mlsim.zoo.spaces",
    "Engine": "mlsim.engine",
    "Footprint": "mlsim.solvers.footprint.footprint",
    "Grids": "mlsim.zoo.spaces",
    "Hardware": "mlsim.zoo.spaces",
    "Interval": "mlsim.solvers.footprint.interval",
    "LoRA": "mlsim.workloads.adapters",
    "Load": "mlsim.solvers.load",
    "Model": "mlsim.workloads.model",
    "Models": "mlsim.zoo.spaces",
    "Profile": "mlsim.solvers.forward.profile",
    "QLoRA": "mlsim.workloads.adapters",
    "Regions": "mlsim.zoo.spaces",
    "Serving": "mlsim.solvers.serving.serving",
    "System": "mlsim.systems.system",
    "Systems": "mlsim.zoo.spaces",
    "Training": "mlsim.solvers.training.training",
    "Transformer": "mlsim.workloads.language",
    "anatomy": "mlsim.engine.anatomy",
    "column": "mlsim.display.tables",
    "estimate_training_for": "mlsim.engine.anatomy",
    "failures": "mlsim.measured.failures_and_prices",
    "largest_batch": "mlsim.engine.anatomy",
    "given": "mlsim.values",
    "lab": "mlsim.measured.lab",
    "language_models": "mlsim.measured.growth",
    "load_config": "mlsim.workloads.huggingface",
    "measurements": "mlsim.measured.inference",
    "over_memory": "mlsim.engine.anatomy",
    "plot_anatomy": "mlsim.plots.anatomy_plots",
    "plot_breakdown": "mlsim.plots.training_plots",
    "plot_growth": "mlsim.plots.growth_plots",
    "plot_memory": "mlsim.plots.training_plots",
    "plot_pipeline": "mlsim.plots.training_plots",
    "plot_roofline": "mlsim.plots.rooflines",
    "power_measurements": "mlsim.measured.power",
    "prices": "mlsim.measured.failures_and_prices",
    "profile_layer_mem": "mlsim.engine.anatomy",
    "profile_mem": "mlsim.engine.anatomy",
    "profile_ops": "mlsim.engine.anatomy",
    "published_runs": "mlsim.measured.training",
    "serving_measurements": "mlsim.measured.inference",
    "show": "mlsim.display.showing",
    "summary": "mlsim.engine.anatomy",
    "table": "mlsim.display.tables",
    "training_measurements": "mlsim.measured.training",
}

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
    "Interval",
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
    "estimate_training_for",
    "failures",
    "given",
    "lab",
    "language_models",
    "largest_batch",
    "load_config",
    "measurements",
    "over_memory",
    "plot_anatomy",
    "plot_breakdown",
    "plot_growth",
    "plot_memory",
    "plot_pipeline",
    "plot_roofline",
    "power_measurements",
    "prices",
    "profile_layer_mem",
    "profile_mem",
    "profile_ops",
    "published_runs",
    "serving_measurements",
    "show",
    "summary",
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
