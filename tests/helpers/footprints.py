"""A footprint that tests share: device-hours of an A100 in a place of round numbers."""

from __future__ import annotations

from typing import Any

from mlsim import Engine, Footprint, Hardware

KWH = 3.6e6
A100 = Hardware.Cloud.A100
# A place of round numbers.
PLACE: dict[str, Any] = {
    "pue": 1.2,
    "wue": "0.5 L/kWh",
    "carbon_intensity": "100 gCO2e/kWh",
    "water_intensity": "2 L/kWh",
}


def hours(count: float = 1000, **more: Any) -> Footprint:
    """Return the footprint of device-hours at 300 W, without hosts, in that place."""
    if not {"compute_utilisation", "idle_power", "max_power"} & set(more):
        more.setdefault("device_power", "300 W")
    return Engine.footprint(hardware="A100", device_hours=count, **{"host": False, **PLACE, **more})
