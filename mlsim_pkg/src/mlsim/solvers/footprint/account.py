"""What a footprint is computed from: known quantities, each with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial

from mlsim.equations import Equation, energy, equations_of
from mlsim.quantities import term
from mlsim.solvers.footprint.entries import Entry
from mlsim.solvers.load import Load
from mlsim.solvers.question import Known, Question
from mlsim.units import text

FOOTPRINT = equations_of(energy.ENERGY, energy.FOOTPRINT)
RESULTS = tuple(dict.fromkeys(each.yields for each in FOOTPRINT))

# The more of these, the smaller the footprint.
_FALLING = ("device_lifetime", "lifetime_use")


@cache
def equations_by(contracts: bool) -> tuple[Equation, ...]:
    """Return one equation for each result, with emissions by contracts or by grids."""
    other = "carbon_intensity" if contracts else "contract_carbon_intensity"
    return tuple(each for each in FOOTPRINT if each.name != other)


@dataclass(frozen=True, eq=False)
class Account:
    """A load and its surroundings, at one end of what is known of them.

    `missing` says of what is not known what a user could give; `left_out` names what
    is not counted.
    """

    load: Load
    entries: Mapping[str, Entry]
    place: str
    missing: Mapping[str, str]
    left_out: tuple[str, ...]
    # Which end of each range is taken: the one for a small or for a large footprint.
    large: bool = False

    @property
    def ranges(self) -> bool:
        """Whether anything known is a range."""
        return any(each.ranges for each in self.entries.values())

    @cached_property
    def question(self) -> Question:
        """What is asked: all that is known, at this end of its ranges."""
        known = Known()
        for name, each in self.entries.items():
            upper = self.large != (name in _FALLING)
            value = each.high if upper else each.low
            known.add(partial(self._origin, name), **{name: value})
        return Question(known, equations_by("contract_factor" in known), lambda: self.labels)

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        words = {"hardware": self.load.device.name, **self.load.labels, "model": self.load.label}
        estimate = words.get("estimate", "")
        end = "" if not self.ranges else "the high end, " if self.large else "the low end, "
        return {
            "model": words["model"],
            "model_source": words.get("model_source", ""),
            "hardware": words["hardware"],
            "precision": ", ".join(each for each in (words.get("precision"), estimate) if each),
            "estimate": f"{end}{self.place}",
        }

    def _origin(self, name: str) -> str:
        """Say where a known quantity comes from, and of a range, both its ends."""
        each = self.entries[name]
        if not each.ranges:
            return each.origin
        unit = term(name).unit
        return f"{each.origin}: {text(each.low, unit)} to {text(each.high, unit)}"
