"""Equations called on values: the result is a value that shows the formula and what went in.

Called on floats, arrays or symbols, an equation is its function and nothing else, and this
module is not loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mlsim.errors import UnitError
from mlsim.quantities import term
from mlsim.units import factor
from mlsim.values import KINDS, Origin, counts

if TYPE_CHECKING:
    from mlsim.equations.registry import Equation
    from mlsim.values.kinds import Quantity


def given_values(equation: Equation, values: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Compute in base units, and give the result its origin; what is many has none.

    >>> from mlsim import Hardware, given
    >>> from mlsim.equations.roofline import memory_time
    >>> time = memory_time(given("2 GB", "weights"), Hardware.Cloud.A100.memory.bandwidth)
    >>> print(time, time.name, memory_time(2e9, 2e12))
    981 µs memory time 0.001
    """
    given = inspect.signature(equation.function).bind(*values, **named).arguments
    if not all(isinstance(each, (float, int)) or _is_value(each) for each in given.values()):
        return equation.function(**given)
    numbers = {name: _number(equation, name, each) for name, each in given.items()}
    result = equation.function(**numbers)
    if not isinstance(result, (float, int)):
        return result
    return term(equation.yields).scaled(float(result), partial(_origin, equation, given, numbers))


def _is_value(argument: Any) -> bool:
    return type(argument) in KINDS and isinstance(argument.magnitude, (float, int))


def _number(equation: Equation, name: str, argument: Any) -> float:
    """Return an argument in the base unit that the equation takes.

    Raises
    ------
    UnitError
        If a value measures something else; tells what the equation takes.
    """
    if not _is_value(argument):
        return float(argument)
    unit, has = term(name).unit, argument.base
    try:
        # One kind of count may stand for another: tokens are rows of a product.
        alike = counts(unit) and counts(has) and unit.endswith("/s") == has.endswith("/s")
        return float(argument.si if alike else argument.si * factor(has, unit))
    except UnitError:
        takes = ", ".join(f"{each} ({term(each).unit})" for each in equation.inputs)
        raise UnitError(
            f"{equation.name}: {name} was given in {has}, and is in {unit}. "
            f"It takes, in this order, {takes}."
        ) from None


def _origin(
    equation: Equation, given: Mapping[str, Any], numbers: Mapping[str, float], value: Quantity
) -> Origin:
    """Write the formula, what goes in, what comes out, and what is known of the inputs."""
    name = equation.yields.replace("_", " ")
    shown = {each: term(each).text(number) for each, number in numbers.items()}
    worked = equation.with_values(shown).replace(" * ", " × ")
    result, source = term(equation.yields).text(value.si), f"[@{equation.source}]"
    briefs = [each.origin.brief for each in given.values() if _is_value(each)]
    known = tuple(dict.fromkeys(filter(None, briefs)))

    def how() -> str:
        lines = [f"{name} = {worked} = **{result}** {source}", f"$${equation.tex}$$"]
        return "\n\n".join([*lines, "\n".join(f"- {each}" for each in known)]).strip()

    def note() -> tuple[str, ...]:
        formula = f"{equation.yields} = {equation.expression}".replace(" * ", " × ")
        return f"{formula} = {worked} = {result} {source}", *known

    return Origin(name, f"{name} = {worked} = {result} {source}", how, note)
