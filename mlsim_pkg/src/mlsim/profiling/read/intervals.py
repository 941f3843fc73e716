"""How busy a device was: intervals merged, so that what overlaps counts once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from mlsim.profiling.measured_profile import Activity

_EXCHANGE = re.compile(
    r"nccl|rccl|msccl|nvshmem|oneccl|gloo:|all_?reduce_kernel|cross_device_reduce|mpi_",
    re.IGNORECASE,
)
_MOST_GAPS = 20


def is_exchange(name: str) -> bool:
    """Whether a kernel exchanges data between devices.

    >>> is_exchange("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"), is_exchange("reduce_kernel")
    (True, False)
    """
    return bool(_EXCHANGE.search(name))


def merged(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Merge intervals that touch or overlap.

    >>> merged([(5.0, 6.0), (0.0, 2.0), (1.0, 3.0)])
    [(0.0, 3.0), (5.0, 6.0)]
    """
    found: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def activity_of(
    device: int, kernels: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]
) -> Activity:
    """Return how busy a device was, from intervals in s: of kernels, and of copies and exchanges.

    >>> activity_of(0, [(0.0, 1.0), (3.0, 4.0)], [(0.5, 2.0)])
    Activity(device=0, span=4.0, busy=3.0, computing=2.0, exposed=1.0, gaps=((2.0, 1.0),))
    """
    all_of = merged([*kernels, *others])
    if not all_of:
        return Activity(device, 0.0, 0.0, 0.0, 0.0)
    first, last = all_of[0][0], all_of[-1][1]
    busy = sum(end - start for start, end in all_of)
    computing = sum(end - start for start, end in merged(kernels))
    gaps = [(one[1] - first, two[0] - one[1]) for one, two in pairwise(all_of)]
    longest = sorted(gaps, key=lambda gap: -gap[1])[:_MOST_GAPS]
    return Activity(device, last - first, busy, computing, busy - computing, tuple(longest))
