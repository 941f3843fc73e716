"""Where a value comes from: as it is on record, or as it was computed from others."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.units import text

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

# Signs by how strongly they bind: a weaker one within gets parentheses.
_BINDS = {"+": 1, "−": 1, "×": 2, "/": 2, "^": 3}
# Terms of a long sum that are named; the others are counted.
_MOST = 6


class Origin:
    """Where a value comes from, as text; what is long is made when it is asked for.

    Parameters
    ----------
    name
        What the value is, in words.
    brief
        Its origin as Markdown, in one line.
    how
        In full, as Markdown, or what makes it; the same if it is left out.
    note
        In full as lines of text with citations, or what makes them; made of `how` by who
        shows it if there are none.
    """

    def __init__(
        self,
        name: str,
        brief: str = "",
        how: str | Callable[[], str] | None = None,
        note: tuple[str, ...] | Callable[[], tuple[str, ...]] = (),
    ) -> None:
        self.name, self.brief = name, brief
        self._how, self._note = brief if how is None else how, note

    @cached_property
    def how(self) -> str:
        """The origin in full, as Markdown."""
        return self._how() if callable(self._how) else self._how

    @cached_property
    def note(self) -> tuple[str, ...]:
        """The origin in full, as lines of text."""
        return self._note() if callable(self._note) else self._note

    def called(self, name: str, brief: str = "") -> Origin:
        """Return it by another name; with a brief of its own, which then stands first."""
        if not brief:
            return Origin(name, self.brief, lambda: self.how, lambda: self.note)

        def how() -> str:
            return f"{brief}\n\n{self.how}".strip()

        return Origin(name, brief, how)

    def __str__(self) -> str:
        return self.brief or self.name

    __repr__ = __str__


def literal(words: str) -> str:
    r"""Keep quoted words from being read as Markdown.

    >>> print(literal("2,039 GB/s*"))
    2,039 GB/s\*
    """
    return re.sub(r"([*_|$@\[\]<>`])", r"\\\1", words)


class Computed:
    """What a value was computed from: made into words when somebody asks."""

    __slots__ = ("operands", "sign")

    def __init__(self, sign: str, *operands: Any) -> None:
        self.sign = sign
        self.operands = operands

    def terms(self) -> tuple[Any, ...]:
        """Return the operands; of a sum of sums, all of them."""
        if self.sign != "+":
            return self.operands
        found: list[Any] = []
        rest = list(self.operands)
        while rest:
            first = rest.pop(0)
            inner = getattr(first, "_origin", None)
            if isinstance(inner, Computed) and inner.sign == "+":
                rest[:0] = inner.operands
            else:
                found.append(first)
        return tuple(found)

    def __call__(self, value: Quantity) -> Origin:
        """Say in words what a value was computed from."""
        terms = self.terms()
        # A long sum is computed once for each of its terms where it is made in a loop.
        alone = len(terms) == 1
        names = [_name_within(self.sign, each, at or alone) for at, each in enumerate(terms)]
        texts = [_text(each, at) for at, each in enumerate(terms)]
        name = _joined(self.sign, names)
        with_numbers = "" if alone else f" = {_joined(self.sign, texts)}"
        brief = f"{name}{with_numbers} = {value.in_full}"
        known = [f"- {_brief(each)}" for each in terms if _brief(each)]
        how = "\n\n".join([brief, "\n".join(dict.fromkeys(known))]).strip()
        return Origin(name, brief, how)


def _joined(sign: str, parts: list[str]) -> str:
    if len(parts) == 1:
        return f"{sign}{parts[0]}"
    if len(parts) > _MOST:
        parts = [*parts[:3], f"... ({len(parts) - 4} more)", parts[-1]]
    return f" {sign} ".join(parts)


def _name_within(sign: str, operand: Any, place: int) -> str:
    """Return an operand's name, in parentheses where its own sign binds less."""
    if not _is_value(operand):
        return f"{operand:g}"
    inner = operand.sign
    weaker = inner and _BINDS[inner] < _BINDS[sign]
    after = inner and place and sign in "−/" and _BINDS[inner] == _BINDS[sign]
    name: str = operand.name
    return f"({name})" if weaker or after else name


def _text(operand: Any, place: int) -> str:
    found: str = operand.in_full if _is_value(operand) else text(float(operand), "1")
    return f"({found})" if place and found.startswith("-") else found


def _brief(operand: Any) -> str:
    return operand.origin.brief if _is_value(operand) else ""


def _is_value(operand: Any) -> bool:
    return hasattr(type(operand), "in_full")
