"""Groups of devices in several nodes: what they send inside a node, and between nodes."""

from __future__ import annotations

from mlsim.equations.registry import equation

QUESTION = "How fast do devices talk to one another?"


@equation(source="thakur2005optimization", yields="link_elements")
def inside_ring_elements(ring_elements, group_size, node_members):
    """Elements of each token that a device sends inside its node, of a reduction or gather.

    A group in several nodes works in two levels: in the node first, where each device then
    has a part of the sum; then between nodes, where each part goes on by itself.

    Valid for as many members in each node; what both levels send is what one ring would send.

    >>> inside_ring_elements(30.0, 16.0, 8.0)
    28.0
    """
    return ring_elements * group_size / (group_size - 1) * (node_members - 1) / node_members


@equation(source="thakur2005optimization", yields="link_elements")
def between_ring_elements(ring_elements, group_size, node_members, node_groups):
    """Elements of each token that a device sends to other nodes, of a reduction or gather.

    Each device of a node carries its part of the vector to its peers in the others.

    Assumes that each device has a link of its own to other nodes.
    Valid for as many members in each node.

    >>> between_ring_elements(30.0, 16.0, 4.0, 4.0)
    6.0
    """
    return (
        ring_elements
        * group_size
        / (group_size - 1)
        * (node_groups - 1)
        / (node_groups * node_members)
    )


@equation(source="fedus2022switch")
def near_share(node_members, expert_replicas):
    """Share of a token's way to experts elsewhere that stays in its node.

    Of the other copies of the model with which it shares the experts, those in the same node.

    Assumes that a token chooses its experts evenly.
    Valid for two copies or more; devices that share a matrix have the token already.

    >>> near_share(8.0, 15.0)
    0.5
    """
    return (node_members - 1) / (expert_replicas - 1)


@equation(source="fedus2022switch", yields="link_elements")
def near_exchange_elements(exchange_elements, near_share):
    """Elements of each token that go to experts in the same node.

    Valid where a copy of the token goes to each device that has some of its experts.

    >>> near_exchange_elements(100.0, 0.25)
    25.0
    """
    return exchange_elements * near_share


@equation(source="fedus2022switch", yields="link_elements")
def far_exchange_elements(exchange_elements, near_share):
    """Elements of each token that go to experts in other nodes.

    Assumes that each copy crosses the fabric by itself. A program that sends one copy to a
    node, and passes it on there, sends fewer.
    Valid where a copy of the token goes to each device that has some of its experts.

    >>> far_exchange_elements(100.0, 0.25)
    75.0
    """
    return exchange_elements * (1 - near_share)
