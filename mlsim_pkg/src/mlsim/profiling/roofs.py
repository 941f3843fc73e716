"""The roof over a measured kernel, and what to try first with a kernel below it.

Which device, which peak for its mix of data paths, which ceilings below; what each remedy would buy
is computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from mlsim.equations import counters, roofline
from mlsim.errors import InvalidValueError, MlsimError
from mlsim.hardware import Device
from mlsim.hardware.memory_levels import levels as recorded_levels
from mlsim.profiling.measured_profile import INTEGERS, MeasuredKernel, MeasuredProfile
from mlsim.profiling.read.tables import known
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

    @property
    def ridge(self) -> float | None:
        """The intensity at which the two limits meet in FLOP/B."""
        return None if self.peak is None else float(roofline.ridge_point(self.peak, self.bandwidth))


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
            found.append((_more_work(kernel), bound / NEAR, f"{NEAR:.0%} of the roof"))
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


def _is_short(kernel: MeasuredKernel) -> bool:
    return kernel.seconds is not None and kernel.seconds / kernel.calls < _SHORT


def _more_work(kernel: MeasuredKernel) -> str:
    """Return the second thing to try far below the roof."""
    if kernel.kind == "graph":
        return "Enlarge the batch, so that each kernel of the graph has work for all cores"
    if _is_short(kernel):
        return "Start it less often: a CUDA graph for the whole step"
    return "Give it more work at a time (a larger batch), or use a library's kernel"


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
    if _is_short(kernel):
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
