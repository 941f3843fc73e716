"""Arithmetic of values: as Pint's, and it keeps the origin.

Pint's own takes half as long, and three times without the units that are kept here.
"""

# Pint's methods have types in part, and a float's are others than a quantity's.
# mypy: disable-error-code="assignment, attr-defined, no-untyped-call, override, misc"
# mypy: disable-error-code="arg-type, no-any-return"

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from pint.registry import Quantity as PintQuantity

from mlsim.errors import UnitError
from mlsim.units import scale_for
from mlsim.values.origins import Computed

# Pint's class is generic since its version 0.25.1 only, and only to those who check types.
if TYPE_CHECKING:
    _PintQuantity = PintQuantity[Any]
else:
    _PintQuantity = PintQuantity


class Computing(_PintQuantity):
    """A quantity whose sums, products and comparisons know what they were made of."""

    # Python asks a count on the right before a quantity on the left, since its class is derived.

    def _computed(self, sign: str, left: Any, right: Any, made: Any) -> Any:
        """Give a result of arithmetic its origin, if it is one number."""
        if made.__class__ not in (self._one, self._plain) or not made._one_number:
            return made
        known = made._known
        if known.counts and not known.plain:  # samples per ms are samples per second
            made = self._plain._of_float(made._magnitude * known.scale, known.root)
        elif known.mixed:  # GiB over GB/s are seconds
            scale, unit = scale_for(made.si, known.base)
            made = self.__class__._one(made.si / scale, self._REGISTRY.Unit(unit))
        one, other = getattr(left, "__dict__", _NOTHING), getattr(right, "__dict__", _NOTHING)
        if sign in "+−":
            made._memory = bool(one.get("_memory") or other.get("_memory"))
            made._share = bool(one.get("_share") or other.get("_share"))
        elif self._memory or getattr(right, "_memory", False):
            made._memory = made.base == "B"
        if not made._known.root:
            # Less than the whole that it is divided by; how much more or less than another.
            both = isinstance(left, Computing) and isinstance(right, Computing)
            made._ratio = sign == "/" and both
            part = made._ratio and 0 < made.si < 1
            change = sign == "−" and any(
                each.__class__ is int and each == 1 for each in (left, right)
            )
            made._share = (
                made._share
                or part
                or (change and any(getattr(each, "_ratio", False) for each in (left, right)))
            )
        if one.get("_origin") is not None or other.get("_origin") is not None:
            made._origin = Computed(sign, left, right)
        return made

    def _added(self, other: Any, operate: Callable[[Any, Any], Any], sign: str) -> Any:
        if other.__class__ is int and not other and operate is operator.add:
            return self  # as sum() begins
        if other.__class__ is self.__class__ and other._units == self._units:
            made = self.__class__(operate(self._magnitude, other._magnitude), self._units)
        elif self._is_like(other):
            converted = other._magnitude * (other._known.scale / self._known.scale)
            made = self.__class__(operate(self._magnitude, converted), self._units)
        else:
            made = self._add_sub(other, operate)
        return made if made is NotImplemented else self._computed(sign, self, other, made)

    def _is_like(self, other: Any) -> bool:
        """Tell whether both are one number each, of one kind."""
        return (
            isinstance(other, Computing)
            and self._one_number
            and other._one_number
            and self._known.root == other._known.root
        )

    def _times(self, other: Any, operate: Callable[[Any, Any], Any]) -> Any:
        """Return the units of a product or a quotient, which Pint takes long to make."""
        key = (self._units, other._units, operate)
        found = self._made_of.get(key)
        if found is None:
            found = self._made_of[key] = operate(self._units, other._units)
        return found

    def __add__(self, other: Any) -> Any:
        return self._added(other, operator.add, "+")

    def __radd__(self, other: Any) -> Any:
        if other.__class__ is int and not other:
            return self
        if isinstance(other, Computing):
            return Computing.__add__(other, self)
        made = super().__radd__(other)
        return made if made is NotImplemented else self._computed("+", other, self, made)

    def __sub__(self, other: Any) -> Any:
        return self._added(other, operator.sub, "−")

    def __rsub__(self, other: Any) -> Any:
        if isinstance(other, Computing):
            return Computing.__sub__(other, self)
        made = super().__rsub__(other)
        return made if made is NotImplemented else self._computed("−", other, self, made)

    def __mul__(self, other: Any) -> Any:
        if other.__class__ in (float, int):
            made = self.__class__(self._magnitude * other, self._units)
        elif isinstance(other, Computing):
            made = self.__class__(
                self._magnitude * other._magnitude, self._times(other, operator.mul)
            )
        else:
            made = super().__mul__(other)
        return made if made is NotImplemented else self._computed("×", self, other, made)

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, Computing):
            return Computing.__mul__(other, self)
        made = super().__rmul__(other)
        return made if made is NotImplemented else self._computed("×", other, self, made)

    def __truediv__(self, other: Any) -> Any:
        if other.__class__ in (float, int):
            made = self.__class__(self._magnitude / other, self._units)
        elif isinstance(other, Computing):
            made = self.__class__(
                self._magnitude / other._magnitude, self._times(other, operator.truediv)
            )
        else:
            made = super().__truediv__(other)
        return made if made is NotImplemented else self._computed("/", self, other, made)

    def __rtruediv__(self, other: Any) -> Any:
        if isinstance(other, Computing):
            return Computing.__truediv__(other, self)
        made = super().__rtruediv__(other)
        return made if made is NotImplemented else self._computed("/", other, self, made)

    def __pow__(self, other: Any) -> Any:
        made = super().__pow__(other)
        return made if made is NotImplemented else self._computed("^", self, other, made)

    def __float__(self) -> float:
        """Return the number of what has no unit.

        Raises
        ------
        UnitError
            If it has one: in which should it be?
        """
        if self._one_number and self._known.root:
            unit = self._by_size(False)[0]
            raise UnitError(
                f"{self.text} is no plain number: .to({unit!r}).magnitude is one, and .si is it "
                f"in {self.base}."
            )
        return float(super().__float__())

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        """Compute with a number of NumPy's as with any other."""
        operate = OPERATORS.get(ufunc.__name__)
        if operate is not None and method == "__call__" and not more:
            numbers = [each if isinstance(each, Computing) else _scalar(each) for each in inputs]
            if all(isinstance(each, (Computing, float, int)) for each in numbers):
                return operate(*numbers)
        return super().__array_ufunc__(ufunc, method, *inputs, **more)

    def compare(self, other: Any, op: Any) -> Any:
        """Compare with a value of its kind.

        Raises
        ------
        UnitError
            If it has a unit and the other is a plain number.
        """
        if self._known.root and is_plain_number(other) and other and self._one_number:
            unit = self._by_size(False)[0]
            raise UnitError(
                f"{self.text} can't be compared with {other!r}, which has no unit: compare "
                f".to({unit!r}).magnitude with it."
            )
        if self._differs_by_counts(other):
            return op(self.si, other.si)
        return super().compare(other, op)

    def __eq__(self, other: object) -> Any:
        if self._differs_by_counts(other):
            return self.si == other.si
        return super().__eq__(other)

    __hash__ = PintQuantity.__hash__

    def _differs_by_counts(self, other: Any) -> bool:
        """Tell whether two values are of one kind but for what is counted.

        A cache per token times a plain number of tokens is in bytes per token, and compares with
        bytes. To add them up is refused.
        """
        if not (isinstance(other, Computing) and self._one_number and other._one_number):
            return False
        return self._known.is_but_for_counts(other._known)

    def __neg__(self) -> Any:
        made: Any = super().__neg__()
        known = self.__dict__.get("_origin") is not None and made._one_number
        made._origin = Computed("−", self) if known else None
        made._memory, made._share = self._memory, self._share
        return made

    def __abs__(self) -> Any:
        if not self._one_number:
            return super().__abs__()
        return -self if self._magnitude < 0 else self

    def __round__(self, ndigits: int | None = None) -> Any:
        return self._kept(super().__round__(ndigits))

    def __iadd__(self, other: Any) -> Any:
        return self + other

    def __isub__(self, other: Any) -> Any:
        return self - other

    def __imul__(self, other: Any) -> Any:
        return self * other

    def __itruediv__(self, other: Any) -> Any:
        return self / other


OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
}


def _scalar(other: Any) -> Any:
    """Return a number of NumPy's as Python's; anything else as it is."""
    return other.item() if hasattr(other, "item") and not getattr(other, "ndim", 0) else other


_NOTHING: Mapping[str, Any] = {}


def is_plain_number(other: Any) -> bool:
    """Tell whether an operand is a plain number: its unit is that of the other one."""
    return not isinstance(other, Computing) and isinstance(other, (float, int, Real))
