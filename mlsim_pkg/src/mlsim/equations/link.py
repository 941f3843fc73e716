"""Links between devices: how fast one of a group sends to the others."""

from __future__ import annotations

from typing import Any

from mlsim.equations.registry import equation

QUESTION = "How fast do devices talk to one another?"


@equation(
    symbol=r"\beta_l",
    unit="B/s",
    source="patarasuk2009bandwidth",
    yields="link_bandwidth",
)
def switched_bandwidth(device_bandwidth: Any) -> Any:
    """Rate at which a device sends to others through a switch, whatever the group.

    Assumes that the switch is not the limit.
    Valid for any group of devices on the switch.

    >>> switched_bandwidth(450e9)
    450000000000.0
    """
    return device_bandwidth


@equation(
    symbol=r"\beta_l",
    unit="B/s",
    source="patarasuk2009bandwidth",
    yields="link_bandwidth",
)
def mesh_bandwidth(device_bandwidth: Any, group_size: Any, system_size: Any) -> Any:
    """Rate at which a device of a mesh sends to a group: each has a link of its own.

    Assumes that a group uses the links between its members only.
    Valid for groups of two or more.

    >>> mesh_bandwidth(448e9, 2, 8)
    64000000000.0
    """
    return device_bandwidth * (group_size - 1) / (system_size - 1)
