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

_HOMES = {
    "power_measurements": "power",
    **dict.fromkeys(
        ("Growth", "accelerators", "fit_growth", "growth_of", "language_model_facts"), "growth"
    ),
    **dict.fromkeys(("language_models", "records", "years"), "growth"),
    **dict.fromkeys(("execution_units", "memory_spaces", "published_rate"), "inside_machines"),
    **dict.fromkeys(
        ("NetworkStep", "TrainingMemory", "network_steps", "training_memory"), "training"
    ),
    **dict.fromkeys(("published_runs", "training_measurements"), "training"),
    **dict.fromkeys(("measurements", "serving_measurements"), "inference"),
    **dict.fromkeys(("MeasuredProduct", "measured_formats", "measured_stairs"), "surfaces"),
    **dict.fromkeys(("ApiPrice", "api_prices", "failures", "prices"), "failures_and_prices"),
    **dict.fromkeys(("MeasuredLoad", "measured_loads"), "inference"),
}

__getattr__ = importing(__name__, _HOMES)
