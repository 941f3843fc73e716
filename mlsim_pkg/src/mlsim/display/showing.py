"""Numbers that open: `show` makes them of answers, records and measurements."""

from __future__ import annotations

from typing import Any

from mlsim.display import published, recorded
from mlsim.display.number import Number, of_literal
from mlsim.display.results import of_answer
from mlsim.errors import UnknownNameError
from mlsim.solvers.answer import Answer
from mlsim.solvers.forward.profile import Profile, solve
from mlsim.zoo import resolve

_MAKERS = ((Answer, of_answer), *recorded.MAKERS, *published.MAKERS)


def show(
    what: Any,
    name: str = "latency",
    *,
    unit: str | None = "",
    form: str = "",
    because: str = "",
) -> Number:
    """Return a number that shows its work.

    Parameters
    ----------
    what
        An answer of one point (a profile, a service, a phase of a service, a
        training run, a footprint), a row of a sweep, a device, a system, a cluster,
        a grid, a data center, a region, a model, a measurement or a published
        figure, or a plain number that you computed yourself.
    name
        Of a profile, a phase, a run, a footprint or a row: any result. Of a service: any result, or
        with a phase before it, such as "decode.total_bytes". Of a device or a
        system: a figure such as "memory.bandwidth" or "link.bandwidth"; or
        "ridge_point", and "device_bandwidth" (of a link, one way). Of a grid, a
        data center or a region: a figure such as "carbon_intensity" (the last on
        record) or "pue.2023". Of a model:
        "parameters"; of a network "inference_flops"; of a language model
        "active_parameters" and "cache_bytes_per_token" (bf16). Of a plain
        number: what it is.
    unit, form
        How to print it, such as unit="us", form=".1f"; unit=None prints the
        number alone.
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
    >>> print(show(Engine.solve(model="ResNet50", hardware="A100"), unit="us", form=".1f"))
    55.5 µs
    >>> print(show(Hardware.Cloud.A100, "memory.bandwidth"))
    2,039 GB/s
    """
    made = _made(what, name, because)
    return made if unit == "" and not form else made.show(unit, form)


def _made(what: Any, name: str, because: str) -> Number:
    if isinstance(what, Number):
        return what
    for kind, make in _MAKERS:
        if isinstance(what, kind):
            made: Number = make(what, name)
            return made
    if hasattr(what, "index") and hasattr(what, "get") and "hardware" in what:
        return of_answer(_solve_again(what), name)
    return of_literal(what, name, because)


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
