"""A network of layers with one fixed input, such as a CNN, and all that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.units import scaled
from mlsim.workloads.layers import Layer, Shape
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, Model
from mlsim.workloads.operators import NetworkOperators, Operator

if TYPE_CHECKING:
    from pint import Quantity


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Network(Model):
    """A network described layer by layer.

    Totals (parameters, FLOPs, traffic) are derived from the layers. `sample` says
    what one sample is where it is not one picture.

    >>> from mlsim import Models
    >>> Models.ResNet50.parameter_count
    25557032
    """

    input: Shape
    layers: tuple[Layer, ...]
    sample: str = ""

    @cached_property
    def operators(self) -> NetworkOperators:
        """Every operator in the order in which it runs."""
        shape = self.input
        found: list[Operator] = []
        for layer in self.layers:
            lowered = layer.lower(shape)
            found.extend(lowered.operators)
            shape = lowered.output
        return NetworkOperators(tuple(found))

    @cached_property
    def parameter_count(self) -> int:
        """Learned numbers in the network."""
        held = sum(operator.parameters * operator.repeats for operator in self.operators)
        return held + self.operators.table_parameters

    @cached_property
    def flop_count(self) -> int:
        """FLOP of one forward pass for one sample; a multiply-add is two."""
        each = sum(operator.multiply_adds * operator.repeats for operator in self.operators)
        return int(FLOPS_PER_MULTIPLY_ADD) * each

    @property
    def inference_flops(self) -> Quantity[Any]:
        """FLOP of one forward pass for one sample, as a quantity."""
        return scaled(self.flop_count, "FLOP")
