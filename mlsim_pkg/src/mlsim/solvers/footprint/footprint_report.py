"""A footprint as text for people and as plain data for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.quantities import term
from mlsim.solvers.answer import Report
from mlsim.solvers.footprint.interval import Interval, digits, written

if TYPE_CHECKING:
    from mlsim.solvers.footprint.footprint import Footprint

# What is not of interest by itself.
INNER = ("power_load", "power_share", "carbon_intensity")


def inputs(footprint: Footprint) -> dict[str, Any]:
    """Return what was asked, and what is known with its origin, for JSON."""
    account = footprint.account
    labels = account.labels
    return {
        "load": labels["model"],
        "hardware": labels["hardware"],
        "place": account.place,
        "inputs": {
            name: {**entry(footprint, name), "origin": footprint.question.origin(name)}
            for name in account.entries
            # A part of the water that is not known stands for nothing in the sum.
            if name not in account.missing
        },
    }


def entry(footprint: Footprint, name: str) -> dict[str, Any]:
    """Return a quantity for JSON: its value, or of a range both ends."""
    found, unit = footprint.value(name), term(name).unit
    if isinstance(found, Interval):
        return {"low": found.low, "high": found.high, "unit": unit}
    return {"value": found, "unit": unit}


def report(footprint: Footprint) -> Report:
    """Return a short table."""
    account = footprint.account
    labels = account.labels
    about = ", ".join(each for each in (labels["hardware"], labels["precision"]) if each)
    known = footprint.question.known
    devices, seconds = known["devices"], known["working_time"]
    rows = [
        ("place", account.place),
        ("power", f"{_shown(footprint, 'device_power')} per device"),
        ("held", _held(devices, seconds)),
        ("energy", f"{_shown(footprint, 'facility_energy')} ({_energies(footprint)})"),
        ("carbon", _carbon(footprint)),
        ("water", _water(footprint)),
    ]
    if footprint.has("energy_per_token"):
        rows.append(("per token", _per_token(footprint)))
    rows += [("left out" if not i else "", each) for i, each in enumerate(account.left_out)]
    return Report(labels["model"], [("on", about), *rows], label=11)


def _shown(footprint: Footprint, name: str) -> str:
    return written(footprint.quantity(name))


def _energies(footprint: Footprint) -> str:
    parts = [f"devices {_shown(footprint, 'device_energy')}"]
    for name, words in (("host", "hosts"), ("network", "network")):
        if not footprint.has(f"{name}_power"):
            continue
        known = footprint.account.entries.get(f"{name}_power")
        most = "at most " if known and known.origin.startswith("at most") else ""
        parts.append(f"{words} {most}{_shown(footprint, f'{name}_energy')}")
    return f"{', '.join(parts)}; PUE {_shown(footprint, 'pue')}"


def _carbon(footprint: Footprint) -> str:
    used = f"{_shown(footprint, 'operational_carbon')} by its electricity"
    if "embodied_carbon" in footprint.account.entries:
        return used
    if footprint.has("embodied_carbon"):
        whole = _shown(footprint, "total_carbon")
        return f"{whole}: {used}, {_shown(footprint, 'embodied_carbon')} by making the devices"
    return f"{used}; of making the devices not all is known"


def _water(footprint: Footprint) -> str:
    if not footprint.has("total_water"):
        return "not known: neither the data centre's nor the power stations'"
    parts = {"site_water": "on site", "source_water": "at power stations"}
    known = [f"{_shown(footprint, n)} {words}" for n, words in parts.items() if footprint.has(n)]
    return " and ".join(known)


def _per_token(footprint: Footprint) -> str:
    names = ["energy_per_token", "carbon_per_token", "water_per_token"]
    return ", ".join(_shown(footprint, name) for name in names if footprint.has(name))


def _held(devices: float, seconds: float) -> str:
    """Tell how many devices are held for how long; of many hours, their sum."""
    hours = f"{digits(devices * seconds / 3600)} device-hours"
    if devices == 1 and seconds > 86400:
        return hours
    for scale, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 3 * scale:
            return f"{devices:,.0f} device(s) for {digits(seconds / scale)} {unit}: {hours}"
    return f"{devices:,.0f} device(s) for {digits(seconds)} s"
