"""Values by name: `show` finds them in answers, records and measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.solvers.forward.profile import Profile, solve
from mlsim.values import given, is_number
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


def show(
    what: Any, name: str = "", *, unit: str | None = "", form: str = "", because: str = ""
) -> Quantity:
    """Return a value by its name as text, where no attribute is written.

    Parameters
    ----------
    what
        An answer of one point (a profile, a service, a phase of a service, a
        training run, a footprint), a row of a sweep, a device, a system, a cluster,
        a grid, a data center, a region, a model, a measurement or a published
        figure, or a plain number that you computed yourself.
    name
        Of an answer: any result, the first if it is left out; of a service also with a
        phase before it, such as "decode.total_bytes". Of a device or a
        system: a figure such as "memory.bandwidth" or "link.bandwidth"; or
        "ridge_point", and "device_bandwidth" (of a link, one way). Of a grid, a
        data center or a region: a figure such as "carbon_intensity" (the last on
        record) or "pue.2023". Of a model:
        "parameters"; of a network "inference_flops"; of a language model
        "active_parameters" and "cache_bytes_per_token" (bf16); and a number of its
        architecture, "attention.kv_heads". Of a plain number: what it is.
    unit, form
        How to print it, as `Quantity.show` takes them.
    because
        For a plain number: where it comes from.

    Raises
    ------
    UnknownNameError
        If there is no such result or figure.
    InvalidValueError
        If it is not one number.
    DoesNotFitError
        If a time is asked for that needs more memory than there is.

    >>> from mlsim import Engine, Hardware
    >>> print(show(Engine.solve(model="ResNet50", hardware="A100"), "latency"))
    55.5 µs
    >>> print(show(Hardware.Cloud.A100, "memory.bandwidth"))
    2,039 GB/s
    """
    made = _by_name(what, name, because)
    return made if unit == "" and not form else made.show(form, unit)


def _by_name(what: Any, name: str, because: str) -> Quantity:
    if hasattr(type(what), "by_name"):
        found: Quantity = what.by_name(name)
        return found
    if hasattr(what, "index") and hasattr(what, "get") and "hardware" in what:
        return show(_solve_again(what), name)
    if hasattr(what, "named"):
        kept: Quantity = what.named(name, because=because) if name else what
        return kept
    if not is_number(what):
        raise InvalidValueError(
            "show takes an answer, a device, a system, a model, a measurement or a number, "
            f"not {what!r}."
        )
    return given(what, name or "number", because)


def _solve_again(row: Any) -> Profile:
    """Return the profile behind a row of a sweep.

    Raises
    ------
    UnknownNameError
        If its model or device is not in the zoo (one of your own, say).
    """
    try:
        return solve(
            resolve.network(row["model"]),
            resolve.device(row["hardware"]),
            batch_size=int(row["batch_size"]),
            precision=row["precision"],
            estimate=row.get("estimate", "roofline"),
            activations=row.get("activations", "memory"),
        )
    except UnknownNameError as error:
        raise UnknownNameError(
            f"this row can't be opened: {error} Solve it yourself, and show the profile."
        ) from None
