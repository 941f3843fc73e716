"""What others measured or published, each row with its source; peaks of memory are our own.

A name is imported when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing

if TYPE_CHECKING:
    from mlsim.measured.failures_and_prices import ApiPrice, api_prices
    from mlsim.measured.growth import (
        Growth,
        accelerators,
        fit_growth,
        growth_of,
        language_model_facts,
        records,
        years,
    )
    from mlsim.measured.inference import MeasuredLoad, measured_loads
    from mlsim.measured.inside_machines import (
        execution_units,
        memory_spaces,
        published_rate,
    )
    from mlsim.measured.surfaces import MeasuredProduct, measured_formats, measured_stairs
    from mlsim.measured.training import NetworkStep, TrainingMemory, network_steps, training_memory

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
    "fit_growth",
    "growth_of",
    "language_model_facts",
    "measured_formats",
    "measured_loads",
    "measured_stairs",
    "memory_spaces",
    "network_steps",
    "published_rate",
    "records",
    "training_memory",
    "years",
]

_HOMES = {
    **dict.fromkeys(
        ("Growth", "accelerators", "fit_growth", "growth_of", "language_model_facts"), "growth"
    ),
    **dict.fromkeys(("records", "years"), "growth"),
    **dict.fromkeys(("execution_units", "memory_spaces", "published_rate"), "inside_machines"),
    **dict.fromkeys(
        ("NetworkStep", "TrainingMemory", "network_steps", "training_memory"), "training"
    ),
    **dict.fromkeys(("MeasuredProduct", "measured_formats", "measured_stairs"), "surfaces"),
    **dict.fromkeys(("ApiPrice", "api_prices"), "failures_and_prices"),
    **dict.fromkeys(("MeasuredLoad", "measured_loads"), "inference"),
}

__getattr__ = importing(__name__, _HOMES)
