"""`Engine.find`: backwards, from a result to the input that gives it."""

from __future__ import annotations

from typing import Any

from mlsim.engine.solve import solve
from mlsim.errors import InvalidValueError
from mlsim.hardware.device import Device
from mlsim.precision import Precision
from mlsim.quantities import term
from mlsim.solvers.forward import inverse
from mlsim.solvers.inputs import validate
from mlsim.units import scaled
from mlsim.workloads.model import Model


def find(
    *,
    vary: str,
    target: str,
    value: Any,
    model: Model | str,
    hardware: Device | str,
    batch_size: Any = 1,
    precision: str | Precision | None = None,
    estimate: str = "roofline",
    between: tuple[Any, Any] | None = None,
    **given: Any,
) -> Any:
    """Find the value of an input that gives a wanted result.

    Parameters
    ----------
    vary
        The input to find, such as "memory_bandwidth" or "batch_size".
    target, value
        The wanted result, and its value (with a unit, unless it is a count
        or a share).
    between
        Where to look: two values with units. By default from a thousandth to
        a thousand times the known value, and for a batch from 1 to a million.
    model, hardware, batch_size, precision, estimate, **given
        As for `solve`, `activations` included. The precision is "fp16" if left out,
        which the number that comes back can't say; a refusal does.

    Returns
    -------
    Quantity or int
        The smallest value that reaches the result; a batch is an int. Where
        the result jumps, the place of the jump.

    Raises
    ------
    UnreachableError
        If no value in the range gives the result; says which results it
        covers.

    >>> from mlsim import Engine, Hardware, Models
    >>> found = Engine.find(vary="memory_bandwidth", target="memory_bound_share",
    ...                     value=0.5, model=Models.ResNet50,
    ...                     hardware=Hardware.Cloud.A100, batch_size=256)
    >>> found > Hardware.Cloud.A100.memory.bandwidth
    True
    """
    profile = solve(
        model=model,
        hardware=hardware,
        batch_size=batch_size,
        precision=precision,
        estimate=estimate,
        check_memory=False,
        **given,
    )
    if profile.shape:
        raise InvalidValueError("find looks for one value: give one batch, not an array.")
    wanted = float(validate(target, value))
    limits = (validate(vary, between[0]), validate(vary, between[1])) if between else None
    found = inverse.find(profile.configuration, vary, target, wanted, limits)
    return int(found) if vary == "batch_size" else scaled(found, term(vary).unit)
