"""`Engine.gemm` and `Engine.compare_formats`: one linear layer, or one matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlsim.hardware.device import Device
from mlsim.precision import Precision
from mlsim.solvers.gemm.asked import FormatTable, compare, layer
from mlsim.solvers.gemm.gemm import Gemm
from mlsim.workloads.recipes import Recipe
from mlsim.zoo import resolve


def gemm(
    M: Any = None,  # noqa: N803  # the letters that everybody writes
    N: Any = None,  # noqa: N803
    K: Any = None,  # noqa: N803
    *,
    hardware: Device | str,
    precision: str | Precision | None = None,
    recipe: str | Path | Recipe | None = None,
    training: bool = False,
    fused: bool = False,
    batch: Any = 1,
    groups: Sequence[int] | None = None,
    estimate: str = "roofline",
    constants: str = "",
    activations: str = "memory",
    backend: str = "fastest",
    check_memory: bool = True,
    **given: Any,
) -> Gemm:
    """Predict one matrix product, (M x K) times (K x N), or the linear layer that it is.

    Parameters
    ----------
    M, N, K
        Whole numbers from 1 up, or lists or arrays of them: rows (tokens), outputs, inputs.
    hardware
        A device of the zoo, its name, or the path of a TOML file.
    precision
        Format of both operands, with no passes before: "bf16" (if left out), "fp8", "int8",
        "nvfp4" and others. Results of formats below 16 bits have 16.
    recipe
        In place of a precision: how a layer runs in low precision, with the passes that bring
        its operands there; a key such as "fp8_rowwise", or the path of a TOML file.
    training
        Whether the gradients of the input and of the weights are computed too: three products.
    fused
        Whether passes over input and gradient are done by the operator before, where they can.
    batch
        Products of one shape that run as one kernel; each has M rows and its own weights.
    groups
        In place of M: the rows of each product of a grouped kernel. One without rows reads no
        weights. Not for measured kernels.
    estimate
        "roofline": the longer of arithmetic and traffic, at datasheet rates (the default);
        "bound": what no kernel can beat, even if the last cache is full of operands;
        "calibrated": measured kernels. In inference their pass over the input is in the time
        of the product.
    constants
        Somebody's named constants in place of the datasheet's: "torchao-0.18.0" or
        "torchao-early", with a launch of 2 us a kernel. The recipes are PyTorch's then, and
        like PyTorch they leave out the rest of a block that does not divide a side.
    activations
        "memory", or "on-chip": the last cache keeps input and output if both fit.
    backend
        Of measured kernels: "fastest", or an engine such as "trtllm".
    check_memory
        Whether to refuse the times of operands that memory doesn't hold. `constants` say
        nothing of memory, so beside them nothing is refused.
    **given
        peak_flops, memory_bandwidth, memory_capacity, last_level_cache, compute_fraction,
        memory_fraction or kernel_overhead, in place of what is on record.

    Returns
    -------
    Gemm
        `latency`, `speedup` over 16 bits, `bottleneck`, `kernels`, `break_even()`,
        `find()`, `explain()`, `sensitivity()`; times in s by name. Arrays broadcast.

    Raises
    ------
    InvalidValueError, UnitError, UnknownNameError
        If an argument is not allowed; says what is.
    UnsupportedPrecisionError
        If the device has no peak, or no units, for the format or the recipe.
    NotMeasuredError
        If nobody measured such kernels on the device, or the set of constants lacks it.
    DoesNotFitError
        When a time is read, if memory doesn't hold the operands.

    >>> from mlsim import Engine
    >>> layer = Engine.gemm(8192, 4096, 4096, hardware="B200", recipe="mxfp8", training=True)
    >>> print(f"{layer.format_speedup:.2f}")
    1.47
    >>> small = Engine.gemm(8192, [512, 4096], 4096, hardware="H100", precision="fp8",
    ...                     estimate="calibrated")
    >>> [bool(faster) for faster in small.format_speedup > 1]
    [False, True]
    """
    for name, value in (("N", N), ("K", K)):
        _needed(name, value)
    if groups is None:
        _needed("M", M)
    found = layer(
        device=resolve.device(hardware),
        M=M,
        N=N,
        K=K,
        precision=precision,
        recipe=recipe,
        training=training,
        fused=fused,
        batch=batch,
        groups=groups,
        estimate=estimate,
        constants=constants,
        activations=activations,
        backend=backend,
        given=given,
    )
    return Gemm(found, check_memory=check_memory and not constants)


def compare_formats(
    M: Any,  # noqa: N803
    N: Any,  # noqa: N803
    K: Any,  # noqa: N803
    *,
    hardware: Device | str,
    formats: Sequence[str] | None = None,
    training: bool = False,
    fused: bool = False,
    estimate: str = "roofline",
    constants: str = "",
    backend: str = "fastest",
) -> FormatTable:
    """Predict one layer, or an array of them, in several formats at once.

    Parameters
    ----------
    M, N, K, hardware, training, fused, estimate, constants, backend
        As for `gemm`; what can't be fused is not.
    formats
        Formats and keys of recipes; all recipes that the device can run if left out, and
        16 bits.

    Returns
    -------
    FormatTable
        `latency` and `speedup` of shape (formats, *points), `best` for each point, `table()`
        for one; `left_out` says which recipes can't run, and why.

    Raises
    ------
    MlsimError
        As `gemm`, for a format that was named.
    UnreachableError
        If no format is left.

    >>> from mlsim import Engine
    >>> found = Engine.compare_formats(8192, [512, 4096], 4096, hardware="H100",
    ...                                formats=["bf16", "fp8"], estimate="calibrated")
    >>> [str(each) for each in found.best]
    ['bf16', 'fp8']
    """
    return compare(
        (M, N, K),
        resolve.device(hardware),
        formats,
        training=training,
        fused=fused,
        estimate=estimate,
        constants=constants,
        backend=backend,
    )


def _needed(name: str, value: Any) -> None:
    if value is None:
        from mlsim.errors import InvalidValueError

        raise InvalidValueError(
            f"{name} is missing: a product is Engine.gemm(M, N, K, hardware=...), three whole "
            "numbers."
        )
