"""How long prompts and answers are: one length, or a distribution of them in words.

A distribution is written in one way for Python, the command line and files: its name and
its numbers, such as "lognormal 512 0.8".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from mlsim import records
from mlsim.errors import InvalidValueError, nearest
from mlsim.records import DATA

if TYPE_CHECKING:
    import numpy

# The name of a distribution, and what its numbers are.
KINDS = {
    "fixed": ("tokens",),
    "uniform": ("least", "most"),
    "exponential": ("mean",),
    "lognormal": ("mean", "spread"),
}
LONGEST = 10_000_000
USUAL = DATA / "lengths.toml"


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of texts, in tokens: whole numbers from 1 up.

    Attributes
    ----------
    kind, numbers
        A name of `KINDS`, and its numbers. The spread of a lognormal distribution is its
        standard deviation as a share of its mean.

    >>> lengths("uniform 100 300").mean
    200.0
    """

    kind: str
    numbers: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean, before lengths are made whole."""
        if self.kind == "uniform":
            least, most = self.numbers
            return (least + most) / 2
        return self.numbers[0]

    @property
    def fixed(self) -> bool:
        """Whether all are equally long."""
        return self.kind == "fixed" or (self.kind == "uniform" and len(set(self.numbers)) == 1)

    def draw(self, count: int, random: numpy.random.Generator) -> numpy.ndarray[Any, Any]:
        """Draw lengths: whole numbers, at least 1."""
        import numpy as np

        if self.kind == "fixed":
            return np.full(count, int(self.numbers[0]))
        if self.kind == "uniform":
            least, most = self.numbers
            return random.integers(int(least), int(most), count, endpoint=True)
        if self.kind == "exponential":
            drawn = random.exponential(self.numbers[0], count)
        else:
            mean, spread = self.numbers
            variance = math.log(1 + spread**2)
            drawn = random.lognormal(math.log(mean) - variance / 2, math.sqrt(variance), count)
        return np.clip(np.rint(drawn), 1, LONGEST).astype(int)

    def __str__(self) -> str:
        if self.kind == "fixed":
            return f"{self.numbers[0]:,.0f}"
        return " ".join((self.kind, *(f"{each:g}" for each in self.numbers)))


def spread(mean: Lengths, name: str = "prompt_tokens") -> Lengths:
    """Return lengths about a mean, as far apart as those of a published service.

    What is a distribution already stays as it is.

    >>> str(spread(lengths(1000))), str(spread(lengths(300), "output_tokens"))
    ('lognormal 1000 0.96', 'lognormal 300 0.77')
    """
    if not mean.fixed:
        return mean
    return Lengths("lognormal", (mean.mean, _spreads()[name.replace("tokens", "spread")]))


@cache
def _spreads() -> dict[str, float]:
    file = records.load(USUAL)
    return {name: file.figure(table, "1", name).value for name, table in file.data.items()}


def lengths(value: Any, name: str = "prompt_tokens") -> Lengths:
    """Read a length: a whole number, or a distribution in words.

    Raises
    ------
    InvalidValueError
        If it is neither; names the distributions and their numbers.

    >>> str(lengths("lognormal 512 0.8")), str(lengths(512))
    ('lognormal 512 0.8', '512')
    """
    if isinstance(value, Lengths):
        return value
    if isinstance(value, str):
        return _read(value, name)
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or not 1 <= value <= LONGEST:
        raise InvalidValueError(
            f"{name} must be a whole number from 1 to {LONGEST:,}, or a distribution such as "
            f"{_forms()}; not {value!r}."
        )
    return Lengths("fixed", (float(value),))


def _read(text: str, name: str) -> Lengths:
    kind, *rest = text.split() or [""]
    if kind not in KINDS:
        if not rest and _number(kind) is not None:
            return lengths(_number(kind), name)
        raise InvalidValueError(
            f"{name} {text!r} is no length.{nearest(kind, KINDS)} Write a whole number, "
            f"or one of {_forms()}."
        )
    numbers = [_number(each) for each in rest]
    wanted = KINDS[kind]
    if len(numbers) != len(wanted) or None in numbers:
        raise InvalidValueError(
            f"{name} {text!r}: {kind} takes {len(wanted)} number(s), {' and '.join(wanted)}, "
            f"such as {_example(kind)!r}."
        )
    return _checked(Lengths(kind, tuple(each for each in numbers if each is not None)), name)


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _checked(found: Lengths, name: str) -> Lengths:
    if found.kind == "fixed":
        return lengths(found.numbers[0], name)
    in_range = all(0 < each <= LONGEST for each in found.numbers)
    if found.kind == "uniform":
        least, most = found.numbers
        in_range = in_range and least.is_integer() and most.is_integer() and 1 <= least <= most
    elif found.numbers[0] < 1:
        in_range = False
    if not in_range:
        raise InvalidValueError(
            f"{name} {str(found)!r}: lengths are from 1 to {LONGEST:,} tokens; of a uniform one "
            "both ends are whole, the least first; a spread is above 0."
        )
    return found


def _example(kind: str) -> str:
    numbers = {"fixed": "512", "uniform": "100 900", "exponential": "512", "lognormal": "512 0.8"}
    return f"{kind} {numbers[kind]}"


def _forms() -> str:
    return ", ".join(repr(_example(kind)) for kind in KINDS)
