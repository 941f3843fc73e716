"""Rules for power, for what operators report, and for the carbon of manufacturing.

Each check is a function that yields what it finds; the first line of its docstring is
the rule. `mlsim.zoo.review.rules` says to which records each applies.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlsim.hardware import Device
from mlsim.infrastructure import CloudOperator, DataCentre, EmbodiedCarbon
from mlsim.systems import System
from mlsim.units import text
from mlsim.zoo.review.figure_rules import Finding

# The least of its design power that an idle device has been seen to draw, with room
# below: 9 W of 575 W, and one or two watts of a card that sleeps.
IDLE_SHARE = 0.005
# How much the host of a device may draw beside it, for each of its watts.
HOST_MOST = 2.0
# PUE and, in liters per kilowatt-hour, WUE: no data center exceeds these.
PUE_MOST, WUE_MOST = 3.0, 10.0
# The carbon of manufacturing a device, and a server with its share of them, in kg CO2e.
CARBON = (1.0, 50_000.0)
_KWH = 3.6e6


def idle_power(device: Device) -> Iterator[Finding]:
    """An idle device draws less than its design power, and more than a two-hundredth of it."""
    idle, tdp = device.figures.get("power.idle"), device.figures.get("power.tdp")
    if idle and tdp and not IDLE_SHARE * tdp.si < idle.si < tdp.si:
        yield Finding("power.idle", f"{idle.text} idle can't be with {tdp.text} at most.")


def whole_power(system: System) -> Iterator[Finding]:
    """A whole system draws what its devices may, and for the rest at most twice as much."""
    whole, tdp = system.figures.get("power.max"), system.device.figures.get("power.tdp")
    if whole and tdp:
        devices = system.devices * tdp.si
        if not devices <= whole.si <= (1 + HOST_MOST) * devices:
            yield Finding(
                "power.max",
                f"{whole.text} is not the whole of {system.devices} devices of {tdp.text}: "
                f"{text(devices, 'W')} to {text((1 + HOST_MOST) * devices, 'W')} can be.",
            )
    idle = system.figures.get("power.idle")
    if idle and whole and idle.si >= whole.si:
        yield Finding("power.idle", f"{idle.text} idle is not below {whole.text} at most.")


def overheads(center: DataCentre) -> Iterator[Finding]:
    """A PUE is below 3, and a WUE below 10 L/kWh."""
    for name, figure in center.figures.items():
        most = PUE_MOST if name.startswith("pue.") else WUE_MOST / _KWH
        if figure.si >= most:
            yield Finding(name, f"{figure.text} is more than any data center has reported.")


def reported_emissions(operator: CloudOperator) -> Iterator[Finding]:
    """Over its electricity, an operator's Scope 2 is below that of the worst coal."""
    worst = 1500e-3 / _KWH
    for account in ("location", "market"):
        for year in operator.years(f"scope2_{account}"):
            if year not in operator.years("electricity"):
                continue
            name = f"scope2_{account}.{year}"
            emitted, used = operator.figures[name], operator.figures[f"electricity.{year}"]
            if emitted.si / used.si > worst:
                yield Finding(name, f"{emitted.text} over {used.text} is above 1,500 gCO2e/kWh.")


def manufacturing(embodied: EmbodiedCarbon) -> Iterator[Finding]:
    """Manufacturing a device or server emits 1 kg to 50 t; its lifetime is 0.5 to 20 years."""
    each = embodied.figures["carbon"].si / embodied.devices
    if not CARBON[0] <= each <= CARBON[1]:
        yield Finding("carbon", f"{embodied.figures['carbon'].text} can't be: is the unit right?")
    lifetime = embodied.figures.get("lifetime")
    year = 365 * 86400.0
    if lifetime and not 0.5 * year <= lifetime.si <= 20 * year:
        yield Finding(
            "lifetime",
            f"{lifetime.text} can't be a lifetime; 0.5 to 20 years can. Is the unit right?",
        )
