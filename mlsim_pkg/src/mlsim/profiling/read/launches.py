"""Launches added up as they are read: those of one kernel, grid and block are one row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from mlsim.errors import DataFileError
from mlsim.profiling.measured_profile import MeasuredKernel

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
        if self.traffic is None:
            self.traffic = dict(launch.traffic)
        else:
            self.traffic = {
                level: count + launch.traffic[level]
                for level, count in self.traffic.items()
                if level in launch.traffic
            }
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


class Launches:
    """Launches, added up one by one: memory goes by kernels, not by launches."""

    def __init__(self, source: object = "") -> None:
        self.source = source
        self.sums: dict[tuple[str, object, object], _Sum] = {}

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

    def kernels(self) -> tuple[MeasuredKernel, ...]:
        """Return a kernel for each name, grid and block, the longest first."""
        found = [each.kernel() for each in self.sums.values()]
        # Sorting is stable: what has no time keeps the order of the file.
        return tuple(sorted(found, key=lambda each: -(each.seconds or 0.0)))


def kernels_of(
    launches: Iterable[MeasuredKernel], source: object = ""
) -> tuple[MeasuredKernel, ...]:
    """Add launches up by name, grid and block; the longest kernel first.

    Whether launches did the same work is kept as the fact "spread": the most operations of a
    launch over the fewest.

    >>> one = MeasuredKernel("a", 1, 1.0, {"fp32": 2.0})
    >>> [(each.calls, each.facts["spread"]) for each in kernels_of([one, one])]
    [(2, 1.0)]
    """
    found = Launches(source)
    for each in launches:
        found.add(each)
    return found.kernels()
