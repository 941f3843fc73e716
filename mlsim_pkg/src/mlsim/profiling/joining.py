"""Launches added up as they are read, and the operations of one file joined to another's times."""

from __future__ import annotations

import heapq
import re
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from math import isnan
from typing import Any

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.profiling.measured_profile import (
    Activity,
    Launches,
    MeasuredKernel,
    MeasuredProfile,
    Transfer,
    added,
    longest_first,
    short_name,
)

# Launches of which the wait in the queue is looked at.
_MOST_PAIRS = 200_000
# A launch longer than a day is a damaged number.
_LONGEST = 86_400.0


@dataclass
class _Sum:
    """What launches alike add up to; a figure that one lacks, the sum lacks."""

    first: MeasuredKernel
    calls: int = 0
    seconds: float | None = 0.0
    operations: dict[str, float] = field(default_factory=dict)
    traffic: dict[str, float] | None = None
    missing: dict[str, str] = field(default_factory=dict)
    least: float = float("inf")
    most: float = 0.0

    def add(self, launch: MeasuredKernel) -> None:
        """Add a launch."""
        self.calls += launch.calls
        if launch.seconds is None or self.seconds is None:
            self.seconds = None
        else:
            self.seconds += launch.seconds
        for path, count in launch.operations.items():
            self.operations[path] = self.operations.get(path, 0.0) + count
        before = launch.traffic if self.traffic is None else self.traffic
        both = [level for level in before if level in launch.traffic]
        sums = self.traffic or {}
        self.traffic = {level: sums.get(level, 0.0) + launch.traffic[level] for level in both}
        if launch.operations:
            work = sum(launch.operations.values()) / launch.calls
            self.least, self.most = min(self.least, work), max(self.most, work)
        if launch.missing and launch.missing is not self.first.missing:
            self.missing.update(launch.missing)

    def kernel(self) -> MeasuredKernel:
        """Return all launches as one."""
        spread = {"spread": self.most / self.least} if 0 < self.least < float("inf") else {}
        traffic = self.traffic or {}
        missing = {**self.first.missing, **self.missing}
        return replace(
            self.first,
            calls=self.calls,
            seconds=self.seconds,
            operations=self.operations,
            traffic=traffic,
            missing={key: why for key, why in missing.items() if key not in traffic},
            facts={**self.first.facts, **spread},
        )


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


class Timeline:
    """What a file says of a run, added up as it is read: memory goes by kernels, not launches."""

    def __init__(self, source: object = "") -> None:
        self.source = source
        self.sums: dict[tuple[str, object, object], _Sum] = {}
        # By name: how many, s of all, and B of all. Without a time they are NaN s.
        self.copies: dict[str, list[float]] = {}
        self.exchanges: dict[str, list[float]] = {}
        self._spans: dict[int, Spans] = {}
        # Times of calls that start kernels; when each began, and its kernel, by a key of both.
        self._starting = list[float]()
        self._called, self._began = dict[Any, float](), dict[Any, float]()

    def add(self, launch: MeasuredKernel) -> None:
        """Add a launch.

        Raises
        ------
        DataFileError
            If it took more than a day.
        """
        if launch.seconds is not None and launch.seconds > _LONGEST * launch.calls:
            raise DataFileError(
                f"{self.source}: a launch of {launch.short} takes {launch.seconds:.3g} s, more "
                "than a day. The file is damaged, or its columns were mixed up."
            )
        if launch.name.replace(".", "").isdigit():
            raise DataFileError(
                f"{self.source}: {launch.name!r} stands where a kernel's name should. Columns and "
                "header don't belong together."
            )
        key = (launch.name, launch.facts.get("grid"), launch.facts.get("block"))
        found = self.sums.get(key)
        if found is None:
            found = self.sums[key] = _Sum(launch)
        found.add(launch)

    def busy(self, start: float, end: float, device: int = 0, *, kernel: bool) -> None:
        """Add an interval in s in which a device worked: on a kernel, or on something else."""
        self._spans.setdefault(device, Spans()).add(start, end, kernel=kernel)

    def began(self, key: Any, start: float) -> None:
        """Note when the kernel of a call began, in s."""
        if len(self._began) < _MOST_PAIRS:
            self._began[key] = start

    def called(self, key: Any, start: float, seconds: float) -> None:
        """Add a call that starts a kernel: when it began, and how long it took."""
        self._starting.append(seconds)
        if len(self._called) < _MOST_PAIRS:
            self._called[key] = start

    def copy(self, name: str, seconds: float, size: float = 0.0, calls: int = 1) -> None:
        """Add copies in one direction."""
        kept = self.copies.setdefault(name, [0, 0.0, 0.0])
        kept[:] = kept[0] + calls, kept[1] + seconds, kept[2] + size

    def exchange(self, name: str, seconds: float, size: float = 0.0) -> None:
        """Add an exchange between devices."""
        kept = self.exchanges.setdefault(name, [0, 0.0, 0.0])
        kept[:] = kept[0] + 1, kept[1] + seconds, kept[2] + size

    def kernels(self) -> tuple[MeasuredKernel, ...]:
        """Return a kernel for each name, grid and block, the longest first.

        Whether launches did the same work is kept as the fact "spread": the most operations of a
        launch over the fewest.

        >>> run, one = Timeline(), MeasuredKernel("a", 1, 1.0, {"fp32": 2.0})
        >>> run.add(one)
        >>> run.add(one)
        >>> [(each.calls, each.facts["spread"]) for each in run.kernels()]
        [(2, 1.0)]
        """
        return longest_first(each.kernel() for each in self.sums.values())

    def profile(
        self, tool: str, kernels: tuple[MeasuredKernel, ...], **more: Any
    ) -> MeasuredProfile:
        """Return kernels with all that happened beside them; `more` are fields of the profile."""
        began = ((key, start) for key, start in self._began.items() if key is not None)
        waits = [start - self._called[key] for key, start in began if key in self._called]
        exchanges = _transfers(self.exchanges) or tuple(
            Transfer(each.short, each.calls, each.seconds)
            for each in kernels
            if is_exchange(each.name)
        )
        fields = {
            "copies": _transfers(self.copies),
            "exchanges": exchanges,
            "launches": Launches.of(self._starting, waits),
            "activity": tuple(each.activity(n) for n, each in sorted(self._spans.items())),
        }
        return MeasuredProfile(kernels, tool, (str(self.source),), **{**fields, **more})


def _transfers(moved: dict[str, list[float]]) -> tuple[Transfer, ...]:
    return tuple(
        Transfer(name, int(calls), None if isnan(seconds) else seconds, size or None)
        for name, (calls, seconds, size) in moved.items()
    )


# Launches whose work differs by more than this can't stand for launches that were not counted.
_SAME_WORK = 1.05
_LACKING = "the kernel is not in the file with counters"


def join(counts: MeasuredProfile, times: MeasuredProfile) -> MeasuredProfile:
    """Join work and bytes of one profile to the times of another, kernel by kernel.

    A profiler that counts slows a run down, so times are best taken without it. Kernels are
    matched by name, grid and block, or by name where a file has no grids, and operators by
    name and shapes. Where the second file
    has more launches than were counted, work goes by launch.

    Parameters
    ----------
    counts
        A profile with operations or bytes, such as of Nsight Compute.
    times
        A profile with times, such as of Nsight Systems or a PyTorch trace.

    Returns
    -------
    MeasuredProfile
        The second profile, with the work and bytes of the first. A kernel without a match keeps
        its time, and says so.

    Raises
    ------
    InvalidValueError
        If the first has no counters, the second no times, or no kernel is in both.

    >>> one = MeasuredProfile((MeasuredKernel("k", 1, None, {"fp32": 4e9}, {"dram": 1e9}),), "a")
    >>> two = MeasuredProfile((MeasuredKernel("void k(int)", 3, 6e-3),), "b")
    >>> print(join(one, two).kernels[0].rate)
    2 TFLOP/s
    """
    if not any(each.operations or each.traffic for each in counts.kernels):
        raise InvalidValueError(
            f"{_files(counts)} counts neither operations nor bytes. Give the file with counters "
            "first: join(counts, times)."
        )
    if not any(each.seconds is not None for each in times.kernels):
        raise InvalidValueError(f"{_files(times)} has no times. Give the file with times second.")
    key = _best_key(counts.kernels, times.kernels)
    if key is None:
        names = ", ".join(each.short for each in times.kernels[:3])
        raise InvalidValueError(
            f"no kernel is in both files: {_files(times)} has {names}. Profile the same program "
            "twice."
        )
    counted, timed = _grouped(counts.kernels, key), _grouped(times.kernels, key)
    kernels = [_joined(counted.get(name), each) for name, each in timed.items()]
    lost = [each.short for name, each in counted.items() if name not in timed]
    notes = [*times.notes, *counts.notes]
    matched = sum(name in counted for name in timed)
    notes.append(f"{matched} of {len(timed)} kernels have counters from {_files(counts)}.")
    if lost:
        notes.append(f"Counted, but without a time: {', '.join(lost[:5])}.")
    return replace(
        times,
        kernels=longest_first(kernels),
        tool=f"{counts.tool} and {times.tool}",
        files=(*counts.files, *times.files),
        device_name=times.device_name or counts.device_name,
        device_facts={**counts.device_facts, **times.device_facts},
        whole=None,
        notes=tuple(dict.fromkeys(notes)),
    )


def combine(profiles: Sequence[MeasuredProfile]) -> MeasuredProfile:
    """Put the counters of several passes over one program together.

    `rocprofv3` writes a file for each group of counters. Kernels are matched as in `join`; what
    one pass did not count, another may have.

    Raises
    ------
    InvalidValueError
        If there is no profile, or one has no kernel of the first.

    >>> one = MeasuredProfile((MeasuredKernel("k", 1, 1.0, {"fp32": 2.0}),), "rocprof")
    >>> two = MeasuredProfile((MeasuredKernel("k", 1, 1.1, {}, {"dram": 4.0}),), "rocprof")
    >>> print(combine([one, two]).kernels[0].intensity)
    0.500 FLOP/B
    """
    if not profiles:
        raise InvalidValueError("give at least one profile.")
    whole = profiles[0]
    for each in profiles[1:]:
        key = _best_key(each.kernels, whole.kernels) or _best_key(whole.kernels, each.kernels)
        if key is None:
            raise InvalidValueError(
                f"no kernel is in both files: {_files(whole)} and {_files(each)}. Profile the same "
                "program."
            )
        first, second = _grouped(whole.kernels, key), _grouped(each.kernels, key)
        kernels = [_both(one, second.get(name)) for name, one in first.items()]
        whole = replace(
            whole, kernels=tuple(kernels), files=(*whole.files, *each.files), whole=None
        )
    return whole


def _both(one: MeasuredKernel, other: MeasuredKernel | None) -> MeasuredKernel:
    """Return a kernel with what either pass counted."""
    if other is None or other.calls != one.calls:
        return one
    operations = {**other.operations, **one.operations}
    traffic = {**other.traffic, **one.traffic}
    known = {**operations, **traffic}
    missing = {
        key: why for key, why in {**other.missing, **one.missing}.items() if key not in known
    }
    if "tensor" in missing and any(path.startswith("tensor") for path in operations):
        del missing["tensor"]
    # A refusal falls if the other pass counted what the first lacked.
    refused = [each for each in (one, other) if "flops" in each.missing]
    on_tensor = any(path.startswith(("tensor", "any")) for path in operations)
    unseen = any("tensor" in each.missing["flops"] for each in refused if each.operations)
    if sum(operations.values()) and (on_tensor or not unseen):
        missing.pop("flops", None)
    return replace(
        one,
        seconds=one.seconds if one.seconds is not None else other.seconds,
        operations=operations,
        traffic=traffic,
        sources={**other.sources, **one.sources},
        missing=missing,
    )


def _files(profile: MeasuredProfile) -> str:
    return ", ".join(file.rsplit("/", 1)[-1] for file in profile.files) or profile.tool


def _whole_name(name: str) -> str:
    return " ".join(name.removeprefix("void ").split())


_Key = Callable[[MeasuredKernel], Hashable]
# From the strictest; the first with which all launches find a partner is used.
_KEYS: tuple[_Key, ...] = (
    lambda each: (
        *(_whole_name(each.name), each.facts.get("shape")),
        *(each.facts.get("grid"), each.facts.get("block")),
    ),
    lambda each: (_whole_name(each.name), each.facts.get("grid"), each.facts.get("block")),
    lambda each: _whole_name(each.name),
    lambda each: (short_name(each.name), each.facts.get("grid"), each.facts.get("block")),
    lambda each: short_name(each.name),
)


def _best_key(counts: tuple[MeasuredKernel, ...], times: tuple[MeasuredKernel, ...]) -> _Key | None:
    """Return the strictest way to match with which most kernels match; None if none do."""
    best, most = None, 0.0
    for key in _KEYS:
        counted = {key(each) for each in counts}
        matched = sum(each.seconds or 0.0 for each in times if key(each) in counted)
        # A looser way must match more of the time, not as much.
        if matched > most * 1.000001:
            best, most = key, matched
    return best


def _grouped(kernels: tuple[MeasuredKernel, ...], key: _Key) -> dict[Hashable, MeasuredKernel]:
    groups: dict[Hashable, list[MeasuredKernel]] = {}
    for each in kernels:
        groups.setdefault(key(each), []).append(each)
    return {name: _one(group) for name, group in groups.items()}


def _one(group: list[MeasuredKernel]) -> MeasuredKernel:
    if len(group) == 1:
        return group[0]
    whole = added(tuple(group), group[0].name)
    spreads = [float(each.facts.get("spread", 1.0)) for each in group]
    work = [sum(each.operations.values()) / each.calls for each in group if each.operations]
    apart = max(work) / min(work) if work and min(work) > 0 else (1.0 if not any(work) else 1e9)
    missing = {key: why for each in group for key, why in each.missing.items()}
    known = {**whole.operations, **whole.traffic}
    return replace(
        whole,
        sources=group[0].sources,
        missing={key: why for key, why in missing.items() if key not in known},
        facts={"spread": max(*spreads, apart)},
        kind=group[0].kind,
    )


def _joined(counted: MeasuredKernel | None, timed: MeasuredKernel) -> MeasuredKernel:
    """Return a kernel with the time of one file and the counters of another."""
    if counted is None:
        return replace(timed, missing={**timed.missing, "flops": _LACKING, "dram": _LACKING})
    times = timed.calls / counted.calls
    missing = {key: why for key, why in counted.missing.items() if key != "seconds"}
    if times != 1 and float(counted.facts.get("spread", 1.0)) > _SAME_WORK:
        missing["flops"] = missing["dram"] = (
            f"{counted.calls:,} of {timed.calls:,} launches were counted, and they did different "
            "amounts of work. Count all"
        )
        return replace(timed, missing=missing)
    by = "" if times == 1 else f", {counted.calls:,} launches for {timed.calls:,}"
    sources = {key: f"{said}{by}" for key, said in counted.sources.items() if key != "seconds"}
    return replace(
        timed,
        operations={path: count * times for path, count in counted.operations.items()},
        traffic={level: count * times for level, count in counted.traffic.items()},
        sources={**sources, "seconds": timed.sources.get("seconds", "the second file")},
        missing=missing,
        facts={**counted.facts, **timed.facts},
    )
