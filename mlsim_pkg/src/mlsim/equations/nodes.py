"""Groups of devices in several nodes: what they send inside a node, and between nodes."""

from __future__ import annotations

from mlsim.equations.functions import Value
from mlsim.equations.registry import equation

QUESTION = "How fast do devices talk to one another?"


@equation(source="thakur2005optimization", yields="link_elements")
def inside_ring_elements(ring_elements: Value, group_size: Value, node_members: Value) -> Value:
    """Elements of each token that a device sends inside its node, of a reduction or gather.

    A group in several nodes works in two levels: in the node first, where each device then
    has a part of the sum; then between nodes, where each part goes on by itself.

    Valid for as many members in each node; what both levels send is what one ring would send.

    >>> inside_ring_elements(30.0, 16.0, 8.0)
    28.0
    """
    return ring_elements * group_size / (group_size - 1) * (node_members - 1) / node_members


@equation(source="thakur2005optimization", yields="link_elements")
def between_ring_elements(
    ring_elements: Value, group_size: Value, node_members: Value, node_groups: Value
) -> Value:
    """Elements of each token that a device sends to other nodes, of a reduction or gather.

    Each device of a node carries its part of the vector to its peers in the others.

    Assumes that each device has a link of its own to other nodes.
    Valid for as many members in each node.

    >>> between_ring_elements(30.0, 16.0, 8.0, 2.0)
    2.0
    """
    return (
        ring_elements
        * group_size
        / (group_size - 1)
        * (node_groups - 1)
        / (node_groups * node_members)
    )


@equation(source="fedus2022switch")
def near_share(expert_parallel: Value, tensor_parallel: Value, node_members: Value) -> Value:
    """Share of a token's way to experts elsewhere that stays in its node.

    Of the devices that hold experts and not this token, those of the copies in the same node.

    Assumes that a token chooses its experts evenly.
    Valid for experts on more devices than share a matrix.

    >>> near_share(32.0, 1.0, 8.0)
    0.22580645161290322
    """
    return tensor_parallel * (node_members - 1) / (expert_parallel - tensor_parallel)


@equation(source="fedus2022switch", yields="link_elements")
def near_exchange_elements(exchange_elements: Value, near_share: Value) -> Value:
    """Elements of each token that go to experts in the same node.

    Valid where a copy of the token goes to each device that has some of its experts.

    >>> near_exchange_elements(100.0, 0.25)
    25.0
    """
    return exchange_elements * near_share


@equation(source="fedus2022switch", yields="link_elements")
def far_exchange_elements(exchange_elements: Value, near_share: Value) -> Value:
    """Elements of each token that go to experts in other nodes.

    Assumes that each copy crosses the fabric by itself. A program that sends one copy to a
    node, and passes it on there, sends fewer.
    Valid where a copy of the token goes to each device that has some of its experts.

    >>> far_exchange_elements(100.0, 0.25)
    75.0
    """
    return exchange_elements * (1 - near_share)
