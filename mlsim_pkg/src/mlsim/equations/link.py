"""Links between devices: how fast one of a group sends to the others."""

from __future__ import annotations

from mlsim.equations.registry import equation

QUESTION = "How fast do devices talk to one another?"


@equation(source="patarasuk2009bandwidth", yields="link_bandwidth")
def switched_bandwidth(device_bandwidth):
    """Rate at which a device sends to others through a switch, whatever the group.

    Assumes that the switch is not the limit.
    Valid for any group of devices on the switch.

    >>> switched_bandwidth(450e9)
    450000000000.0
    """
    return device_bandwidth


@equation(source="patarasuk2009bandwidth", yields="link_bandwidth")
def mesh_bandwidth(device_bandwidth, group_size, system_size):
    """Rate at which a device of a mesh sends to a group: each has a link of its own.

    Assumes that a group uses the links between its members only.
    Valid for groups of two or more.

    >>> mesh_bandwidth(450e9, 3, 10)
    100000000000.0
    """
    return device_bandwidth * (group_size - 1) / (system_size - 1)


@equation(source="austin2025scale", yields="link_bandwidth")
def torus_bandwidth(device_bandwidth, group_links, device_links):
    """Rate at which a device of a torus sends to a group: by the links that lead within it.

    A group that goes the whole way round an axis uses both links of it, and in both directions.

    Assumes that the vector is shared among the axes, so that all of these links are busy.
    Valid for gathers and reductions, not where each device sends something else to each other.

    >>> torus_bandwidth(200e9, 2, 4)
    100000000000.0
    """
    return device_bandwidth * group_links / device_links


@equation(source="thakur2005optimization", yields="link_bandwidth")
def two_level_bandwidth(node_members, node_groups, node_bandwidth, fabric_bandwidth):
    """Rate of one ring that would be as fast as two levels: within nodes, then between them.

    Each device of a node carries a part of the vector to its peers in the others.

    Assumes that one level follows the other.
    Valid for gathers, and for reductions that scatter, over two devices or more.

    >>> two_level_bandwidth(3, 5, 250e9, 25e9)
    70000000000.0
    """
    return (
        (node_members * node_groups - 1)
        / (node_members * node_groups)
        / (
            (node_members - 1) / (node_members * node_bandwidth)
            + (node_groups - 1) / (node_groups * node_members * fabric_bandwidth)
        )
    )


@equation(source="thakur2005optimization", yields="link_hops", counts=True)
def two_level_hops(ring_hops, group_size, node_members, node_groups):
    """Messages that follow one another in two levels: a ring in the node, then one over the nodes.

    A ring has a message for each of its devices but one, as often as it goes round.

    Assumes that one level follows the other.
    Valid for groups of two devices or more.

    >>> two_level_hops(15.0, 16, 8, 2)
    8.0
    """
    return ring_hops / (group_size - 1) * (node_members + node_groups - 2)
