"""What a caller gives of a linear layer, checked, and made a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlsim.equations import linear_layer as sides
from mlsim.errors import InvalidValueError, MlsimError, UnsupportedPrecisionError, unknown_name
from mlsim.hardware.device import Device
from mlsim.hardware.fastest_kernels import FASTEST
from mlsim.hardware.named_constants import constants as named
from mlsim.precision import PRECISIONS, Precision, precision as find_precision
from mlsim.solvers.gemm.layer import BOUND, CALIBRATED, GIVABLE, ROOFLINE, SHARES, Layer
from mlsim.solvers.gemm.rates import without_passes
from mlsim.solvers.inputs import check_estimate, check_flag, validate, validate_given
from mlsim.workloads.recipes import (
    PYTORCH,
    LayerKernel,
    Recipe,
    plain,
    recipe as find_recipe,
    recipes,
)

# Where activations are between two layers, unless a cache may keep them.
IN_MEMORY, ON_CHIP = "memory", "on-chip"

# Libraries count the sides of a matrix in 32 bits.
LONGEST_SIDE = 2**31 - 1

# Formats of the baseline, the first that a device has.
BASELINES = ("bf16", "fp16")

_QUANTITIES = {"M": "layer_rows", "N": "layer_outputs", "K": "layer_inputs", "batch": "weight_sets"}


def layer(
    M: Any,  # noqa: N803  # the letters that everybody writes
    N: Any,  # noqa: N803
    K: Any,  # noqa: N803
    device: Device,
    *,
    precision: str | Precision | None = None,
    recipe: str | Path | Recipe | None = None,
    training: bool = False,
    fused: bool = False,
    batch: Any = 1,
    groups: Sequence[int] | None = None,
    estimate: str = ROOFLINE,
    constants: str = "",
    activations: str = IN_MEMORY,
    backend: str = FASTEST,
    given: Mapping[str, Any] | None = None,
) -> Layer:
    """Return the question about a layer; see `Engine.gemm` for the arguments.

    Raises
    ------
    MlsimError
        As `Engine.gemm`.
    """
    check_estimate(estimate)
    for name, value in (("training", training), ("fused", fused)):
        check_flag(name, value)
    _check_kind(estimate, constants, activations, backend)
    if estimate == BOUND and (knobs := sorted({*SHARES, "kernel_overhead"} & set(given or ()))):
        raise InvalidValueError(
            f"the bound is what no kernel can beat, so it has no {', '.join(knobs)}: leave it out, "
            'or ask estimate="roofline".'
        )
    measured = estimate == CALIBRATED or bool(constants)
    rows, weight_sets = _rows(M, batch, groups, measured=measured)
    blank = Layer(
        device=device,
        rows=rows,
        outputs=side("N", N),
        inputs=side("K", K),
        weight_sets=weight_sets,
        kernels=(),
        precision="",
        recipe=None,
        phase="training" if training else "inference",
        fused=fused,
        estimate=estimate,
        constants=named(constants).of(device.key) if constants else None,
        activations=activations,
        backend=backend,
        given=validate_given(given, GIVABLE) if given else {},
        divides={},
    )
    return in_format(blank, precision, recipe)


def in_format(
    blank: Layer, precision: str | Precision | None, recipe: str | Path | Recipe | None
) -> Layer:
    """Return a layer in a format or by a recipe, in place of the one that it is in.

    Raises
    ------
    MlsimError
        As `Engine.gemm`.
    """
    phase, device, own = blank.phase, blank.device, blank.constants
    found = _recipe(recipe, named_constants=own is not None)
    chosen = _format(precision, found)
    known = found is None or phase in found.phases
    if blank.fused and known and not (found and found.fuses(phase)):
        what = f"the recipe {found.key!r} in {phase}" if found else f"{chosen} alone"
        raise InvalidValueError(f"{what} has no pass that can be fused: leave out fused=True.")
    _check_units(device, found, own is not None)
    block = {"nvfp4": 16, "mxfp4": 32}.get(chosen, 1) if found is None else 1
    divides = {"K": block} if block > 1 else dict(found.divides if found else {})
    if phase == "inference":
        divides = {name: size for name, size in divides.items() if name == "K"}
    sides_of = {"M": blank.rows, "N": blank.outputs, "K": blank.inputs}
    _check_blocks(divides, sides_of, found.key if found else chosen)
    kernels = found.kernels(phase, fused=blank.fused) if found else plain(chosen, phase)
    if blank.estimate == BOUND or (blank.estimate == CALIBRATED and phase == "inference"):
        # Of a bound, passes could be done before; measured products have theirs with them.
        kernels = without_passes(kernels)
    return replace(
        blank,
        kernels=(*kernels, *_baseline(device, phase, own.peaks if own else None)),
        precision=found.name if found else chosen,
        recipe=found,
        divides=divides,
    )


def side(name: str, value: Any) -> Any:
    """Return a side of a layer, or an array of them: whole numbers from 1 up.

    Raises
    ------
    InvalidValueError, UnitError
        If it is none; names the side.

    >>> side("M", 4096)
    4096.0
    """
    quantity = _QUANTITIES[name]
    try:
        found = validate(quantity, value, whole=True)
    except MlsimError as error:
        raise type(error)(str(error).replace(quantity, name)) from None
    largest = found.max() if getattr(found, "ndim", 0) else found
    if largest > LONGEST_SIDE:
        raise InvalidValueError(
            f"{name} must be at most {LONGEST_SIDE:,}, not {largest:,.0f}: libraries count the "
            "sides of a matrix in 32 bits. Split it into several products (batch=)."
        )
    return found


def _rows(rows: Any, batch: Any, groups: Any, *, measured: bool) -> tuple[Any, Any]:
    """Return the rows of all products together, and how many products there are."""
    sets = side("batch", batch)
    if groups is None:
        found = side("M", rows)
        many = getattr(sets, "ndim", 0) or sets > 1
        return (sides.stacked_rows(sets, found) if many else found), sets
    if rows is not None:
        raise InvalidValueError("groups= says the rows of each product: give M=None beside it.")
    if getattr(sets, "ndim", 0) or sets > 1:
        raise InvalidValueError("give batch= (products of one shape) or groups=, not both.")
    if measured:
        raise InvalidValueError(
            "groups of different rows are known to the roofline and the bound only: no grouped "
            "product was measured. Give batch= for products of one shape."
        )
    counts = [validate("layer_rows", each, whole=True, zero=True) for each in groups]
    met = [each for each in counts if each]
    if not met:
        raise InvalidValueError("groups= needs the rows of at least one product, above 0.")
    # A group without a row reads no weights.
    return sides.grouped_rows(met, [1.0 for _ in met]), float(len(met))


def _check_kind(estimate: str, constants: str, activations: str, backend: str) -> None:
    if constants and estimate != ROOFLINE:
        raise InvalidValueError(
            f"constants={constants!r} are those of a roofline: leave out estimate={estimate!r}."
        )
    if activations not in (IN_MEMORY, ON_CHIP):
        raise unknown_name("place for activations", activations, (IN_MEMORY, ON_CHIP))
    if activations == ON_CHIP and (estimate != ROOFLINE or constants):
        raise InvalidValueError(
            'activations="on-chip" is for the plain roofline: the bound keeps all that fits '
            "anyway, measured kernels know their caches, and PyTorch's constants know none."
        )
    if backend != FASTEST and estimate != CALIBRATED:
        raise InvalidValueError(
            f'backend={backend!r} chooses measured kernels: add estimate="calibrated".'
        )


def _recipe(name: Any, *, named_constants: bool) -> Recipe | None:
    if name is None:
        return None
    shelf = PYTORCH if named_constants else ""
    try:
        return find_recipe(name, shelf)
    except MlsimError as error:
        other = recipes("" if shelf else PYTORCH)
        if name not in other:
            raise
        way = "without constants=" if shelf else 'with constants="torchao-0.18.0"'
        raise type(error)(f"the recipe {name!r} is there {way} only. {error}") from None


def _check_units(device: Device, recipe: Recipe | None, named_constants: bool) -> None:
    """Refuse a recipe whose blocks no unit of the device multiplies; a reader's may have any."""
    if recipe is None or named_constants or not recipe.architectures:
        return
    if device.architecture and device.architecture not in recipe.architectures:
        raise UnsupportedPrecisionError(
            f"{device.name} ({device.architecture}) has no units for the recipe {recipe.key!r}, "
            f"whose scales belong to blocks. {', '.join(recipe.architectures)} have. "
            f"On {device.name} take another recipe, such as {_others(device)}."
        )


def _others(device: Device) -> str:
    """Name the recipes that a device has units for."""
    found = [
        each.key
        for each in recipes().values()
        if not each.architectures
        and all(kernel.computes in ("", *device.compute.figures) for kernel in _first(each))
    ]
    return ", ".join(found) or "none"


def _first(recipe: Recipe) -> tuple[LayerKernel, ...]:
    return recipe.kernels(next(iter(recipe.phases)))


def _format(precision: Any, recipe: Recipe | None) -> str:
    """Return the format that is asked about; a recipe has its own."""
    if recipe is None:
        if isinstance(precision, str) and precision not in PRECISIONS and precision in recipes():
            raise unknown_name(
                "precision",
                precision,
                PRECISIONS,
                see=f"It is a recipe: give recipe={precision!r} in place of precision=.",
            )
        found = find_precision(BASELINES[0] if precision is None else precision)
        if found.name not in PRECISIONS:
            raise InvalidValueError(
                f"{found.name} is a format of weights alone: give a recipe for it, such as "
                'recipe="int4_weights".'
            )
        return found.name
    if precision is not None:
        raise InvalidValueError(
            f"the recipe {recipe.key!r} says the formats: leave out precision={precision!r}."
        )
    return recipe.name


def _check_blocks(divides: Mapping[str, int], given: Mapping[str, Any], what: str) -> None:
    """Refuse a side that blocks of scales don't divide."""
    for name, block in divides.items():
        value = given[name]
        rest = value % block
        if not (rest.any() if getattr(value, "ndim", 0) else rest):
            continue
        first = float(value[rest > 0][0]) if getattr(value, "ndim", 0) else value
        below, above = first // block * block, -(-first // block) * block
        near = f"{below:,.0f} or {above:,.0f}" if below else f"{above:,.0f}"
        raise InvalidValueError(
            f"{name} = {first:,.0f} is no multiple of {block}, and {what} has a scale for each "
            f"block of {block} along it. Pad it: the nearest is {near}."
        )


def _baseline(
    device: Device, phase: str, peaks: Mapping[str, float] | None
) -> tuple[LayerKernel, ...]:
    """Return the products of the same layer in the first baseline that there is a peak for."""
    there = peaks if peaks is not None else device.compute.figures
    for name in BASELINES:
        if name in there:
            return plain(name, phase, baseline=True)
    return ()
