"""The counters of `perf stat`, and what follows from them; `read.perf_stat` reads them.

Counters say what a clock can't: how many cycles the cores ran, how many instructions they
finished, how often the last cache had to ask main memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from mlsim.equations import timing
from mlsim.errors import NotMeasuredError
from mlsim.profiling.stopwatch import Run
from mlsim.units import text

# Bytes of a line of a cache, unless somebody says otherwise: those of x86 and most of Arm.
LINE = 64
# Events that are misses of the last cache, the best first.
_MISSES = ("LLC-load-misses", "LLC-misses", "cache-misses", "longest_lat_cache.miss")

# Events that are a part of others.
_RATES = (
    ("cache-misses", "cache-references"),
    ("LLC-load-misses", "LLC-loads"),
    ("branch-misses", "branches"),
)


@dataclass(frozen=True, slots=True)
class Counter:
    """What one counter says.

    Attributes
    ----------
    value
        Its count; seconds for clocks, B for bytes. None where it was not counted.
    share
        Part of the run in which it counted: with more events than counters, they take turns,
        and perf scales what it saw.
    why
        "<not counted>" or "<not supported>", where there is no value.
    """

    value: float | None
    share: float = 1.0
    why: str = ""


@dataclass(frozen=True)
class PerfStat:
    """The counters of one run, by event.

    Attributes
    ----------
    counters
        By the event's name, without what stands for user or kernel mode.
    elapsed
        Wall time in s; None where the text does not say.
    user, system
        Times of the cores in s, likewise.
    """

    counters: Mapping[str, Counter]
    elapsed: float | None = None
    user: float | None = None
    system: float | None = None

    def __getitem__(self, event: str) -> float:
        """Return a count.

        Raises
        ------
        NotMeasuredError
            If it was not counted; says why, and what was.
        """
        found = self.counters.get(event)
        if found is None or found.value is None:
            said = f" ({found.why}: a virtual machine often hides counters)" if found else ""
            counted = ", ".join(
                name for name, each in self.counters.items() if each.value is not None
            )
            raise NotMeasuredError(
                f"{event} was not counted{said}. Counted: {counted or 'nothing'}. Ask for it: perf "
                f"stat -e {event} -- COMMAND."
            )
        return found.value

    @property
    def cpi(self) -> float:
        """Cycles for each instruction.

        Raises
        ------
        NotMeasuredError
            If either was not counted.
        """
        return float(timing.cycles_per_instruction(self["cycles"], self._instructions()))

    @property
    def ipc(self) -> float:
        """Instructions in each cycle.

        Raises
        ------
        NotMeasuredError
            If either was not counted.
        """
        self._instructions()
        return float(timing.instructions_per_cycle(self._cycles(), self["instructions"]))

    def _instructions(self) -> float:
        found = self["instructions"]
        if not found:
            raise NotMeasuredError("no instruction was counted: the run was too short.")
        return found

    def _cycles(self) -> float:
        found = self["cycles"]
        if not found:
            raise NotMeasuredError("no cycle was counted: the run was too short.")
        return found

    @property
    def run(self) -> Run:
        """Wall, user, system and waiting time.

        Raises
        ------
        NotMeasuredError
            If the text does not say all of them, as with -x and --json.
        """
        if self.elapsed is None or self.user is None or self.system is None:
            raise NotMeasuredError(
                "perf prints elapsed, user and sys only as text: leave -x and --json out, or add "
                "-e duration_time,user_time,system_time."
            )
        return Run(self.elapsed, self.user, self.system)

    def traffic(self, line: int = LINE) -> float:
        """Return the bytes that came from main memory, from the misses of the last cache.

        A lower limit: lines that are written back, or fetched ahead of time, are no misses.

        Raises
        ------
        NotMeasuredError
            If no event that counts them is there.
        """
        for event in _MISSES:
            found = self.counters.get(event)
            if found is not None and found.value is not None:
                return float(timing.miss_traffic(found.value, float(line)))
        raise NotMeasuredError(
            f"no misses of the last cache were counted ({', '.join(_MISSES)}). Ask for them: perf "
            "stat -e LLC-load-misses -- COMMAND."
        )

    def bandwidth(self, line: int = LINE) -> float:
        """Return the bytes from main memory for each second of the run.

        Raises
        ------
        NotMeasuredError
            If misses or the elapsed time are not there.
        """
        if not self.elapsed:
            raise NotMeasuredError("perf did not say how long the run took: add -e duration_time.")
        return float(timing.used_bandwidth(self.traffic(line), self.elapsed))

    def bandwidth_use(self, memory_bandwidth: float, line: int = LINE) -> float:
        """Return the part of a memory's bandwidth (in B/s) that the run used.

        Raises
        ------
        NotMeasuredError
            As `bandwidth`.
        """
        return float(timing.bandwidth_use(self.bandwidth(line), memory_bandwidth))

    def words(self) -> list[str]:
        """Say what follows from the counters that are there, a line for each.

        >>> two = {"cycles": Counter(2e9), "instructions": Counter(3e9)}
        >>> PerfStat({**two, "task-clock": Counter(1.0)}, elapsed=0.5).words()
        ['1.5 instructions in each cycle (IPC)', '2 cores busy on average']
        """
        found = []
        with suppress(NotMeasuredError):
            found.append(f"{self.ipc:.3g} instructions in each cycle (IPC)")
        with suppress(NotMeasuredError):
            if self.elapsed:
                found.append(f"{self['task-clock'] / self.elapsed:.3g} cores busy on average")
        for part, of in _RATES:
            with suppress(NotMeasuredError):
                if self[of]:
                    found.append(f"{self[part] / self[of]:.2%} of {of} are {part}")
        with suppress(NotMeasuredError):
            moved = f"{text(self.traffic(), 'B', 3)} from main memory at least"
            rate = f" ({text(self.bandwidth(), 'B/s', 3)})" if self.elapsed else ""
            found.append(f"{moved}{rate}, by the misses of the last cache")
        return found

    @property
    def scaled(self) -> tuple[str, ...]:
        """Events that counted only part of the time, and were scaled up."""
        return tuple(
            name
            for name, each in self.counters.items()
            if each.value is not None and each.share < 0.9995
        )
