"""A value: a quantity that knows its name, its origin, and how people print it.

Its class is the registry's own, so that Pint makes no other: a mere subclass would lose its
origin at the first `+`. Origins are words, made when they are asked for.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple, Self, cast

import pint
from pint.delegates.formatter.full import FullFormatter
from pint.registry import Unit as PintUnit
from pint.util import UnitsContainer

from mlsim.errors import InvalidValueError, nearest
from mlsim.units import (
    BEYOND_PREFIXES,
    MEMORY,
    factor,
    known_factor,
    rounded,
    scale_for,
    text,
    with_powers,
)
from mlsim.values.arithmetic import OPERATORS, Computing, is_plain_number
from mlsim.values.origins import Computed, Origin

# Pint's methods have types in part, and a float's are others than a quantity's.
# mypy: disable-error-code="assignment, attr-defined, no-untyped-call, override, misc"
# mypy: disable-error-code="arg-type, no-any-return"


# Significant digits where nobody asks for others: of a value with a unit, of a plain one, and in
# a derivation.
DIGITS, DIGITS_OF_PLAIN, DIGITS_IN_FULL = 3, 2, 4
# A format that says how wide, and not in which digits.
_WIDTH = re.compile(r"(?:.?[<>^])?[1-9]\d*")
# What one counts: alone or per second, it compares with plain numbers.
_COUNTED = frozenset(("sample", "token", "parameter", "element", "pair", "multiply_add"))


class Printed(NamedTuple):
    """How a value is printed: in a unit (None: the number alone), with a format."""

    unit: str | None = ""
    form: str = ""
    bare: bool = False


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a unit amounts to: its size in base units, these, and whether it counts."""

    scale: float
    root: UnitsContainer
    base: str
    counts: bool
    plain: bool
    mixed: bool
    bare: UnitsContainer

    def is_but_for_counts(self, other: _Facts) -> bool:
        """Tell whether two units are alike, but that one says what is counted."""
        silent = self.root == self.bare or other.root == other.bare
        return silent and self.root != other.root and self.bare == other.bare


class Quantity(Computing):
    """A quantity that knows its name, its origin, and how people print it.

    Of one number; an array has the unit only.

    >>> from mlsim import Hardware
    >>> bandwidth = Hardware.Cloud.A100.memory.bandwidth
    >>> print(bandwidth, bandwidth.show(".1f", "TB/s"))
    2,039 GB/s 2.0 TB/s
    >>> print((2 * bandwidth).name)
    2 × NVIDIA A100 SXM 80 GB memory bandwidth
    """

    _origin: Origin | Callable[[Any], Origin] | None = None
    _words: Origin | None = None
    _printed: Printed | None = None
    _as_read: Printed | None = None
    _memory = False
    _share = False
    _ratio = False
    _facts_of: dict[UnitsContainer, _Facts]
    _made_of: dict[tuple[Any, Any, Any], UnitsContainer]
    _symbols: dict[str, str]
    _one: type[Quantity]
    _plain: type[Plain]

    def __new__(cls, value: Any, units: Any = None) -> Self:
        """Return a quantity; of what counts, one that is a float too."""
        if isinstance(value, (float, int)) and not isinstance(value, (Quantity, bool)):
            container = units if isinstance(units, UnitsContainer) else None
            if isinstance(units, PintUnit):
                container = units._units
            if container is not None:
                number = value if type(value) is int else float(value)
                return cast("Self", cls._of_scalar(number, container))
        return cast("Self", super().__new__(cls._one, value, units))

    @classmethod
    def _of_scalar(cls, value: float, units: UnitsContainer) -> Quantity:
        found = cls._facts_of.get(units) or cls._facts(units)
        if found.plain:
            return cls._plain._of_float(value * found.scale, found.root)
        made: Quantity = object.__new__(cls._one)
        made._magnitude, made._units = value, units
        return made

    @classmethod
    def _facts(cls, units: UnitsContainer) -> _Facts:
        """Look up what a unit amounts to, once."""
        scale, root = cls._REGISTRY._get_root_units(units)
        base = f"{cls._REGISTRY.Unit(root):~C}" or "1"
        times = root.get("second", 0)
        names = {name for name in root if name != "second"}
        counts = names <= _COUNTED and times in (0, -1)
        counts = counts and "percent" not in units
        plain = counts and (scale == 1 or not root)
        named = cls._facts_of[root].base if root in cls._facts_of else base
        bare = UnitsContainer({name: root[name] for name in root if name not in _COUNTED})
        found = _Facts(
            float(scale),
            root,
            _CUSTOMARY_NAMES.get(named, named),
            counts=counts,
            plain=plain,
            mixed=not plain and len(units) > len(root) > 0,
            bare=bare,
        )
        cls._facts_of[units] = found
        return found

    @classmethod
    def call_base(cls, unit: PintUnit, name: str) -> None:
        """Call a base unit as the vocabulary does, if it is one: "token/s/sample"."""
        found = cls._facts_of.get(unit._units) or cls._facts(unit._units)
        if unit._units == found.root and len(name) <= len(found.base):  # s, not second
            cls._facts_of[unit._units] = replace(found, base=_CUSTOMARY_NAMES.get(name, name))

    # What it is.

    @property
    def origin(self) -> Origin:
        """Where it comes from, made when first asked.

        Raises
        ------
        InvalidValueError
            Of an array, whose numbers have each their own.
        """
        if not self._one_number:
            raise InvalidValueError(
                "an array has no origin: pick a point of its answer, such as answer[0].latency."
            )
        if self._words is None:
            found = self._origin
            if found is None:
                found = Origin(self.in_full)
            self._words = found if isinstance(found, Origin) else found(self)
        return self._words

    @property
    def name(self) -> str:
        """What it is, in words."""
        return self.origin.name

    @property
    def sign(self) -> str:
        """How it was computed from others, if it was: "+", "−", "×" or "/"."""
        return self._origin.sign if isinstance(self._origin, Computed) else ""

    @property
    def si(self) -> float:
        """The number in base units (s, B, FLOP, ...), a plain float."""
        return self._magnitude * self._known.scale if self._known.scale != 1 else self._magnitude

    @property
    def base(self) -> str:
        """The base unit that `si` is in."""
        return self._known.base

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_"):
                raise
            meant = nearest(name, dir(type(self)))
            raise AttributeError(
                f"a value has no {name!r}.{meant} Its number is .magnitude, its unit .units, and "
                ".si the number in base units; .name and .origin say what it is."
            ) from None

    @property
    def _known(self) -> _Facts:
        return self._facts_of.get(self._units) or self._facts(self._units)

    def named(self, name: str, *, because: str = "") -> Self:
        """Return the same value by a name of one's own, with the reason that is given for it.

        >>> from mlsim import Hardware
        >>> gpu = Hardware.Cloud.A100
        >>> eight = (gpu.memory.bandwidth * 8).named("eight GPUs", because="nothing is shared")
        >>> eight.origin.brief
        'eight GPUs = 16.31 TB/s, nothing is shared'
        """
        made = self._same()
        before = self._origin

        def origin(value: Quantity) -> Origin:
            brief = f"{name} = {value.in_full}" + (f", {because}" if because else "")
            if before is None:
                return Origin(name, brief)
            return self.origin.called(name, brief if because else "")

        made._origin, made._words = origin, None
        return made

    # Printed.

    def show(self, form: str = "", unit: str | None = "") -> Self:
        """Return the same value, printed otherwise.

        Parameters
        ----------
        form
            A format of numbers, such as ".1f"; ".0%" prints a share in percent.
        unit
            A unit such as "ms"; None prints the number alone, in base units.

        Raises
        ------
        UnitError
            If the unit measures something else.
        InvalidValueError
            If there is no such format.

        A derivation keeps its four digits:

        >>> from mlsim import Hardware
        >>> share = (Hardware.Cloud.A100.power.tdp / Hardware.Cloud.H100.power.tdp).show(".0%")
        >>> share.text, share.origin.brief.rpartition("= ")[2]
        ('57 %', '0.5714')
        """
        if not isinstance(form, str) or known_factor(form, self.base) is not None:
            raise InvalidValueError(
                f"the format comes first, such as .show('.1f', 'ms'); {form!r} is none. A unit "
                "alone is .show(unit='ms')."
            )
        if form.endswith("%") and not unit:
            form, unit = form[:-1] + "f", "%"
        if unit:
            self._factor_to(unit)
        try:
            format(1.0, form)
        except ValueError:
            raise InvalidValueError(
                f"{form!r} is no format of a number; '.1f' has one digit after the point, ',.0f' "
                "none, '.3g' three digits in all."
            ) from None
        made = self._same()
        made._printed = Printed(unit, form)
        return made

    def as_read(self, form: str, unit: str) -> Self:
        """Return the value as its document prints it: in derivations, too."""
        made = self.show(form, unit)
        made._as_read = made._printed
        return made

    def without_unit(self) -> Self:
        """Return the same value, printed without its unit, which a heading names."""
        made = self._same()
        made._printed = (self._printed or Printed())._replace(bare=True)
        return made

    def _same(self) -> Self:
        made = self.__class__(self._magnitude, self._units)
        made.__dict__.update(self.__dict__)
        return made

    @property
    def text(self) -> str:
        """The value as it stands in a sentence."""
        return with_powers(self._written(self._printed or Printed()))

    @property
    def in_full(self) -> str:
        """The value as a derivation has it: with its unit, and four digits."""
        if self._as_read is not None:
            return with_powers(self._written(self._as_read))
        return text(self.si, MEMORY if self._memory else self.base, DIGITS_IN_FULL)

    _digits, _alone = DIGITS, False

    def _written(self, printed: Printed) -> str:
        unit, form, bare = printed
        number, alone = self.si, bare or unit is None or (unit == "" and self._alone)
        if unit == "":
            if not (form and self._alone):  # a plain number stays itself: 0.84, not 84 %
                unit, number, alone = self._by_size(alone)
        elif unit:
            number /= self._factor_to(unit)
        shown = f"{number:{form}}" if form else rounded(number, self._digits)
        unit = unit or self.base
        return shown if alone or unit == "1" else f"{shown} {self._symbol(unit)}"

    def _symbol(self, unit: str) -> str:
        if unit not in self._symbols:
            self._symbols[unit] = f"{self._REGISTRY.Unit(unit):~P}"
        return self._symbols[unit]

    def _by_size(self, alone: bool) -> tuple[str, float, bool]:
        """Choose a unit by the size of the number, and whether it goes without one."""
        if self.base == "FLOP" and abs(self.si) >= BEYOND_PREFIXES:
            return self.base, self.si, alone
        scale, unit = scale_for(self.si, MEMORY if self._memory else self.base)
        return unit, self.si / scale, alone

    def to_dict(self) -> dict[str, Any]:
        """Return the value for a program: number with unit, name, derivation."""
        origin = self.origin
        return {"value": self.si, "unit": self.base, "name": origin.name, "derivation": origin.how}

    def markdown(self) -> str:
        """Return the value for a page: a span that opens, and carries its derivation."""
        return str(_written_out().markdown(self))

    def _repr_markdown_(self) -> str | None:
        return self.markdown() if self._one_number else None

    def _repr_html_(self) -> str | None:
        return str(_written_out().as_html(self)) if self._one_number else None

    def _repr_latex_(self) -> None:
        return None

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        return self.text if self._one_number else super().__str__()

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        if not self._one_number or (spec and not _WIDTH.fullmatch(spec)):
            return super().__format__(spec)
        return format(self.text, f">{spec}" if spec.isdigit() else spec)

    @property
    def _one_number(self) -> bool:
        return isinstance(self._magnitude, (float, int))

    def _kept(self, made: Any, unit: str | None = None) -> Any:
        """Give a value that was only written otherwise the origin of this one."""
        if self.__dict__.get("_origin") is not None and made._one_number:
            made._origin, made._words = self._origin, self._words
        made._memory, made._share = self._memory, self._share
        if unit is not None and made._one_number:
            made._printed = Printed(unit)
        return made

    def to(self, other: Any = None, *contexts: Any, **more: Any) -> Any:
        """Return the value in another unit, in which it is also printed."""
        unit = other if isinstance(other, str) else ""
        if unit and self._one_number and self._is_but_for_counts(unit):
            made = self._one(self.si / self._facts_in(unit).scale, self._REGISTRY.Unit(unit))
        else:
            made = super().to(other, *contexts, **more)
        return self._kept(made, unit or f"{made.units:~C}" or "1")

    def _facts_in(self, unit: str) -> _Facts:
        found = self._REGISTRY.Unit("" if unit == "1" else unit)._units
        return self._facts_of.get(found) or self._facts(found)

    def _factor_to(self, unit: str) -> float:
        """Return what one of a unit is in base units; what is counted may be left out of it.

        Raises
        ------
        UnitError
            If the unit is unknown, or measures something else.
        """
        known = known_factor(unit, self.base)
        if known is not None:
            return known
        if self._one_number and self._is_but_for_counts(unit):
            return self._facts_in(unit).scale
        return factor(unit, self.base)

    def _is_but_for_counts(self, unit: str) -> bool:
        """Tell whether a unit fits but for what is counted, as KiB does for KiB per token."""
        try:
            found = self._facts_in(unit)
        except (pint.PintError, AttributeError, TypeError, ValueError):  # no unit
            return False
        return self._known.is_but_for_counts(found)

    def to_base_units(self) -> Any:
        """Return the value in base units."""
        return self._kept(super().to_base_units())

    def to_root_units(self) -> Any:
        """Return the value in base units."""
        return self._kept(super().to_root_units())

    def to_reduced_units(self) -> Any:
        """Return the value with units that don't cancel."""
        return self._kept(super().to_reduced_units())

    def __copy__(self) -> Self:
        return self._same() if self._one_number else cast("Self", super().__copy__())

    def __deepcopy__(self, memo: Any) -> Self:
        return self._same() if self._one_number else cast("Self", super().__deepcopy__(memo))


# Units whose symbol is not the name that the vocabulary gives them.
_CUSTOMARY_NAMES = {"J/s": "W", "OP": "FLOP", "OP/s": "FLOP/s"} | {
    each.replace("kg_CO2e", "kgCO2e"): each for each in ("kg_CO2e", "kg_CO2e/J", "kg_CO2e/token")
}


def _written_out() -> Any:
    """Return the module that writes values for pages: the one door to what shows them."""
    return import_module("mlsim.display.notes")


# Pint's methods have types in part, and a float's are others than a quantity's.
# mypy: disable-error-code="assignment, attr-defined, no-untyped-call, override, misc"
# mypy: disable-error-code="arg-type, no-any-return"


# A format that says how wide, and not in which digits.


class Plain(Quantity, float):
    """A count, a share or a rate per second: a value that is also a float.

    It compares and adds up with plain numbers, and a format prints the number alone.

    >>> from mlsim import Engine
    >>> serving = Engine.serve(model="Llama3_8B", hardware="H100")
    >>> serving.largest_batch == int(serving.largest_batch), f"{serving.user_token_rate:.0f}"
    (True, '222')
    """

    def __new__(cls, value: Any, units: Any = None) -> Self:
        """Return a quantity, of this kind or the other; Pint makes results so."""
        return Quantity.__new__(cls, value, units)

    @classmethod
    def _of_float(cls, value: float, units: UnitsContainer) -> Plain:
        made = float.__new__(cls._plain, value)
        made._magnitude, made._units = value, units
        return made

    _digits, _alone = DIGITS_OF_PLAIN, True

    def _by_size(self, alone: bool) -> tuple[str, float, bool]:
        if self._share and math.isfinite(self):
            part = 100 * self.si
            shown = float(round(part)) if 1 <= abs(part) <= 100 else part  # in whole percent
            return "%", shown, bool(self._printed and self._printed.bare)
        return self.base, self.si, alone

    def __format__(self, spec: str) -> str:
        if "~" in spec or spec[-1:] in "PCLH" or _WIDTH.fullmatch(spec):
            return super().__format__(spec)
        whole = float.is_integer(self)
        if whole and not (spec[-1:].isalpha() or spec[-1:] == "%"):
            return format(int(self), spec)
        return (
            format(int(self), spec) if spec[-1:] == "d" and whole else float.__format__(self, spec)
        )

    def __index__(self) -> int:
        if not float.is_integer(self):
            raise TypeError(f"{self.text} is no whole number: it counts nothing.")
        return int(float(self))

    __float__ = float.__float__
    __int__ = float.__int__
    __bool__ = float.__bool__
    __trunc__ = float.__trunc__
    __floor__ = float.__floor__
    __ceil__ = float.__ceil__
    __hash__ = float.__hash__
    is_integer = float.is_integer
    as_integer_ratio = float.as_integer_ratio
    # Pint's have them for arrays: pandas and `pytest.approx` would take this for a list.
    __iter__ = __len__ = __getitem__ = None

    def __complex__(self) -> complex:
        return complex(float(self))

    def tolist(self) -> float:
        """Return a plain number, as NumPy's do."""
        return float(self)

    def __round__(self, ndigits: int | None = None) -> Any:
        """Return a rounded number: of no digits, an int."""
        if ndigits is None:
            return float.__round__(self)
        return self._kept(self._of_float(float.__round__(self, ndigits), self._units))

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)

    def _same(self) -> Self:
        made = self._of_float(self._magnitude, self._units)
        made.__dict__.update(self.__dict__)
        return cast("Self", made)

    def _with(self, other: Any, operate: Callable[[float, float], float], sign: str) -> Any:
        """Compute with a plain number, or with a value of the same unit."""
        made = self._of_float(operate(float(self), float(other)), self._units)
        return self._computed(sign, self, other, made)

    def _added(self, other: Any, operate: Callable[[Any, Any], Any], sign: str) -> Any:
        if not is_plain_number(other):
            return NotImplemented if _array(other) else super()._added(other, operate, sign)
        if other.__class__ is int and not other:
            return self
        return self._with(other, operate, sign)

    def __radd__(self, other: Any) -> Any:
        if not is_plain_number(other):
            return super().__radd__(other)
        if other.__class__ is int and not other:
            return self
        made = self._of_float(float(other) + float(self), self._units)
        return self._computed("+", other, self, made)

    def __rsub__(self, other: Any) -> Any:
        if not is_plain_number(other):
            return super().__rsub__(other)
        made = self._of_float(float(other) - float(self), self._units)
        return self._computed("−", other, self, made)

    def __mul__(self, other: Any) -> Any:
        if not is_plain_number(other):
            return NotImplemented if _array(other) else super().__mul__(other)
        return self._with(other, operator.mul, "×")

    def __rmul__(self, other: Any) -> Any:
        if not is_plain_number(other):
            return super().__rmul__(other)
        made = self._of_float(float(other) * float(self), self._units)
        return self._computed("×", other, self, made)

    def __truediv__(self, other: Any) -> Any:
        if not is_plain_number(other):
            return NotImplemented if _array(other) else super().__truediv__(other)
        return self._with(other, operator.truediv, "/")

    def __rtruediv__(self, other: Any) -> Any:
        if not is_plain_number(other):
            return super().__rtruediv__(other)
        made = self._of_float(float(other) / float(self), _NO_UNIT / self._units)
        return self._computed("/", other, self, made)

    def __floordiv__(self, other: Any) -> Any:
        return float(self) // float(other)

    def __rfloordiv__(self, other: Any) -> Any:
        return float(other) // float(self)

    def __mod__(self, other: Any) -> Any:
        return float(self) % float(other)

    def __rmod__(self, other: Any) -> Any:
        return float(other) % float(self)

    def __pow__(self, other: Any) -> Any:
        found = float(self) ** float(other)
        if not isinstance(found, float):
            return found  # the root of a negative number
        return self._computed("^", self, other, self._of_float(found, self._units**other))

    def __rpow__(self, other: Any) -> Any:
        return other ** float(self)

    def _compared(self, other: Any, compare: Callable[[Any, Any], bool]) -> Any:
        if isinstance(other, Quantity) and (
            other._units != self._units or not isinstance(other, Plain)
        ):
            return Quantity.compare(self, other, compare)
        return (
            compare(float(self), float(other))
            if isinstance(other, float)
            else compare(float(self), other)
        )

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Quantity) and (
            other._units != self._units or not isinstance(other, Plain)
        ):
            return super().__eq__(other)
        return float.__eq__(self, other)

    def __ne__(self, other: object) -> Any:
        found = self.__eq__(other)
        return found if found is NotImplemented else not found

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, operator.ge)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        plain = [_as_float(each) for each in inputs]
        scalars = not any(getattr(each, "ndim", 0) for each in plain)
        if _has_unit(plain) or (scalars and ufunc.__name__ in OPERATORS):
            return super().__array_ufunc__(ufunc, method, *inputs, **more)
        return getattr(ufunc, method)(*plain, **more)

    def __array_function__(self, function: Any, types: Any, args: Any, more: Any) -> Any:
        plain = [_as_float(each) for each in args]
        named = {name: _as_float(each) for name, each in more.items()}
        if _has_unit([*plain, *named.values()]):
            return super().__array_function__(function, types, args, more)
        return function(*plain, **named)


_NO_UNIT = UnitsContainer()


def _array(other: Any) -> bool:
    """Tell whether an operand is a plain array, which takes a value that counts as a float."""
    return hasattr(other, "__array_ufunc__") and not isinstance(other, Quantity)


def _as_float(value: Any) -> Any:
    """Return a value that counts as a float, also within a list or a tuple."""
    if isinstance(value, Plain):
        return float(value)
    return type(value)(map(_as_float, value)) if type(value) in (list, tuple) else value


def _has_unit(values: Any) -> bool:
    """Tell whether something within has a unit that must not be lost."""
    if type(values) in (list, tuple):
        return any(map(_has_unit, values))
    return isinstance(values, Quantity)


class _ShortNames(FullFormatter):
    """Print symbols ("TB/s"), whatever precision the format asks for."""

    def format_quantity(
        self, quantity: Any, quantity_spec: str = "", *args: Any, **options: Any
    ) -> str:
        spec = quantity_spec if "~" in quantity_spec else quantity_spec + "~"
        spec = spec if spec[-1:].isalpha() else spec + "P"
        return super().format_quantity(quantity, spec, *args, **options)


class _Registry(pint.UnitRegistry):  # type: ignore[type-arg]
    """A registry whose quantities are ours."""

    Quantity = Quantity


def make_registry(definitions: Iterable[str]) -> Any:
    """Make the registry with its own classes of both kinds."""
    units = _Registry(None)
    one = units.Quantity
    one._facts_of, one._made_of, one._symbols = {}, {}, {}
    one._one = one
    one._plain = type("Plain", (Plain, one), {"__module__": "mlsim.values.kinds"})
    units.load_definitions(list(definitions))
    units.formatter = _ShortNames(units)
    units.formatter.default_format = "~P"
    return units
