"""Numbers that show their work: `show` makes them, arithmetic keeps it.

A `Number` reads as plain text in a sentence. In Markdown it is a span that
carries its derivation, so that a page can open it; where nothing opens spans it
reads as the plain number.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from mlsim.engine import Engine
from mlsim.errors import InvalidValueError, UnknownNameError, unknown_name
from mlsim.hardware import Device
from mlsim.measured import Measurement
from mlsim.records import Figure
from mlsim.solvers import Profile
from mlsim.solvers.derivation import as_card, literal
from mlsim.units import factor, quantity, text
from mlsim.workloads import Model


@dataclass(frozen=True)
class Number:
    """A number with its unit, its name, and how it came to be.

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
    """

    value: float
    base: str
    name: str
    brief: str
    how: str
    unit: str | None = ""
    form: str = ""

    @property
    def text(self) -> str:
        """The number as it stands in a sentence.

        >>> show(0.838, "a share", unit="%", form=".0f").text
        '84 %'
        """
        if self.unit is None:
            return f"{self.value:{self.form}}" if self.form else text(self.value, "1")
        if not self.unit and not self.form:
            return text(self.value, self.base)
        unit = self.unit or self.base
        number = f"{self.value / factor(unit, self.base):{self.form or '.4g'}}"
        symbol = f"{quantity(1, unit).units:~P}" if unit != "1" else ""
        return f"{number} {symbol}".strip()

    def show(self, unit: str | None = "", form: str = "") -> Number:
        """Return the same number, printed otherwise."""
        factor(unit or self.base, self.base)
        return replace(self, unit=unit, form=form)

    def to_dict(self) -> dict[str, Any]:
        """Return the number for a program: value with unit, name, derivation."""
        return {"value": self.value, "unit": self.base, "name": self.name, "derivation": self.how}

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        # A number and its unit stay on one line.
        shown = self.text.replace(" ", "\u00a0")
        return f'[{shown}]{{.opens opens="{quote(self.how)}"}}'

    def _repr_html_(self) -> str:
        how = html.escape(self.how)
        return f"<details><summary>{html.escape(self.text)}</summary><pre>{how}</pre></details>"

    def __truediv__(self, other: Number | float) -> Number:
        return _combine("/", self, _number(other), lambda a, b: a / b)

    def __rtruediv__(self, other: float) -> Number:
        return _number(other) / self

    def __mul__(self, other: Number | float) -> Number:
        return _combine("×", self, _number(other), lambda a, b: a * b)

    __rmul__ = __mul__

    def __sub__(self, other: Number | float) -> Number:
        return _combine("−", self, _number(other), lambda a, b: a - b)

    def __rsub__(self, other: float) -> Number:
        return _number(other) - self

    def __add__(self, other: Number | float) -> Number:
        return _combine("+", self, _number(other), lambda a, b: a + b)

    def __gt__(self, other: Number | float) -> bool:
        return self.value > float(other)

    def __lt__(self, other: Number | float) -> bool:
        return self.value < float(other)


def _number(value: Number | float) -> Number:
    if isinstance(value, Number):
        return value
    return Number(float(value), "1", f"{value:g}", "", "")


def _combine(sign: str, a: Number, b: Number, operate: Callable[[Any, Any], Any]) -> Number:
    """Reckon with two numbers, and write down how."""
    result = operate(quantity(a.value, a.base), quantity(b.value, b.base)).to_reduced_units()
    base = f"{result.units:~C}" or "1"
    name = f"{a.name} {sign} {b.name}"
    shown = f"{a.text} {sign} {b.text} = {text(float(result.magnitude), base)}"
    known = [f"- {each.brief}" for each in (a, b) if each.brief]
    how = "\n\n".join([f"{name} = {shown}", "\n".join(dict.fromkeys(known))]).strip()
    return Number(float(result.magnitude), base, name, f"{name} = {shown}", how)


def show(
    what: Any,
    name: str = "latency",
    *,
    unit: str | None = "",
    form: str = "",
    because: str = "",
) -> Number:
    """Return a number that shows its work.

    Parameters
    ----------
    what
        A profile of one point, a row of a sweep, a device, a model, a
        measurement, a figure, or a plain number that you reckoned yourself.
    name
        Of a profile or a row: any result. Of a device: a figure such as
        "memory.bandwidth", or "ridge_point". Of a model: "parameters" or
        "inference_flops". Of a plain number: what it is.
    unit, form
        How to print it, such as unit="us", form=".1f"; unit=None prints the
        number alone.
    because
        For a plain number: how it came to be.

    Raises
    ------
    UnknownNameError
        If there is no such result or figure.
    InvalidValueError
        If it is not one number.

    >>> print(show(Engine.solve(model="ResNet50", hardware="A100"), unit="us", form=".1f"))
    55.5 µs
    >>> from mlsim import Hardware
    >>> print(show(Hardware.Cloud.A100, "memory.bandwidth"))
    2,039 GB/s
    """
    made = _made(what, name, because)
    return made if unit == "" and not form else made.show(unit, form)


def _made(what: Any, name: str, because: str) -> Number:
    if isinstance(what, Number):
        return what
    if isinstance(what, Profile):
        return _of_profile(what, name)
    if isinstance(what, Device):
        return _of_device(what, name)
    if isinstance(what, Model):
        return _of_model(what, name)
    if isinstance(what, Measurement):
        return _of_measurement(what)
    if isinstance(what, Figure):
        return _of_figure(what, what.name)
    if hasattr(what, "index") and hasattr(what, "get") and "hardware" in what:
        return _of_profile(_solve_again(what), name)
    return _ofliteral(what, name, because)


def _words(name: str) -> str:
    return name.replace("_", " ").replace(".", " ")


def _of_profile(profile: Profile, name: str) -> Number:
    if profile.configuration.shape:
        raise InvalidValueError(f"{profile!r} holds many points; pick one, such as profile[0].")
    from mlsim.quantities import term

    value, base = float(profile.value(name)), term(name).unit
    where = (
        f"{profile.model.name} on {profile.hardware.name}, batch {profile.batch_size}, "
        f"{profile.precision}, {profile.estimate}"
    )
    brief = f"{_words(name)} = {text(value, base)} ({where})"
    how = as_card(profile.explain(name))
    return Number(value, base, _words(name), brief, how)


def _of_figure(figure: Figure, name: str) -> Number:
    source = f"[@{figure.source}], " if figure.source else ""
    where = f"{figure.where}: “{figure.quote}”, read {figure.read}" if figure.source else "given"
    brief = f"{_words(name)}: {figure.text}, {figure.kind}, {source}{literal(where)}"
    how = brief + (f"\n\n{literal(figure.note)}" if figure.note else "")
    number = Number(figure.si, figure.base, _words(name), brief, how)
    return replace(number, unit=figure.unit, form=",g") if figure.unit != "year" else number


def _of_device(device: Device, name: str) -> Number:
    if name.startswith("ridge_point"):
        precision = name.partition(".")[2] or "fp16"
        peak = _of_figure(device.compute.figure(precision), f"{device.name} peak {precision}")
        ridge = peak / _of_device(device, "memory.bandwidth")
        return replace(ridge, name=f"ridge point of {device.name}, {precision}")
    if name not in device.figures:
        raise unknown_name("figure of this device", name, [*device.figures, "ridge_point"])
    return _of_figure(device.figures[name], f"{device.name} {name}")


def _of_model(model: Model, name: str) -> Number:
    counts = {
        "parameters": (model.parameter_count, "parameter", "parameters", "the parameters"),
        "inference_flops": (model.flop_count, "FLOP", "work per sample", "twice the multiply-adds"),
    }
    if name not in counts:
        raise unknown_name("count of a model", name, counts)
    value, base, words, what = counts[name]
    brief = (
        f"{words} of {model.name}: {value:,}, {what} of its {len(model.operators)} operators "
        f"added up; architecture from [@{model.source}]"
    )
    return Number(float(value), base, f"{words} of {model.name}", brief, brief)


def _of_measurement(row: Measurement) -> Number:
    words = f"measured throughput of {row.model} on {row.device.name}, batch {row.batch_size}"
    how = (
        f"{words}, {row.precision}: {row.value:,g} samples per second with {literal(row.software)} "
        f"in {row.year} [@{row.source}], in these words: “{literal(row.quote)}”. {row.note}"
    )
    return Number(row.value, "sample/s", words, how.rpartition(", in these")[0], how.strip())


def _ofliteral(what: Any, name: str, because: str) -> Number:
    if isinstance(what, bool) or not hasattr(what, "__float__"):
        raise InvalidValueError(
            f"show takes a profile, a device, a model, a measurement or a number, not {what!r}."
        )
    if hasattr(what, "units"):
        value, base = float(what.to_base_units().magnitude), f"{what.to_base_units().units:~C}"
        base = base or "1"
    else:
        value, base = float(what), "1"
    brief = f"{name} = {text(value, base)}" + (f", {because}" if because else "")
    return Number(value, base, name, brief, brief)


def _solve_again(row: Any) -> Profile:
    """Return the profile behind a row of a sweep.

    Raises
    ------
    UnknownNameError
        If its model or device is not in the zoo (one of your own, say).
    """
    try:
        return Engine.solve(
            model=row["model"],
            hardware=row["hardware"],
            batch_size=int(row["batch_size"]),
            precision=row["precision"],
            estimate=row.get("estimate", "roofline"),
        )
    except UnknownNameError as error:
        raise UnknownNameError(
            f"this row can't be opened: {error} Solve it yourself, and show the profile."
        ) from None
