"""From which size on a format pays: the formula, its number, and results in symbols."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from mlsim.equations import equations_of, linear_layer as physics
from mlsim.equations.symbols import in_symbols, symbol, tex
from mlsim.errors import InvalidValueError, UnreachableError, need
from mlsim.quantities import term
from mlsim.solvers.explain import as_card, as_note
from mlsim.solvers.gemm.layer import CALIBRATED
from mlsim.solvers.question import Known, Question
from mlsim.values import Origin
from mlsim.workloads.recipes import POINT_FLOPS, cast_bytes

if TYPE_CHECKING:
    from mlsim.solvers.explain import Explanation
    from mlsim.solvers.gemm.gemm import Gemm
    from mlsim.solvers.gemm.layer import Layer
    from mlsim.values.kinds import Quantity
    from mlsim.values.plain import Plain

EQUATIONS = equations_of(physics.BREAK_EVEN)

_SIDES = {"layer_rows": "M", "layer_outputs": "N", "layer_inputs": "K"}


def expression(gemm: Gemm, name: str) -> Any:
    """Return a result of a layer as a SymPy expression in M, N and K; see `Gemm.expression`."""
    sympy = need("sympy", "a formula of M, N and K", "math")
    if gemm.layer.estimate == CALIBRATED:
        raise InvalidValueError(
            "the calibrated estimate picks the fastest of several kernels for each shape, which "
            'is no formula: ask estimate="roofline", with constants= for measured shares.'
        )
    gemm.value(name)
    question, inner = gemm._asked(name)
    columns = question.table.columns
    known = {**question.known, **columns}
    sides = {quantity: symbol(quantity) for quantity in _SIDES}
    steps = question.plan(inner).steps
    found = in_symbols(steps, {**known, **sides}, inner)
    letters = {symbol(name): sympy.Symbol(said, positive=True) for name, said in _SIDES.items()}
    return found.subs(letters)


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
        self._check()

    def _check(self) -> None:
        """Refuse what saves nothing, or costs nothing."""
        base = [each for each in self.layer.kernels if each.baseline_repeats]
        if not base or not self._shorter:
            raise UnreachableError(
                f"{self.layer.precision} has no faster peak than its baseline on "
                f"{self.layer.device.name}, so no size pays by arithmetic."
            )
        if not any(cast_bytes(self.layer.kernels).values()):
            raise UnreachableError(
                f"{self.layer.precision} alone has no pass to pay for: give a recipe=."
            )

    @cached_property
    def _peaks(self) -> tuple[float, ...]:
        columns = self.layer.question.table.columns["peak_flops"]
        base = next(
            peak
            for peak, each in zip(columns, self.layer.kernels, strict=True)
            if each.baseline_repeats
        )
        own = [
            peak
            for peak, each in zip(columns, self.layer.kernels, strict=True)
            if each.product_repeats and peak > base
        ]
        return (base, *own)

    @property
    def _shorter(self) -> int:
        """How many of the products run at a higher peak than the baseline's."""
        return len(self._peaks[1:])

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
        base, *faster = self._peaks
        known.add(layer.question.origin("peak_flops"), baseline_peak=base, peak_flops=min(faster))
        known.add("a product and a sum", point_flops=POINT_FLOPS)
        known.add("products at the faster peak", layer_products=float(self._shorter))
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
