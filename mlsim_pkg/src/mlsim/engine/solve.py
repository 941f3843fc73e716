"""`Engine.solve` for a point or an array, `Engine.sweep` for a table, `Engine.find` backwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.precision import Precision, precision as find_precision
from mlsim.quantities import term
from mlsim.solvers.forward.configuration import Configuration, givable
from mlsim.solvers.forward.profile import Profile
from mlsim.solvers.inputs import validate, validate_given
from mlsim.units import scaled
from mlsim.workloads.model import Model
from mlsim.zoo import resolve

if TYPE_CHECKING:
    import pandas


def solve(
    *,
    model: Model | str,
    hardware: Device | str,
    batch_size: Any = 1,
    precision: str | Precision = "fp16",
    estimate: str = "roofline",
    check_memory: bool = True,
    **given: Any,
) -> Profile:
    """Predict one forward pass of a model on one device.

    Parameters
    ----------
    model, hardware
        Records of the zoo, their names, or paths of TOML files.
    batch_size
        Samples per step: a whole number from 1 up, or a list or array.
    precision
        Number format of weights and activations, such as "fp16".
    estimate
        "roofline": operator by operator at datasheet rates (the default);
        "bound": the whole network at once, moving weights, input and output
        only. No published result on record beats it; it assumes direct
        convolutions and weights read from memory once a batch;
        "calibrated": operator by operator at the rates that were measured
        on the device, with a start for each.
    check_memory
        Whether a workload that does not fit is refused its times.
    **given
        Any quantity of the vocabulary, to override what the data or the
        equations say: text or a quantity with a unit, or an array of them;
        for example memory_bandwidth="3 TB/s".

    Raises
    ------
    InvalidValueError, UnitError, UnknownNameError, WrongKindError
        If an argument can't be; says what is allowed.
    UnsupportedPrecisionError
        If the device has no peak for the precision.
    NotMeasuredError
        If nobody measured products and streams on the device, for a
        calibrated estimate.

    >>> from mlsim import Engine, Hardware, Models
    >>> profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
    ...                        batch_size=[1, 256])
    >>> [round(float(share), 2) for share in profile.memory_bound_share]
    [0.84, 0.54]
    """
    configuration = Configuration(
        model=resolve.network(model),
        device=resolve.device(hardware),
        precision=find_precision(precision),
        estimate=estimate,
        batch_size=validate("batch_size", batch_size, whole=True),
        given=validate_given(given, givable(estimate)) if given else {},
    )
    configuration.check_consistent()
    return Profile(configuration, check_memory=check_memory)


def find(
    *,
    vary: str,
    target: str,
    value: Any,
    model: Model | str,
    hardware: Device | str,
    batch_size: Any = 1,
    precision: str | Precision = "fp16",
    estimate: str = "roofline",
    between: tuple[Any, Any] | None = None,
    **given: Any,
) -> Any:
    """Ask backwards, for the value of an input that gives a result.

    Parameters
    ----------
    vary
        The input that is looked for, such as "memory_bandwidth" or
        "batch_size".
    target, value
        The result that is wanted, and its value (with its unit, unless it
        is a count or a share).
    between
        Where to look, two values with units; a thousandth to a thousand
        times the known value otherwise, and for a batch 1 to a million.
    model, hardware, batch_size, precision, estimate, **given
        As for `solve`.

    Returns
    -------
    Quantity or int
        The smallest value that reaches the result; a batch is an int. Where
        the result jumps, the place of the jump.

    Raises
    ------
    UnreachableError
        If the result is not reached in the range; says what range of
        results it covers.

    >>> from mlsim import Engine, Hardware, Models
    >>> found = Engine.find(vary="memory_bandwidth", target="memory_bound_share",
    ...                     value=0.5, model=Models.ResNet50,
    ...                     hardware=Hardware.Cloud.A100, batch_size=256)
    >>> found > Hardware.Cloud.A100.memory.bandwidth
    True
    """
    from mlsim.solvers.forward.inverse import find

    profile = solve(
        model=model,
        hardware=hardware,
        batch_size=batch_size,
        precision=precision,
        estimate=estimate,
        check_memory=False,
        **given,
    )
    if profile.configuration.shape:
        raise InvalidValueError("find looks for one value: give one batch, not an array.")
    wanted = float(validate(target, value))
    limits = (validate(vary, between[0]), validate(vary, between[1])) if between else None
    found = find(profile.configuration, vary, target, wanted, limits)
    return int(found) if vary == "batch_size" else scaled(found, term(vary).unit)


def sweep(
    *,
    model: Any,
    hardware: Any,
    batch_size: Any = 1,
    precision: Any = "fp16",
    estimate: str = "roofline",
) -> pandas.DataFrame:
    """Predict every combination of models, devices, batches and precisions.

    Each argument is one value or a list. Returns a tidy table, one row per
    combination, with latency in seconds and throughput in samples per
    second. Rows that can't run are kept: `feasible` is False, `reason` says
    why, and their times are missing.

    Raises
    ------
    MlsimError
        As `solve`, but a precision that a device lacks is a row.

    >>> from mlsim import Engine, Hardware, Models
    >>> table = Engine.sweep(model=Models.ResNet50, batch_size=[1, 8],
    ...                      hardware=[Hardware.Cloud.V100, Hardware.Cloud.A100])
    >>> len(table), bool(table.feasible.all())
    (4, True)
    """
    from mlsim.engine.sweep import sweep

    return sweep(
        model=model,
        hardware=hardware,
        batch_size=batch_size,
        precision=precision,
        estimate=estimate,
    )
