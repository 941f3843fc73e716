"""Values: Pint quantities that know their name, their origin, and how people print them.

A result of an answer, a figure of a device, a row of measurements, an equation called on
values: each is one, and arithmetic keeps the origin. On a page and in a notebook a value
opens: it shows how it came to be.

    >>> from mlsim import Engine
    >>> profile = Engine.solve(model="ResNet50", hardware="A100")
    >>> print(profile.latency, profile.latency.show(".2f", "ms"), profile.throughput)
    55.5 µs 0.06 ms 18,024
    >>> (profile.total_bytes - profile.weight_memory).name
    'total bytes − weight memory'

Counts, shares and rates per second are values that are floats as well: they compare with
numbers, and `range(serving.largest_batch)` works. Pint is imported with the first value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from mlsim.errors import InvalidValueError, UnitError
from mlsim.units import MEMORY, definitions, factor, known_factor, scale_for
from mlsim.values.origins import Computed, Origin, literal

if TYPE_CHECKING:
    from pint import UnitRegistry

    from mlsim.values.kinds import Plain, Quantity

__all__ = [
    "KINDS",
    "Origin",
    "as_share",
    "counts",
    "given",
    "literal",
    "of_base",
    "quantity",
    "registry",
    "scaled",
]

# The classes of values, once there are any.
KINDS: set[type] = set()


@cache
def registry() -> UnitRegistry[Any]:
    """Return the registry, made on the first call (which imports Pint)."""
    from mlsim.values.kinds import make_registry

    made = make_registry(definitions())
    KINDS.update((made.Quantity, made.Quantity._plain))
    return cast("UnitRegistry[Any]", made)


def quantity(value: Any, unit: str) -> Quantity:
    """Return a Pint quantity of `value` in `unit`.

    >>> print(f"{quantity(2.039, 'TB/s').to('GB/s'):.0f}")
    2039 GB/s
    """
    made: Any = registry().Quantity(value, _parsed(unit))
    return cast("Quantity", made)


@cache
def _parsed(unit: str) -> Any:
    """Parse a unit once: it costs some 40 microseconds each time."""
    found = registry().Unit("" if unit == "1" else unit)
    cast("Any", registry().Quantity).call_base(found, unit)
    return found


@cache
def counts(unit: str) -> bool:
    """Tell whether values in a unit count: a count, a share, or a rate per second.

    >>> counts("sample/s"), counts("1"), counts("B/s")
    (True, True, False)
    """
    return isinstance(quantity(1.0, unit), float)


def scaled(value: float, base: str) -> Quantity:
    """Return a quantity in the unit that a person would choose.

    >>> print(f"{scaled(312e12, 'FLOP/s'):.1f}")
    312.0 TFLOP/s
    """
    scale, unit = scale_for(float(value), base)
    return quantity(value / scale, unit)


def of_base(
    value: float,
    base: str,
    origin: Origin | Callable[[Any], Origin] | None = None,
    *,
    unit: str = "",
    form: str = "",
    share: bool = False,
) -> Quantity:
    """Return a value in the unit that a person would choose, with its origin.

    `base` is a base unit, or "memory" for bytes that something holds; `unit` and `form` say
    how it is printed where that is decided, as for a figure of a document. The origin may
    be made when it is asked for: it is then called with the value.
    """
    made = quantity(value / factor(unit, base), unit) if unit else scaled(value, base)
    made._origin, made._memory, made._share = origin, base == MEMORY, share
    return made.as_read(form, unit) if unit or form else made


def as_share(part: Quantity, whole: Quantity) -> Plain:
    """Return a part over its whole as a share, which people count in percent.

    >>> sending = as_share(given("40 ms", "sending"), given("0.5 s", "a step"))
    >>> print(sending, sending.name)
    8 % sending / a step
    """
    made = of_base(part.si / whole.si, "1", Computed("/", part, whole), share=True)
    return cast("Plain", made)


def given(
    value: Any, what: str, because: str = "chosen for this page", *, unit: str = ""
) -> Quantity:
    """Return an author's assumption as a value: what it is, and why it was chosen.

    Parameters
    ----------
    value
        A number, a quantity, or text with a unit such as "30 ms".
    what
        What it is, in words.
    because
        Where it comes from, in words.
    unit
        The unit of a plain number.

    Raises
    ------
    InvalidValueError
        If it is not one number, or it is not said what it is.
    UnitError
        If the unit is unknown.

    >>> people = given(26_250, "people")
    >>> print(people, (people / 2).name, given("30 ms", "the limit"))
    26,250 people / 2 30 ms
    """
    if because and known_factor(because, because) is not None:
        raise InvalidValueError(
            f"{because!r} is a unit, and the third argument says where the number comes from: "
            f"given({value!r}, {what!r}, unit={because!r})."
        )
    if unit and is_number(value) and not hasattr(value, "units"):
        value = f"{value!r} {unit}"
    if isinstance(value, str):
        made = _of_text(value)
    elif hasattr(value, "units") and not getattr(value, "ndim", 0):
        made = value
    elif is_number(value):
        made = quantity(value if type(value) is int else float(value), "1")
    else:
        raise InvalidValueError(
            f"given takes a number, a quantity, or text with a unit such as '30 ms', not {value!r}."
        )
    if not math.isfinite(made.si):
        raise InvalidValueError(f"{what} must be finite, not {value!r}.")
    if not isinstance(what, str) or not what.strip():
        raise InvalidValueError(f"say in words what {value!r} is: given({value!r}, 'people').")
    return made.named(what, because=because)


def is_number(value: Any) -> bool:
    """Tell whether something is one number; True and False are none.

    >>> is_number(3), is_number(True), is_number("3"), is_number([3])
    (True, False, False, False)
    """
    one = hasattr(value, "__float__") and not getattr(value, "ndim", 0)
    return one and not isinstance(value, bool)


def _of_text(words: str) -> Quantity:
    """Return text such as "30 ms" as a value without an origin."""
    number, _, unit = words.strip().partition(" ")
    try:
        found = float(number.replace(",", ""))
        return quantity(found, unit.strip() or "1")
    except ValueError:
        raise InvalidValueError(
            f"text must be a number with a unit such as '30 ms', not {words!r}."
        ) from None
    except Exception as error:  # Pint's, of a unit that it does not know or can't read
        raise UnitError(
            f"unknown unit {unit.strip()!r} in {words!r}; known are s, ms, B, GB, GiB, GB/s, FLOP, "
            "TFLOP/s, W, J, kWh, USD/h, token/s and more: mlsim.units.definitions() has all."
        ) from error
