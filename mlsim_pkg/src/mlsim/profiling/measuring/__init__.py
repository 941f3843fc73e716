"""`measure`: the ceilings of the machine that runs this, each with its spread."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from mlsim.errors import InvalidValueError, need, unknown_name

if TYPE_CHECKING:
    from mlsim.profiling.measuring.measurement import Measurement

# A minute, less what compiling and choosing take.
BUDGET = 55.0
KERNELS = ("auto", "c", "numpy")


def measure(
    device: str = "cpu",
    *,
    seconds: float = BUDGET,
    kernels: str = "auto",
    disk: bool = True,
    disk_folder: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
    accept_noisy: bool | None = None,
) -> Measurement:
    """Measure the ceilings of this machine: bandwidths by level, products, starts, disk.

    Everything is measured in six rounds or more, so that each figure sees the whole minute. The
    rounds are put into six stretches of time. A figure is the median of the stretches, each with
    the best of its rounds, and its interval reaches as far to either side as they differ: see
    `Spread.across`. What differs too much is left out and said, and so is what other programs
    disturbed all the time.

    Parameters
    ----------
    device
        "cpu", or "gpu" for what PyTorch finds (CUDA, ROCm or MPS).
    seconds
        About how long it may take, after what compiling and choosing take. Six rounds have half
        of it more; where not even that is enough, it stops and says what they take here.
    kernels
        What goes through memory: "c" (compiled here), "numpy", or "auto" for the first of these
        that there is.
    disk
        Whether to write and read a file of 128 MiB in `disk_folder` (the user's own folder by
        default); it is removed.
    progress
        Is told what is being measured.
    accept_noisy
        Whether figures that are too noisy for a ceiling are kept, marked and with their wide
        intervals, so that a shared machine (Colab) is a device too. Each answer about it says so.
        None, the default: only where there would be no roof without them. Then half as many
        seconds more are measured.

    Returns
    -------
    Measurement
        `figures` with their spreads, what was `refused` and why, the `curves`; `device` for
        every question of the package, and `save()` for `Hardware.local()`.

    Raises
    ------
    UnknownNameError
        If `device` or `kernels` is none of those named.
    InvalidValueError
        If `seconds` is not positive.
    MissingLibraryError
        If NumPy, the kernels that were asked for, or for a GPU PyTorch, are not there.
    NotMeasuredError
        If there is no GPU.

    >>> measure(seconds=-1)
    Traceback (most recent call last):
    mlsim.errors.InvalidValueError: seconds must be positive, not -1.
    """
    if device not in ("cpu", "gpu"):
        raise unknown_name("kind of device to measure", device, ("cpu", "gpu"))
    if kernels not in KERNELS:
        raise unknown_name("kind of kernel", kernels, KERNELS)
    if not seconds > 0:
        raise InvalidValueError(f"seconds must be positive, not {seconds}.")
    say = progress or (lambda _: None)
    if device == "gpu":
        from mlsim.profiling.measuring import gpu

        torch = need("torch", "measuring a GPU", "torch")
        return gpu.measure_gpu(torch, seconds=seconds, say=say, accept_noisy=accept_noisy)
    from mlsim.profiling.measuring.cpu import Processor

    folder = None
    if disk:
        # The user's own folder; Path.home() raises where there is none.
        folder = Path(disk_folder or os.path.expanduser("~"))  # noqa: PTH111
    return Processor(
        need("numpy", "measuring a machine", "arrays"),
        kernels,
        perf_counter() + seconds,
        folder,
        say,
        accept_noisy,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
    ).measure()
