"""`Engine.find`: backwards, from a result to the input that gives it, through any door."""

from __future__ import annotations

from typing import Any

from mlsim.engine.solve import solve
from mlsim.engine.sweeps import inverse
from mlsim.engine.sweeps.question import door_for
from mlsim.errors import InvalidValueError
from mlsim.precision import Precision
from mlsim.quantities import term
from mlsim.solvers.forward import configuration as of_network
from mlsim.solvers.inputs import validate


def find(
    model: Any = ...,
    hardware: Any = ...,
    *,
    vary: str,
    target: str,
    value: Any,
    door: str | None = None,
    batch_size: Any = ...,
    precision: str | Precision | None = None,
    estimate: str = "roofline",
    between: tuple[Any, Any] | None = None,
    **given: Any,
) -> Any:
    """Find the value of an input that gives a wanted result.

    Parameters
    ----------
    vary
        The input to find: a number among the door's arguments, such as "batch_size",
        "tensor_parallel" or "rate", or a quantity, such as "memory_bandwidth".
    target, value
        The wanted result, and its value (with a unit, unless it is a count
        or a share).
    between
        Where to look: two values with units. By default from a thousandth to
        a thousand times the known value; for a batch from 1 to a million; for what else is
        counted as far as it can be.
    door, model, hardware, batch_size, precision, estimate, **given
        The door and its arguments, as for `sweep`, each with one value: a network is solved, a
        language model served, or trained with `global_batch`, or under load with `rate` or
        `users`, `activations` included. The precision of a network is "fp16" if left out,
        which the number that comes back can't say; a refusal does.

    Returns
    -------
    Quantity or int
        The smallest value that reaches the result; what is counted is an int. Where
        the result jumps, the place of the jump. Of a language model, one that fits in memory.

    Raises
    ------
    UnreachableError
        If no value in the range gives the result; says which results it
        covers, and what stops it.
    MlsimError
        As the door.

    >>> from mlsim import Engine, Hardware, Models
    >>> found = Engine.find(vary="memory_bandwidth", target="memory_bound_share",
    ...                     value=0.5, model=Models.ResNet50,
    ...                     hardware=Hardware.Cloud.A100, batch_size=256)
    >>> found > Hardware.Cloud.A100.memory.bandwidth
    True
    >>> Engine.find(vary="batch_size", target="time_per_output_token", value="8 ms",
    ...             model="Llama3_8B", hardware="H100", prompt_tokens=2048)
    42
    """
    named = {
        "model": model,
        "hardware": hardware,
        "batch_size": batch_size,
        "precision": ... if precision is None else precision,
        "estimate": ... if estimate == "roofline" else estimate,
        **given,
    }
    asked = {name: each for name, each in named.items() if each is not ...}
    # What is to be found tells the door, too.
    through = door_for(door, {vary: None, **asked}, "find")
    if through.name != "solve":
        return inverse.find(through.name, asked, vary, (target, value), between)
    profile = solve(**{**asked, "check_memory": False})
    if profile.shape:
        raise InvalidValueError("find looks for one value: give one batch, not an array.")
    wanted = float(validate(target, value))
    limits = (validate(vary, between[0]), validate(vary, between[1])) if between else None
    found = of_network.find(profile.configuration, vary, target, wanted, limits)
    return int(found) if vary == "batch_size" else term(vary).scaled(found)
