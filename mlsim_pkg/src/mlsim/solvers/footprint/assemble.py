"""The account of a load: what a caller gives and what is on record, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsim.equations import energy
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.hardware import Device
from mlsim.infrastructure import EmbodiedCarbon
from mlsim.solvers.footprint.footprint import Account
from mlsim.solvers.footprint.surroundings import (
    LEFT_OUT,
    Entries,
    Entry,
    IdleShare,
    Shelf,
    Shelves,
    Weights,
    Where,
    carbon,
    data_centre,
    entry,
    exactly,
    limits,
    water,
)
from mlsim.solvers.load import Load
from mlsim.systems import Cluster, System

# What a caller may give beside the arguments of Engine.footprint, and its name in the
# vocabulary where that is longer.
GIVABLE = {
    "idle_power": "idle_power",
    "max_power": "max_power",
    "device_power": "device_power",
    "compute_utilisation": "compute_utilisation",
    "memory_utilisation": "memory_utilisation",
    "lifetime": "device_lifetime",
    "lifetime_use": "lifetime_use",
    "tokens": "load_tokens",
}
_NOTHING = exactly(0.0, LEFT_OUT)
_USES = ("compute_utilisation", "memory_utilisation")
# What decides the share in the emissions of making devices, and how it is given.
_MAKING = {
    "embodied_per_device": "embodied='150 kgCO2e' for each device, or a record of Embodied",
    "device_lifetime": "lifetime='4 yr'",
    "lifetime_use": "lifetime_use=0.5, the part of its life in which a device is used",
}


@dataclass(frozen=True)
class OnRecord:
    """Where records are found by name, and what follows from measurements of power."""

    places: Shelves
    systems: Shelf
    embodied: Shelf
    hardware: Callable[[Any], Device | System | Cluster]
    weights: Callable[[], Weights]
    idle_share: IdleShare


def load_of(work: Any, hardware: Any, device_hours: Any, record: OnRecord) -> Load:
    """Return the load of a service or a run, or of device-hours.

    Raises
    ------
    MlsimError
        If neither, or both, are given.
    """
    if work is None:
        if hardware is None or device_hours is None:
            raise InvalidValueError(
                "footprint of what? Give a service (Engine.serve), a training run "
                "(Engine.train) or a Load; or hardware= and device_hours=."
            )
        return Load.of(hardware=record.hardware(hardware), device_hours=device_hours)
    if hardware is not None or device_hours is not None:
        raise InvalidValueError(
            "hardware and device_hours describe a load that is not given: leave them out, "
            f"since {type(work).__name__} has its own."
        )
    found = work.load() if hasattr(work, "load") else None
    if not isinstance(found, Load):
        raise WrongKindError(
            "work must be a service (Engine.serve), a training run (Engine.train) or a Load, "
            f"not {work!r}."
        )
    return found


@dataclass(frozen=True)
class Assembly:
    """What is known of a load itself; of what is not, why, and what is not counted.

    `given` has quantities that are given of it, as `Engine.footprint` takes them.
    """

    load: Load
    given: Mapping[str, Any]
    record: OnRecord
    missing: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def account(
        self, place: Where, *, host: Any, network: Any, embodied: Any, **asked: Any
    ) -> Account:
        """Return it with all around it: what is asked of data center, electricity and water."""
        centre, no_site_water, words = data_centre(place, asked["pue"], asked["wue"])
        emitted, grid = carbon(place, asked["carbon_intensity"], asked["hour"], asked["accounting"])
        source_water, no_source_water = water(place, asked["water_intensity"])
        self.missing.update(no_site_water | no_source_water)
        entries = {
            **self.held(),
            **self.powers(),
            **self.host(host),
            **self.network(network),
            **centre,
            **emitted,
            **source_water,
            **self.embodied(embodied),
        }
        self.sum_of_water(entries)
        where = f"{words}, {grid}"
        return Account(self.load, entries, where, self.missing, tuple(self.left_out))

    def held(self) -> Entries:
        """Return how much is held, and for how many tokens."""
        load, origin = self.load, f"load: {self.load.label}"
        found = {
            "devices": exactly(float(load.devices), origin),
            "working_time": exactly(load.time, origin),
        }
        if "tokens" in self.given:
            value = self.given["tokens"]
            found["load_tokens"] = told = entry("load_tokens", value, shown="tokens")
            if load.tokens and not told.low <= load.tokens <= told.high:
                raise InvalidValueError(
                    f"tokens = {value!r} contradicts the load, which makes {load.tokens:,.0f} "
                    f"tokens ({load.label}): leave tokens out, or give another load."
                )
        elif load.tokens:
            found["load_tokens"] = exactly(load.tokens, origin)
        else:
            self.missing["load_tokens"] = (
                "nobody says how many tokens the load makes: give tokens=."
            )
        return found

    def powers(self) -> Entries:
        """Return what decides the power of a device."""
        load, given = self.load, self.given
        if "device_power" in given:
            # What is published of a run; idle and full power don't matter then.
            used = [name for name in ("idle_power", "max_power") if name in given]
            if used:
                raise InvalidValueError(f"device_power is the average: leave {used[0]} out.")
            for name in ("power_load", "power_share"):
                self.missing[name] = "device_power is given, so that nothing is known of the load."
            power, figure = (
                entry("device_power", given["device_power"]),
                load.device.figures.get("power.idle"),
            )
            if figure and power.low < figure.si:
                raise InvalidValueError(
                    f"device_power must be at least what {load.device.name} draws idle, "
                    f"{figure.text}, not {power.low:,.4g} W."
                )
            return {"device_power": power}
        ends = (given.get("idle_power"), given.get("max_power"))
        idle, most = limits(load.device, *ends, self.record.idle_share)
        found = {"idle_power": idle, "max_power": most}
        shares = {}
        for name in _USES:
            value = getattr(load, name)
            if name in given:
                shares[name] = entry(name, given[name])
            elif value is not None:
                shares[name] = exactly(min(value, 1.0), f"load: {load.label}")
        if len(shares) == 1:
            lacks = next(name for name in _USES if name not in shares)
            raise InvalidValueError(f"give {lacks} as well: power depends on both (0 is allowed).")
        if not shares:
            self.missing["power_load"] = "how much of the devices is used is not known."
            words = "nothing is known of their use: from idle to full power"
            return {**found, "power_share": Entry(0.0, 1.0, words)}
        fitted = self.record.weights()
        running = exactly(fitted.running, fitted.origin)
        if not any(share.high for share in shares.values()):
            running = exactly(0.0, "nothing is used: the device is idle")
        return {
            **found,
            **shares,
            "running_power_weight": running,
            "compute_power_weight": exactly(fitted.compute, fitted.origin),
            "memory_power_weight": exactly(fitted.memory, fitted.origin),
        }

    def host(self, host: Any) -> Entries:
        """Return what a host draws for each device."""
        if host is False:
            self.left_out.append("hosts: processors, memory, fans and power supplies")
            return {"host_power": _NOTHING}
        if isinstance(host, str) and not host[:1].isdigit():
            host = self.record.systems.find(host)
        if host is True:
            host = self.load.system
        elif not isinstance(host, (System, Cluster)):
            return {"host_power": entry("host_power", host, shown="host")}
        return self._host_of(host.node if isinstance(host, Cluster) else host)

    def _host_of(self, system: System | None) -> Entries:
        share = system.host_power_per_device if system else None
        if system is None or share is None or share.magnitude <= 0:
            systems = self.record.systems
            known = ", ".join(s.key for s in systems if s.host_power_per_device is not None)
            raise InvalidValueError(
                f"the power of the host of {(system or self.load.device).name} is not on record: "
                f"give host='150 W' for each device, a system whose power is (host= one of "
                f"{known}), or host=False to count the devices alone."
            )
        figures, devices = system.figures, system.devices
        most, tdp = figures["power.max"], system.device.figures["power.tdp"]
        upper = energy.host_share_max(most.si, devices, tdp.si)
        words = f"{system.name}: {most.text} for {devices} devices, less the {tdp.text} of each"
        idle, alone = figures.get("power.idle"), system.device.figures.get("power.idle")
        if idle and alone:
            lower = energy.host_share_idle(idle.si, devices, alone.si)
            return {
                "host_idle_power": exactly(lower, f"{system.name}, idle: {idle.origin()}"),
                "host_max_power": exactly(upper, f"{words}, {most.origin()}"),
            }
        return {"host_power": exactly(upper, f"at most; {words}, {most.origin()}")}

    def network(self, network: Any) -> Entries:
        """Return what switches draw for each device."""
        if network is None or network is False:
            self.left_out.append("switches between hosts, and storage")
            return {"network_power": _NOTHING}
        return {"network_power": entry("network_power", network, shown="network")}

    def embodied(self, embodied: Any) -> Entries:
        """Return what decides the share in the emissions of making the devices."""
        if embodied is False:
            self.left_out.append("making the devices")
            return {"embodied_carbon": _NOTHING}
        found, record = {}, self._embodied_record(embodied)
        if record:
            figure = record.figures["carbon"]
            words = f"{record.name} ({record.covers}): {figure.origin()}"
            share = energy.embodied_share(figure.si, record.devices)
            found["embodied_per_device"] = exactly(share, words)
        elif embodied is not None:
            found["embodied_per_device"] = entry("embodied_per_device", embodied, shown="embodied")
        figures = record.figures if record else {}
        for argument, name in (("lifetime", "lifetime"), ("lifetime_use", "utilisation")):
            if argument in self.given:
                value = entry(GIVABLE[argument], self.given[argument], shown=argument)
                found[GIVABLE[argument]] = value
            elif name in figures:
                found[GIVABLE[argument]] = exactly(figures[name].si, figures[name].origin())
        lacks = [words for name, words in _MAKING.items() if name not in found]
        if not lacks:
            return found
        self.missing["embodied_carbon"] = (
            f"of making {record.name if record else self.load.device.name} not all is known: give "
            f"{'; and '.join(lacks)}. embodied=False leaves it out."
        )
        return {}

    def _embodied_record(self, embodied: Any) -> EmbodiedCarbon | None:
        """Return the record of a device's making: as given, or the one named like the device."""
        if isinstance(embodied, EmbodiedCarbon):
            return embodied
        shelf, key = self.record.embodied, self.load.device.key
        if isinstance(embodied, str) and not embodied[:1].isdigit():
            found: EmbodiedCarbon = shelf.find(embodied)
            return found
        if embodied is not None and embodied is not True:
            return None
        own: list[EmbodiedCarbon] = [each for each in shelf if each.device == key]
        named = [each for each in own if each.key == key.rpartition(".")[2]]
        return next(iter((*named, *own)), None)

    def sum_of_water(self, entries: Entries) -> None:
        """Let the sum of water hold what is known, and say so if that is one part only."""
        parts = {"site_water": "water on site", "source_water": "water at power stations"}
        lacks = [name for name in parts if name in self.missing]
        if len(lacks) == len(parts):
            self.missing["total_water"] = " ".join(self.missing[name] for name in parts)
        elif lacks:
            # The part itself is refused; in the sum it is nothing, and named.
            entries[lacks[0]] = exactly(0.0, f"{LEFT_OUT} of the sum: not known")
            self.left_out.append(f"{parts[lacks[0]]}: not known")
