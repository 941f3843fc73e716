"""What a linear layer answers: times, bytes, what binds, and whether a format pays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from math import lcm
from typing import TYPE_CHECKING, Any, ClassVar, cast

from mlsim.equations import equations_of, linear_layer as physics
from mlsim.equations.symbols import in_symbols, symbol, tex
from mlsim.errors import (
    InvalidValueError,
    UnreachableError,
    UnsupportedPrecisionError,
    need,
    unknown_name,
)
from mlsim.parameters import validate
from mlsim.quantities import term
from mlsim.solvers.answer import (
    COMPUTE_BOUND,
    DOES_NOT_FIT,
    MEMORY_BOUND,
    OVERHEAD_BOUND,
    Answer,
    Column,
    Form,
    Row,
    doubts,
    memory_used,
    plain,
    seconds,
    with_unit,
)
from mlsim.solvers.arrays import STEP, elasticities
from mlsim.solvers.explain import as_card, as_note
from mlsim.solvers.gemm.layer import CALIBRATED, GIVABLE, Layer, every_equation, without_passes
from mlsim.solvers.question import Known, Question
from mlsim.units import held, text
from mlsim.values import Origin
from mlsim.values.attributes import count, result
from mlsim.workloads.recipes import COLUMNS, POINT_FLOPS, cast_bytes

if TYPE_CHECKING:
    import pandas

    from mlsim.hardware.device import Device
    from mlsim.solvers.explain import Explanation
    from mlsim.values.kinds import Plain, Quantity


# Sizes are tried up to this, one multiple of the block of scales after the other.
LARGEST = 65536

_SIDES = {
    "M": ("rows",),
    "N": ("outputs",),
    "K": ("inputs",),
    "size": ("rows", "outputs", "inputs"),
}
_OF_SIDES = {"rows": "M", "outputs": "N", "inputs": "K"}


EQUATIONS = equations_of(physics.BREAK_EVEN)

_LETTERS = {"layer_rows": "M", "layer_outputs": "N", "layer_inputs": "K"}
_OF_QUANTITIES = {"layer_rows": "rows", "layer_outputs": "outputs", "layer_inputs": "inputs"}


class BreakEven:
    """The size from which on a format pays, where arithmetic limits the products.

    In inference it is the outputs N: each input element is cast once and used N times. In
    training it is the side of a layer with M = N = K.

    >>> from mlsim import Engine
    >>> found = Engine.gemm(8192, 4096, 4096, hardware="H100", recipe="fp8_rowwise").break_even()
    >>> found.quantity, round(found.value)
    ('break_even_outputs', 885)
    """

    def __init__(self, layer: Layer) -> None:
        if layer.estimate != "roofline":
            raise UnreachableError(
                f"a break-even as a formula is one of the roofline, not of {layer.estimate}: "
                "find() looks for the number."
            )
        self.layer = layer
        self.quantity = "break_even_outputs" if layer.phase == "inference" else "break_even_size"
        peaks = layer.question.table.columns["peak_flops"]
        with_peaks = list(zip(layer.kernels, peaks, strict=True))
        bases = [peak for each, peak in with_peaks if each.baseline_repeats]
        # Of the products, those that run at a higher peak than the baseline's.
        self._base = bases[0] if bases else math.inf
        self._faster = [p for each, p in with_peaks if each.product_repeats and p > self._base]
        if not self._faster:
            raise UnreachableError(
                f"{layer.precision} has no faster peak than its baseline on "
                f"{layer.device.name}, so no size pays by arithmetic."
            )
        if not any(cast_bytes(layer.kernels).values()):
            raise UnreachableError(
                f"{layer.precision} alone has no pass to pay for: give a recipe=."
            )

    @cached_property
    def question(self) -> Question:
        """What is asked."""
        layer, own = self.layer, self.layer.constants
        words = own.words if own else "the data sheet's rates"
        known = Known().add("given", layer_outputs=layer.outputs, layer_inputs=layer.inputs)
        known.add(
            words,
            compute_fraction=own.compute_fraction if own else 1.0,
            memory_fraction=own.memory_fraction if own else 1.0,
        )
        known.add(
            layer.question.origin("memory_bandwidth"),
            memory_bandwidth=layer.question.known["memory_bandwidth"],
        )
        peaks = {"baseline_peak": self._base, "peak_flops": min(self._faster)}
        known.add(layer.question.origin("peak_flops"), **peaks)
        known.add("a product and a sum", point_flops=POINT_FLOPS)
        known.add("products at the faster peak", layer_products=float(len(self._faster)))
        known.add(layer._source, **cast_bytes(layer.kernels))
        return Question(known, EQUATIONS, lambda: layer.labels)

    @property
    def value(self) -> Plain:
        """The size, a value: N in inference, the side of a cube in training."""
        number = float(self.question.value(self.quantity))
        return cast("Plain", term(self.quantity).scaled(number, self._origin))

    def _origin(self, value: Quantity) -> Origin:
        words, said = self.quantity.replace("_", " "), self.explain().to_dict
        brief = f"{words} = {term(self.quantity).text(value.si)} ({self.layer.labels['model']})"
        return Origin(words, brief, lambda: as_card(said()), lambda: as_note(said()))

    @property
    def rows(self) -> float:
        """In training, the rows M for the layer's own N and K; below zero, no M is enough."""
        if self.layer.phase == "inference":
            raise UnreachableError(
                "in inference the rows cancel: the break-even is a number of outputs."
            )
        return float(self.question.value("break_even_rows"))

    @property
    def tex(self) -> str:
        """The formula in TeX."""
        return tex(next(each for each in EQUATIONS if each.name == self.quantity))

    def explain(self) -> Explanation:
        """Show how the number came to be."""
        from mlsim.solvers.explain import Explanation

        return Explanation(self.question, self.quantity)

    def __repr__(self) -> str:
        return f"<BreakEven {self.quantity} = {self.value:,.0f}: {self.layer.precision}>"


# What hangs on a baseline, which a device without 16 bits lacks.
_COMPARED = ("baseline_time", "format_speedup")
# What is computed together, since a question seldom stops at one of them.
_TOGETHER = ("latency", "products_time", "casts_time", *_COMPARED[:1])
_SHARES = {
    "memory_limited_share": MEMORY_BOUND,
    "compute_limited_share": COMPUTE_BOUND,
    "start_limited_share": OVERHEAD_BOUND,
}
_CAUSES = dict(zip(("memory", "arithmetic", "launches"), _SHARES, strict=True))


_OF_KERNELS = (
    *("flops", "input_bytes", "layer_weight_bytes", "output_bytes", "scale_bytes"),
    *("bytes_moved", "compute_time", "memory_time", "operator_time"),
)
# Quantities that have no meaning for operands that memory does not hold.
_NEEDS_MEMORY = frozenset(
    each.yields
    for each in every_equation()
    if each.unit in ("s", "FLOP/s") or each.yields.endswith(("share", "speedup"))
)


def _parts(gemm: Gemm) -> list[tuple[str, str]]:
    """Return rows with what the time goes into, and the time in 16 bits."""
    rows = []
    if gemm.value("casts_time"):
        products, casts = (seconds(gemm.value(n)) for n in ("products_time", "casts_time"))
        rows.append(("of which", f"{products} products, {casts} passes between formats"))
    base = [each for each in gemm.layer.kernels if each.baseline_repeats]
    if base and gemm.layer.precision != base[0].computes:
        took = f"{seconds(gemm.value('baseline_time'))}: {gemm.value('format_speedup'):.2f}"
        rows.append((f"in {base[0].computes}", f"{took} times as long"))
    return rows


def _bound(gemm: Gemm) -> str:
    """Say what binds, and what limits the time to which part."""
    names = {"arithmetic": "compute", "memory": "memory", "launches": "start"}
    shares = {words: gemm.value(f"{name}_limited_share") for words, name in names.items()}
    parts = ", ".join(f"{words} {share:.0%}" for words, share in shares.items() if share > 1e-9)
    return f"{gemm.bottleneck} (time limited by {parts})"


def _side(name: str) -> Callable[[Gemm], dict[str, Any]]:
    return lambda gemm: with_unit(getattr(gemm.layer, name), "1")


_FORM = Form(
    title=lambda gemm: (
        f"Linear layer on {gemm.hardware.name}, {gemm.layer.precision}, {gemm.layer.phase}"
        f"{', fused' if gemm.layer.fused else ''}, {gemm.layer.estimate_words}"
    ),
    rows=(
        Row("sides", lambda gemm: gemm._sides),
        Row("time", "latency", timed=True),
        Row("", _parts, timed=True),
        Row("bottleneck", _bound, timed=True),
        Row("intensity", "network_intensity", timed=True),
        Row("operands", lambda gemm: memory_used(gemm, "memory_capacity")),
        Row("", doubts),
    ),
    columns=(
        Column("M", 9, lambda gemm: gemm.layer.rows),
        Column("N", 9, lambda gemm: gemm.layer.outputs),
        Column("K", 9, lambda gemm: gemm.layer.inputs),
        Column("time", 10, "latency", seconds),
        Column(
            *("speed-up", 8),
            lambda gemm: gemm.value("format_speedup") if gemm._compared else math.nan,
            "{:.2f}".format,
        ),
        Column("bottleneck", 0, lambda gemm: gemm.bottleneck, str),
    ),
    inputs={
        "hardware": lambda gemm: gemm.hardware.name,
        "precision": lambda gemm: gemm.layer.precision,
        "recipe": lambda gemm: gemm.layer.recipe.key if gemm.layer.recipe else None,
        "phase": lambda gemm: gemm.layer.phase,
        "fused": lambda gemm: gemm.layer.fused,
        "estimate": lambda gemm: gemm.layer.estimate_words,
        "M": _side("rows"),
        "N": _side("outputs"),
        "K": _side("inputs"),
        "batch": _side("weight_sets"),
        "feasible": lambda gemm: plain(gemm.feasible),
        "bottleneck": lambda gemm: plain(gemm.bottleneck) if gemm.shows_times else None,
        "kernels": lambda gemm: gemm.kernels if gemm.shows_times and not gemm.shape else "",
    },
)

# Results that JSON has.
_REPORTED = (
    *("latency", "products_time", "casts_time", "baseline_time", "format_speedup"),
    *("total_flops", "total_bytes", "network_intensity", "compute_limited_share"),
    *("memory_limited_share", "start_limited_share", "memory_required"),
)


class Gemm(Answer):
    """The answer for one linear layer, or for an array of them.

    Times are quantities; `speedup` is a plain number. Anything else that the equations
    reach is to be had by name: `gemm["total_bytes"]`.

    >>> from mlsim import Engine
    >>> gemm = Engine.gemm(4096, 4096, 4096, hardware="H100", precision="fp8")
    >>> print(f"{gemm.latency.to('us'):.1f}, {gemm.bottleneck}, {gemm.format_speedup:.2f} times")
    69.4 µs, Compute Bound, 2.00 times
    """

    noun = variable = "gemm"
    needs_memory = _NEEDS_MEMORY
    form = _FORM
    main: ClassVar[Mapping[str, str]] = {"latency": "{}"}

    def __init__(self, layer: Layer, *, check_memory: bool = True) -> None:
        super().__init__(layer, check_memory=check_memory)
        self.layer = layer
        _ = self.question  # refuses what has no peak, or was not measured

    @property
    def hardware(self) -> Device:
        """The device that was asked about."""
        return self.layer.device

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for by name."""
        yields = (each.yields for each in self.question.equations)
        found = dict.fromkeys((*yields, *self.question.known, *self.question.table.extra))
        if not self._compared:
            found = {name: None for name in found if name not in _COMPARED}
        return tuple(name for name in found if name not in COLUMNS)

    @property
    def _compared(self) -> bool:
        return any(each.baseline_repeats for each in self.layer.kernels)

    def _asked(self, name: str) -> tuple[Question, str]:
        question, inner = super()._asked(name)
        return (question if name in _COMPARED else self._alone), inner

    @cached_property
    def _alone(self) -> Question:
        """The question without the baseline, which most results don't need."""
        own = tuple(each for each in self.layer.kernels if not each.baseline_repeats)
        return replace(self.layer, kernels=own).question

    def _value(self, name: str) -> Any:
        if name in _TOGETHER and name not in self._values:
            self._values |= self.question.evaluate(*_TOGETHER)
            if not self.shape:
                self._values |= {each: float(self._values[each]) for each in _TOGETHER}
        return super()._value(name)

    def too_large(self) -> str:
        """Say by how much it does not fit, and what would help."""
        return (
            f"the operands of {self._sides} take {held(float(self._value('memory_required')))}"
            f" in {self.layer.precision}; {self.hardware.name} has "
            f"{held(self.question.known['memory_capacity'])}. Take smaller sides, or pass "
            "check_memory=False for the time it would take if it fitted."
        )

    def _point(self, pick: Callable[[Any], float]) -> Gemm:
        layer = self.layer
        given = {name: pick(value) for name, value in layer.given.items()}
        names = ("rows", "outputs", "inputs", "weight_sets")
        picked: dict[str, Any] = {name: pick(getattr(layer, name)) for name in names}
        return Gemm(replace(layer, given=given, **picked), check_memory=self._check_memory)

    def _calibrated(self) -> Gemm | None:
        if self.layer.constants:
            return None
        asked = replace(self.layer, estimate=CALIBRATED)
        if asked.phase == "inference":  # measured products have their passes with them
            asked = replace(asked, kernels=without_passes(asked.kernels))
        return Gemm(asked, check_memory=self._check_memory)

    def causes_behind(self, name: str) -> dict[str, Any]:
        """Return what the time goes into that decides a result, as parts by cause."""
        return {cause: self.value(share) for cause, share in _CAUSES.items()}

    latency = result("Time of the layer: its products, and the passes between formats.")
    format_speedup = count("How many times as fast it is as in 16 bits.")
    total_flops = result("Work of the layer.")
    total_bytes = result("Bytes that the layer moves to and from main memory.")
    network_intensity = result("Work of the layer over its bytes.")
    achieved_flops = result("Work over latency.")
    casts_share = count("Part of the latency in the passes between formats.")
    memory_required = result("Memory of its operands.")

    @property
    def baseline(self) -> Gemm:
        """The same layer in 16 bits.

        Raises
        ------
        UnsupportedPrecisionError
            If the device has no peak in 16 bits.

        >>> from mlsim import Engine
        >>> Engine.gemm(512, 512, 512, hardware="H100", precision="fp8").baseline.layer.precision
        'bf16'
        """
        own = tuple(each for each in self.layer.kernels if each.baseline_repeats)
        if not own:
            raise UnsupportedPrecisionError(
                f"{self.layer.device.name} has no peak in 16 bits on record, so there is no "
                "baseline to compare with. Ask another device, such as hardware='H100'."
            )
        kernels = [replace(each, product_repeats=1.0, baseline_repeats=0.0) for each in own]
        layer = replace(
            self.layer,
            kernels=(*kernels, *own),
            precision=kernels[0].computes,
            recipe=None,
            fused=False,
        )
        return Gemm(layer, check_memory=self._check_memory)

    @property
    def bottleneck(self) -> Any:
        """What binds for most of the time: arithmetic, memory, or starting kernels."""
        values = [self.value(name) for name in _SHARES]
        words = list(_SHARES.values())
        if not self.shape:
            return words[values.index(max(values))]
        import numpy as np

        named = np.array(words)[np.argmax(np.stack(values), axis=0)]
        return np.where(np.isnan(values[0]), DOES_NOT_FIT, named)

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """One record per kernel, in base units: what it moves of each matrix, and its time.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("kernels")
        names = [name for name in _OF_KERNELS if name in self.names]
        values = self.question.evaluate(*names)
        rows = []
        for index, kernel in enumerate(self.layer.kernels):
            if not kernel.repeats:
                continue
            row: dict[str, Any] = {"name": kernel.name, "does": kernel.does}
            for name in names:
                column = values[name]
                row[name] = float(column[index] if getattr(column, "ndim", 0) else column)
            rows.append(row)
        return rows

    def break_even(self) -> BreakEven:
        """Return from which size on the format pays, as a formula and as a number.

        Raises
        ------
        UnreachableError
            If there is no such formula: nothing is saved, or nothing is paid.
        """
        return BreakEven(self.layer)

    def expression(self, name: str = "latency") -> Any:
        """Return a result as a SymPy expression in M, N and K, with exact numbers.

        Raises
        ------
        InvalidValueError
            Of the calibrated estimate, which picks from several kernels for each shape.
        MissingLibraryError
            If SymPy is not installed.

        >>> from mlsim import Engine
        >>> Engine.gemm(64, 64, 64, hardware="H100").expression("total_flops")
        2*K*M*N
        """
        sympy = need("sympy", "a formula of M, N and K", "math")
        if self.layer.estimate == CALIBRATED:
            raise InvalidValueError(
                "the calibrated estimate picks the fastest of several kernels for each shape, "
                'which is no formula: ask estimate="roofline", with constants= for measured '
                "shares."
            )
        self.value(name)
        question, inner = self._asked(name)
        known = {**question.known, **question.table.columns}
        sides = {quantity: symbol(quantity) for quantity in _LETTERS}
        found = in_symbols(question.plan(inner).steps, {**known, **sides}, inner)
        letters = {
            symbol(name): sympy.Symbol(said, positive=True) for name, said in _LETTERS.items()
        }
        return found.subs(letters)

    def find(self, vary: str = "size", target: str = "format_speedup", value: Any = 1.0) -> int:
        """Return from which size on a result stays at or above a value.

        Parameters
        ----------
        vary
            "M", "N", "K", or "size" for all three at once.
        target, value
            A result, and the value that it has to reach, with its unit unless it has none.

        Raises
        ------
        UnreachableError
            If it does not stay there up to the largest size that is tried; says what it has.

        >>> from mlsim import Engine
        >>> Engine.gemm(8192, 4096, 4096, hardware="H100", recipe="fp8_rowwise").find("N")
        886
        """
        numpy = need("numpy", "a search", "arrays")
        self.one_point("find()")
        if vary not in _SIDES:
            raise unknown_name("side to vary", vary, _SIDES)
        if target not in self.names:
            raise unknown_name("result of a gemm", target, self.names)
        wanted = float(validate(target, value))
        sides, divides = _SIDES[vary], self.layer.divides
        # What each size has to be a multiple of.
        block = lcm(*(divides.get(_OF_SIDES[side], 1) for side in sides))
        sizes = numpy.arange(block, LARGEST + 1, block, dtype=float)
        changed = replace(self.layer, **dict.fromkeys(sides, sizes))
        results = changed.question.evaluate(target)[target]
        below = numpy.flatnonzero(~(results >= wanted))
        if not below.size:
            return int(sizes[0])
        if below[-1] == sizes.size - 1:
            unit = term(target).printed
            raise UnreachableError(
                f"{target} is {text(float(results[-1]), unit)} at {vary} = {sizes[-1]:,.0f}, "
                f"below {text(wanted, unit)}; the most is {text(float(results.max()), unit)}, at "
                f"{vary} = {sizes[results.argmax()]:,.0f}."
            )
        return int(sizes[below[-1] + 1])

    def sensitivity(self, name: str = "latency") -> pandas.DataFrame:
        """Return how much a result changes with each input, as a table.

        The column `elasticity` is the percent by which the result changes when the input
        grows by one percent, the others held.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.

        >>> from mlsim import Engine
        >>> table = Engine.gemm(8192, 8192, 8192, hardware="H100").sensitivity()
        >>> float(table.set_index("input").elasticity["peak_flops"])
        -1.0
        """
        self.one_point("sensitivity()")
        layer, known, table = self.layer, self.question.known, self.question.table.columns
        values = {n: float(known[n]) for n in (*_OF_QUANTITIES, *GIVABLE) if n in known}
        values |= {n: table[n][0] for n in GIVABLE if n in table}

        def at(input_name: str, scale: float) -> float:
            changed: dict[str, Any] = {input_name: values[input_name] * scale}
            if side := _OF_QUANTITIES.get(input_name):
                changed = {side: changed[input_name]}
            else:
                changed = {"given": {**layer.given, **changed}}
            return float(replace(layer, **changed).question.value(name))

        return elasticities((n, each, partial(at, n), STEP) for n, each in values.items() if each)

    @property
    def _sides(self) -> str:
        if self.shape:
            return f"{self.shape} layers"
        rows, outputs, inputs = self.layer.rows, self.layer.outputs, self.layer.inputs
        sets = self.layer.weight_sets
        many = f", {sets:,.0f} sets of weights" if sets > 1 else ""
        return f"M={rows:,.0f}, N={outputs:,.0f}, K={inputs:,.0f}{many}"

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        layer = self.layer
        return (
            f"{self._sides}, {layer.precision}, {layer.phase}, on {self.hardware.name}, "
            f"{layer.estimate_words}"
        )

    @property
    def reported(self) -> tuple[str, ...]:  # type: ignore[override]
        """Results that JSON has; without 16 bits on the device, none that compares."""
        return tuple(name for name in _REPORTED if name in self.names)
