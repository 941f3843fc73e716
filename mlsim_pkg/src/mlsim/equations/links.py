"""Links between devices: how fast one of a group sends to the others."""

from __future__ import annotations

from mlsim.equations.functions import ceil, log2, maximum
from mlsim.equations.registry import Topic

LINK = equation = Topic("link", "How fast do devices talk to one another?")


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


NODES = equation = Topic("nodes", "How fast do devices talk to one another?")


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


COLLECTIVE = equation = Topic("collective", "How long do devices take to agree on the weights?")


@equation(source="patarasuk2009bandwidth", yields="pass_rate")
def ring_pass_rate(shard_group, node_bandwidth):
    """Time per byte in a ring: each device sends all parts but one to its neighbor.

    Assumes that devices add up, and not the switch between them, for which they send less.
    Valid where all links of the ring are alike; through several nodes, at the slowest rate.

    >>> ring_pass_rate(4, 100e9)
    7.5e-12
    """
    return (shard_group - 1) / (shard_group * node_bandwidth)


@equation(source="thakur2005optimization", yields="pass_rate")
def hierarchical_pass_rate(node_members, node_groups, node_bandwidth, fabric_bandwidth):
    """Time per byte in two levels: within the node first, then between nodes.

    Each device of a node carries a part of the vector to its peers in the others.

    Assumes that one level follows the other.
    Valid where each device has a link of its own to other nodes.

    >>> hierarchical_pass_rate(8, 5, 250e9, 25e9)
    7.5e-12
    """
    return (node_members - 1) / (node_members * node_bandwidth) + (node_groups - 1) / (
        node_groups * node_members * fabric_bandwidth
    )


@equation(source="sanders2009two", yields="pass_rate")
def tree_pass_rate(node_bandwidth):
    """Time per byte in two binary trees, between which the vector is shared.

    Valid where each device sends and receives at the full rate.

    >>> tree_pass_rate(100e9)
    1e-11
    """
    return 1 / node_bandwidth


@equation(source="patarasuk2009bandwidth", yields="pass_latency")
def ring_pass_latency(shard_group, hop_latency):
    """Time to start in a ring: a message for each device but one.

    Valid for a ring, however its devices are placed.

    >>> ring_pass_latency(5, 1e-06)
    4e-06
    """
    return (shard_group - 1) * hop_latency


@equation(source="thakur2005optimization", yields="pass_latency")
def hierarchical_pass_latency(node_members, node_groups, hop_latency):
    """Time to start in two levels: a ring in the node, then one over the nodes.

    Assumes that a message takes equally long to start within a node and between nodes.
    Valid for rings.

    >>> hierarchical_pass_latency(8, 2, 1e-06)
    8e-06
    """
    return (node_members + node_groups - 2) * hop_latency


@equation(source="sanders2009two", yields="pass_latency")
def tree_pass_latency(tree_depth, hop_latency):
    """Time to start in a tree: a message for each level.

    Valid for a binary tree.

    >>> tree_pass_latency(3, 1e-06)
    3e-06
    """
    return tree_depth * hop_latency


@equation(source="fedus2022switch")
def device_parameters(dense_parameters, expert_parameters):
    """Parameters of the model's part on a device.

    Valid for the fullest stage.

    >>> device_parameters(3e9, 1e9)
    4000000000.0
    """
    return dense_parameters + expert_parameters


@equation(source="fedus2022switch")
def exchanged_parameters(dense_parameters, expert_parameters, expert_owners, shard_group):
    """Parameters weighed by what is sent of them: of experts, only owners of the same add up.

    The tokens of all copies go to an expert, so that its gradient is whole where it is.

    Assumes that the owners of an expert are as near to one another as all copies.
    Valid for two copies or more.

    >>> exchanged_parameters(3e9, 2e9, 3, 9)
    4500000000.0
    """
    return dense_parameters + expert_parameters * (expert_owners - 1) / expert_owners * (
        shard_group / (shard_group - 1)
    )


@equation(source="rajbhandari2020zero")
def gradient_time(
    weight_gathers,
    gathered_bytes,
    gradient_scatters,
    bytes_per_gradient,
    exchanged_parameters,
    pass_rate,
    link_fraction,
    pass_latency,
):
    """Time to reduce gradients and to gather weights, as often as a step needs it.

    Plain data parallelism gathers gradients instead of weights, which is as much.

    Valid for one step.

    >>> gradient_time(2, 2.0, 3, 4.0, 1e9, 1e-11, 0.5, 0.01)
    0.37
    """
    return (
        weight_gathers * gathered_bytes + gradient_scatters * bytes_per_gradient
    ) * exchanged_parameters * pass_rate / link_fraction + (
        weight_gathers + gradient_scatters
    ) * pass_latency


@equation(source="patarasuk2009bandwidth", yields="hop_latency")
def all_reduce_hop_latency(link_latency, measured_devices):
    """Time to start one message, from the measured latency of an all-reduce.

    An all-reduce goes round the ring twice, with a message for each device but one.

    Assumes that the measured all-reduce ran in one ring.
    Valid for two devices or more.

    >>> all_reduce_hop_latency(1.4e-05, 8)
    1e-06
    """
    return link_latency / (2 * (measured_devices - 1))


@equation(source="sanders2009two", counts=True)
def tree_depth(shard_group):
    """Levels of a binary tree that reaches all devices of a group.

    Valid for one device or more.

    >>> tree_depth(9.0)
    4.0
    """
    return ceil(log2(shard_group))


@equation(source="fedus2022switch", counts=True)
def expert_owners(shard_group, expert_replicas):
    """Devices that hold the same experts, among the copies of the rest of the model.

    Copies that share one set of experts hold different ones.

    Valid where the copies come in whole sets.

    >>> expert_owners(16.0, 8.0)
    2.0
    >>> expert_owners(4.0, 8.0)
    1
    """
    return maximum(shard_group / expert_replicas, 1)


@equation(source="rajbhandari2020zero", yields="weight_gathers")
def zero3_weight_gathers(micro_batches):
    """How often sharded weights are gathered: for both passes of each micro-batch.

    Assumes that weights are dropped again after each pass.
    Valid for ZeRO-3 and FSDP; otherwise weights are gathered once a step.

    >>> zero3_weight_gathers(8.0)
    16.0
    """
    return 2 * micro_batches


@equation(source="rajbhandari2020zero", yields="gradient_scatters")
def sharded_gradient_scatters(micro_batches):
    """How often gradients are reduced where each copy keeps only its shard of them.

    Valid for ZeRO-2 and ZeRO-3; otherwise gradients are reduced once a step.

    >>> sharded_gradient_scatters(8.0)
    8.0
    """
    return micro_batches
