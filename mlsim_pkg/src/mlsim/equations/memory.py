"""How much memory a network needs while it runs forward.

Weights stay; activations live from the operator that writes them to the last
one that reads them. Space that a framework or a library takes for itself
(context, workspaces, fragmentation) is not counted.
"""

from __future__ import annotations

from mlsim.equations.functions import total
from mlsim.equations.registry import equation

QUESTION = "Does it fit in memory?"


@equation(source="hennessy2019quantitative", sums=True)
def weight_memory(weight_bytes, repeats):
    """Memory of all parameters.

    Assumes one copy of the parameters.
    Valid for inference; training also keeps gradients and the state of the optimiser.

    >>> weight_memory([100.0, 200.0], [1, 2])
    500.0
    """
    return total(weight_bytes, repeats)


@equation(source="hennessy2019quantitative")
def activation_memory(bytes_per_element, activations_live, batch_size):
    """Memory of the activations at the moment when most of them are alive.

    Assumes that an activation is freed once its last reader has run.

    Valid for inference; training keeps the activations of all layers.

    >>> activation_memory(2.0, 1e6, 8)
    16000000.0
    """
    return bytes_per_element * activations_live * batch_size


@equation(source="hennessy2019quantitative")
def memory_required(weight_memory, activation_memory):
    """Memory that the network needs, weights and live activations together.

    Assumes nothing for the framework, for workspaces or for fragmentation.
    Valid as a lower limit for what a framework allocates.

    >>> memory_required(51e6, 16e6)
    67000000.0
    """
    return weight_memory + activation_memory


@equation(source="hennessy2019quantitative")
def memory_free(memory_capacity, memory_required):
    """Memory that is left; below zero, the network does not fit.

    Valid for a device that nothing else uses.

    >>> memory_free(80e9, 81e9)
    -1000000000.0
    """
    return memory_capacity - memory_required
