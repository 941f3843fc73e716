"""The roof over a measured kernel: which device, which peak for its mix, which ceilings below."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from mlsim.equations import counters, roofline
from mlsim.errors import InvalidValueError, MlsimError
from mlsim.hardware import Device
from mlsim.hardware.memory_levels import levels as recorded_levels
from mlsim.profiling.measured_profile import INTEGERS, MeasuredKernel, MeasuredProfile
from mlsim.zoo import resolve

# The precisions whose peak bounds a data path, best first.
PEAKS = {
    "fp64": ("fp64",),
    "fp32": ("fp32",),
    "fp16": ("fp16",),
    "tensor tf32": ("tf32",),
    "tensor fp16": ("fp16",),
    "tensor bf16": ("bf16", "fp16"),
    "tensor fp8": ("fp8",),
    "tensor fp4": ("fp4",),
    "tensor fp6": ("fp8",),
    "tensor": ("fp16", "bf16"),
}
# What an operator of a framework may run on, by the type of its first input.
_TYPES = {"float": ("tf32", "fp32"), "double": ("fp64",), "c10::Half": ("fp16",)}
_TYPES |= {"c10::BFloat16": ("bf16", "fp16")}
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
        name = _precision(path, kernel, device)
        if name is None:
            return Roof(None, device.bandwidth_si, paths)
        paths[path] = name
        peak = device.compute.figure(name).si
        slowest = max(slowest, float(roofline.compute_time(count, peak)))
        work += count
    if not work:
        return Roof(None, device.bandwidth_si, paths)
    return Roof(float(roofline.achieved_flops(work, slowest)), device.bandwidth_si, paths)


def _precision(path: str, kernel: MeasuredKernel, device: Device) -> str | None:
    wanted = PEAKS.get(path, ())
    if path == "any":
        wanted = _TYPES.get(str(kernel.facts.get("type", "float")), ("tf32", "fp32"))
    return next((each for each in wanted if each in device.compute.precisions), None)


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
