"""Time of a transfer by itself: a stream through the memory, and packets over a link to a host."""

from __future__ import annotations

from mlsim.equations.functions import minimum
from mlsim.equations.registry import equation

QUESTION = "How long does a lone transfer take?"


@equation(source="chatterjee2012staged", yields="memory_time")
def turned_memory_time(
    bytes_moved, memory_bandwidth, memory_fraction, turnaround_share, written_share
):
    """Time of a stream that reads and writes: the bus of a memory turns between the two.

    A stream that only reads, or only writes, has no turns. The more evenly both share the bus,
    the more there are.

    Valid for long streams, whose bytes no cache keeps.

    >>> turned_memory_time(4e12, 2e12, 0.5, 0.25, 0.75)
    4.5
    """
    return (
        bytes_moved
        / (memory_bandwidth * memory_fraction)
        * (1 + 2 * turnaround_share * minimum(written_share, 1 - written_share))
    )


@equation(source="intel2017pcie", yields="link_bandwidth")
def packed_bandwidth(device_bandwidth, coded_share, payload_bytes, packet_bytes):
    """Rate at which data cross a link of packets, each of which has a header and a check.

    Assumes that no packet waits for room at the other end.
    Valid for PCI Express from the third generation on, one way at a time.

    >>> packed_bandwidth(32e9, 0.75, 96, 32)
    18000000000.0
    """
    return device_bandwidth * coded_share * payload_bytes / (payload_bytes + packet_bytes)
