"""Time of an exchange between devices, for few bytes and for many.

Their constants are fitted to measured exchanges, in `benchmarks/atlas`, with these functions.
"""

from __future__ import annotations

from mlsim.equations.functions import square_root
from mlsim.equations.registry import equation

QUESTION = "How long does a measured exchange take?"


@equation(source="thakur2005optimization", yields="network_time")
def ramped_network_time(
    group_size, link_bytes, link_bandwidth, link_fraction, link_latency, start_growth, ramp_time
):
    """Time of an exchange: a start, the bytes at the rate of many, and a ramp between them.

    The start is that of two devices and grows with a power of their number. The ramp is the
    geometric mean of the bytes' time and a constant: a message of middling size
    reaches a part of the rate only.

    Valid for one node, or one fabric of links that are all alike. A fraction above 1 means
    that the switch adds up, so that devices send less than in a ring.

    >>> ramped_network_time(8, 4e6, 1e12, 0.5, 5e-6, 0.5, 1e-6)
    2e-05
    """
    return (
        link_latency * (group_size / 2) ** start_growth
        + link_bytes / (link_bandwidth * link_fraction)
        + square_root(ramp_time * link_bytes / link_bandwidth)
    )
