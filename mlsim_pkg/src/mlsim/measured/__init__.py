"""What others measured or published, each row with its source; peaks of memory are our own.

A name is imported when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsim.measured.growth import Growth, accelerators, fit_growth, growth_of, records, years
    from mlsim.measured.inside_machines import (
        execution_units,
        memory_spaces,
        published_rate,
    )
    from mlsim.measured.language_models import language_model_facts
    from mlsim.measured.memory_peaks import TrainingMemory, training_memory
    from mlsim.measured.network_rates import NetworkStep, network_steps
    from mlsim.measured.product_slices import (
        MeasuredProduct,
        measured_formats,
        measured_stairs,
    )
    from mlsim.measured.services_under_load import MeasuredLoad, measured_loads
    from mlsim.measured.token_prices import ApiPrice, api_prices

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
        ("Growth", "accelerators", "fit_growth", "growth_of", "records", "years"), "growth"
    ),
    **dict.fromkeys(("execution_units", "memory_spaces", "published_rate"), "inside_machines"),
    "language_model_facts": "language_models",
    **dict.fromkeys(("NetworkStep", "network_steps"), "network_rates"),
    **dict.fromkeys(("MeasuredProduct", "measured_formats", "measured_stairs"), "product_slices"),
    **dict.fromkeys(("ApiPrice", "api_prices"), "token_prices"),
    **dict.fromkeys(("MeasuredLoad", "measured_loads"), "services_under_load"),
    **dict.fromkeys(("TrainingMemory", "training_memory"), "memory_peaks"),
}


def __getattr__(name: str) -> Any:
    """Import a name of this room when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
