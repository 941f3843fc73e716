"""What a caller gives of a linear layer, checked, and made a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.equations import linear_layer as physics, linear_layer as sides
from mlsim.errors import (
    InvalidValueError,
    MlsimError,
    UnreachableError,
    UnsupportedPrecisionError,
    need,
    unknown_name,
)
from mlsim.hardware.device import Device
from mlsim.hardware.lone_kernels import FASTEST
from mlsim.hardware.named_constants import constants as named
from mlsim.parameters import check, validate, validate_given
from mlsim.precision import PRECISIONS, Precision, precision as find_precision
from mlsim.solvers.gemm.layer import (
    BOUND,
    CALIBRATED,
    GIVABLE,
    ROOFLINE,
    SHARES,
    Layer,
    check_rates,
    without_passes,
)
from mlsim.workloads.recipes import (
    PYTORCH,
    LayerKernel,
    Recipe,
    plain,
    recipe as find_recipe,
    recipes,
)

if TYPE_CHECKING:
    import pandas


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
    check("estimate", estimate)
    for name, value in (("training", training), ("fused", fused)):
        check(name, value)
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
    peaks = own.peaks if own else device.compute.figures
    base = next((name for name in BASELINES if name in peaks), None)
    # The products of the same layer in the first baseline that there is a peak for.
    baseline = plain(base, phase, baseline=True) if base else ()
    return replace(
        blank,
        kernels=(*kernels, *baseline),
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
        and all(
            kernel.computes in ("", *device.compute.figures)
            for kernel in each.kernels(next(iter(each.phases)))
        )
    ]
    return ", ".join(found) or "none"


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


# Formats without passes that are compared if nobody names any.
PLAIN = ("bf16",)


class FormatTable:
    """Times of one layer, or of an array of them, in several formats.

    Attributes
    ----------
    formats
        Names: formats, or keys of recipes.
    left_out
        Those that the device can't run, or whose blocks don't fit, and why.

    >>> from mlsim import Engine
    >>> table = Engine.compare_formats([128, 8192], 4096, 4096, hardware="H100")
    >>> table.latency.shape == (len(table.formats), 2)
    True
    """

    def __init__(self, layers: dict[str, Layer], left_out: dict[str, str]) -> None:
        self.layers, self.left_out = layers, left_out
        self.formats = tuple(layers)

    @cached_property
    def _times(self) -> tuple[Any, Any, Any]:
        """Products, passes and baseline of each format, each of shape (formats, *points)."""
        numpy = need("numpy", "a comparison of formats", "arrays")
        kernels, counts = _merged(tuple(each.kernels for each in self.layers.values()))
        first = next(iter(self.layers.values()))
        union = replace(first, kernels=kernels)
        times = union.question.evaluate("operator_time")["operator_time"]
        times = numpy.broadcast_to(times, (len(kernels), *first.shape))
        flat = times.reshape(len(kernels), -1)
        found = (physics.several_times(each, flat) for each in counts)
        shape = (len(self.layers), *first.shape)
        products, casts, baseline = (each.reshape(shape) for each in found)
        return products, casts, baseline

    @property
    def latency(self) -> Any:
        """Times in s, of shape (formats, *points)."""
        products, casts, _ = self._times
        return physics.layer_latency(products, casts)

    @property
    def casts(self) -> Any:
        """Times in s of passes between formats, of shape (formats, *points)."""
        return self._times[1]

    @property
    def speedup(self) -> Any:
        """How many times as fast as 16 bits, of shape (formats, *points)."""
        return physics.format_speedup(self._times[2], self.latency)

    @property
    def best(self) -> Any:
        """The name of the fastest format, for each point."""
        numpy = need("numpy", "a comparison of formats", "arrays")
        return numpy.array(self.formats)[self.latency.argmin(axis=0)]

    def table(self) -> pandas.DataFrame:
        """Return one layer as a table, the fastest format first.

        Raises
        ------
        InvalidValueError
            Of an array of layers.
        """
        library = need("pandas", "a table", "arrays")
        if self.latency.ndim > 1:
            raise InvalidValueError("a table is of one layer: give M, N and K as single numbers.")
        found: pandas.DataFrame = library.DataFrame(
            {
                "format": self.formats,
                "latency": self.latency,
                "casts_time": self.casts,
                "format_speedup": self.speedup,
            }
        )
        return found.sort_values("latency", kind="stable").reset_index(drop=True)


@lru_cache(maxsize=64)
def _merged(several: tuple[tuple[LayerKernel, ...], ...]) -> tuple[tuple[LayerKernel, ...], Any]:
    """Return the kernels that differ, and how often each stands as what in each format."""
    import numpy as np

    place: dict[LayerKernel, int] = {}
    for kernels in several:
        for each in kernels:
            place.setdefault(_alike(each), len(place))
    counts = np.zeros((len(_REPEATS), len(several), len(place)))
    for row, kernels in enumerate(several):
        for each in kernels:
            for which, name in enumerate(_REPEATS):
                counts[which, row, place[_alike(each)]] += getattr(each, name)
    return tuple(place), counts


def _alike(kernel: LayerKernel) -> LayerKernel:
    """Return a kernel without what does not change its time: names, and where it counts."""
    own = float(kernel.product_repeats > 0)
    return replace(
        kernel, name="", does="", product_repeats=own, cast_repeats=0.0, baseline_repeats=0.0
    )


_REPEATS = ("product_repeats", "cast_repeats", "baseline_repeats")


def compare(
    sides: tuple[Any, Any, Any],
    device: Device,
    formats: Sequence[str] | None,
    **asked: Any,
) -> FormatTable:
    """Return times of a layer in several formats; see `Engine.compare_formats`.

    Raises
    ------
    MlsimError
        As `Engine.gemm`, for a format that was named.
    """
    named = formats is not None
    shelf = PYTORCH if asked.get("constants") else ""
    blank = layer(*sides, device, **{**asked, "fused": False})
    blank = replace(blank, fused=bool(asked.get("fused")))
    keys = [key for key, each in recipes(shelf).items() if blank.phase in each.phases]
    names = list(formats) if formats is not None else [*(() if shelf else PLAIN), *keys]
    found: dict[str, Layer] = {}
    left_out: dict[str, str] = {}
    for name in names:
        try:
            found[name] = _asked(name, blank, shelf)
        except MlsimError as error:
            if named:
                raise
            left_out[name] = str(error)
    if not found:
        raise UnreachableError(f"no format is left to compare: {next(iter(left_out.values()))}")
    return FormatTable(found, left_out)


def _asked(name: str, blank: Layer, shelf: str) -> Layer:
    there = recipes(shelf)
    recipe = name if name in there or str(name).endswith(".toml") else None
    if recipe is None or (recipe in there and not there[recipe].fuses(blank.phase)):
        blank = replace(blank, fused=False)
    made = in_format(blank, None if recipe else name, recipe)
    check_rates(made)
    return made
