"""What others measured or published, each row with its source; peaks of memory are our own.

A name is imported when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing

if TYPE_CHECKING:
    from mlsim.measured.failures_and_prices import ApiPrice, api_prices, failures, prices
    from mlsim.measured.growth import (
        Growth,
        accelerators,
        fit_growth,
        growth_of,
        language_model_facts,
        language_models,
        records,
        years,
    )
    from mlsim.measured.inference import (
        MeasuredLoad,
        measured_loads,
        measurements,
        serving_measurements,
    )
    from mlsim.measured.inside_machines import (
        execution_units,
        memory_spaces,
        published_rate,
    )
    from mlsim.measured.power import power_measurements
    from mlsim.measured.surfaces import MeasuredProduct, measured_formats, measured_stairs
    from mlsim.measured.training import (
        NetworkStep,
        TrainingMemory,
        network_steps,
        published_runs,
        training_measurements,
        training_memory,
    )

__all__ = [
    "ApiPrice",
    "Growth",
    "MeasuredLoad",
    "MeasuredProduct",
    "NetworkStep",
    "TrainingMemory",
    "accelerators",
    "api_prices",
    "execution_units",
    "failures",
    "fit_growth",
    "growth_of",
    "language_model_facts",
    "language_models",
    "measured_formats",
    "measured_loads",
    "measured_stairs",
    "measurements",
    "memory_spaces",
    "network_steps",
    "power_measurements",
    "prices",
    "published_rate",
    "published_runs",
    "records",
    "serving_measurements",
    "training_measurements",
    "training_memory",
    "years",
]

_NAMES = {
    "failures_and_prices": ("ApiPrice", "api_prices", "failures", "prices"),
    "growth": (
        *("Growth", "accelerators", "fit_growth", "growth_of", "language_model_facts"),
        *("language_models", "records", "years"),
    ),
    "inference": ("MeasuredLoad", "measured_loads", "measurements", "serving_measurements"),
    "inside_machines": ("execution_units", "memory_spaces", "published_rate"),
    "power": ("power_measurements",),
    "surfaces": ("MeasuredProduct", "measured_formats", "measured_stairs"),
    "training": (
        *("NetworkStep", "TrainingMemory", "network_steps", "published_runs"),
        *("training_measurements", "training_memory"),
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__getattr__ = importing(__name__, _HOMES)
