"""What every model has: a name, a source, and parameters that follow from its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlsim.records import Figure
from mlsim.units import quantity

if TYPE_CHECKING:
    from pint import Quantity

# One multiply-add is a product and a sum.
FLOPS_PER_MULTIPLY_ADD = 2.0

# Training does one for each parameter and token forward, and two backward: for the gradient
# of what the parameter read, and for its own.
TRAINING_MULTIPLY_ADDS = 3.0


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Model:
    """A model, described by its architecture; nothing that follows from it is typed in.

    `source` is the document of the architecture, `figures` holds what was
    published about the model, each with its source.
    """

    key: str
    name: str
    architecture: str
    source: str
    figures: Mapping[str, Figure] = field(default_factory=dict)

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
