"""What a reader's own measurements say about predictions for a device: a factor and a band.

A factor is the geometric mean of measured over predicted time, for each kind. It is for this
reader's software on this device; constants of the package stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from mlsim.engine.bounds import bound_of, device_of, estimate_of
from mlsim.engine.factors import SHARE, Factor, factor_of
from mlsim.engine.own_rows import KINDS, OwnRow
from mlsim.errors import InvalidValueError, WrongKindError, unknown_name
from mlsim.quantities import term
from mlsim.solvers.answer import Answer, Report
from mlsim.units import text

# Kind of each result that can be corrected, and whether it is a time.
RESULTS: Mapping[str, tuple[str, bool]] = {
    "latency": ("solve", True),
    "throughput": ("solve", False),
    "time_to_first_token": ("serve-prefill", True),
    "time_per_output_token": ("serve-decode", True),
    "decode_throughput": ("serve-decode", False),
    "step_time": ("train", True),
}


@dataclass(frozen=True, slots=True)
class Corrected:
    """A result after correction, in its base unit, with its band.

    `predicted` is what the package says; `value`, `low` and `high` are corrected, none of them
    beyond the bound; `words` says by whose rows.
    """

    name: str
    unit: str
    predicted: float
    value: float
    low: float
    high: float
    words: str

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        value, low, high, was = (
            text(each, self.unit) for each in (self.value, self.low, self.high, self.predicted)
        )
        return f"{value}, from {low} to {high} (predicted {was})\n  {self.words}"


@dataclass(frozen=True, repr=False)
class Correction:
    """A correction of predictions for one device, made of its reader's own rows.

    Attributes
    ----------
    rows
        The measurements beside their predictions.
    estimate
        Which predictions they correct, "calibrated" or "roofline".
    factors
        One for each kind of which there are rows.
    """

    rows: tuple[OwnRow, ...]
    estimate: str
    factors: Mapping[str, Factor] = field(init=False)

    def __post_init__(self) -> None:
        found = {
            kind: factor_of(kind, [row for row in self.rows if row.kind == kind])
            for kind in KINDS
            if any(row.kind == kind for row in self.rows)
        }
        object.__setattr__(self, "factors", MappingProxyType(found))

    @property
    def device(self) -> str:
        """Name of the device of all rows."""
        return self.rows[0].name

    @cached_property
    def by(self) -> str:
        """Whose rows correct, in words."""
        counts = (f"{each.rows} of {each.kind}" for each in self.factors.values())
        return f"corrected by your own rows on {self.device} ({', '.join(counts)})"

    def apply(self, answer: Answer, name: str = "") -> Corrected:
        """Correct a result of `Engine.solve`, `serve` or `train` on the same device.

        Parameters
        ----------
        answer
            For one point, of the same device and estimate as the rows.
        name
            Which result, one of `latency`, `throughput` (of a network),
            `time_to_first_token`, `time_per_output_token`, `decode_throughput` and
            `step_time`. By default the first time of the answer of which there are rows.

        Raises
        ------
        WrongKindError
            If it is no answer of those doors.
        InvalidValueError
            If it has many points, is of another device or estimate, or there are no rows of
            its kind.
        UnknownNameError
            If the result is none that can be corrected.

        >>> from mlsim import Engine
        >>> rows = [{"kind": "solve", "model": "ResNet50", "hardware": "A100",
        ...          "batch_size": 8, "measured": "2 ms"}]
        >>> profile = Engine.solve(model="ResNet50", hardware="A100", batch_size=8,
        ...                        estimate="calibrated")
        >>> found = Engine.calibrate(rows).apply(profile)
        >>> round(found.value, 6), found.low < found.value < found.high
        (0.002, True)
        """
        door = _door(answer)
        device = device_of(answer)
        if device.key != self.rows[0].device:
            raise InvalidValueError(
                f"the rows were measured on {self.device}, and this answer is of {device.name}: "
                "measure a few rows there."
            )
        if estimate_of(answer) != self.estimate:
            raise InvalidValueError(
                f"the rows correct {self.estimate} predictions, and this one is "
                f"{estimate_of(answer)}: ask for estimate={self.estimate!r}."
            )
        name = name or self._first(door)
        result = _results(door)
        if name not in result:
            raise unknown_name("result to correct of such an answer", name, result)
        kind, is_time = result[name]
        if kind not in self.factors:
            raise InvalidValueError(
                f"there are no rows of {kind}, which {name} needs; there are of "
                f"{', '.join(self.factors)}."
            )
        answer.one_point(name)
        return self._corrected(answer, name, self.factors[kind], is_time)

    def _first(self, door: str) -> str:
        names = _results(door)
        held = [name for name, (kind, _) in names.items() if kind in self.factors]
        return held[0] if held else next(iter(names))

    def _corrected(self, answer: Any, name: str, by: Factor, is_time: bool) -> Corrected:
        predicted, bound = float(answer.value(name)), bound_of(answer)
        limit = bound if isinstance(bound, float) else float(bound.value(name))
        if is_time:
            found = [max(predicted * each, limit) for each in (by.factor, by.low, by.high)]
        else:
            found = [min(predicted / each, limit) for each in (by.factor, by.high, by.low)]
        value, low, high = found
        return Corrected(name, term(name).unit, predicted, value, low, high, self.by)

    def explain(self) -> str:
        """Return how each factor and its band came to be, in words, and from which rows."""
        lines = []
        for each in self.factors.values():
            lines.append(
                f"{each.kind}: the geometric mean of measured over predicted time is "
                f"{each.factor:.3g}. Band {each.low:.3g} to {each.high:.3g}: {each.spread}."
            )
            lines += [
                f"  {row.words}: measured {text(row.measured, 's')}, predicted "
                f"{text(row.predicted, 's')}, ratio {row.ratio:.3g}"
                for row in self.rows
                if row.kind == each.kind
            ]
        lines.append(
            "It holds for this device and the software that was measured. No constant of the "
            "package has changed."
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the correction for JSON; times are in s."""
        names = ("kind", "words", "measured", "predicted", "ratio")
        rows = [{name: getattr(row, name) for name in names} for row in self.rows]
        factors = [each.as_dict() for each in self.factors.values()]
        return {
            "device": self.device,
            "estimate": self.estimate,
            "share": SHARE,
            "factors": factors,
            "rows": rows,
        }

    def report(self) -> Report:
        """Return the correction as a title and rows."""
        lines = []
        for each in self.factors.values():
            after = "" if each.after is None else f", {each.after:.0%} corrected by the others"
            counted = "1 row" if each.rows == 1 else f"{each.rows} rows"
            lines += [
                (each.kind, f"times x {each.factor:.3g} ({each.low:.3g} to {each.high:.3g})"),
                ("error", f"median {each.before:.0%}{after}; {counted}"),
                ("band", each.spread),
            ]
        title = f"Correction of {self.estimate} predictions for {self.device}"
        return Report(title, lines, label=15, width=58)

    def __str__(self) -> str:
        return self.report().text()

    def __repr__(self) -> str:
        return self.report().text()

    def _repr_markdown_(self) -> str:
        return self.report().markdown()


def _door(answer: Any) -> str:
    from mlsim.solvers.forward.profile import Profile
    from mlsim.solvers.serving.serving import Serving
    from mlsim.solvers.training.training import Training

    for door, kind in (("solve", Profile), ("serve", Serving), ("train", Training)):
        if isinstance(answer, kind):
            return door
    raise WrongKindError(
        "apply() takes an answer of Engine.solve, Engine.serve or Engine.train, not "
        f"{type(answer).__name__}."
    )


def _results(door: str) -> dict[str, tuple[str, bool]]:
    return {name: found for name, found in RESULTS.items() if found[0].partition("-")[0] == door}
