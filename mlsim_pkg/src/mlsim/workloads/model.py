"""What every model has: a name, a source, parameters; and a network of layers, as of a CNN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.errors import Suggesting
from mlsim.records import Figure
from mlsim.units import quantity, scaled
from mlsim.workloads.layers import Layer, Shape
from mlsim.workloads.operators import NetworkOperators, Operator

if TYPE_CHECKING:
    from pint import Quantity

# One multiply-add is a product and a sum.
FLOPS_PER_MULTIPLY_ADD = 2.0

# Training does one for each parameter and token forward, and two backward: for the gradient
# of what the parameter read, and for its own.
TRAINING_MULTIPLY_ADDS = 3.0


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Model(Suggesting):
    """A model, described by its architecture; nothing that follows from it is typed in.

    `source` is the document of the architecture, `figures` holds what was
    published about the model, each with its source. `stated_format` is what a `config.json`
    says of the format of its parameters, such as "float32": an answer that takes another
    says so.
    """

    key: str
    name: str
    architecture: str
    source: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    stated_format: str = ""

    @property
    def parameter_count(self) -> int:
        """Learned numbers in the model."""
        raise NotImplementedError

    @property
    def parameters(self) -> Quantity[Any]:
        """Learned numbers in the model, as a quantity."""
        return quantity(self.parameter_count, "parameter")

    @property
    def release_year(self) -> int | None:
        """The year in which it was published, if its file says so."""
        figure = self.figures.get("release_year")
        return int(figure.value) if figure else None

    def __repr__(self) -> str:
        return f"<Model {self.name}: {self.parameter_count:,} parameters>"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Network(Model):
    """A network described layer by layer.

    Totals (parameters, FLOPs, traffic) are derived from the layers. `sample` says
    what one sample is where it is not one picture. `modules` names the layers that are
    modules in the program it was written as, where not all are: what a summary lists.

    >>> from mlsim import Models
    >>> Models.ResNet50.parameter_count
    25557032
    """

    input: Shape
    layers: tuple[Layer, ...]
    sample: str = ""
    modules: tuple[str, ...] = ()

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
