"""Levels of memory, from registers to a network, and what operations and machines once took.

Every figure is on record with its source: latencies that others measured with chains of
dependent reads, capacities that systems report, energies of a process, rates of machines of
the 1950s. What no document gave is absent.

>>> [level.name for level in levels(machine="NVIDIA GeForce RTX 3090")]
['registers', 'shared memory', 'L2 cache']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mlsim import records
from mlsim.errors import unknown_name
from mlsim.records import DATA, Figure

FOLDER = DATA / "machines"
_LEVEL = {"latency": "s", "bandwidth": "B/s", "capacity": "B"}
_ENERGY = {"energy": "J"}
_PAST = {
    "add_rate": "FLOP/s",
    "power": "W",
    "add_time": "s",
    "multiply_time": "s",
    "image_time": "s",
    "images": "1",
    "neurons": "1",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What is on record under one key.

    Attributes
    ----------
    key, name
        A name of its own, and what people call it: "h100_l2", "L2 cache".
    machine, device
        Whose level it is, and its key in the zoo; both empty where it is no level.
    year
        Of a machine of the past; else 0.
    figures
        Of a level "latency", "bandwidth", "capacity"; of an operation "energy"; each with
        its source. One that no document gave is absent.
    """

    key: str
    name: str
    machine: str
    device: str
    year: int
    figures: Mapping[str, Figure]

    def __getitem__(self, name: str) -> Figure:
        """Return a figure.

        Raises
        ------
        UnknownNameError
            If this one is not on record; says which are.

        >>> level("h100_l2")["capacity"].text
        '52,428,800 B'
        """
        if name not in self.figures:
            raise unknown_name(f"figure of {self.key}", name, self.figures)
        return self.figures[name]

    def __contains__(self, name: str) -> bool:
        return name in self.figures


def levels(*, machine: str | None = None) -> list[Entry]:
    """Return the levels on record, of all machines or of one.

    Raises
    ------
    UnknownNameError
        If no level is of that machine; suggests the nearest.

    >>> [entry.name for entry in levels(machine="AMD Ryzen 9 5950X")]
    ['registers', 'L1 cache', 'L2 cache', 'L3 cache']
    """
    found = load(FOLDER / "memory_levels.toml")
    names = {entry.machine for entry in found.values()}
    if machine is not None and machine not in names:
        raise unknown_name("machine with levels of memory", machine, names)
    return [entry for entry in found.values() if machine in (None, entry.machine)]


def level(key: str) -> Entry:
    """Return one level by its key, such as "h100_l2" or "cpu_dram".

    Raises
    ------
    UnknownNameError
        If there is none; suggests the nearest.

    >>> level("cpu_dram")["latency"].text
    '75 ns'
    """
    return _one("level of memory", key, "memory_levels.toml")


def energy(key: str) -> Figure:
    """Return the energy of an operation or a read of 64 bits, in a process of 45 nm.

    Raises
    ------
    UnknownNameError
        If there is none; suggests the nearest.

    >>> energy("multiply_fp32").text, energy("read_dram_least").text
    ('3.7 pJ', '1,300 pJ')
    """
    return _one("operation with an energy", key, "energies.toml")["energy"]


def energies() -> list[Entry]:
    """Return all operations and reads whose energy is on record, least first.

    >>> energies()[0].name
    '8-bit integer addition'
    """
    found = load(FOLDER / "energies.toml").values()
    return sorted(found, key=lambda entry: entry["energy"].si)


def past(key: str) -> Entry:
    """Return a machine of the past: "eniac", "ibm704" or "mark1".

    Raises
    ------
    UnknownNameError
        If there is none; suggests the nearest.

    >>> past("ibm704")["add_time"].text, past("ibm704").year
    ('84 us', 1954)
    """
    return _one("machine of the past", key, "history.toml")


def _one(what: str, key: str, file: str) -> Entry:
    found = load(FOLDER / file)
    if key not in found:
        raise unknown_name(what, key, found)
    return found[key]


@cache
def load(path: Path) -> dict[str, Entry]:
    """Read a file of entries strictly.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, an entry has no figure, or a figure lacks its
        source; names file and line.
    """
    file = records.load(path)
    bases = {**_LEVEL, **_ENERGY, **_PAST}
    return {key: _entry(file, key, row, bases) for key, row in file.data.items()}


def _entry(file: records.DataFile, key: str, row: Any, bases: Mapping[str, str]) -> Entry:
    file.only(row, ("name", "machine", "device", "year", *bases), key)
    texts = {
        name: file.need(row, name, str, key) if name in row else ""
        for name in ("machine", "device")
    }
    figures = {
        name: file.figure(row[name], base, key, name) for name, base in bases.items() if name in row
    }
    if not figures:
        raise file.error(f"{key} has no figure: add one, such as [{key}.latency].", key)
    return Entry(
        key=key,
        name=file.need(row, "name", str, key),
        year=file.need(row, "year", int, key) if "year" in row else 0,
        figures=figures,
        **texts,
    )
