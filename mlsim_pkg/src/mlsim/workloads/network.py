"""A model: an architecture, and all that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.equations import convolution  # noqa: F401  (registers the layer equations)
from mlsim.records import Figure
from mlsim.units import quantity, scaled
from mlsim.workloads.layers import Layer, Shape
from mlsim.workloads.operators import Operator, OperatorTable

if TYPE_CHECKING:
    from pint import Quantity

# One multiply-add is a product and a sum.
FLOPS_PER_MULTIPLY_ADD = 2.0


@dataclass(frozen=True, eq=False)
class Model:
    """A network described layer by layer.

    Totals (parameters, FLOPs, traffic) are derived from the layers; nothing is
    typed in. `figures` holds what was published about it, each with its source.

    >>> from mlsim import Models
    >>> Models.ResNet50.parameter_count
    25557032
    """

    key: str
    name: str
    architecture: str
    input: Shape
    layers: tuple[Layer, ...]
    source: str
    figures: dict[str, Figure] = field(default_factory=dict)

    @cached_property
    def operators(self) -> OperatorTable:
        """Every operator in the order in which it runs."""
        shape = self.input
        found: list[Operator] = []
        for layer in self.layers:
            lowered = layer.lower(shape)
            found.extend(lowered.operators)
            shape = lowered.output
        return OperatorTable(tuple(found))

    @cached_property
    def parameter_count(self) -> int:
        """Learned numbers in the network."""
        return sum(operator.parameters * operator.repeats for operator in self.operators)

    @property
    def parameters(self) -> Quantity[Any]:
        """Learned numbers in the network, as a quantity."""
        return quantity(self.parameter_count, "parameter")

    @cached_property
    def flop_count(self) -> int:
        """FLOP of one forward pass for one sample; a multiply-add is two."""
        each = sum(operator.multiply_adds * operator.repeats for operator in self.operators)
        return int(FLOPS_PER_MULTIPLY_ADD) * each

    @property
    def inference_flops(self) -> Quantity[Any]:
        """FLOP of one forward pass for one sample, as a quantity."""
        return scaled(self.flop_count, "FLOP")

    @property
    def release_year(self) -> int | None:
        """The year in which it was published, if its file says so."""
        figure = self.figures.get("release_year")
        return int(figure.value) if figure else None

    def __repr__(self) -> str:
        return f"<Model {self.name}: {self.parameter_count:,} parameters>"
