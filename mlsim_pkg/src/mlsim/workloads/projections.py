"""A projection: the matrix that turns one vector of features into another, as an operator."""

from __future__ import annotations

from mlsim.equations import transformer as count
from mlsim.workloads.steps import StepOperator


def matrix(
    name: str,
    inputs: int,
    outputs: int,
    *,
    split: int = 1,
    bias: int = 0,
    elements: int = 0,
    live: int = 0,
) -> StepOperator:
    """Return a projection, of which one device of `split` holds a part.

    It holds `bias` more numbers, which quantisation leaves alone, reads and writes
    `elements` of activation for each token, and `live` of them are alive meanwhile.
    """
    weights = count.projection_parameters(inputs, outputs)
    held = -(-(weights + bias) // split)
    return StepOperator(
        name=name,
        kind="projection",
        token_multiply_adds=count.token_multiply_adds(-(-weights // split)),
        outputs=-(-outputs // split),
        parameters=held,
        parameters_streamed=held,
        wide_parameters=-(-bias // split),
        token_elements=elements,
        live_elements=live,
    )
