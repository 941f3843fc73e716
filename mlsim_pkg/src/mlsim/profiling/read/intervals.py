"""How busy a device was: intervals merged, so that what overlaps counts once."""

from __future__ import annotations

import heapq
import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from mlsim.profiling.activity import Activity

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


def merged(intervals: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield intervals, those that touch or overlap as one.

    >>> list(merged([(5.0, 6.0), (0.0, 2.0), (1.0, 3.0)]))
    [(0.0, 3.0), (5.0, 6.0)]
    """
    held: tuple[float, float] | None = None
    for start, end in sorted(intervals):
        if held is None:
            held = (start, end)
        elif start <= held[1]:
            held = (held[0], max(held[1], end))
        else:
            yield held
            held = (start, end)
    if held is not None:
        yield held


class Spans:
    """Intervals of one device in s: of kernels, and of copies and exchanges."""

    def __init__(self) -> None:
        # Sixteen bytes an interval: a long trace has millions.
        self._kernels = (array("d"), array("d"))
        self._others = (array("d"), array("d"))

    def add(self, start: float, end: float, *, kernel: bool) -> None:
        """Add an interval."""
        starts, ends = self._kernels if kernel else self._others
        starts.append(start)
        ends.append(end)

    def activity(self, device: int) -> Activity:
        """Return how busy the device was.

        >>> spans = Spans()
        >>> for start, end, kernel in ((0.0, 1.0, True), (3.0, 4.0, True), (0.5, 2.0, False)):
        ...     spans.add(start, end, kernel=kernel)
        >>> spans.activity(0)
        Activity(device=0, span=4.0, busy=3.0, computing=2.0, exposed=1.0, gaps=((2.0, 1.0),))
        """
        computing = sum(end - start for start, end in merged(zip(*self._kernels, strict=True)))
        first = last = None
        busy = 0.0
        gaps: list[tuple[float, float]] = []
        both = chain(zip(*self._kernels, strict=True), zip(*self._others, strict=True))
        for one, two in pairwise(chain(merged(both), [None])):
            if one is None:
                break
            first = one[0] if first is None else first
            last = one[1]
            busy += one[1] - one[0]
            if two is not None:
                heapq.heappush(gaps, (two[0] - one[1], one[1] - first))
                if len(gaps) > _MOST_GAPS:
                    heapq.heappop(gaps)
        if first is None or last is None:
            return Activity(device, 0.0, 0.0, 0.0, 0.0)
        longest = tuple((start, length) for length, start in sorted(gaps, reverse=True))
        return Activity(device, last - first, busy, computing, busy - computing, longest)


def activities(spans: dict[int, Spans]) -> tuple[Activity, ...]:
    """Return how busy each device was."""
    return tuple(each.activity(device) for device, each in sorted(spans.items()))
