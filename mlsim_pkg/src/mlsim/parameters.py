"""What a user gives, checked: the parameters of all doors, a row each; no bad input counts.

The rows are those of `data/parameters.toml`. From them come the checks here, the flags and the help
of the command `mlsim`, and the reference of parameters.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mlsim.errors import (
    InvalidValueError,
    MlsimError,
    UnknownArgumentError,
    check_whole,
    nearest,
    need,
)
from mlsim.quantities import term
from mlsim.units import to_base
from mlsim.values import counts

CALIBRATED = "calibrated"

# Quantities that count one by one: whole numbers from 1 up.
COUNTS = frozenset(
    (
        "cache_tokens",
        "device_batch",
        "device_tokens",
        "group_tokens",
        "largest_batch",
        "micro_batches",
        "pass_tokens",
        "pipeline_sends",
        "positions_read",
        "product_rows",
        "resident_batch",
        "tokens_worked",
        "unclipped_tokens",
        "waves",
    )
)

# Above this a float no longer counts one by one.
LARGEST = 2.0**53

# Units in which a bare number is understood.
BARE = ("1", "sample", "sample/s", "token", "token/sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What doors are asked under a name; `data/parameters.toml` says what each field is."""

    name: str
    kind: str
    doors: tuple[str, ...]
    meaning: str
    several: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    below: float | None = None
    usual: str = ""
    quantity: str = ""
    flag: str
    short: str = ""
    group: str = ""

    @property
    def allowed(self) -> str:
        """What it may be, in words.

        >>> parameter("seed").allowed, parameter("reserve").allowed, parameter("offload").allowed
        ('a whole number from 0 up', 'a share from 0 to below 1', 'an Offload')
        """
        if self.kind == "switch":
            return "True or False"
        if self.kind == "word":
            return f"one of {', '.join(self.words)}"
        what = "a whole number" if self.kind == "count" else self.kind
        if not what.startswith(("a ", "an ")):
            what = f"a {what}"
        if self.kind == "quantity":
            what = "a number with its unit"
        if self.least is not None:
            what += f" from {self.least:g}"
            what += " up" if self.most is self.below else ""
        if self.most is not None:
            what += f" to {self.most:,}"
        if self.below is not None:
            what += f" to below {self.below:g}"
        return what + "".join(f', or "{each}"' for each in self.words)


@cache
def parameters() -> dict[str, tuple[Parameter, ...]]:
    """Return the rows of all parameters, by name; a name means one thing for each door."""
    file = Path(__file__).parent / "data" / "parameters.toml"
    listed = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        name: tuple(_row(name, **row) for row in (rows if isinstance(rows, list) else [rows]))
        for name, rows in listed.items()
    }


def _row(name: str, *, kind: str, flag: str | None = None, **fields: Any) -> Parameter:
    for key in ("doors", "several", "words", "aliases"):
        fields[key] = tuple(fields.get(key, "").split())
    if kind in ("count", "share"):
        fields.setdefault("least", 1 if kind == "count" else 0)
    if kind == "share" and "below" not in fields:
        fields.setdefault("most", 1)
    called = name.replace(".", "-").replace("_", "-") if flag is None else flag
    return Parameter(name=name, kind=kind, flag=called, **fields)


@cache
def parameter(name: str, door: str = "") -> Parameter:
    """Return the row of a parameter, of one door or of the first that takes it.

    >>> parameter("pipeline_parallel").short, parameter("price").quantity
    ('pp', 'device_price')
    """
    rows = parameters()[name]
    return next((row for row in rows if door in row.doors), rows[0])


def parameters_of(door: str) -> tuple[Parameter, ...]:
    """Return the rows of all that a door takes, in the order of the table.

    >>> [row.name for row in parameters_of("optimal_size")]
    ['training_flops', 'tokens_per_parameter']
    """
    return tuple(row for rows in parameters().values() for row in rows if door in row.doors)


def check(name: str, value: Any, door: str = "") -> Any:
    """Return one value of a parameter, or refuse what its row does not allow.

    A count is returned as an int, a share and a number as a float, a quantity in its base unit.

    Raises
    ------
    InvalidValueError
        If it can't be; says what can, and of a word the nearest.
    UnitError
        If the unit of a quantity is missing or of another kind.

    >>> check("pipeline_parallel", 8), check("reserve", 0.1), check("restart_time", "10 min")
    (8, 0.1, 600.0)
    """
    row = parameter(name, door)
    if row.kind == "word" or (row.words and isinstance(value, str)):
        if isinstance(value, str) and value in row.words:
            return value
        raise InvalidValueError(
            f"{name} must be {row.allowed}, not {value!r}.{nearest(value, row.words)}"
        )
    if row.kind == "switch":
        if isinstance(value, bool):
            return value
        raise InvalidValueError(f"{name} must be {row.allowed}, not {value!r}.")
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) != 0:
        raise InvalidValueError(f"{name} must be one number, not {value!r}: ask for one at a time.")
    if row.kind == "count":
        largest = None if row.most is None else int(row.most)
        return check_whole(name, value, int(row.least or 0), largest)
    if row.kind == "quantity":
        return float(validate(row.quantity or name, value))
    plain = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    most = math.inf if row.most is None else row.most
    below = math.inf if row.below is None else row.below
    if not plain or not (row.least or 0) <= value <= most or value >= below:
        raise InvalidValueError(f"{name} must be {row.allowed}, not {value!r}.")
    return float(value)


def one_number(name: str, value: Any, *, whole: bool = False) -> float:
    """Return one quantity of the vocabulary in its base unit; refuse an array.

    Raises
    ------
    InvalidValueError, UnitError
        As `validate`, and for more numbers than one.

    >>> one_number("restart_time", "10 min")
    600.0
    """
    found = validate(name, value, whole=whole)
    if getattr(found, "ndim", 0):
        raise InvalidValueError(f"{name} must be one number, not an array: ask for one at a time.")
    return float(found)


def validate(name: str, value: Any, *, whole: bool = False, zero: bool = False) -> Any:
    """Return a number or an array of numbers in base units.

    Parameters
    ----------
    name
        The quantity, by its name in the vocabulary.
    value
        A number (where the quantity is a count), text such as "2 TB/s", a
        quantity, or a list or array of these.
    whole
        Whether only whole numbers from 1 up are allowed.
    zero
        Whether, among whole numbers, 0 is allowed too.

    Raises
    ------
    InvalidValueError
        If an entry is not positive and finite, or not whole where it must be;
        in an array, says which.
    UnitError
        If a unit is missing or of another kind.

    >>> validate("batch_size", 8, whole=True)
    8.0
    """
    # The usual case, first: it is asked several times for each solve.
    if whole and type(value) is int and 0 < value <= LARGEST and term(name).unit in BARE:
        return float(value)
    if isinstance(value, (list, tuple, range)):
        return _check_list(name, value, whole, zero)
    # A count of samples or tokens may be given as a bare number.
    base = term(name).unit
    bare = base in BARE
    if bare and isinstance(value, (str, bytes)):
        raise InvalidValueError(
            f"{name} must be {_allowed(whole, zero)}, not the text {value!r}. Leave out the quotes."
        )
    number = _counted(value, base)
    if number is None:
        number = to_base(value, "1" if bare and not hasattr(value, "units") else base, name)
    if hasattr(number, "__array__") and getattr(number, "ndim", False):
        return _check_array(name, number, whole, zero)
    return _check_one(name, value, number, whole, zero)


def _counted(value: Any, base: str) -> float | None:
    """Return a count or a rate as a number in a base unit that counts too; None of all else.

    20, and 20 per second, are 20 sample/s where samples per second are asked for.
    """
    if not isinstance(value, float) or not hasattr(value, "units") or not counts(base):
        return None
    said = (base, "1", *(["1/s"] if base.endswith("/s") else []))
    return float(value) if getattr(value, "base", "") in said else None


def _allowed(whole: bool, zero: bool) -> str:
    return f"a whole number from {1 - zero} up" if whole else "a positive, finite number"


def _check_one(name: str, shown: Any, number: Any, whole: bool, zero: bool) -> float:
    refused = InvalidValueError(f"{name} must be {_allowed(whole, zero)}, not {shown!r}.")
    if isinstance(number, bool) or type(number).__name__ in ("bool", "MaskedConstant"):
        raise refused
    try:
        result = float(number)
    except (OverflowError, TypeError, ValueError):
        raise refused from None
    allowed = math.isfinite(result) and (result > 0 or (zero and result == 0))
    if not allowed or (whole and not result.is_integer()):
        raise refused
    if whole and result > LARGEST:
        raise InvalidValueError(f"{name} must be at most {LARGEST:,.0f}, not {result:g}.")
    return result


def _check_list(name: str, values: Sequence[Any], whole: bool, zero: bool) -> Any:
    if not len(values):
        raise InvalidValueError(f"{name} is an empty list; give at least one value.")
    if any(isinstance(value, (list, tuple, range)) for value in values):
        return validate(name, _array(values, name), whole=whole, zero=zero)
    checked = []
    for index, value in enumerate(values):
        try:
            checked.append(validate(name, value, whole=whole, zero=zero))
        except MlsimError as error:
            raise type(error)(f"entry {index} of {len(values)}: {error}") from None
    return _array(checked, name)


def _check_array(name: str, values: Any, whole: bool, zero: bool) -> Any:
    import numpy as np

    allowed = f"whole numbers from {1 - zero} up" if whole else "positive, finite numbers"
    if np.ma.is_masked(values):
        raise InvalidValueError(
            f"{name} has masked entries, whose mask would be lost. Give values.compressed(), "
            "the entries that stand, or values.filled(...) with numbers for the others."
        )
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise InvalidValueError(f"{name} must hold {allowed}, not {array.dtype} values.")
    if not array.size:
        raise InvalidValueError(f"{name} is an empty array; give at least one value.")
    array = array.astype(float)
    # The usual case, first: a sweep asks it of each device, of a hundred thousand numbers.
    least, most = array.min(), array.max()
    within = (least >= 0 if zero else least > 0) and most < math.inf
    if within and not (whole and (most > LARGEST or (array != np.floor(array)).any())):
        return array
    bad = ~(np.isfinite(array) & ((array >= 0) if zero else (array > 0)))
    if whole:
        bad |= array > LARGEST
        bad |= array != np.floor(np.where(np.isfinite(array), array, 0))
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        place = index[0] if len(index) == 1 else index
        raise InvalidValueError(
            f"{name} must hold {allowed}, but entry {place} is {array[index]:g}"
            + (f" (and {int(bad.sum()) - 1} more)." if bad.sum() > 1 else ".")
        )
    return array


def _array(values: Any, name: str) -> Any:
    np = need("numpy", "an array of points", "arrays")
    try:
        return np.array(values, dtype=None if isinstance(values[0], (list, tuple)) else float)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"{name}: the entries don't form an array: {error}.") from None


def validate_given(given: Mapping[str, Any], allowed: Sequence[str]) -> dict[str, Any]:
    """Check quantities that a caller gives to override what would be computed.

    Raises
    ------
    UnknownArgumentError
        If a name is none of `allowed`; suggests the nearest.
    InvalidValueError
        If a value can't be: a fractional count, or a share above 1.
    """
    for name in given:
        if name not in allowed:
            raise UnknownArgumentError(name, allowed)
    found = {name: validate(name, value, whole=name in COUNTS) for name, value in given.items()}
    for name, value in found.items():
        largest = value.max() if getattr(value, "ndim", 0) else value
        if largest > 1 and term(name).share:
            raise InvalidValueError(f"{name} is a share: it must be at most 1, not {largest:g}.")
    return found
