"""A system: equal devices, and the links by which they reach one another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlsim.equations import links
from mlsim.errors import InvalidValueError, Suggesting, WrongKindError, nearest, unknown_name
from mlsim.hardware import Device
from mlsim.hardware.device import Link, Power, part
from mlsim.records import Figure, checked_name, given
from mlsim.systems.torus import check_shape, links_within
from mlsim.units import to_base, unitless

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

TOPOLOGIES = ("switch", "mesh", "torus")


def link_rate(value: Any) -> float:
    """Return the rate of a link in B/s.

    Raises
    ------
    InvalidValueError, UnitError
        If it is none, or not positive and finite.

    >>> link_rate("200 Gb/s")
    25000000000.0
    """
    rate = to_base(value, "B/s", "link_bandwidth")
    if not isinstance(rate, (int, float)) or not (math.isfinite(rate) and rate > 0):
        raise InvalidValueError(f"link_bandwidth must be positive and finite, not {value!r}.")
    return float(rate)


@dataclass(frozen=True, eq=False, init=False)
class System(Suggesting):
    """Devices of one kind joined by links.

    Parameters
    ----------
    name
        What to call it.
    device
        The device.
    devices
        How many of them.
    link_bandwidth
        What one device sends to all others together, one way, such as "450 GB/s".
    topology
        "switch": any device reaches any other at that rate; "mesh": the rate is
        the sum over links, one to each other device; "torus": the sum over links, two
        along each axis.
    shape
        Of a torus, the devices along each axis, such as (4, 4).

    >>> from mlsim import Hardware
    >>> pair = System("Two L4", Hardware.Cloud.L4, devices=2, link_bandwidth="32 GB/s")
    >>> pair.devices
    2

    Raises
    ------
    InvalidValueError, UnitError
        If a figure can't be.
    WrongKindError
        If `device` is none.
    """

    key: str
    name: str
    device: Device
    devices: int
    topology: str
    shape: tuple[int, ...]
    source: str
    figures: Mapping[str, Figure] = field(repr=False)

    def __init__(
        self,
        name: str,
        device: Device,
        *,
        devices: int,
        link_bandwidth: Any,
        topology: str = "switch",
        shape: tuple[int, ...] = (),
    ) -> None:
        checked_name(name, "a system")
        if not isinstance(device, Device):
            raise WrongKindError(f"device must be a Device, not {device!r}.")
        self._fill(
            key=name,
            name=name,
            device=device,
            devices=devices,
            topology=topology,
            shape=shape,
            source="",
            figures={"link.bandwidth": given("link.bandwidth", link_rate(link_bandwidth), "B/s")},
        )

    def _fill(self, *, devices: Any, topology: str, shape: Any, **fields: Any) -> None:
        """Set the fields of this frozen object; called while it is made."""
        devices = unitless(devices)
        if isinstance(devices, bool) or not isinstance(devices, int) or devices < 2:
            raise InvalidValueError(
                f"devices must be a whole number from 2 up, not {devices!r}: "
                "one device alone is no system."
            )
        if topology not in TOPOLOGIES:
            raise InvalidValueError(
                f"topology must be one of {', '.join(TOPOLOGIES)}, not {topology!r}."
                f"{nearest(topology, TOPOLOGIES)}"
            )
        sides = check_shape(shape, topology, devices)
        for attribute, value in {
            **fields,
            "devices": devices,
            "topology": topology,
            "shape": sides,
        }.items():
            object.__setattr__(self, attribute, value)

    @classmethod
    def of_figures(
        cls,
        key: str,
        name: str,
        *,
        device: Device,
        devices: int,
        topology: str,
        source: str,
        figures: Mapping[str, Figure],
        shape: Sequence[int] = (),
    ) -> System:
        """Make a system of figures that carry their sources, as data files do."""
        system = cls.__new__(cls)
        system._fill(
            key=key,
            name=name,
            device=device,
            devices=devices,
            topology=topology,
            shape=shape,
            source=source,
            figures=figures,
        )
        return system

    @property
    def device_bandwidth_si(self) -> float:
        """What one device sends to all others together, one way, in B/s."""
        figure = self.figures["link.bandwidth"]
        # Makers add up both directions; a device sends in one.
        return figure.si / 2 if figure.direction == "both ways" else figure.si

    def link_bandwidth(self, group: int) -> float:
        """Return what a device sends to a group of this many devices, one way, in B/s.

        >>> from mlsim import Systems
        >>> Systems.HGX_H100.link_bandwidth(2)
        450000000000.0
        """
        if self.topology == "switch":
            return float(links.switched_bandwidth(self.device_bandwidth_si))
        if self.topology == "torus":
            within, in_all = (links_within(self.shape, size) for size in (group, self.devices))
            return float(links.torus_bandwidth(self.device_bandwidth_si, within, in_all))
        return float(links.mesh_bandwidth(self.device_bandwidth_si, group, self.devices))

    @property
    def device_bandwidth(self) -> Quantity:
        """The same as a value: what one device sends to all others together, one way.

        >>> from mlsim import Systems
        >>> print(Systems.HGX_H100.link.bandwidth, Systems.HGX_H100.device_bandwidth)
        900 GB/s 450 GB/s
        """
        whole = self.link.bandwidth
        one_way = whole / 2 if self.figure.direction == "both ways" else whole
        made: Quantity = one_way.named(f"link of one {self.device.name}, one way")
        return made

    @property
    def link(self) -> Link:
        """The link of each device, as its maker counts it."""
        return Link(part(self.figures, "link"), self.name)

    @property
    def power(self) -> Power:
        """What the whole system draws, its host and fans counted, as far as it is known."""
        return Power(part(self.figures, "power"), self.name)

    @property
    def host_power_per_device(self) -> Quantity | None:
        """What the system draws beside its devices at most, in W for each device, if known.

        >>> from mlsim import Systems
        >>> print(Systems.HGX_H100.host_power_per_device)
        575 W
        """
        whole, device = self.figures.get("power.max"), self.device.figures.get("power.tdp")
        if whole is None or device is None:
            return None
        each = whole.of(self.name) / self.devices - device.of(self.device.name)
        made: Quantity = each.to("W")
        return made

    def by_name(self, name: str) -> Quantity:
        """Return a figure by its name, such as "link.bandwidth", or "device_bandwidth".

        Raises
        ------
        UnknownNameError
            If there is no such figure on record; suggests the nearest.
        """
        if name == "device_bandwidth":
            return self.device_bandwidth
        if name not in self.figures:
            raise unknown_name("figure of this system", name, [*self.figures, "device_bandwidth"])
        return self.figures[name].of(self.name)

    @property
    def figure(self) -> Figure:
        """The link's bandwidth with its source, as printed."""
        return self.figures["link.bandwidth"]

    def __repr__(self) -> str:
        return f"<System {self.name}: {self.devices} x {self.device.name}>"
