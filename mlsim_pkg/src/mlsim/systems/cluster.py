"""A cluster: equal nodes joined by a fabric, and where a group of devices lies in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlsim.errors import Suggesting, WrongKindError, check_whole, unknown_name
from mlsim.hardware import Device
from mlsim.hardware.device import Link, part
from mlsim.records import Figure, checked_name, given as given_figure
from mlsim.systems.system import System, link_rate
from mlsim.values import given

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a group lies: `members` of each node, in `groups` nodes.

    >>> Placement(8, 4).size
    32
    """

    members: int
    groups: int

    @property
    def size(self) -> int:
        """Devices in the group."""
        return self.members * self.groups


@dataclass(frozen=True, eq=False, init=False)
class Cluster(Suggesting):
    """Nodes of one kind, each device of which has a link to the other nodes.

    Parameters
    ----------
    name
        What to call it.
    node
        The system that each node is.
    nodes
        How many there are.
    link_bandwidth
        What one device sends to other nodes, one way, such as "200 Gb/s".

    >>> from mlsim import Systems
    >>> pair = Cluster("Two nodes", Systems.HGX_A100, nodes=2, link_bandwidth="200 Gb/s")
    >>> pair.devices, pair.link_bandwidth(16) / 1e9
    (16, 25.0)

    Raises
    ------
    InvalidValueError, UnitError
        If a figure can't be.
    WrongKindError
        If `node` is no system.
    """

    key: str
    name: str
    node: System
    nodes: int
    source: str
    figures: Mapping[str, Figure] = field(repr=False)

    def __init__(self, name: str, node: System, *, nodes: int, link_bandwidth: Any) -> None:
        checked_name(name, "a cluster")
        if not isinstance(node, System):
            raise WrongKindError(f"node must be a System, not {node!r}.")
        figure = given_figure("link.bandwidth", link_rate(link_bandwidth), "B/s")
        self._fill(
            key=name, name=name, node=node, nodes=nodes, source="", figures={figure.name: figure}
        )

    def _fill(self, *, nodes: Any, **fields: Any) -> None:
        """Set the fields of this frozen object; called while it is made."""
        check_whole("nodes", nodes)
        for attribute, value in {**fields, "nodes": nodes}.items():
            object.__setattr__(self, attribute, value)

    @classmethod
    def of_figures(
        cls,
        key: str,
        name: str,
        *,
        node: System,
        nodes: int,
        source: str,
        figures: Mapping[str, Figure],
    ) -> Cluster:
        """Make a cluster of figures that carry their sources, as data files do."""
        cluster = cls.__new__(cls)
        cluster._fill(key=key, name=name, node=node, nodes=nodes, source=source, figures=figures)
        return cluster

    @property
    def device(self) -> Device:
        """The device of which it has many."""
        return self.node.device

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return self.nodes * self.node.devices

    @property
    def link(self) -> Link:
        """The link of each device to other nodes."""
        return Link(part(self.figures, "link"), self.name)

    def by_name(self, name: str) -> Quantity:
        """Return a figure by its name, such as "link.bandwidth", or how many "devices".

        Raises
        ------
        UnknownNameError
            If there is no such figure on record; suggests the nearest.
        """
        if name == "devices":
            why = f"{self.nodes:,} nodes of {self.node.devices} [@{self.source}]"
            return given(self.devices, f"devices of {self.name}", why)
        if name not in self.figures:
            raise unknown_name("figure of this cluster", name, [*self.figures, "devices"])
        return self.figures[name].of(self.name)

    @property
    def fabric_bandwidth(self) -> float:
        """What one device sends to other nodes, one way, in B/s."""
        figure = self.figures["link.bandwidth"]
        return figure.si / 2 if figure.direction == "both ways" else figure.si

    @property
    def figure(self) -> Figure:
        """The link between nodes with its source, as printed."""
        return self.figures["link.bandwidth"]

    def link_bandwidth(self, group: int) -> float:
        """Return what a device sends to a group of neighbours, one way, in B/s."""
        inside = group <= self.node.devices
        return self.node.link_bandwidth(group) if inside else self.fabric_bandwidth

    def __repr__(self) -> str:
        return f"<Cluster {self.name}: up to {self.nodes} x {self.node.name}>"


@lru_cache(maxsize=1024)
def placement(size: int, stride: int, node_devices: int) -> Placement:
    """Tell where a group lies whose members are numbered `stride` apart.

    >>> placement(16, 8, 8), placement(4, 4, 8)
    (Placement(members=1, groups=16), Placement(members=2, groups=2))
    """
    members = max(1, min(size, node_devices // stride))
    while size % members:
        members -= 1
    return Placement(members, size // members)
