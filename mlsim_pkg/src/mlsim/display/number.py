"""A number with its unit, its name, and its derivation; arithmetic keeps all three.

A `Number` reads as plain text in a sentence. A notebook or a page shows it as a button
that opens a note with its derivation. In Markdown it is a span that carries the
derivation too, formulas included, for pages that make a card of it.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from mlsim.display.number_notes import opening, plain_lines
from mlsim.errors import InvalidValueError
from mlsim.units import MEMORY, factor, quantity, text, with_powers


@dataclass(frozen=True)
class Number:
    """A number with its unit, its name, and its derivation.

    Attributes
    ----------
    value, base
        The number in a base unit ("s", "B", "1", ...).
    name
        What it is, in words.
    brief, how
        Its origin as Markdown: in one line, and in full.
    unit, form
        How it is printed: a unit and a format such as ".1f"; chosen by size if
        they are empty. A unit of None prints the number alone.
    note
        Its origin in full as lines of text with citations; made of `how` if there are none.
    bare
        Whether the unit is left out, as below a heading that names it.
    memory
        Whether it is of bytes that something holds: printed in GiB, as a device's memory is.
    """

    value: float
    base: str
    name: str
    brief: str
    how: str
    unit: str | None = ""
    form: str = ""
    note: tuple[str, ...] = ()
    bare: bool = False
    memory: bool = False

    @property
    def text(self) -> str:
        """The number as it stands in a sentence.

        >>> Number(0.838, "1", "a share", "", "", unit="%", form=".0f").text
        '84 %'
        """
        return with_powers(self._digits)

    @property
    def _digits(self) -> str:
        if self.unit is None:
            return f"{self.value:{self.form}}" if self.form else text(self.value, "1")
        if not self.unit and not self.form:
            return text(self.value, MEMORY if self.memory else self.base)
        unit = self.unit or self.base
        number = f"{self.value / factor(unit, self.base):{self.form or '.4g'}}"
        if self.bare:
            return number
        symbol = f"{quantity(1, unit).units:~P}" if unit != "1" else ""
        return f"{number} {symbol}".strip()

    def show(self, unit: str | None = "", form: str = "") -> Number:
        """Return the same number, printed otherwise."""
        factor(unit or self.base, self.base)
        return replace(self, unit=unit, form=form)

    def without_unit(self) -> Number:
        """Return the same number, printed without its unit, which a heading names.

        >>> Number(3.0, "s", "a time", "", "", unit="ms", form=",g").without_unit().text
        '3,000'
        """
        return replace(self, bare=True)

    def markdown(self) -> str:
        """Return the number for a page: a span that opens, and carries its derivation."""
        before, after = (f"`{part}`{{=html}}" if part else "" for part in self._opening())
        return f'[{before}{self._shown}{after}]{{.opens opens="{quote(self.how)}"}}'

    def to_dict(self) -> dict[str, Any]:
        """Return the number for a program: value with unit, name, derivation."""
        return {"value": self.value, "unit": self.base, "name": self.name, "derivation": self.how}

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return self.text

    @property
    def _shown(self) -> str:
        return self.text.replace(" ", "\u00a0")  # a number and its unit stay on one line

    def _opening(self) -> tuple[str, str]:
        """Return the HTML around the number that lets it open."""
        lines = list(self.note) or plain_lines(self.how)
        return opening(self._shown, lines) if lines else ("", "")

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> str:
        before, after = self._opening()
        return f"<span>{before}{html.escape(self._shown)}{after}</span>"

    def __truediv__(self, other: Number | float) -> Number:
        return _combine("/", self, as_number(other), lambda a, b: a / b)

    def __rtruediv__(self, other: float) -> Number:
        return as_number(other) / self

    def __mul__(self, other: Number | float) -> Number:
        return _combine("×", self, as_number(other), lambda a, b: a * b)

    __rmul__ = __mul__

    def __sub__(self, other: Number | float) -> Number:
        return _combine("−", self, as_number(other), lambda a, b: a - b)

    def __rsub__(self, other: float) -> Number:
        return as_number(other) - self

    def __add__(self, other: Number | float) -> Number:
        return _combine("+", self, as_number(other), lambda a, b: a + b)

    def __gt__(self, other: Number | float) -> bool:
        return self.value > float(other)

    def __lt__(self, other: Number | float) -> bool:
        return self.value < float(other)


def as_number(value: Number | float) -> Number:
    """Return a number as it is, or make one without a derivation.

    >>> as_number(2).text
    '2'
    """
    if isinstance(value, Number):
        return value
    return Number(float(value), "1", f"{value:g}", "", "")


def _combine(sign: str, a: Number, b: Number, operate: Callable[[Any, Any], Any]) -> Number:
    """Compute with two numbers, and record the derivation."""
    result = operate(quantity(a.value, a.base), quantity(b.value, b.base)).to_reduced_units()
    base = f"{result.units:~C}" or "1"
    name = f"{a.name} {sign} {b.name}"
    memory = base == "B" and (a.memory or b.memory)
    outcome = text(float(result.magnitude), MEMORY if memory else base)
    shown = f"{a.text} {sign} {b.text} = {outcome}"
    known = [f"- {each.brief}" for each in (a, b) if each.brief]
    how = "\n\n".join([f"{name} = {shown}", "\n".join(dict.fromkeys(known))]).strip()
    brief = f"{name} = {shown}"
    return Number(float(result.magnitude), base, name, brief, how, memory=memory)


def of_literal(what: Any, name: str, because: str) -> Number:
    """Return a number that a caller computed, with the reason they give.

    Raises
    ------
    InvalidValueError
        If it is no number.
    """
    if isinstance(what, bool) or not hasattr(what, "__float__"):
        raise InvalidValueError(
            "show takes an answer, a device, a system, a model, a measurement or a number, "
            f"not {what!r}."
        )
    if hasattr(what, "units"):
        value, base = float(what.to_base_units().magnitude), f"{what.to_base_units().units:~C}"
        base = base or "1"
    else:
        value, base = float(what), "1"
    brief = f"{name} = {text(value, base)}" + (f", {because}" if because else "")
    return Number(value, base, name, brief, brief)


def words(name: str) -> str:
    """Return a name as words: "decode.total_bytes" as "decode total bytes"."""
    return name.replace("_", " ").replace(".", " ")
