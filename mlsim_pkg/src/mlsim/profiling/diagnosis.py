"""What limits a run that was profiled, kernel by kernel and as a whole, and what to try first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mlsim.equations import counters, roofline
from mlsim.errors import NotMeasuredError, unknown_name
from mlsim.hardware import Device
from mlsim.profiling.measured_profile import LEVELS, MeasuredKernel, MeasuredProfile
from mlsim.profiling.roofs import NEAR, Remedy, Roof, device_of, remedies_of, roof_of
from mlsim.units import text


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
    intensity: float | None
    rate: float | None
    attainable: float | None
    roof_share: float | None
    limit: str
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
    return {
        "kernel": finding.kernel.name,
        "calls": finding.kernel.calls,
        "seconds": finding.kernel.seconds,
        "time_share": finding.time_share,
        "region": finding.region,
        "intensity": finding.intensity,
        "rate": finding.rate,
        "attainable": finding.attainable,
        "roof_share": finding.roof_share,
        "limit": finding.limit,
        "remedies": [asdict(remedy) for remedy in finding.remedies],
    }


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
    device = device_of(profile, hardware)
    total = _total(profile)
    findings = tuple(find(each, device, total) for each in profile.kernels)
    whole = find(profile.total, device)
    return Diagnosis(profile, device, findings, tuple(run_words(profile)), whole)


def find(kernel: MeasuredKernel, device: Device, total: float | None = None) -> Finding:
    """Return what is known of one kernel under the roof of a device."""
    roof = roof_of(kernel, device)
    share = kernel.seconds / total if kernel.seconds is not None and total else None
    if not kernel.seconds:
        why = kernel.missing.get("seconds", "the file has no time")
        return Finding(kernel, UNKNOWN, share, None, None, None, None, f"No time: {why}.")
    moved = kernel.traffic.get("dram")
    work = kernel.flop_count if kernel.counted else None
    intensity = None
    if work is not None and moved:
        intensity = float(roofline.arithmetic_intensity(work, moved))
    rate = float(roofline.achieved_flops(work, kernel.seconds)) if work is not None else None
    missing = _missing(kernel, roof)
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


def _missing(kernel: MeasuredKernel, roof: Roof) -> str:
    """Say why a kernel can't be placed, if it can't."""
    if not kernel.counted:
        return kernel.missing.get("flops", "its work was not counted")
    if roof.peak is None and kernel.flop_count:
        paths = ", ".join(path for path, count in kernel.operations.items() if count)
        return f"the device has no peak on record for {paths}"
    return kernel.missing.get("dram", "its bytes were not counted") if not kernel.traffic else ""


def _place(
    seconds: float, memory: float | None, computing: float | None, roof: Roof, missing: str
) -> tuple[str, str, float | None]:
    """Return the region, what limits in words, and the part of the roof."""
    for region, least in (("above the peak", computing), ("above the slope", memory)):
        if least is not None and least > _TOLERANCE * seconds:
            words = REGIONS[region]
            return region, f"{words[:1].upper()}{words[1:]}.", least / seconds
    if memory is None or computing is None:
        return _half_known(seconds, memory, computing, missing)
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


def _half_known(
    seconds: float, memory: float | None, computing: float | None, missing: str
) -> tuple[str, str, float | None]:
    """Say what can be said of a kernel of which work or bytes are not known."""
    share = (computing if memory is None else memory) or 0.0
    share /= seconds
    if share < NEAR:
        what = "the peak" if memory is None else "the memory bandwidth"
        known = "" if memory is None and computing is None else f"It uses {share:.0%} of {what}. "
        return UNKNOWN, f"{known}What limits it can't be told: {missing}.", None
    if memory is not None:
        words = f"Main memory limits it: {share:.0%} of its bandwidth. Its work is not known"
        return "memory-bound", f"{words}: {missing}.", share
    words = f"The arithmetic units limit it: {share:.0%} of the peak. Its bytes are not known."
    return "compute-bound", words, share


def unplaced(profile: MeasuredProfile) -> tuple[Finding, ...]:
    """Return the kernels of a profile whose device is not known: under no roof."""
    total = _total(profile)
    return tuple(
        Finding(
            *(each, UNKNOWN, each.seconds / total if each.seconds is not None and total else None),
            *(None, None, None, None),
            "The device is not known.",
        )
        for each in profile.kernels
    )


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
