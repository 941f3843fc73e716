"""What a profiler's file says of a run: kernels with work, traffic and time, and the device.

A figure that the file does not hold is absent, and says which metric would hold it. Nothing
is filled in: zero means that a counter stood at zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from mlsim.equations import roofline
from mlsim.errors import NotMeasuredError, Suggesting
from mlsim.units import text
from mlsim.values import quantity

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


@dataclass(frozen=True, slots=True)
class Transfer:
    """Copies between host and device, or an exchange between devices; all calls added up.

    Attributes
    ----------
    name
        "host to device", "device to host", "device to device", "fill", or the collective.
    calls, seconds
        How often, and the time of all calls in s (None if the file holds none).
    bytes
        Of all calls; None if the file does not say.
    """

    name: str
    calls: int
    seconds: float | None
    bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Launches:
    """Calls by which a host starts work on a device.

    Attributes
    ----------
    calls, seconds
        How often, and the host's time in them in s.
    queued
        Median time from a launch to the start of its kernel in s; None if the file has no
        pairs of the two.
    usual
        Median time of a launch in s; None if the file has only their sum.
    longest
        Time of the longest launch in s, likewise.
    """

    calls: int
    seconds: float
    queued: float | None = None
    usual: float | None = None
    longest: float | None = None

    @classmethod
    def of(cls, times: Sequence[float], waits: Sequence[float]) -> Launches | None:
        """Return launches from the time of each and from each wait in s; None without a launch.

        >>> Launches.of([9e-6, 3.0, 8e-6], []).usual
        9e-06
        """
        if not times:
            return None
        queued = median(waits) if waits else None
        return cls(len(times), sum(times), queued, median(times), max(times))


@dataclass(frozen=True, slots=True)
class Activity:
    """How busy a device was: intervals of kernels, copies and exchanges, merged.

    Attributes
    ----------
    device
        Its number in the file.
    span
        From the first start to the last end in s.
    busy
        Time in which at least one kernel, copy or exchange ran, in s.
    computing
        Time in which at least one kernel that is no exchange ran, in s.
    exposed
        Time in which only copies or exchanges ran, in s.
    gaps
        The longest idle intervals, longest first: start since the first event, and length, in s.
    """

    device: int
    span: float
    busy: float
    computing: float
    exposed: float
    gaps: tuple[tuple[float, float], ...] = ()

    @property
    def share(self) -> float:
        """Busy part of the span.

        >>> Activity(0, 2.0, 1.5, 1.25, 0.25).share
        0.75
        """
        return self.busy / self.span if self.span else 0.0


def short_name(name: str) -> str:
    """Return a kernel's name without arguments, template and namespaces.

    >>> short_name("void at::native::elementwise_kernel<4, at::Add<float>>(int, float*)")
    'elementwise_kernel'
    >>> short_name("ampere_sgemm_128x64_tn"), short_name("")
    ('ampere_sgemm_128x64_tn', '(no name)')
    """
    depth, kept = 0, []
    for letter in name.replace("(anonymous namespace)", "anonymous"):
        if letter in "<({[":
            depth += 1
        elif letter in ">)}]":
            depth = max(depth - 1, 0)
        elif depth == 0:
            kept.append(letter)
    words = "".join(kept).split()
    short = words[-1].split("::")[-1] if words else ""
    return printable(short or name.strip() or "(no name)")[:60]


def printable(text: str) -> str:
    r"""Return a text without signs that would move a terminal's cursor or turn a line around.

    >>> printable("gemm\x1b[2J")
    'gemm?[2J'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


# The data paths on which operations are counted, and what each is. "any" is the count of a
# framework from shapes: it does not know which unit computed. Integers are no FLOP.
PATHS: Mapping[str, str] = {
    "fp64": "double precision on CUDA cores or a CPU",
    "fp32": "single precision on CUDA cores or a CPU",
    "fp16": "half precision on CUDA cores",
    "tensor fp64": "tensor cores, double precision",
    "tensor tf32": "tensor cores, TF32",
    "tensor fp16": "tensor cores, half precision",
    "tensor bf16": "tensor cores, bfloat16",
    "tensor fp8": "tensor cores, eight bits",
    "tensor fp6": "tensor cores, six bits",
    "tensor fp4": "tensor cores, four bits",
    "tensor": "tensor or matrix cores, in a format that the counter does not tell",
    "any": "counted from shapes, on whichever unit",
    "int": "integers, which are no FLOP",
    "tensor int8": "tensor cores, integers of eight bits",
    "tensor int4": "tensor cores, integers of four bits",
    "tensor int1": "tensor cores, single bits",
}
INTEGERS = frozenset({"int", "tensor int8", "tensor int4", "tensor int1"})
# Where bytes are counted, the slowest first. "l1" is the way between L1 and the cores.
LEVELS: Mapping[str, str] = {
    "dram": "main memory",
    "l2": "between L1 and L2",
    "l1": "between the cores and L1, global memory",
    "shared": "between the cores and shared memory",
}


@dataclass(frozen=True, slots=True)
class MeasuredKernel:
    """One kernel, operator or program: all its calls added up.

    Attributes
    ----------
    name
        As the profiler prints it.
    calls
        How often it ran.
    seconds
        Time of all calls in s; None if the file holds none.
    operations
        Operations of all calls by data path, a key of `PATHS`: FLOP, or integer operations.
    traffic
        Bytes of all calls by level, a key of `LEVELS`.
    sources
        Where each figure comes from, such as `{"seconds": "gpu__time_duration.sum"}`; keys are
        "seconds", a path or a level.
    missing
        What the file does not hold, and the metric that would: keys are "seconds", "flops",
        a path or a level.
    facts
        Other things that the file says: "grid", "block", "registers", "occupancy", "cc",
        percentages of peak; numbers or texts as printed.
    kind
        "kernel", "operator" (of a framework), "graph" (of many kernels) or "program".

    >>> saxpy = MeasuredKernel("saxpy", 2, 2e-3, {"fp32": 4e9}, {"dram": 24e9})
    >>> print(saxpy.time, saxpy.intensity, saxpy.rate)
    2 ms 0.167 FLOP/B 2 TFLOP/s
    """

    name: str
    calls: int = 1
    seconds: float | None = None
    operations: Mapping[str, float] = field(default_factory=dict)
    traffic: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "kernel"

    @property
    def counted(self) -> bool:
        """Whether its work is known: some path was counted, and none that it used was not."""
        return "flops" not in self.missing and bool(self.operations)

    @property
    def flop_count(self) -> float:
        """Floating-point operations of all calls, over all data paths.

        Raises
        ------
        NotMeasuredError
            If a data path that it may have used was not counted; names the metric.
        """
        if not self.counted:
            why = self.missing.get("flops", "no counter of operations is in the file")
            raise NotMeasuredError(f"the work of {self.short} is not known: {why}.")
        return sum(count for path, count in self.operations.items() if path not in INTEGERS)

    def byte_count(self, level: str = "dram") -> float:
        """Return the bytes of all calls at one level.

        Raises
        ------
        NotMeasuredError
            If the level was not counted; names the metric.
        """
        if level not in self.traffic:
            why = self.missing.get(level, f"no counter of {LEVELS.get(level, level)} is there")
            raise NotMeasuredError(f"the {level} bytes of {self.short} are not known: {why}.")
        return self.traffic[level]

    @property
    def time(self) -> Quantity:
        """Time of all calls in s.

        Raises
        ------
        NotMeasuredError
            If the file holds none; names the metric.
        """
        if self.seconds is None:
            why = self.missing.get("seconds", "no time is in the file")
            raise NotMeasuredError(f"the time of {self.short} is not known: {why}.")
        return self._said(self.seconds, "s", "time", "seconds")

    def _said(self, value: float, unit: str, what: str, *keys: str) -> Quantity:
        """Return a figure as a value: what it is, and which counters it was read from."""
        found = "; ".join(dict.fromkeys(self.sources.get(key, "") for key in keys)).strip("; ")
        summed = "added up" if self.kind == "program" else "as the profile has it"
        because = f"by {found}" if found else summed
        return quantity(value, unit).named(f"{what} of {self.short}", because=because)

    @property
    def flops(self) -> Quantity:
        """`flop_count` as a quantity in FLOP."""
        return self._said(self.flop_count, "FLOP", "operations", *self.operations)

    def bytes(self, level: str = "dram") -> Quantity:
        """Return `byte_count` as a quantity in B."""
        return self._said(self.byte_count(level), "B", f"{level} bytes", level)

    @property
    def intensity(self) -> Quantity:
        """Work for each byte of main memory in FLOP/B; infinite if it moves none.

        Raises
        ------
        NotMeasuredError
            If work or bytes are not known.
        """
        if not self.byte_count():
            return self._said(float("inf"), "FLOP/B", "intensity")
        found: Quantity = roofline.arithmetic_intensity(self.flops, self.bytes())
        return found

    @property
    def rate(self) -> Quantity:
        """Achieved rate in FLOP/s: its work over its time.

        Raises
        ------
        NotMeasuredError
            If work or time is not known.
        """
        found: Quantity = roofline.achieved_flops(self.flops, self.time)
        return found

    def bandwidth(self, level: str = "dram") -> Quantity:
        """Return the bytes of a level over the time in B/s.

        Raises
        ------
        NotMeasuredError
            If bytes or time are not known.
        """
        found: Quantity = self.bytes(level) / self.time
        return found

    @property
    def short(self) -> str:
        """Its name without arguments and template, for a line of text."""
        plain = self.kind in ("program", "operator")
        return printable(self.name)[:60] if plain else short_name(self.name)


@dataclass(frozen=True, slots=True)
class MeasuredProfile(Suggesting):
    """What one file of a profiler says, or several that were joined.

    Attributes
    ----------
    kernels
        The longest first; those without a time in the order of the file.
    tool
        "Nsight Compute", "Nsight Systems", "PyTorch trace", "PyTorch key_averages", "rocprof"
        or "perf stat".
    files
        What was read.
    device_name
        As the file names it; "" if it does not.
    device_facts
        What the file says of it, such as "compute capability".
    copies, exchanges
        Between host and device, and between devices.
    launches
        None if the file does not trace the host.
    activity
        One for each device of a trace; empty for a summary.
    counters
        Of a whole program (`perf stat`): events by their names, as counted.
    operators
        What a framework ran, with work counted from shapes and the time of all that it started.
    whole
        The whole run where a file says it apart from its rows; else None, and `total` adds up.
    notes
        What a reader must know: rows that were left out, replays, units that were assumed.
    """

    kernels: tuple[MeasuredKernel, ...]
    tool: str
    files: tuple[str, ...] = ()
    device_name: str = ""
    device_facts: Mapping[str, Any] = field(default_factory=dict)
    copies: tuple[Transfer, ...] = ()
    exchanges: tuple[Transfer, ...] = ()
    launches: Launches | None = None
    activity: tuple[Activity, ...] = ()
    counters: Mapping[str, float] = field(default_factory=dict)
    operators: tuple[MeasuredKernel, ...] = ()
    whole: MeasuredKernel | None = None
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> MeasuredKernel:
        """All kernels as one: the application's point on the plot.

        A figure that one of its kernels lacks is missing here too, and says of which.
        """
        return self.whole or added(self.kernels, "the whole run")

    @property
    def counted_flops(self) -> Quantity:
        """What was counted in FLOP, whatever was not: the run did at least this much.

        `total.operations` has it by data path.
        """
        operations = self.total.operations
        return quantity(
            sum(count for path, count in operations.items() if path not in INTEGERS), "FLOP"
        )

    @property
    def time(self) -> Quantity:
        """Time of all kernels added up in s; of overlaps see `activity`.

        Raises
        ------
        NotMeasuredError
            If a kernel has none.
        """
        return self.total.time

    @property
    def flops(self) -> Quantity:
        """Floating-point operations of all kernels in FLOP.

        Raises
        ------
        NotMeasuredError
            If a kernel's work is not known; says whose, and which metric is missing.
        """
        return self.total.flops

    @property
    def intensity(self) -> Quantity:
        """Work of all kernels for each byte of main memory in FLOP/B."""
        return self.total.intensity

    @property
    def rate(self) -> Quantity:
        """Achieved rate in FLOP/s: all work over the time of all kernels."""
        return self.total.rate

    def kernel(self, name: str) -> MeasuredKernel:
        """Return the one kernel whose name contains a text.

        Raises
        ------
        UnknownNameError
            If there is none, or several; lists those that come near.
        """
        from mlsim.errors import UnknownNameError, unknown_name

        exact = [each for each in self.kernels if each.name == name]
        found = exact or [each for each in self.kernels if name in each.name]
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(each.short for each in found[:5])
            raise UnknownNameError(f"{len(found)} kernels contain {name!r}: {several}. Say more.")
        raise unknown_name("kernel", name, [each.short for each in self.kernels[:20]])

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, in base units: s, B, FLOP."""
        from dataclasses import asdict

        return asdict(self)

    def __str__(self) -> str:
        return _table(self)


@dataclass
class Counted:
    """What counters say of one launch as it is found out, each figure with its source."""

    operations: dict[str, float] = field(default_factory=dict)
    traffic: dict[str, float] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def work(self, path: str, count: float, source: str) -> None:
        """Add operations on a data path."""
        self.operations[path] = self.operations.get(path, 0.0) + count
        self.sources[path] = source

    def lack(self, key: str, why: str) -> None:
        """Say why a figure is not known, unless that was said."""
        self.missing.setdefault(key, why)

    def check_idle(self, advice: str) -> None:
        """Refuse work that was counted on idle units alone, while single precision was not."""
        if self.operations and not sum(self.operations.values()) and "fp32" not in self.operations:
            units = ", ".join(self.operations)
            self.lack(
                "flops",
                f"the units that were counted ({units}) did nothing, and single precision was not "
                f"counted. {advice}",
            )

    def kernel(
        self, name: str, seconds: float | None, facts: Mapping[str, Any], kind: str
    ) -> MeasuredKernel:
        """Return the launch."""
        counted = (self.operations, self.traffic, self.sources, self.missing)
        return MeasuredKernel(name, 1, seconds, *counted, facts, kind)


def longest_first(kernels: Iterable[MeasuredKernel]) -> tuple[MeasuredKernel, ...]:
    """Return kernels by their time; what has none keeps its order."""
    return tuple(sorted(kernels, key=lambda each: -(each.seconds or 0.0)))


def added(kernels: tuple[MeasuredKernel, ...], name: str) -> MeasuredKernel:
    """Add kernels up; a figure that one lacks is missing in the sum.

    >>> one = MeasuredKernel("a", 1, 1.0, {"fp32": 2.0}, {"dram": 4.0})
    >>> added((one, MeasuredKernel("b", 1, 2.0, {}, {"dram": 4.0})), "both").missing
    {'flops': 'of b no counter of operations is in the file'}
    """
    missing: dict[str, str] = {}
    for each in kernels:
        if not each.counted:
            why = each.missing.get("flops", "no counter of operations is in the file")
            missing.setdefault("flops", f"of {each.short} {why}")
        if each.seconds is None:
            why = each.missing.get("seconds", "no time is in the file")
            missing.setdefault("seconds", f"of {each.short} {why}")
    traffic = {}
    for level in LEVELS:
        lacking = [each for each in kernels if level not in each.traffic]
        if not lacking and kernels:
            traffic[level] = sum(each.traffic[level] for each in kernels)
        elif len(lacking) < len(kernels) or level == "dram":
            why = lacking[0].missing.get(level, "the level was not counted") if lacking else "empty"
            missing[level] = f"of {lacking[0].short if lacking else name} {why}"
    operations: dict[str, float] = {}
    for each in kernels:
        for path, count in each.operations.items():
            operations[path] = operations.get(path, 0.0) + count
    times = [each.seconds for each in kernels if each.seconds is not None]
    return MeasuredKernel(
        name,
        sum(each.calls for each in kernels),
        sum(times) if times and "seconds" not in missing else None,
        operations,
        traffic,
        missing=missing,
        kind="program",
    )


def _table(profile: MeasuredProfile, most: int = 12) -> str:
    """Write the longest kernels as a table for a terminal."""
    head = f"{profile.tool}: {len(profile.kernels)} kernels"
    head += f" on {profile.device_name}" if profile.device_name else ""
    lines = [head, f"{'time':>10} {'calls':>6} {'FLOP':>12} {'DRAM':>10} {'rate':>13}  kernel"]
    for each in profile.kernels[:most]:
        seconds = "-" if each.seconds is None else text(each.seconds, "s")
        work = text(each.flop_count, "FLOP") if each.counted else "-"
        moved = text(each.traffic["dram"], "B") if "dram" in each.traffic else "-"
        both = each.counted and each.seconds
        rate = text(each.flop_count / each.seconds, "FLOP/s") if both and each.seconds else "-"
        lines.append(
            f"{seconds:>10} {each.calls:>6,} {work:>12} {moved:>10} {rate:>13}  {each.short}"
        )
    if len(profile.kernels) > most:
        lines.append(f"... and {len(profile.kernels) - most:,} more")
    return "\n".join(lines)
