"""Systems: equal devices and the links between them; clusters of systems; their files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim import records
from mlsim.equations import links
from mlsim.errors import (
    InvalidValueError,
    Suggesting,
    WrongKindError,
    check_whole,
    nearest,
    unknown_name,
)
from mlsim.hardware import Device
from mlsim.hardware.device import Link, Power, check_direction, part
from mlsim.records import Figure, checked_name, given as given_figure
from mlsim.units import to_base, unitless
from mlsim.values import given
from mlsim.workloads.steps import Parallelism

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


def check_shape(shape: Any, topology: str, devices: int) -> tuple[int, ...]:
    """Return the devices along each axis of a torus; nothing for another topology.

    Raises
    ------
    InvalidValueError
        If a torus has no shape, or one of another number of devices.
    """
    if topology != "torus":
        if shape:
            raise InvalidValueError(
                f"shape is of a torus, not of a {topology}: leave {shape!r} out, "
                'or say topology="torus".'
            )
        return ()
    sides = tuple(shape) if isinstance(shape, (list, tuple)) else ()
    if not sides or any(type(side) is not int or side < 2 for side in sides):
        raise InvalidValueError(
            f"shape must be the devices along each axis, whole numbers from 2 up such as (4, 4), "
            f"not {shape!r}: a torus needs one."
        )
    if math.prod(sides) != devices:
        product = " x ".join(map(str, sides))
        raise InvalidValueError(
            f"shape {product} is {math.prod(sides)} devices, but devices is {devices}."
        )
    return sides


def links_within(shape: Sequence[int], group: int) -> int:
    """Return how many of a device's links lead to others of its group.

    A group fills the first axis, then the next. Where it goes the whole way round, a
    device has a neighbor on either side. In a part of an axis, or where an axis has two
    devices, the way is a line: all that its end gets comes through one link.

    >>> [links_within((4, 4), group) for group in (2, 4, 8, 16)]
    [1, 2, 3, 4]
    """
    links = 0
    for side in shape:
        if group > 1:
            links += 2 if group >= side > 2 else 1
        group = math.ceil(group / side)
    return links


def check_exchange(where: Any, expert: int, tensor: int) -> None:
    """Refuse to send tokens to their experts across a torus.

    There each device sends to all others, so that bytes pass through the devices between
    them. The rates here are of rings, and would promise too much.

    Raises
    ------
    InvalidValueError
        If experts are spread over more devices than tensor parallelism takes.
    """
    system = getattr(where, "node", where)
    if getattr(system, "topology", "") == "torus" and expert > tensor:
        raise InvalidValueError(
            f"expert_parallel {expert} is above tensor_parallel {tensor}, so that tokens travel "
            f"to their experts. How fast they do so in a torus ({system.name}) is not modeled. "
            f"Take expert_parallel={tensor}, or a system with a switch."
        )


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
        figure = given_figure("link.bandwidth", link_rate(link_bandwidth), "B/s")
        about = {"key": name, "name": name, "source": "", "figures": {figure.name: figure}}
        self._fill(device=device, devices=devices, topology=topology, shape=shape, **about)

    def _fill(self, *, devices: Any, topology: str, shape: Any = (), **fields: Any) -> None:
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
        fields |= {"devices": devices, "topology": topology}
        fields["shape"] = check_shape(shape, topology, devices)
        for attribute, value in fields.items():
            object.__setattr__(self, attribute, value)

    @classmethod
    def of_figures(cls, key: str, name: str, **fields: Any) -> System:
        """Make a system of its other fields: figures carry their sources, as in data files."""
        system = cls.__new__(cls)
        system._fill(key=key, name=name, **fields)
        return system

    @property
    def device_bandwidth_si(self) -> float:
        """What one device sends to all others together, one way, in B/s."""
        return self.figure.one_way

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
    def of_figures(cls, key: str, name: str, **fields: Any) -> Cluster:
        """Make a cluster of its other fields: figures carry their sources, as in data files."""
        cluster = cls.__new__(cls)
        cluster._fill(key=key, name=name, **fields)
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
        return self.figure.one_way

    @property
    def figure(self) -> Figure:
        """The link between nodes with its source, as printed."""
        return self.figures["link.bandwidth"]

    def link_bandwidth(self, group: int) -> float:
        """Return what a device sends to a group of neighbors, one way, in B/s."""
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


# What the name of an exchange has added whose devices are on several nodes.
BETWEEN = ", between nodes"


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the groups of a layout lie, and how many nodes that takes.

    Attributes
    ----------
    tensor, context
        The devices that share each matrix; those that share each sequence.
    copies
        The copies of the model that share one set of experts.
    crossings
        Steps from one stage of a pipeline to the next that leave a node.
    nodes
        Nodes that the whole layout takes.
    """

    tensor: Placement
    context: Placement
    copies: Placement
    crossings: int
    nodes: int


@lru_cache(maxsize=1024)
def spread(parallelism: Parallelism, node_devices: int) -> Spread:
    """Tell where the groups of a layout lie, in nodes of so many devices.

    Devices are numbered as vLLM does: those of tensor parallelism are neighbors, then come
    context parallelism, the stages of a pipeline, and copies. What fits in a node
    is not torn, even if devices stay idle for it.

    >>> found = spread(Parallelism(tensor=8, pipeline=4, data=2), 8)
    >>> found.tensor, found.crossings, found.nodes
    (Placement(members=8, groups=1), 3, 8)
    """
    size, stages = parallelism.tensor, parallelism.pipeline
    tensor = placement(size, 1, node_devices)
    context = placement(parallelism.context, size, node_devices)
    stage, stage_nodes = size * parallelism.context, tensor.groups * context.groups
    replica = stage * stages
    copies = placement(parallelism.expert_replicas, replica, node_devices)
    if replica <= node_devices:
        nodes = -(-parallelism.data // (node_devices // replica))
        return Spread(tensor, context, copies, 0, nodes)
    together = 1 if stage_nodes > 1 else max(1, node_devices // stage)
    parts = -(-stages // together)
    return Spread(tensor, context, copies, parts - 1, parallelism.data * parts * stage_nodes)


_SIZES = (
    *("copies", "batch_size", "tensor_parallel", "pipeline_parallel", "data_parallel"),
    *("expert_parallel", "context_parallel"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPool:
    """Devices that only read prompts; the cache of each goes on to those that decode.

    Parameters
    ----------
    hardware
        A device, system or cluster, or its name; by default that of the devices that
        decode, which both pools then share.
    copies
        Copies of the model that read prompts, each laid out as follows.
    batch_size
        Prompts that one copy reads together, of `Engine.serve`. Under load (`Engine.load`) a step
        takes as many as wait, up to the scheduler's tokens.
    tensor_parallel, pipeline_parallel, data_parallel, expert_parallel, context_parallel
        The layout of one copy, as for `Engine.serve`.
    link_bandwidth
        What one device sends to the other pool, one way, such as "400 Gb/s"; by default that
        of the cluster in which both pools are, or of the system that they share.
    overlap
        Whether the cache of each layer is sent while the next is computed, so that only the
        last layer's is waited for.

    Raises
    ------
    InvalidValueError
        If a size is no whole number from 1 up.

    >>> PrefillPool(hardware="HGX_H100", copies=2, tensor_parallel=4).parallelism.devices
    4
    """

    hardware: Device | System | Cluster | str | None = None
    copies: int = 1
    batch_size: int = 1
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    expert_parallel: int = 1
    context_parallel: int = 1
    link_bandwidth: Any = None
    overlap: bool = False

    def __post_init__(self) -> None:
        for name in _SIZES:
            whole = check_whole(f"{name} of a PrefillPool", getattr(self, name))
            object.__setattr__(self, name, whole)
        if not isinstance(self.overlap, bool):
            raise InvalidValueError(
                f"overlap of a PrefillPool must be True or False, not {self.overlap!r}."
            )

    @property
    def parallelism(self) -> Parallelism:
        """The layout of one copy."""
        return Parallelism(
            tensor=self.tensor_parallel,
            pipeline=self.pipeline_parallel,
            data=self.data_parallel,
            expert=self.expert_parallel,
            context=self.context_parallel,
        )


def load_system(path: str | Path, device: Callable[[str], Device]) -> System:
    """Read a system's file; `device` finds a device by its key.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, the device is unknown, or the link does
        not say whether its rate counts both directions; names file and line.
    """
    file, texts = _read(path, ("topology",), ("device", "devices", "shape", "power"))
    figures = file.figures("link", {"bandwidth": "B/s", "latency": "s"})
    figures |= file.figures("power", {"max": "W", "idle": "W"})
    if "link.bandwidth" not in figures:
        raise file.error("[link.bandwidth] is missing: devices must reach one another.", "link")
    check_direction(file, figures["link.bandwidth"])
    key, count = file.need(file.data, "device", str), file.need(file.data, "devices", int)
    with file.at("device"):
        found = device(key)
    shape = file.data.get("shape", ())
    try:
        return System.of_figures(device=found, devices=count, shape=shape, figures=figures, **texts)
    except InvalidValueError as error:
        # Its message begins with the key that can't be.
        raise file.error(str(error), str(error).partition(" ")[0]) from None


def load_cluster(path: str | Path, system: Callable[[str], System]) -> Cluster:
    """Read a cluster's file; `system` finds a node by its key.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, the node is unknown, or the link does not
        say whether its rate counts both directions; names file and line.
    """
    file, texts = _read(path, (), ("node", "nodes"))
    figures = file.figures("link", {"bandwidth": "B/s"})
    if not figures:
        raise file.error("link.bandwidth is missing.", "link")
    check_direction(file, figures["link.bandwidth"])
    key, count = file.need(file.data, "node", str), file.need(file.data, "nodes", int)
    with file.at("node"):
        node = system(key)
    with file.at("nodes"):
        return Cluster.of_figures(node=node, nodes=count, figures=figures, **texts)


def _read(
    path: str | Path, words: tuple[str, ...], others: tuple[str, ...]
) -> tuple[records.DataFile, dict[str, str]]:
    """Read a file that may have these keys beside those that all have; return its texts, too."""
    file, words = records.load(path), ("key", "name", "source", *words)
    file.only(file.data, (*words, "link", *others))
    texts = file.texts(words)
    file.need(file.data, "link", dict)
    return file, texts
