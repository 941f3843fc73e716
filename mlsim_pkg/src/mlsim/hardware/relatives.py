"""Whose measurements stand in for a device that nobody measured.

Its own come first, then those of its sibling (the same chip on another board), its family
(the same architecture and kind of memory), and its class (all that were measured). The
table `families.toml` says who is related to whom.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from mlsim.records import DATA

FILE = DATA / "measurements" / "atlas" / "families.toml"

# From the nearest to the farthest.
LEVELS = ("own", "sibling", "family", "class")

_SAID = {
    "sibling": "of the same chip",
    "family": "of its family",
    "class": "of its class: all accelerators that were measured",
}


@dataclass(frozen=True, slots=True)
class Relatives:
    """The nearest measured devices: how near, and their keys."""

    level: str
    keys: tuple[str, ...]

    @property
    def words(self) -> str:
        """Say whose they are; empty for a device's own.

        >>> Relatives("sibling", ("Cloud.A100",)).words
        ', borrowed from Cloud.A100, of the same chip'
        """
        if self.level == "own":
            return ""
        return f", borrowed from {', '.join(self.keys)}, {_SAID[self.level]}"


def relatives(key: str, measured: Collection[str]) -> Relatives | None:
    """Return the nearest of the measured devices to a device; None if it has no relatives.

    >>> relatives("Cloud.A100_40GB", ["Cloud.A100", "Cloud.H100"])
    Relatives(level='sibling', keys=('Cloud.A100',))
    >>> relatives("Cloud.TPUv4", ["Cloud.A100", "Cloud.H100"]).level
    'class'
    >>> relatives("Wafer.WSE3", ["Cloud.A100"]) is None
    True
    """
    if key in measured:
        return Relatives("own", (key,))
    table = families()
    for level, groups in (("sibling", table["chips"]), ("family", table["families"])):
        kin = {each for group in groups if key in group for each in group}
        found = tuple(sorted(kin & set(measured)))
        if found:
            return Relatives(level, found)
    everyone = tuple(sorted({each for group in table["classes"] for each in group} & set(measured)))
    if everyone and any(key in group for group in table["classes"]):
        return Relatives("class", everyone)
    return None


@cache
def families() -> Mapping[str, tuple[frozenset[str], ...]]:
    """Return chips, families and classes as groups of keys."""
    with FILE.open("rb") as file:
        table = tomllib.load(file)
    return MappingProxyType(
        {name: tuple(map(frozenset, groups.values())) for name, groups in table.items()}
    )
