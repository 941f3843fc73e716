"""Sets of constants that somebody else's model uses, by name: its answers can be had again.

A set has, for some devices, peaks, a bandwidth, the parts of both that large kernels reach,
and the time of a launch. They are not the zoo's figures: a set may hold a variant of a device,
or a share that was copied from another one. What it says of that is kept as a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim import records
from mlsim.errors import NotMeasuredError, UnsupportedPrecisionError, unknown_name
from mlsim.precision import PRECISIONS
from mlsim.quantities import term
from mlsim.records.references import references
from mlsim.units import to_base
from mlsim.values import Origin, literal

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

FOLDER = records.DATA / "constants"

_TOP = ("key", "name", "source", "where", "note", "kernel_overhead", "devices")
_DEVICE = (
    *("called", "note", "memory_bandwidth", "compute_fraction", "memory_fraction"),
    "peak_flops",
)


@dataclass(frozen=True, slots=True)
class DeviceConstants:
    """What a set says of one device, in base units.

    Attributes
    ----------
    device, called, note
        The zoo's key; its name in the set; what the set says of these numbers.
    memory_bandwidth, compute_fraction, memory_fraction, kernel_overhead
        In B/s; parts of the peak and the bandwidth; in s.
    peaks
        In FLOP/s, by precision.
    words
        Where they are from.
    """

    device: str
    called: str
    note: str
    memory_bandwidth: float
    compute_fraction: float
    memory_fraction: float
    kernel_overhead: float
    peaks: Mapping[str, float]
    words: str

    def peak(self, name: str) -> float:
        """Return the peak of a precision.

        Raises
        ------
        UnsupportedPrecisionError
            If the set has none; lists those that it has.
        """
        if name not in self.peaks:
            raise UnsupportedPrecisionError(
                f"{self.words.partition(':')[0]}: there is no {name} peak of {self.called}. "
                f"There are: {', '.join(self.peaks)}."
            )
        return self.peaks[name]

    def by_name(self, name: str) -> Quantity:
        """Return a number of the set as a value, by its attribute's name.

        >>> print(constants("torchao-0.18.0").of("Cloud.H100").by_name("kernel_overhead"))
        2 µs
        """
        words, number = name.replace("_", " "), getattr(self, name)
        said = f"{self.called} {words} = {term(name).text(number)}: {literal(self.note)}"
        return term(name).scaled(number, Origin(f"{self.called} {words}", f"{said} {self.cited}"))

    @property
    def cited(self) -> str:
        """Where the numbers are from, with a citation."""
        place, _, key = self.words.rpartition("; ")
        return f"{literal(place)} [@{key}]"


@dataclass(frozen=True, slots=True)
class Constants:
    """A named set: its document, and what it says of each device."""

    key: str
    name: str
    source: str
    note: str
    devices: Mapping[str, DeviceConstants]

    def of(self, device: str) -> DeviceConstants:
        """Return what the set says of a device of the zoo, by its key.

        Raises
        ------
        NotMeasuredError
            If the set does not have it; lists those that it has.
        """
        if device not in self.devices:
            raise NotMeasuredError(
                f"{self.name}: there is no {device}. It has: {', '.join(self.devices)}."
            )
        return self.devices[device]


def constants(key: str) -> Constants:
    """Return a set of constants by its key.

    Raises
    ------
    UnknownNameError
        If there is none of that name.

    >>> constants("torchao-0.18.0").of("Cloud.H100").memory_bandwidth
    2400000000000.0
    """
    if key not in all_constants():
        raise unknown_name("set of constants", key, all_constants())
    return all_constants()[key]


@cache
def all_constants() -> Mapping[str, Constants]:
    """Return all sets by key.

    >>> list(all_constants())
    ['torchao-0.18.0', 'torchao-early']
    """
    found = [load_constants(path) for path in sorted(FOLDER.glob("*.toml"))]
    return {each.key: each for each in found}


def load_constants(path: str | Path) -> Constants:
    """Read a set of constants.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, or a number can't be; names file and line.
    """
    file = records.load(path)
    data = file.data
    file.only(data, _TOP)
    texts = file.texts(("key", "name", "source", "where"))
    if texts["source"] not in references():
        raise file.error(f"source {texts['source']!r} is not in the bibliography.", "source")
    start = _number(file, data, "kernel_overhead", "s")
    words = f"{texts['name']}: {texts['where']}; {texts['source']}"
    devices = {
        key: _device(file, table, start, words, "devices", f'"{key}"')
        for key, table in file.need(data, "devices", dict).items()
    }
    return Constants(texts["key"], texts["name"], texts["source"], data.get("note", ""), devices)


def _device(
    file: records.DataFile, table: Mapping[str, Any], start: float, words: str, *keys: str
) -> DeviceConstants:
    file.only(table, _DEVICE, *keys)
    called = file.need(table, "called", str, *keys)
    peaks = file.need(table, "peak_flops", dict, *keys)
    file.only(peaks, PRECISIONS, *keys, "peak_flops")
    shares = {
        name: file.need(table, name, float, *keys)
        for name in ("compute_fraction", "memory_fraction")
    }
    for name, share in shares.items():
        if not 0 < share <= 1:
            raise file.error(f"{name} must be a share above 0, not {share}.", *keys, name)
    return DeviceConstants(
        device=keys[-1].strip('"'),
        called=called,
        note=table.get("note", ""),
        memory_bandwidth=_number(file, table, "memory_bandwidth", "B/s", *keys),
        kernel_overhead=start,
        peaks={name: _number(file, peaks, name, "FLOP/s", *keys) for name in peaks},
        words=words,
        **shares,
    )


def _number(
    file: records.DataFile, table: Mapping[str, Any], name: str, base: str, *keys: str
) -> float:
    with file.at(*keys, name):
        found = float(to_base(file.need(table, name, str, *keys), base, name))
    if not found > 0:
        raise file.error(f"{name} must be positive.", *keys, name)
    return found
