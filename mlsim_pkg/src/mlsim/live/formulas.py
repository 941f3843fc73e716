"""Equations asked directly: a formula of a page, without a model or a device."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from mlsim.equations import EQUATIONS, Equation
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.answer import Answer
from mlsim.solvers.question import Known, Question
from mlsim.units import to_base


class Formula(Answer):
    """What equations make of given quantities."""

    noun = variable = "formula"

    def __init__(self, equations: tuple[Equation, ...], given: dict[str, Any]) -> None:
        super().__init__()
        known = Known().add("given", **given)
        self.__dict__["question"] = Question(known, equations, {})
        self.first = equations[-1].yields

    @property
    def names(self) -> Collection[str]:
        """What can be asked for by name."""
        made = (each.yields for each in self.question.equations)
        return tuple(dict.fromkeys((*made, *self.question.known)))

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        given = self.question.known.items()
        return ", ".join(f"{name} {term(name).text(value)}" for name, value in given)


def formula(*equations: Callable[..., Any], **fixed: Any) -> Callable[..., Formula]:
    """Return equations as a question: of their inputs, those that are fixed and those that move.

    Parameters
    ----------
    equations
        Functions of `mlsim.equations`, at most one for each quantity.
    fixed
        Inputs by name, which don't move: numbers in base units, or text with a unit.

    Raises
    ------
    InvalidValueError
        If a function is none of the equations.

    >>> from mlsim.equations.roofline import memory_time
    >>> asked = formula(memory_time, memory_bandwidth="2 TB/s")(bytes_moved="4 GB")
    >>> asked.value("memory_time")
    0.002
    """
    found = tuple(EQUATIONS.get(getattr(each, "__name__", "")) for each in equations)
    made = tuple(each for each in found if each is not None)
    if len(made) < len(found) or not made:
        raise InvalidValueError(f"{equations} are no equations of mlsim.equations.")
    return partial(_asked, made, fixed)


def _asked(equations: tuple[Equation, ...], fixed: dict[str, Any], **moving: Any) -> Formula:
    given = {name: _number(name, value) for name, value in {**fixed, **moving}.items()}
    return Formula(equations, given)


def _number(name: str, value: Any) -> float:
    base = term(name).unit
    return float(value if isinstance(value, (int, float)) else to_base(value, base, name))
