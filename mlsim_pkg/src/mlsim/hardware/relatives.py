"""Whose measurements stand in for a device that nobody measured.

Its own come first, then those of its sibling (the same chip on another board), its family
(the same architecture), and its class: the same kind of memory, in the same place of use, of
about the same years. The table `families.toml` says who is related to whom.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from mlsim.hardware.device_files import device_with
from mlsim.records import DATA

FILE = DATA / "measurements" / "atlas" / "families.toml"

# From the nearest to the farthest.
LEVELS = ("own", "sibling", "family", "class")
# Of a link that neither a device nor its relatives were measured with: nobody lends.
NOBODY = "roofline"

_SAID = {"sibling": "of the same chip", "family": "of its family"}
_CLASSES = {
    "hbm": "accelerators with HBM",
    "gddr_data_center": "data-center cards with GDDR",
    "gddr_desk": "desk cards with GDDR",
    "lpddr": "devices with LPDDR",
}
# Of a class, those lend that came out within so many years of the borrower.
_NEAR = 1
# So many lenders are named in a line.
_NAMED = 4


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
        return f", borrowed from {', '.join(self.keys)}, {self.how}"

    @property
    def how(self) -> str:
        """Say how near they are."""
        if self.level != "class":
            return _SAID[self.level]
        classes = {_class_of(key) for key in self.keys}
        named = _CLASSES[classes.pop()] if len(classes) == 1 else "all accelerators"
        return f"of a class: {named}"

    @property
    def short(self) -> str:
        """Name a few of them.

        >>> Relatives("sibling", ("Cloud.A100", "Cloud.A100_PCIe")).short
        'A100, A100_PCIe (of the same chip)'
        """
        names = [key.rpartition(".")[2] for key in self.keys]
        more = len(names) - _NAMED
        rest = f" and {more} more" if more > 0 else ""
        return f"{', '.join(names[:_NAMED])}{rest} ({self.how})"


@dataclass(frozen=True, slots=True)
class Loan:
    """A constant of a device that was measured on others.

    Attributes
    ----------
    constant
        Its name, such as "memory_fraction".
    kin
        Whose it is; of `NOBODY`, a link counts at its full rate.
    """

    constant: str
    kin: Relatives

    @property
    def words(self) -> str:
        """Say what is borrowed, and from whom.

        >>> Loan("memory_fraction", Relatives("sibling", ("Cloud.A100",))).words
        'share of the memory bandwidth from A100 (of the same chip)'
        """
        what = CONSTANTS[self.constant]
        if self.kin.level == NOBODY:
            return f"{what} from nobody: the link's full rate, and no start (its roofline)"
        return f"{what} from {self.kin.short}"


# What can be lent, in words.
CONSTANTS = {
    "compute_fraction": "share of the peak",
    "attention_fraction": "share of the peak in attention",
    "memory_fraction": "share of the memory bandwidth",
    "tiling": "what tiles lose",
    "experts": "kernels of experts",
    "state": "kernels of states",
    "exchange": "start and rate of exchanges",
}


def loans(kin: Mapping[str, Relatives]) -> tuple[Loan, ...]:
    """Return which constants are not a device's own, by the relatives of each."""
    return tuple(Loan(name, each) for name, each in kin.items() if each.level != "own")


# The nearest that may lend, of a device's constants and of its links': its own. Only
# `benchmarks/borrowed.py` sets another, to see how far off loans are.
_NEAREST = {"device": "own", "links": "own"}


def lend_from(level: str, what: str) -> None:
    """Let nobody nearer lend from now on; what has been worked out before stays as it is.

    Parameters
    ----------
    level
        One of `LEVELS`; for links also `NOBODY`.
    what
        "device" or "links".
    """
    _NEAREST[what] = level


def has_own(what: str) -> bool:
    """Tell whether a device's own measurements count, as they do unless loans are scored."""
    return _NEAREST[what] == "own"


# What is lent: what a memory reaches, what units for matrices reach, or what a library's kernels
# do, whatever the memory of the device.
MEMORY, UNITS, LIBRARY = "memory", "units", "library"


def relatives(
    key: str, measured: Collection[str], kind: str = UNITS, *, what: str = "device"
) -> Relatives | None:
    """Return the nearest of the measured devices to a device; None if it has no relatives.

    Parameters
    ----------
    key, measured
        Keys of the device, and of those that were measured.
    kind
        What is lent: of `MEMORY` only those lend that have the same kind of it, and of `LIBRARY`
        a class is everybody of any class.
    what
        "device", or "links" for what its links reach.

    >>> relatives("Cloud.A100_40GB", ["Cloud.A100", "Cloud.H100"])
    Relatives(level='sibling', keys=('Cloud.A100',))
    >>> relatives("Cloud.TPUv4", ["Cloud.A100", "Cloud.V100", "Workstation.M1"])
    Relatives(level='class', keys=('Cloud.A100',))
    >>> relatives("Wafer.WSE3", ["Cloud.A100"]) is None
    True
    """
    nearest = (*LEVELS, NOBODY).index(_NEAREST[what])
    if key in measured and nearest == 0:
        return Relatives("own", (key,))
    others, table = set(measured) - {key}, families()
    for place, (level, groups) in enumerate(zip(LEVELS[1:], table.values(), strict=True), 1):
        found = {each for group in groups if key in group for each in group} & others
        if kind == MEMORY:
            found = {each for each in found if _memory(each) == _memory(key)}
        if level == "class" and kind == LIBRARY and _class_of(key):
            found = {each for each in others if _class_of(each)}
        elif level == "class" and found:
            found = _of_its_time(key, found)
        if found and place >= nearest:
            return Relatives(level, tuple(sorted(found)))
        others -= found
    return None


def _of_its_time(key: str, keys: Collection[str]) -> set[str]:
    """Return those that came out about when a device did, else the nearest in time."""
    year, years = _year(key), {each: found for each in keys if (found := _year(each))}
    if not year or not years:
        return set(keys)
    reach = max(_NEAR, min(abs(each - year) for each in years.values()))
    return {each for each, found in years.items() if abs(found - year) <= reach}


def _year(key: str) -> int:
    figure = device_with(key).figures.get("release_year")
    return int(figure.value) if figure else 0


def _class_of(key: str) -> str:
    """Return the class of a device by its name; "" of one that has none."""
    return next((name for name, keys in _table()["classes"].items() if key in keys), "")


def _memory(key: str) -> str:
    """Return the kind of memory of a device that has a class: "hbm", "gddr" or "lpddr"."""
    return _class_of(key).partition("_")[0]


@cache
def families() -> Mapping[str, tuple[frozenset[str], ...]]:
    """Return chips, families and classes as groups of keys."""
    return MappingProxyType(
        {name: tuple(map(frozenset, groups.values())) for name, groups in _table().items()}
    )


@cache
def _table() -> Mapping[str, Mapping[str, Iterable[str]]]:
    with FILE.open("rb") as file:
        return tomllib.load(file)
