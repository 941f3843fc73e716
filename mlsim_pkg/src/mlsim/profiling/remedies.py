"""What to try first with a kernel, and what each would buy, computed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlsim.equations import counters, roofline
from mlsim.hardware import Device
from mlsim.profiling.measured_profile import MeasuredKernel
from mlsim.profiling.roofs import Roof

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
    found = [
        *_to_the_roof(kernel, bound, share, near=near),
        *(_fewer_bytes(kernel, memory, computing, share) if by_memory else ()),
        *(
            _faster_units(work, memory, computing, share, roof=roof, device=device)
            if near and work
            else ()
        ),
    ]
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


def _to_the_roof(kernel: MeasuredKernel, bound: float, share: float, *, near: bool) -> list[_Found]:
    """Return what brings a kernel nearer to its roof without changing work or bytes."""
    if share >= _GOOD:
        return []
    found = [(_tuning(kernel), bound / _GOOD, f"{_GOOD:.0%} of the roof at the same intensity")]
    if not near:
        found.append((_more_work(kernel), bound / NEAR, f"{NEAR:.0%} of the roof"))
    return found


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
    found: list[_Found] = []
    wide = any(path in kernel.operations for path in ("fp32", "fp64", "tensor tf32", "any"))
    narrower = "16 bits" if wide else "8 bits"
    if not kernel.operations:
        narrower = "half as many bits"
    halved = max(memory / 2, computing) / share
    found.append(
        (
            f"Store what it reads and writes in {narrower}: half the bytes",
            halved,
            "half the bytes at the same part of the roof",
        )
    )
    if _ELEMENTWISE.search(kernel.name):
        # Fused into a neighbor, it neither writes its result nor reads it again.
        found.append(
            (
                "Fuse it into the kernel before it (torch.compile): its input need not be read",
                max(memory / 2, computing) / share,
                "half its bytes, since reading and writing weigh about alike",
            )
        )
    else:
        found.append(
            (
                "Use each byte more often: larger tiles in shared memory, a larger batch",
                max(computing, memory / 4) / share,
                "a quarter of the bytes at the same part of the roof",
            )
        )
    return found


def _faster_units(
    work: float, memory: float, computing: float, share: float, *, roof: Roof, device: Device
) -> list[_Found]:
    """Return what computes on faster units, where arithmetic limits."""
    if computing < memory:
        return []
    unsure = "" if memory else ", if memory keeps up"
    used = set(roof.paths.values())
    order = ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4"]
    slowest = min((order.index(each) for each in used if each in order), default=1)
    now = roof.peak or 0.0
    found: list[_Found] = []
    for name in order[slowest + 1 :]:
        if name not in device.compute.precisions:
            continue
        peak = device.compute.figure(name).si
        if peak <= 1.05 * now:
            continue
        faster = max(float(roofline.compute_time(work, peak)), memory)
        found.append(
            (
                f"Compute in {name}: {peak / now:.3g} times the peak rate",
                faster / share,
                f"the {name} peak at the same part of the roof{unsure}",
            )
        )
        break
    for name in sorted(used):
        figure = device.figures.get(f"sparse.{name}")
        if figure is not None and figure.si > 1.05 * now:
            faster = max(float(roofline.compute_time(work, figure.si)), memory)
            found.append(
                (
                    f"Prune weights to 2:4 sparsity: {figure.si / now:.3g} times the peak rate",
                    faster / share,
                    f"the sparse {name} peak at the same part of the roof{unsure}",
                )
            )
    found.append(
        (
            "Compute less: a smaller model, fewer tokens, no recomputing",
            max(float(roofline.compute_time(work, now)) / 2, memory) / share,
            f"half the operations at the same part of the roof{unsure}",
        )
    )
    return found
