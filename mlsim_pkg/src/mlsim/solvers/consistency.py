"""Quantities that a caller gives, held against each other and against what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mlsim.equations import Equation
from mlsim.errors import InvalidValueError
from mlsim.quantities import term

# Two numbers are equal if they differ by this part of one of them: rounding, no more.
_ROUNDING = 1e-9


def check_consistent(
    equations: Iterable[Equation], given: Mapping[str, Any], fixed: Mapping[str, Any]
) -> None:
    """Refuse given quantities that contradict what follows from the rest.

    Whatever the equations make of given and fixed quantities counts, over several
    steps too. What also needs data of the model or the device may be overridden.

    Parameters
    ----------
    equations
        At most one for each quantity.
    given
        Quantities that take the place of data or of equations, in base units.
    fixed
        What else was asked for by number: batches, lengths, parallel sizes.

    Raises
    ------
    InvalidValueError
        If two differ; says what was given, what follows, and from what.
    """
    known = {**fixed, **given}
    # From which of the given and fixed quantities each one follows.
    leaves: dict[str, tuple[str, ...]] = {name: (name,) for name in known}
    # A sum also needs the operators, which nobody gives.
    waiting = [each for each in equations if not each.sums]
    while ready := [each for each in waiting if leaves.keys() >= set(each.inputs)]:
        for each in ready:
            waiting.remove(each)
            computed = each.function(*(known[name] for name in each.inputs))
            behind = tuple(dict.fromkeys(leaf for name in each.inputs for leaf in leaves[name]))
            if each.yields not in known:
                known[each.yields], leaves[each.yields] = computed, behind
            elif not _close(known[each.yields], computed):
                _refuse(each, known, computed, behind)


def _refuse(each: Equation, known: Mapping[str, Any], computed: Any, behind: Iterable[str]) -> None:
    name = each.yields
    raise InvalidValueError(
        f"{name} = {_shown(known[name], name)} contradicts {each.expression} = "
        f"{_shown(computed, name)}, which follows from "
        f"{', '.join(f'{leaf} = {_shown(known[leaf], leaf)}' for leaf in behind)}: "
        f"leave {name} out, or change one of these."
    )


def check_shares(results: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse given quantities by which a part would be larger than the whole, or negative.

    Parameters
    ----------
    results
        Computed shares of something, such as model_flops_utilization.
    given
        What was given, in base units.

    Raises
    ------
    InvalidValueError
        If a share is not from 0 to 1; says which, and what was given.
    """
    for name, share in results.items():
        least = most = share
        if getattr(share, "ndim", 0):
            least, most = share.min(), share.max()
        # NaN, of what can't be computed, is no contradiction.
        if most > 1 + _ROUNDING or least < -_ROUNDING:
            shown = ", ".join(f"{each} = {_shown(value, each)}" for each, value in given.items())
            raise InvalidValueError(
                f"{shown} can't be: {name} would be {float(most if most > 1 else least):.4g}, "
                "and a share lies between 0 and 1. Leave it out, or give what would explain it, "
                "such as a higher peak_flops or memory_bandwidth."
            )


def _close(a: Any, b: Any) -> bool:
    """Tell whether two numbers, or all of two arrays, are equal but for rounding."""
    differ = abs(a - b) > _ROUNDING * abs(b)
    return not (differ.any() if hasattr(differ, "any") else differ)


def _shown(value: Any, name: str) -> str:
    if getattr(value, "ndim", False):
        return "an array"
    return term(name).text(float(value))
