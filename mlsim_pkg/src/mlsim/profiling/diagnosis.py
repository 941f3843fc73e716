"""What limits a run that was profiled, kernel by kernel and as a whole, and what to try first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from mlsim.equations import counters, roofline
from mlsim.errors import InvalidValueError, MlsimError, NotMeasuredError, unknown_name
from mlsim.hardware import Device
from mlsim.hardware.memory_levels import levels as recorded_levels
from mlsim.profiling.measured_profile import INTEGERS, LEVELS, MeasuredKernel, MeasuredProfile
from mlsim.profiling.read.tables import known
from mlsim.units import text
from mlsim.zoo import resolve

_ROOFS = known("roofs")
_PLAIN = ("fp32", "fp64")


def device_of(profile: MeasuredProfile, hardware: Device | str | None) -> Device:
    """Return the device of a profile: the one that is given, else the one that it names.

    Raises
    ------
    InvalidValueError
        If none is given, and the profile names none that the zoo has.
    """
    if hardware is not None:
        return resolve.device(hardware)
    name = profile.device_name
    with suppress(MlsimError):
        return resolve.device(name)
    said = f"names {name!r}, which the zoo does not have" if name else "names no device"
    raise InvalidValueError(
        f"the profile {said}. Give hardware=..., a name such as 'A100' or a file of your own "
        "(`mlsim zoo` lists them)."
    )


@dataclass(frozen=True, slots=True)
class Roof:
    """What bounds a kernel on a device.

    Attributes
    ----------
    peak
        Highest rate for its mix of data paths in FLOP/s; None if it is not on record.
    bandwidth
        Of main memory in B/s.
    paths
        The precision whose peak was taken for each data path.
    """

    peak: float | None
    bandwidth: float
    paths: dict[str, str]


def roof_of(kernel: MeasuredKernel, device: Device) -> Roof:
    """Return the roof over a kernel: the peak of the data path that takes longest at its peak."""
    slowest = work = 0.0
    paths: dict[str, str] = {}
    for path, count in kernel.operations.items():
        if not count or path in INTEGERS:
            continue
        wanted = _ROOFS["peaks"].get(path, ())
        if path == "any":
            kind = str(kernel.facts.get("type", "float"))
            wanted = _ROOFS["types"].get(kind, ("tf32", "fp32"))
        name = next((each for each in wanted if each in device.compute.precisions), None)
        if name is None:
            return Roof(None, device.bandwidth_si, paths)
        paths[path] = name
        peak = device.compute.figure(name).si
        slowest = max(slowest, float(roofline.compute_time(count, peak)))
        work += count
    if not work:
        return Roof(None, device.bandwidth_si, paths)
    return Roof(float(roofline.achieved_flops(work, slowest)), device.bandwidth_si, paths)


def main_precision(kernels: Iterable[MeasuredKernel], device: Device) -> str:
    """Return the precision in which most of the work was done, for the title of a figure."""
    work: dict[str, float] = {}
    for kernel in kernels:
        for path, name in roof_of(kernel, device).paths.items():
            work[name] = work.get(name, 0.0) + kernel.operations[path]
    usual = "fp16" if "fp16" in device.compute.precisions else device.compute.precisions[0]
    return max(work, key=lambda name: work[name], default=usual)


def ceilings_of(device: Device, precision: str) -> dict[str, float]:
    """Return ceilings below a peak in FLOP/s: no tensor cores, no FMA, one core.

    >>> from mlsim import Hardware
    >>> for name, rate in ceilings_of(Hardware.Cloud.A100, "fp16").items():
    ...     print(f"{name}: {rate / 1e12:.4g}")
    no tensor cores (fp32): 19.5
    no tensor cores, no FMA: 9.75
    one core of 108: 2.889
    """
    peak = device.compute.figure(precision).si
    found = {}
    plain = peak
    if precision not in _PLAIN and "fp32" in device.compute.precisions:
        plain = device.compute.figure("fp32").si
        found["no tensor cores (fp32)"] = plain
        found["no tensor cores, no FMA"] = float(counters.unfused_peak(plain))
    elif precision in _PLAIN:
        found["no FMA"] = float(counters.unfused_peak(plain))
    if device.cores:
        found[f"one core of {device.cores}"] = float(counters.one_core_peak(peak, device.cores))
    return found


def level_bandwidths(device: Device) -> dict[str, float]:
    """Return bandwidths of levels of memory in B/s, as far as they are on record."""
    found = {"dram": device.bandwidth_si}
    for level in recorded_levels():
        if level.device == device.key and "bandwidth" in level:
            name = level.name.lower()
            if "l2" in name or "l1" in name:
                found["l2" if "l2" in name else "l1"] = level["bandwidth"].si
    for figure, name in (("memory.l2_bandwidth", "l2"), ("memory.l1_bandwidth", "l1")):
        if figure in device.figures:
            found[name] = device.figures[figure].si
    return found


# Below this part of the roof, neither memory nor arithmetic limits: the region "far below".
NEAR = 0.5
# What well-written kernels reach of a roof; with it gains are no promises of the peak.
_GOOD = 0.8
# A launch shorter than this in s is dominated by starting and ending.
_SHORT = 20e-6
_ELEMENTWISE = re.compile(
    r"elementwise|relu|add_|mul_|copy|norm|softmax|dropout|activation|bias|gelu|silu|transpose|"
    r"nchwToNhwc|nhwcToNchw|reduce|pool|cast|convert|fill|rope|swiglu",
    re.IGNORECASE,
)
# Sectors of 32 bytes that a warp needs for 32 numbers of 4 bytes side by side.
_BEST_SECTORS = 4


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to try.

    Attributes
    ----------
    words
        What to do.
    time
        Time of the kernel after it in s, all calls.
    speedup
        Of the kernel: its time before over its time after.
    run_speedup
        Of the whole run, if nothing else changes; None if the run's time is not known.
    basis
        What was computed: "at the same part of the roof", or another assumption.
    """

    words: str
    time: float
    speedup: float
    run_speedup: float | None
    basis: str


def remedies_of(
    kernel: MeasuredKernel, roof: Roof, device: Device, *, region: str, run: float | None
) -> tuple[Remedy, ...]:
    """Return the two remedies that would buy most, for a kernel with known bytes and time."""
    seconds = kernel.seconds
    if not seconds or region.startswith("above"):
        return ()
    moved = kernel.traffic.get("dram")
    memory = float(roofline.memory_time(moved, roof.bandwidth)) if moved is not None else 0.0
    work = kernel.flop_count if kernel.counted else 0.0
    computing = float(roofline.compute_time(work, roof.peak)) if roof.peak and work else 0.0
    bound = max(memory, computing)
    if not bound:
        return ()
    share = min(bound / seconds, 1.0)
    near = region != "far below the roof"
    by_memory = near and memory >= computing
    found = list[_Found]()
    if share < _GOOD:
        basis = f"{_GOOD:.0%} of the roof at the same intensity"
        found.append((_tuning(kernel), bound / _GOOD, basis))
        if not near:
            words = "Give it more work at a time (a larger batch), or use a library's kernel"
            if kernel.kind == "graph":
                words = "Enlarge the batch, so that each kernel of the graph has work for all cores"
            elif seconds / kernel.calls < _SHORT:
                words = "Start it less often: a CUDA graph for the whole step"
            found.append((words, bound / NEAR, f"{NEAR:.0%} of the roof"))
    if by_memory:
        found += _fewer_bytes(kernel, memory, computing, share)
    if near and work and computing >= memory:
        found += _faster_units(work, memory, share, roof=roof, device=device)
    made = [
        Remedy(
            words,
            time,
            float(counters.change_speedup(seconds, time)),
            float(counters.change_speedup(run, run - seconds + time)) if run else None,
            basis,
        )
        for words, time, basis in found
        if 0 < time < 0.98 * seconds
    ]
    made.sort(key=lambda each: -each.speedup)
    return tuple(made[:2])


_Found = tuple[str, float, str]


def _tuning(kernel: MeasuredKernel) -> str:
    """Return what to do about a kernel that is not at its roof."""
    if kernel.kind == "graph":
        return (
            "Profile the kernels of the graph one by one (ncu --graph-profiling node), and begin "
            "with the longest"
        )
    for way in ("load", "store"):
        sectors = kernel.facts.get(f"sectors_per_{way}")
        if isinstance(sectors, float) and sectors > 2 * _BEST_SECTORS:
            return (
                f"Let neighboring threads access neighboring addresses: a {way} takes "
                f"{sectors:.0f} sectors of 32 bytes where {_BEST_SECTORS} would do"
            )
    if kernel.seconds is not None and kernel.seconds / kernel.calls < _SHORT:
        return (
            "Give each launch more work: a larger batch, or several of these operations in one "
            "kernel"
        )
    occupancy = kernel.facts.get("occupancy")
    if isinstance(occupancy, (int, float)) and occupancy < 50:
        return (
            f"Keep more threads in flight (occupancy is {occupancy:.0f} %): fewer registers or "
            "less shared memory for each block, smaller blocks"
        )
    return (
        "Find what the threads wait for (Nsight Compute, section WarpStateStats), then try vector "
        "loads, asynchronous copies, another tile"
    )


def _fewer_bytes(
    kernel: MeasuredKernel, memory: float, computing: float, share: float
) -> list[_Found]:
    """Return what moves fewer bytes through main memory."""
    wide = any(path in kernel.operations for path in ("fp32", "fp64", "tensor tf32", "any"))
    narrower = ("16 bits" if wide else "8 bits") if kernel.operations else "half as many bits"
    words = f"Store what it reads and writes in {narrower}: half the bytes"
    half = max(memory / 2, computing) / share
    found = [(words, half, "half the bytes at the same part of the roof")]
    if _ELEMENTWISE.search(kernel.name):
        # Fused into a neighbor, it neither writes its result nor reads it again.
        words = "Fuse it into the kernel before it (torch.compile): its input need not be read"
        return [
            *found,
            (words, half, "half its bytes, since reading and writing weigh about alike"),
        ]
    words = "Use each byte more often: larger tiles in shared memory, a larger batch"
    quarter = max(computing, memory / 4) / share
    return [*found, (words, quarter, "a quarter of the bytes at the same part of the roof")]


def _faster_units(
    work: float, memory: float, share: float, *, roof: Roof, device: Device
) -> list[_Found]:
    """Return what computes on faster units, where arithmetic limits."""
    unsure = "" if memory else ", if memory keeps up"
    used, now = set(roof.paths.values()), roof.peak or 0.0
    order = ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4"]
    slowest = min((order.index(each) for each in used if each in order), default=1)

    def at(peak: float, words: str, basis: str) -> _Found:
        faster = max(float(roofline.compute_time(work, peak)), memory)
        return words, faster / share, f"{basis} at the same part of the roof{unsure}"

    there = [each for each in order[slowest + 1 :] if each in device.compute.precisions]
    peaks = ((each, device.compute.figure(each).si) for each in there)
    found = [
        at(peak, f"Compute in {name}: {peak / now:.3g} times the peak rate", f"the {name} peak")
        for name, peak in peaks
        if peak > 1.05 * now
    ][:1]
    for name in sorted(used):
        figure = device.figures.get(f"sparse.{name}")
        if figure is not None and figure.si > 1.05 * now:
            words = f"Prune weights to 2:4 sparsity: {figure.si / now:.3g} times the peak rate"
            found.append(at(figure.si, words, f"the sparse {name} peak"))
    words = "Compute less: a smaller model, fewer tokens, no recomputing"
    return [*found, at(2 * now, words, "half the operations")]


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel at one level: FLOP/B across, FLOP/s up, and its part of the time."""

    finding: Finding
    level: str
    intensity: float
    rate: float
    time_share: float


def points_of(diagnosis: Diagnosis, levels: Sequence[str] = ("dram",)) -> list[Point]:
    """Return the points that a profile gives, the longest kernels first.

    A kernel without work, bytes or time has no place; `unplaced` names those.

    Raises
    ------
    UnknownNameError
        If there is no such level.
    NotMeasuredError
        If no kernel has a place; says what is missing.
    """
    for level in levels:
        if level not in LEVELS:
            raise unknown_name("level of memory", level, LEVELS)
    found = []
    for each in diagnosis.findings:
        if each.rate is None or not each.rate:
            continue
        for level in levels:
            moved = each.kernel.traffic.get(level)
            if moved:
                work = each.kernel.flop_count
                intensity = float(roofline.arithmetic_intensity(work, moved))
                found.append(Point(each, level, intensity, each.rate, each.time_share or 0.0))
    if not found:
        why = next((each.limit for each in diagnosis.findings), "the profile has no kernels.")
        raise NotMeasuredError(f"no kernel of the profile has a place under a roof. {why}")
    return found


def without_place(diagnosis: Diagnosis, points: Sequence[Point]) -> list[Finding]:
    """Return the kernels that have no point."""
    placed = {id(each.finding) for each in points}
    return [each for each in diagnosis.findings if id(each) not in placed]


# The five regions of the plot, and what each says.
REGIONS = {
    "above the peak": "faster than the device can compute: a count, a time or the device is wrong",
    "above the slope": "more bytes in a second than memory can move: a count, a time or the device "
    "is wrong",
    "memory-bound": "near the slope: main memory limits it",
    "compute-bound": "near the flat: the arithmetic units limit it",
    "far below the roof": "below half of the roof: neither memory nor arithmetic, but latency, "
    "launches, few threads or uneven work",
}
UNKNOWN = "not known"
# A measured rate may exceed the data sheet's by a boost of the clock.
_TOLERANCE = 1.05


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one kernel under its roof.

    Attributes
    ----------
    kernel
        What was measured.
    region
        One of `REGIONS`, or "not known".
    time_share
        Its part of the time of all kernels; None without times.
    intensity, rate, attainable
        In FLOP/B and FLOP/s; None where they are not known.
    roof_share
        Part of the roof that it reached: the shortest time that work and bytes allow, over its
        own.
    limit
        What limits it, in words.
    remedies
        The two things to try first.
    """

    kernel: MeasuredKernel
    region: str
    time_share: float | None
    intensity: float | None = None
    rate: float | None = None
    attainable: float | None = None
    roof_share: float | None = None
    limit: str = ""
    remedies: tuple[Remedy, ...] = ()

    def __str__(self) -> str:
        part = "" if self.time_share is None else f" ({self.time_share:.0%} of the time)"
        lines = [f"{self.kernel.short}{part}: {self.region}. {self.limit}"]
        for each in self.remedies:
            run = ""
            if each.run_speedup is not None and each.run_speedup > 1.005:
                run = f", the run {each.run_speedup:.3g} times"
            gain = f"{each.speedup:.3g} times faster{run} ({each.basis})"
            lines.append(f"  - {each.words}: {gain}.")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What limits a run.

    Attributes
    ----------
    profile, device
        What was diagnosed, and the device whose roof was taken.
    findings
        One for each kernel, the longest first.
    run
        What limits the run as a whole, in sentences: gaps, copies, exchanges, launches.
    whole
        All kernels together under the roof: the application's point. It hides how they differ.
    """

    profile: MeasuredProfile
    device: Device
    findings: tuple[Finding, ...]
    run: tuple[str, ...]
    whole: Finding

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of plain values for each kernel."""
        return [_row(each) for each in self.findings]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, in base units."""
        return {
            "device": self.device.key,
            "files": list(self.profile.files),
            "tool": self.profile.tool,
            "run": list(self.run),
            "whole": _row(self.whole),
            "kernels": self.rows(),
            "notes": list(self.profile.notes),
        }

    def __str__(self) -> str:
        return self.words()

    def words(self, most: int = 8) -> str:
        """Write it in sentences: the run, then the longest kernels."""
        lines = [f"{self.profile.tool} on {self.device.name}", *self.run]
        if self.whole.rate is not None and len(self.findings) > 1:
            lines.append(f"All kernels together: {self.whole.region}. {self.whole.limit}")
        lines.append("")
        lines += [str(each) for each in self.findings[:most]]
        rest = len(self.findings) - most
        if rest > 0:
            lines.append(f"... and {rest} kernels more.")
        lines += [f"Note: {each}" for each in self.profile.notes]
        return "\n".join(lines)


def _row(finding: Finding) -> dict[str, Any]:
    kernel = {"kernel": finding.kernel.name, "calls": finding.kernel.calls}
    names = ("time_share", "region", "intensity", "rate", "attainable", "roof_share", "limit")
    told = {name: getattr(finding, name) for name in names}
    remedies = [asdict(remedy) for remedy in finding.remedies]
    return {**kernel, "seconds": finding.kernel.seconds, **told, "remedies": remedies}


def diagnose(profile: MeasuredProfile, *, hardware: Device | str | None = None) -> Diagnosis:
    """Say what limits a profiled run, and the two things to try first with each kernel.

    Parameters
    ----------
    profile
        What `read_profile` or `join` returned.
    hardware
        The device; the one that the profile names if left out.

    Returns
    -------
    Diagnosis
        Prints as sentences. Gains are computed: the time after a change over the same part of the
        roof that the kernel reaches now.

    Raises
    ------
    InvalidValueError
        If no device is given and the profile names none of the zoo.

    >>> kernel = MeasuredKernel("saxpy", 1, 1e-3, {"fp32": 2e8}, {"dram": 1.2e9})
    >>> found = diagnose(MeasuredProfile((kernel,), "test"), hardware="A100").findings[0]
    >>> found.region, round(found.roof_share, 2), len(found.remedies)
    ('memory-bound', 0.59, 2)
    """
    device, total = device_of(profile, hardware), _total(profile)
    findings = tuple(find(each, device, total) for each in profile.kernels)
    whole = find(profile.total, device)
    return Diagnosis(profile, device, findings, tuple(run_words(profile)), whole)


def find(kernel: MeasuredKernel, device: Device, total: float | None = None) -> Finding:
    """Return what is known of one kernel under the roof of a device."""
    roof = roof_of(kernel, device)
    share = _share(kernel, total)
    if not kernel.seconds:
        why = kernel.missing.get("seconds", "the file has no time")
        return Finding(kernel, UNKNOWN, share, limit=f"No time: {why}.")
    moved = kernel.traffic.get("dram")
    work = kernel.flop_count if kernel.counted else None
    intensity = None
    if work is not None and moved:
        intensity = float(roofline.arithmetic_intensity(work, moved))
    rate = float(roofline.achieved_flops(work, kernel.seconds)) if work is not None else None
    missing = ""  # why it can't be placed, if it can't
    if not kernel.counted:
        missing = kernel.missing.get("flops", "its work was not counted")
    elif roof.peak is None and kernel.flop_count:
        paths = ", ".join(path for path, count in kernel.operations.items() if count)
        missing = f"the device has no peak on record for {paths}"
    elif not kernel.traffic:
        missing = kernel.missing.get("dram", "its bytes were not counted")
    memory = float(roofline.memory_time(moved, roof.bandwidth)) if moved is not None else None
    computing = float(roofline.compute_time(work, roof.peak)) if work and roof.peak else None
    if work == 0:
        computing = 0.0
    attainable = None
    if intensity and roof.peak:
        attainable = float(roofline.attainable_flops(intensity, roof.bandwidth, roof.peak))
    region, limit, reached = _place(kernel.seconds, memory, computing, roof, missing)
    remedies = (
        remedies_of(kernel, roof, device, region=region, run=total) if region != UNKNOWN else ()
    )
    return Finding(kernel, region, share, intensity, rate, attainable, reached, limit, remedies)


def _place(
    seconds: float, memory: float | None, computing: float | None, roof: Roof, missing: str
) -> tuple[str, str, float | None]:
    """Return the region, what limits in words, and the part of the roof."""
    for region, least in (("above the peak", computing), ("above the slope", memory)):
        if least is not None and least > _TOLERANCE * seconds:
            words = REGIONS[region]
            return region, f"{words[:1].upper()}{words[1:]}.", least / seconds
    if memory is None or computing is None:
        # Work or bytes are not known.
        share = ((computing if memory is None else memory) or 0.0) / seconds
        what = "the peak" if memory is None else "the memory bandwidth"
        if share < NEAR:
            known = (
                "" if memory is None and computing is None else f"It uses {share:.0%} of {what}. "
            )
            return UNKNOWN, f"{known}What limits it can't be told: {missing}.", None
        if memory is not None:
            words = f"Main memory limits it: {share:.0%} of its bandwidth. Its work is not known"
            return "memory-bound", f"{words}: {missing}.", share
        words = f"The arithmetic units limit it: {share:.0%} of the peak. Its bytes are not known."
        return "compute-bound", words, share
    by_memory = memory >= computing
    share = max(memory, computing) / seconds
    part = f"{share:.0%} of the roof"
    if share < NEAR:
        words = (
            f"It reaches {part} (under the {'slope' if by_memory else 'flat'}): it waits for "
            "latency, launches, few threads or uneven work, not for memory or arithmetic."
        )
        return "far below the roof", words, share
    if by_memory:
        rate = text(roof.bandwidth * share, "B/s", 3)
        return "memory-bound", f"Main memory limits it: {rate}, {part}.", share
    rate = text((roof.peak or 0.0) * share, "FLOP/s", 3)
    return "compute-bound", f"The arithmetic units limit it: {rate}, {part}.", share


def unplaced(profile: MeasuredProfile) -> tuple[Finding, ...]:
    """Return the kernels of a profile whose device is not known: under no roof."""
    total, limit = _total(profile), "The device is not known."
    return tuple(
        Finding(each, UNKNOWN, _share(each, total), limit=limit) for each in profile.kernels
    )


def _share(kernel: MeasuredKernel, total: float | None) -> float | None:
    return kernel.seconds / total if kernel.seconds is not None and total else None


def _total(profile: MeasuredProfile) -> float | None:
    """Return the time of all kernels in s; None without times."""
    times = [each.seconds for each in profile.kernels if each.seconds is not None]
    return sum(times) if times else None


def run_words(profile: MeasuredProfile) -> list[str]:
    """Return what limits the run as a whole, which needs no roof."""
    found, total = [], _total(profile)
    for each in profile.activity:
        if not each.span:
            continue
        share = float(counters.busy_share(each.busy, each.span))
        idle = each.span - each.busy
        gain = float(counters.change_speedup(each.span, each.busy)) if each.busy else 1.0
        found.append(
            f"Device {each.device} was busy {share:.0%} of {text(each.span, 's', 3)}: idle for "
            f"{text(idle, 's', 3)}. Without gaps the run would be {gain:.3g} times faster."
        )
        if each.gaps and each.gaps[0][1] > 0.2 * idle > 0:
            start, length = each.gaps[0]
            found.append(
                f"The longest gap, {text(length, 's', 3)}, begins {text(start, 's', 3)} after the "
                "first event: look there for loading, compiling or a wait of the host."
            )
        if each.exposed > 0.05 * each.span:
            gain = float(counters.change_speedup(each.span, each.span - each.exposed))
            found.append(
                f"For {text(each.exposed, 's', 3)} only copies or exchanges ran. Overlapped with "
                f"kernels, the run would be {gain:.3g} times faster."
            )
    found += _launch_words(profile, total)
    found += _transfer_words("Exchanges", profile.exchanges)
    found += _transfer_words("Copies", profile.copies)
    return found


def _launch_words(profile: MeasuredProfile, total: float | None) -> list[str]:
    launches = profile.launches
    if launches is None or not launches.calls:
        return []
    # one start that loads or compiles would hide what a start takes
    each = launches.seconds / launches.calls if launches.usual is None else launches.usual
    how = "on average" if launches.usual is None else "in the median"
    words = f"The host started {launches.calls:,} kernels, {how} {text(each, 's', 3)} each."
    longest = launches.longest
    if longest is not None and longest > max(10 * each, 0.5 * launches.seconds):
        words += (
            f" The longest start took {text(longest, 's', 3)}, {longest / launches.seconds:.0%} of "
            "them all: most likely it loaded or compiled. Leave it out by a warm-up."
        )
    calls = sum(kernel.calls for kernel in profile.kernels if kernel.kind == "kernel")
    if total and calls and total / calls < each:
        mean = text(total / calls, "s", 3)
        words += (
            f" A kernel runs {mean}, less than its start: use CUDA graphs, fuse operators, or "
            "enlarge the batch."
        )
    return [words]


def _transfer_words(title: str, transfers: Sequence[Any]) -> list[str]:
    known = [each for each in transfers if each.seconds]
    if not known:
        return []
    longest = max(known, key=lambda each: each.seconds)
    moved = ""
    if longest.bytes:
        moved = (
            f", {text(longest.bytes, 'B', 3)} at {text(longest.bytes / longest.seconds, 'B/s', 3)}"
        )
    total = sum(each.seconds for each in known)
    words = f"{title} took {text(total, 's', 3)}, most of it {longest.name} "
    return [f"{words}({longest.calls:,} times{moved})."]
