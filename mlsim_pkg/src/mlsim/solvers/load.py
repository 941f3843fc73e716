"""A load: devices that are held for a time, and how much of them is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mlsim.equations import energy
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.hardware import Device
from mlsim.parameters import validate
from mlsim.systems import Cluster, System
from mlsim.units import to_base

# A share of peak may be above 1 by this much, for rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Load:
    """So many devices for so long, and the share of peak rates that they use.

    Attributes
    ----------
    device, system
        The device, and the system or cluster that it is part of, if any.
    devices
        How many of it are held.
    time
        For how long, in s.
    compute_utilisation, memory_utilisation
        FLOP done over what the peak allows in that time, and bytes moved over what
        the memory bandwidth allows, on the average of the devices; None if unknown.
    tokens
        Tokens that are made, or read in training; 0 if unknown.
    label
        What it is, in words.
    labels
        More of them, for an explanation: model, precision, estimate, hardware.

    Raises
    ------
    InvalidValueError
        If a number can't be, such as a share above 1.

    >>> from mlsim import Hardware
    >>> load = Load.of(hardware=Hardware.Cloud.A100, device_hours=1000)
    >>> load.devices * load.time / 3600
    1000.0
    """

    device: Device
    system: System | Cluster | None
    devices: int
    time: float
    compute_utilisation: float | None
    memory_utilisation: float | None
    tokens: float = 0.0
    label: str = "a load"
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.devices, bool) or not self.devices == int(self.devices) >= 1:
            raise InvalidValueError(
                f"devices must be a whole number from 1 up, not {self.devices!r}."
            )
        for name, value, least in (("time", self.time, 0.0), ("tokens", self.tokens, -1.0)):
            if not (math.isfinite(value) and value > least):
                raise InvalidValueError(f"{name} must be positive and finite, not {value!r}.")
        for name in ("compute_utilisation", "memory_utilisation"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1 + _ROUNDING:
                raise InvalidValueError(
                    f"{name} must be a share from 0 to 1, not {share:.4g}: no more work is done "
                    "than peak rate and time allow."
                )

    def load(self) -> Load:
        """Return itself, so that it can stand where a service or a training run does."""
        return self

    def within(self, time: Any) -> Load:
        """Return the same work done in another time, such as a measured one.

        The shares of peak change by the ratio of the times.

        Raises
        ------
        InvalidValueError
            If the time can't be, or is less than the work takes at peak rates.
        UnitError
            If it has no unit.
        """
        seconds = validate("working_time", time)
        if getattr(seconds, "ndim", 0):
            raise InvalidValueError("time must be one time, not an array.")
        compute, memory = (
            None
            if share is None
            else energy.utilisation(energy.busy_time(share, self.time), seconds)
            for share in (self.compute_utilisation, self.memory_utilisation)
        )
        return replace(self, time=seconds, compute_utilisation=compute, memory_utilisation=memory)

    @staticmethod
    def of(
        *,
        hardware: Device | System | Cluster,
        device_hours: Any,
        devices: int = 1,
        compute_utilisation: float | None = None,
        memory_utilisation: float | None = None,
        tokens: float = 0.0,
        label: str = "",
    ) -> Load:
        """Make a load of device-hours that are known, such as those of a published run.

        `device_hours` is a number of hours, or text such as "45 d"; with `devices`,
        each of them is held for an equal part.

        Raises
        ------
        InvalidValueError, UnitError
            If a number can't be.
        WrongKindError
            If `hardware` is none; names go to `Engine.footprint(hardware=...)`.
        """
        if not isinstance(hardware, (Device, System, Cluster)):
            raise WrongKindError(
                f"hardware must be a device or a system such as Hardware.Cloud.A100, not "
                f"{hardware!r}. Engine.footprint(hardware=..., device_hours=...) takes names."
            )
        seconds = _hours(device_hours)
        countable = isinstance(devices, int) and devices > 0
        device = hardware if isinstance(hardware, Device) else hardware.device
        words = label or f"{_written(seconds / 3600)} device-hours"
        load = Load(
            device=device,
            system=None if isinstance(hardware, Device) else hardware,
            devices=devices,
            time=energy.equal_working_time(seconds, devices) if countable else seconds,
            compute_utilisation=compute_utilisation,
            memory_utilisation=memory_utilisation,
            tokens=tokens,
            label=words,
        )
        # Of one device, the hours are those of many that nobody counted.
        labels = {
            "model": words,
            "hardware": f"{devices:,} x {device.name}" if devices > 1 else device.name,
            "precision": "device-hours given",
            "estimate": "",
        }
        return replace(load, labels=labels)


def _hours(value: Any) -> float:
    """Return seconds of a number of hours, or of text with a unit of time."""
    bare = isinstance(value, (bool, int, float))
    seconds = value * 3600.0 if bare else to_base(value, "s", "device_hours")
    if isinstance(value, bool) or not isinstance(seconds, (int, float)):
        raise InvalidValueError(f"device_hours must be one number of hours, not {value!r}.")
    if not (math.isfinite(seconds) and seconds > 0):
        raise InvalidValueError(f"device_hours must be positive and finite, not {value!r}.")
    return float(seconds)


def _written(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:,.4g}"
