"""What a recommendation model adds: rows of large tables, and how they go together."""

from __future__ import annotations

from dataclasses import dataclass

from mlsim.equations import transformer as count
from mlsim.errors import InvalidValueError
from mlsim.workloads.layers import Lowered, Shape
from mlsim.workloads.operators import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class DotInteraction:
    """Rows of tables, one of each, multiplied with one another, as in DLRM.

    The input is a vector of dense features. A sample looks one row of each table
    up, as wide as that vector ("lookups": it reads and writes these rows, while
    `rows` of each table lie in memory). A row that several samples look up is read
    for each of them: no cache is counted. The product of each pair of all vectors,
    counted once, goes behind the dense vector ("interaction").
    """

    name: str
    rows: tuple[int, ...]

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to two operators.

        Raises
        ------
        InvalidValueError
            If the input is more than one vector.
        """
        if shape.places != 1:
            raise InvalidValueError(
                f"layer {self.name}: its input must be one vector, not {shape.places} places: put "
                "a linear layer before it."
            )
        width = shape.channels
        vectors = len(self.rows) + 1
        looked_up = len(self.rows) * width
        lookups = Operator(
            name=f"{self.name}.lookups",
            kind="embedding",
            multiply_adds=0,
            parameters=0,
            activations_read=looked_up,
            activations_written=looked_up,
            activations_live=2 * looked_up + shape.elements + also_live,
            table_parameters=int(count.projection_parameters(sum(self.rows), width)),
        )
        pairs = vectors * (vectors - 1) // 2
        output = Shape(width + pairs, 1)
        interaction = Operator(
            name=f"{self.name}.interaction",
            kind="interaction",
            multiply_adds=pairs * width,
            parameters=0,
            activations_read=vectors * width,
            activations_written=output.elements,
            activations_live=vectors * width + output.elements + also_live,
        )
        return Lowered((lookups, interaction), output)
