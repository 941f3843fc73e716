"""Time of an exchange between devices, for few bytes and for many.

A library sends round a ring or to each device in turn. An engine's own kernel reads the memory
of the other devices directly, which starts sooner; for many bytes it calls the library, too.
Their constants are fitted to measured exchanges, in `benchmarks/atlas`, with these functions.
"""

from __future__ import annotations

from mlsim.equations.functions import minimum, square_root
from mlsim.equations.registry import equation

QUESTION = "How long does a measured exchange take?"


@equation(source="thakur2005optimization")
def exchange_start(link_latency, peer_start, group_size):
    """Time until an exchange sends: that of two devices, and some more for each further one.

    Valid for one node, or one fabric of links that are all alike.

    >>> exchange_start(4.0, 0.5, 8)
    7.0
    """
    return link_latency + peer_start * (group_size - 2)


@equation(source="thakur2005optimization")
def library_send_time(
    link_bytes, link_bandwidth, link_fraction, own_steps, group_size, ramp_start, ramp_bytes
):
    """Time in which a library sends: the bytes at the rate of many, own parts, and a ramp.

    Each device sends in as many steps as there are others. In further steps it only reads or
    writes the part of the message that is its own. With more bytes a library uses more channels,
    each of which has to start; from some size on it uses all, and the ramp costs no more.

    Valid for one node, or one fabric of links that are all alike. A fraction above 1 means
    that the switch adds up, so that devices send less than in a ring.

    >>> library_send_time(3e6, 1e12, 0.5, 5.0, 4, 1e-5, 9e6)
    1.6e-05
    """
    return (
        link_bytes / (link_bandwidth * link_fraction)
        + own_steps * link_bytes / ((group_size - 1) * link_bandwidth)
        + ramp_start * square_root(link_bytes / (link_bytes + ramp_bytes))
    )


@equation(source="vllm2024customallreduce")
def direct_send_time(link_bytes, group_size, link_bandwidth, direct_fraction, exchange_start):
    """Time of an all-reduce in which devices read each other's memory, in one step or in two.

    In one step each device reads all other messages whole. In two, each adds up its part and
    then reads the other sums; that takes a ring's bytes and one more start.

    Valid for all-reduces on links over which each device can read the memory of all others.

    >>> direct_send_time(3.5e5, 8, 1e12, 0.5, 4e-6)
    2.8e-06
    >>> direct_send_time(3.5e6, 8, 1e12, 0.5, 4e-6)
    1.1e-05
    """
    return minimum(
        link_bytes * group_size / (2 * link_bandwidth * direct_fraction),
        exchange_start + link_bytes / (link_bandwidth * direct_fraction),
    )


@equation(source="thakur2005optimization", yields="network_time")
def ramped_network_time(exchange_start, library_send_time, direct_send_time, direct_mark):
    """Time of an exchange: its start, and what takes less of a library and a kernel of its own.

    Without the mark only the library sends.

    Valid for one node, or one fabric of links that are all alike.

    >>> ramped_network_time(1.0, 5.0, 2.0, 1)
    3.0
    >>> ramped_network_time(1.0, 5.0, 2.0, 0)
    6.0
    >>> ramped_network_time(1.0, 2.0, 5.0, 1)
    3.0
    """
    return (
        exchange_start
        + library_send_time
        - direct_mark * (library_send_time - minimum(library_send_time, direct_send_time))
    )
