"""A count, a share or a rate per second: a value that is a float as well; and the registry."""

# Pint's methods have types in part, and a float's are others than a quantity's.
# mypy: disable-error-code="assignment, attr-defined, no-untyped-call, override, misc"
# mypy: disable-error-code="arg-type, no-any-return"

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any, Self, cast

import pint
from pint.delegates.formatter.full import FullFormatter
from pint.util import UnitsContainer

from mlsim.values.arithmetic import OPERATORS, is_plain_number
from mlsim.values.kinds import DIGITS_OF_PLAIN, Quantity

# A format that says how wide, and not in which digits.
_WIDTH = re.compile(r"(?:.?[<>^])?[1-9]\d*")


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
            shown = float(round(part)) if 1 <= abs(part) <= 100 else part  # in whole per cent
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
    one._plain = type("Plain", (Plain, one), {"__module__": "mlsim.values.plain"})
    units.load_definitions(list(definitions))
    units.formatter = _ShortNames(units)
    units.formatter.default_format = "~P"
    return units
