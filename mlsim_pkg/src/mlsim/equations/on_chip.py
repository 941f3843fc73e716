"""What a device moves whose last cache keeps activations from one operator to the next.

The roofline moves every activation to memory and back. A device with a large cache need
not: what one operator has written, the next one may read from the chip. Weights are read
from memory once a step in either case.
"""

from __future__ import annotations

from mlsim.equations.functions import exceeds
from mlsim.equations.registry import equation

QUESTION = "What does a step move if a cache keeps the activations?"


@equation(source="hennessy2019quantitative")
def live_bytes(bytes_per_element, operator_live, batch_size):
    """All activations that are alive while an operator runs: what a cache has to hold.

    Assumes that an operator is done for the whole batch before the next one starts.

    Valid for what an operator reads and writes, and what is kept for a later one, such as
    the input of a block that is added to its output.

    >>> live_bytes(2.0, 500, 4)
    4000.0
    """
    return bytes_per_element * operator_live * batch_size


@equation(source="hennessy2019quantitative", yields="activation_bytes")
def kept_activation_bytes(
    bytes_per_element,
    boundary_elements,
    activations_read,
    activations_written,
    live_bytes,
    last_level_cache,
    batch_size,
):
    """Traffic of an operator's activations to memory, if a cache keeps all that fit.

    While all that is alive fits in the last cache, an operator moves only what enters or
    leaves the network; else all that it reads and writes.

    Assumes that the cache holds activations alone: weights pass through and push nothing
    out, and nothing is emptied between operators.

    Valid as a lower estimate where activations fit; a real cache keeps part of what is
    somewhat too large, and loses part of what would just fit.

    >>> kept_activation_bytes(2.0, 100, 300, 200, 4000.0, 5000.0, 4)
    800.0
    >>> kept_activation_bytes(2.0, 100, 300, 200, 4000.0, 3000.0, 4)
    4000.0
    """
    return (
        bytes_per_element
        * (
            boundary_elements
            + exceeds(live_bytes, last_level_cache)
            * (activations_read + activations_written - boundary_elements)
        )
        * batch_size
    )
