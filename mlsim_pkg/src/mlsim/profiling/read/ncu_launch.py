"""One launch as Nsight Compute saw it: metrics as numbers, and counts asked for by their base."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mlsim.errors import DataFileError
from mlsim.profiling.read import ncu_metrics


@dataclass
class Launch:
    """One launch (or, of a summary, several alike): metrics as numbers with their kind of unit."""

    name: str
    capability: str
    grid: str
    block: str
    where: str
    calls: int = 1
    metrics: dict[str, tuple[float, str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


class Counters:
    """Metrics of one launch, asked for without unit in front and roll-up behind."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.seconds, self.time_source = self._time()
        self.by_base: dict[str, list[str]] = {}
        for metric in launch.metrics:
            base = metric.partition(".")[0]
            plain = re.sub(r"^(smsp|sm)__", "", base)
            self.by_base.setdefault(base, []).append(metric)
            if plain != base:
                self.by_base.setdefault(plain, []).append(metric)

    def value(self, metric: str, kind: str) -> float | None:
        """Return a metric whose unit is of a kind.

        Raises
        ------
        DataFileError
            If its unit measures something else, as when columns were mixed up.
        """
        if metric not in self.launch.metrics:
            return None
        value, found = self.launch.metrics[metric]
        if found == "?" and kind == "1":
            return value
        if found == "?":
            return None
        if found != kind:
            unit = {"s": "of time", "B": "of bytes", "1": "of a count"}.get(found, found)
            raise DataFileError(
                f"{self.launch.where}: {metric} has a unit {unit}. Columns and header don't belong "
                "together."
            )
        return value

    def _time(self) -> tuple[float | None, str]:
        for base in ncu_metrics.TIMES:
            for roll in (".sum", "", ".avg", ".max"):
                value = self.value(base + roll, "s")
                if value:
                    return value, base + roll
        for unit in ("sm", "smsp", "gpc"):
            for roll in ("avg", "max"):
                cycles = self.value(f"{unit}__cycles_elapsed.{roll}", "1")
                rate = self.value(f"{unit}__cycles_elapsed.{roll}.per_second", "1/s")
                rate = rate or self.value(f"{unit}__cycles_elapsed.avg.per_second", "1/s")
                if cycles and rate:
                    return cycles / rate, f"{unit}__cycles_elapsed.{roll} over its rate"
        return None, ""

    def count(self, base: str, kind: str = "1") -> tuple[float, str] | None:
        """Return how much a counter counted, and of which metric; None if it is not there.

        From a rate per second it is the rate times the time; from a rate per cycle, times the
        cycles.
        """
        for metric in self.by_base.get(base, ()):
            stem, _, roll = metric.partition(".")
            found = self.value(metric, kind) if roll in ("sum", "") else None
            if found is not None:
                return found, metric
        for metric in self.by_base.get(base, ()):
            stem, _, roll = metric.partition(".")
            if roll == "sum.per_second" and self.seconds:
                rate = self.value(metric, f"{kind}/s")
                if rate is not None:
                    return rate * self.seconds, f"{metric} x {self.time_source}"
            if roll == "sum.per_cycle_elapsed":
                cycles = self._cycles(stem.partition("__")[0])
                rate = self.value(metric, "1/cycle")
                if rate is not None and cycles is not None:
                    return rate * cycles, f"{metric} x cycles"
        return None

    def derived(self, base: str) -> tuple[float, str] | None:
        """Return a count from what a roofline section derives: per cycle, times 2 or 4."""
        for times in (2, 4):
            metric = f"derived__smsp__{base}_x{times}"
            value = self.launch.metrics.get(metric)
            cycles = None if value is None else self._cycles("smsp")
            if value is not None and cycles is not None:
                return value[0] / times * cycles, f"{metric} / {times} x cycles"
        return None

    def _cycles(self, unit: str) -> float | None:
        for name in (unit, "smsp", "sm"):
            for roll in ("avg", "max"):
                cycles = self.value(f"{name}__cycles_elapsed.{roll}", "1")
                if cycles is not None:
                    return cycles
            rate = self.value(f"{name}__cycles_elapsed.avg.per_second", "1/s")
            if rate is not None and self.seconds:
                return rate * self.seconds
        return None
