"""Numbers for a question that nobody has seen: drawn from a seed that is kept private.

The lists of `[exercise.given]` are public, and so are the answers that follow from them. These
numbers lie between the least and the greatest of a list, and go in its steps; names (of a model, of
a device) are those of the list.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from mlsim_exercises.data import Exercise
from mlsim_exercises.errors import ExerciseError
from mlsim_exercises.evaluation import Evaluation, evaluate

_VERSIONS = 8  # of a question
_TRIES = 60


def private_versions(exercise: Exercise, seed: str) -> tuple[Evaluation, ...]:
    """Return versions of a question with numbers that follow from a private seed.

    Numbers for which two mistakes look alike, or that can't be computed, are drawn again. A
    question without numbers has one version, the public one.

    >>> task = Exercise("e", "T", "number", "{n}?", "n * 7", "", given={"n": (10, 500)})
    >>> [each.given["n"] % 10 for each in private_versions(task, "secret")]
    [0, 0, 0, 0, 0, 0, 0, 0]
    """
    draw = random.Random(f"{seed}\x00{exercise.id}")  # noqa: S311 - a seed makes it repeatable
    found: dict[tuple[Any, ...], Evaluation] = {}
    for _ in range(_TRIES):
        if len(found) == _VERSIONS:
            break
        given = {name: _drawn(draw, values) for name, values in exercise.given.items()}
        if tuple(given.values()) in found:
            continue
        try:
            found[tuple(given.values())] = evaluate(exercise, given)
        except ExerciseError:
            continue
    return tuple(found.values()) or (evaluate(exercise),)


def _drawn(draw: random.Random, values: Sequence[Any]) -> Any:
    """Return a value like those of a list.

    >>> _drawn(random.Random(1), (8, 64)) in {8, 16, 32, 64}
    True
    """
    numbers = [each for each in values if isinstance(each, int | float)]
    if (
        len(numbers) != len(values)
        or len(values) == 1
        or any(each is True or each is False for each in values)
    ):
        return draw.choice(list(values))
    whole = [each for each in numbers if isinstance(each, int)]
    if len(whole) == len(numbers) and all(each > 0 and each & (each - 1) == 0 for each in whole):
        low, high = (each.bit_length() - 1 for each in (min(whole), max(whole)))
        return 2 ** draw.randint(low, high)
    digits = max(-int(Decimal(str(each)).as_tuple().exponent) for each in numbers)
    scale = 10 ** max(0, digits)
    parts = [round(each * scale) for each in numbers]
    step = math.gcd(*parts)
    value = draw.randrange(min(parts), max(parts) + 1, step or 1)
    return value if len(whole) == len(numbers) else value / scale
