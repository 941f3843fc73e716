"""What a device costs per time, for `Engine.plan`: rent on record or given, power, or a count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlsim.errors import InvalidValueError, nearest
from mlsim.hardware import Device
from mlsim.measured.failures_and_prices import TERMS, Price, prices
from mlsim.solvers.inputs import validate
from mlsim.solvers.plan.planned import OBJECTIVES
from mlsim.systems import Cluster, System
from mlsim.zoo import resolve


class Prices:
    """What a device costs per time, and in whose words."""

    def __init__(self, objective: str, provider: str | None, terms: str, given: Any) -> None:
        self.objective, self.provider, self.terms = _objective(objective), provider, _terms(terms)
        self.given: dict[str, Any] = {}
        self.same: Any = None
        if isinstance(given, dict):
            for name, value in given.items():
                _price(value)
                self.given[resolve.device(name).key] = value
        elif given is not None:
            _price(given)
            self.same = given
        if provider is not None and not prices(provider=provider):
            known = sorted({row.provider for row in prices()})
            raise InvalidValueError(
                f"no prices of {provider!r} are on record.{nearest(provider, known)} "
                f"There are those of {', '.join(known)}."
            )

    def check_asked(self, hardware: Iterable[Device | System | Cluster]) -> None:
        """Refuse the price of a device that isn't tried.

        Raises
        ------
        InvalidValueError
            If one is given.
        """
        tried = [each if isinstance(each, Device) else each.device for each in hardware]
        keys = [each.key for each in tried]
        for key in self.given:
            if key not in keys:
                name = resolve.device(key).name
                raise InvalidValueError(
                    f"price has {name}, which is not tried: hardware has "
                    f"{', '.join(dict.fromkeys(each.name for each in tried))}. Add it there, or "
                    "leave its price out."
                )

    def devices(self) -> list[Device]:
        """All devices that have a price."""
        keys = dict.fromkeys((*(row.device for row in self._rows(None)), *self.given))
        return [resolve.device(key) for key in keys]

    def _rows(self, device: Device | None) -> list[Price]:
        found = prices(device=device, provider=self.provider)
        # What a provider asked before for the same product is no price any more.
        newest: dict[tuple[str, str], Price] = {}
        for row in sorted(found, key=lambda row: row.date):
            if row.terms == self.terms:
                newest[row.provider, row.product] = row
        return list(newest.values())

    def of(self, device: Device) -> tuple[float, str] | None:
        """Return what one device costs per time, or None where nobody says."""
        if self.objective == "devices":
            return 1.0, "devices are counted"
        if self.objective == "energy":
            power = device.power.tdp
            if power is None:
                return None
            return float(power.to("W").magnitude), f"full power of one device: {power:~P}"
        given = self.given.get(device.key, self.same)
        if given is not None:
            return _price(given), f"given: {given} for one device"
        rows = self._rows(device)
        if not rows:
            return None
        least = min(rows, key=lambda row: row.per_device.to("USD/s").magnitude)
        return float(least.per_device.to("USD/s").magnitude), (
            f"{least.per_device:.2f} for one {device.name}, {least.provider}, {least.terms}, "
            f"{least.date} ({least.source})"
        )


def _price(given: Any) -> float:
    """Return a price that is given in USD/s; refuse what is no price."""
    found = validate("device_price", given)
    if getattr(found, "ndim", 0):
        raise InvalidValueError(
            f"device_price must be one price, or one by device as {{'H100': '2 USD/h'}}, not "
            f"{given!r}."
        )
    return float(found)


def _objective(name: str) -> str:
    if name not in OBJECTIVES:
        raise InvalidValueError(
            f"objective {name!r} is none of {', '.join(OBJECTIVES)}.{nearest(name, OBJECTIVES)}"
        )
    return name


def _terms(name: str) -> str:
    if name not in TERMS:
        raise InvalidValueError(f"terms {name!r} are none of {', '.join(TERMS)}.")
    return name
