"""`Engine.solve`: one forward pass of a model on one device, for a point or an array."""

from __future__ import annotations

from typing import Any

from mlsim.hardware.device import Device
from mlsim.precision import Precision
from mlsim.solvers.forward import profile as forward
from mlsim.solvers.forward.profile import Profile
from mlsim.workloads.model import Model
from mlsim.zoo import resolve


def solve(
    model: Model | str,
    hardware: Device | str,
    *,
    batch_size: Any = 1,
    precision: str | Precision | None = None,
    estimate: str = "roofline",
    software: str | None = None,
    activations: str = "memory",
    check_memory: bool = True,
    **given: Any,
) -> Profile:
    """Predict one forward pass of a model on one device.

    Parameters
    ----------
    model, hardware
        Records of the zoo, their names, or paths of TOML files; "local" is the machine that
        `mlsim measure` measured.
    batch_size
        Samples per step: a whole number from 1 up, or a list or array.
    precision
        Number format of weights and activations, such as "int8". If left out, "fp16", or on
        a device without such a peak "bf16" or "fp32"; the answer says that it was.
    estimate
        "roofline": operator by operator at datasheet rates (the default);
        "bound": the whole network at once, moving weights, input and output
        only. No published result on record beats it; it assumes direct
        convolutions and weights read from memory once a batch;
        "calibrated": operator by operator at the rates measured on the
        device, with the overhead of launching each.
    software
        Of the calibrated estimate: the class of program that runs it, as
        `mlsim.software.classes` lists them: "engine" by default. A few of its terms are
        fitted to published results; "kernels" adds nothing.
    activations
        "memory": every operator reads its activations from memory and writes them
        there (the default); "on-chip": the last cache keeps them while all that are
        alive fit in it, and only what enters or leaves the network is moved. Weights
        are always read from memory. Not for the bound, which moves none anyway.
    check_memory
        Whether to refuse the times of a workload that does not fit in memory.
    **given
        Any quantity of the vocabulary, in place of what the data or the
        equations say: text or a quantity with a unit, or an array of them;
        for example memory_bandwidth="3 TB/s", or last_level_cache="96 MiB" with
        activations="on-chip". It may not contradict the
        other arguments.

    Raises
    ------
    InvalidValueError, UnitError, UnknownNameError, WrongKindError
        If an argument is not allowed, or contradicts another; says what is.
    UnsupportedPrecisionError
        If the device has no peak for the precision.
    NotMeasuredError
        If there are no measurements of the device for a calibrated estimate.

    >>> from mlsim import Engine, Hardware, Models
    >>> profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
    ...                        batch_size=[1, 256])
    >>> [round(float(share), 2) for share in profile.memory_bound_share]
    [0.84, 0.54]
    >>> kept = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
    ...                     activations="on-chip")
    >>> print(f"{kept.latency.to('us'):.1f}, {kept.bottleneck}")
    37.8 µs, Compute Bound
    """
    return forward.solve(
        resolve.network(model),
        resolve.device(hardware),
        batch_size=batch_size,
        precision=precision,
        estimate=estimate,
        software=software,
        activations=activations,
        check_memory=check_memory,
        given=given,
    )
