"""Embodied carbon: what was emitted to make a device or a server, before its first run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mlsim import records
from mlsim.errors import nearest
from mlsim.records import Figure

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

_FIGURES = {"carbon": "kg_CO2e", "lifetime": "s", "utilisation": "1"}
_TEXTS = ("key", "name", "covers", "source")


@dataclass(frozen=True, eq=False, repr=False)
class EmbodiedCarbon:
    """The embodied carbon of something, as published.

    `covers` says what was counted; `device` is the key of the device of the zoo that
    it is for (empty for a server without one), and `devices` how many of it one
    figure covers: 1 for a card, 8 for a board of eight.
    """

    key: str
    name: str
    covers: str
    device: str
    devices: int
    source: str
    figures: Mapping[str, Figure] = field(repr=False)

    @property
    def carbon(self) -> Quantity:
        """What was emitted to make the whole."""
        return self.figures["carbon"].of(self.name)

    @property
    def per_device(self) -> Quantity:
        """The whole over the devices that it covers, in kg CO2e.

        >>> from mlsim import Embodied
        >>> print(Embodied.H100.per_device)
        164 kgCO2e
        """
        found: Quantity = (self.carbon / self.devices).to("kgCO2e")
        return found

    @property
    def lifetime(self) -> Quantity | None:
        """The lifetime that the source assumes, if it does."""
        return self._given("lifetime")

    @property
    def utilisation(self) -> Quantity | None:
        """The share of its lifetime in use that the source assumes, if it does."""
        return self._given("utilisation")

    def _given(self, name: str) -> Quantity | None:
        figure = self.figures.get(name)
        return figure.of(self.name) if figure else None

    def __repr__(self) -> str:
        return f"<EmbodiedCarbon {self.name}: {self.figures['carbon'].text}; {self.covers}>"


def load_embodied(path: str | Path, devices: Collection[str]) -> EmbodiedCarbon:
    """Read a file of embodied carbon; `devices` are the keys of devices that there are.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a figure lacks its source, the device is
        unknown, or a share is above 1; names file and line.
    """
    file = records.load(path)
    data = file.data
    file.only(data, (*_TEXTS, "device", "devices", *_FIGURES))
    texts = {name: file.need(data, name, str) for name in _TEXTS}
    device = file.need(data, "device", str) if "device" in data else ""
    if device and device not in devices:
        raise file.error(f"no device has the key {device!r}.{nearest(device, devices)}", "device")
    count = file.need(data, "devices", int) if "devices" in data else 1
    if count < 1:
        raise file.error(f"devices must be 1 or more, not {count}.", "devices")
    figures = {
        name: file.figure(data[name], base, name) for name, base in _FIGURES.items() if name in data
    }
    if "carbon" not in figures:
        raise file.error("[carbon] is missing: what was emitted to make it?")
    share = figures.get("utilisation")
    if share and share.si > 1:
        raise file.error(f"utilisation: a share can't be {share.text}.", "utilisation")
    return EmbodiedCarbon(device=device, devices=count, figures=figures, **texts)
