"""How devices that hold the same weights bring gradients and weights together.

To *gather* a vector of which each device has a part, and to *reduce and scatter*
one of which each has all, takes equally long; doing both is an all-reduce.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, log2, maximum
from mlsim.equations.registry import equation

QUESTION = "How long do devices take to agree on the weights?"


@equation(source="patarasuk2009bandwidth", yields="pass_rate")
def ring_pass_rate(shard_group, node_bandwidth):
    """Time per byte in a ring: each device sends all parts but one to its neighbour.

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
