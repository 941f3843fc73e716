"""The constants of measured kernels, fitted elsewhere, and how far off they are.

`benchmarks/atlas` of the repository reads a package of measured kernels, fits the equations
of `kernel_times` to a fifth of the shapes, and writes what stands in
`data/measurements/atlas`: constants with their spread over five such fits, and errors on the
shapes that were not fitted, with a device's own constants and with those of its relatives.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median, median_low
from types import MappingProxyType

from mlsim.errors import DataFileError, NotMeasuredError, unknown_name
from mlsim.hardware.device import device_with
from mlsim.records import DATA
from mlsim.records.tables import rows

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


ATLAS = DATA / "measurements" / "atlas"
SOURCE = "nvidia2026aiconfigurator"

# Constants that are steps of a tile.
STEPS = ("least_context", "width_step")
# Kinds of kernels, and the engine whose kernels stand for a kind if none is named: the one
# with most devices, whose tables hold together.
ENGINES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "product": ("trtllm", "vllm", "sglang"),
        "prefill": ("vllm", "trtllm", "sglang"),
        "decode": ("vllm", "sglang", "trtllm"),
        "latent_prefill": ("trtllm", "sglang", "vllm"),
        "latent_decode": ("trtllm", "sglang", "vllm"),
        "experts": ("vllm", "trtllm", "sglang"),
        "state": ("sglang", "trtllm", "vllm"),
        "exchange": ("nccl", "trtllm"),
        "graph_all_reduce": ("trtllm", "vllm", "sglang"),
    }
)

_CONSTANTS = ("device", "kind", "path", "engine", "name", "value", "low", "high")
_ERRORS = (
    *("device", "kind", "path", "engine", "version", "kernel", "provenance", "cores"),
    *("level", "of", "rows", "median", "p80", "bias", "low", "high"),
)

# The least side of a product that a series has: below, its backend may not run.
SIDES = ("device", "kind", "path", "engine", "rows", "outputs", "depth")
# Series of experts that were never timed on a slice of an expert.
WHOLE = ("device", "kind", "path", "engine")

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Constant:
    """One number, and its least and largest value over five fits to other shapes."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class KernelError:
    """How far predictions are off on shapes that were not fitted.

    Attributes
    ----------
    level, of
        Whose constants: "own", "sibling", "family" or "class"; keys of those devices.
    rows
        Shapes that were predicted.
    median, p80, bias
        Of the size of the error, its 80th percentile, and the median with its sign.
    low, high
        Measured over predicted: between them lie 80 % of the rows.
    """

    level: str
    of: tuple[str, ...]
    rows: int
    median: float
    p80: float
    bias: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class KernelSeries:
    """One engine's kernels of a kind on a device, in a data path.

    Attributes
    ----------
    device, kind, path, engine
        A key of the zoo, such as "Cloud.H100"; "product"; "bf16"; "trtllm".
    version, kernel, provenance
        Of the engine; the kernel's name; how the rows came to be, in the source's word.
    cores
        With so many the constants were fitted.
    constants
        By name, those of `kernel_times`.
    errors
        By level: with its own constants, and with those of others.
    """

    device: str
    kind: str
    path: str
    engine: str
    version: str
    kernel: str
    provenance: str
    cores: float
    constants: Mapping[str, Constant]
    errors: Mapping[str, KernelError]

    @property
    def values(self) -> dict[str, float]:
        """The constants' values by name.

        >>> values = kernel_series("Cloud.H100", "product", "bf16").values
        >>> 0.7 < values["compute_fraction"] < 0.9
        True
        """
        return {name: each.value for name, each in self.constants.items()}

    @property
    def words(self) -> str:
        """Say what it is, and how far off: for origins."""
        own = self.errors["own"]
        return (
            f"{self.kind} kernels of {self.engine} {self.version} on {self.device} in {self.path}, "
            f"fitted to a fifth of their shapes, off by {own.median:.0%} (median) on "
            f"{own.rows:,} others; {SOURCE}"
        )


def kernel_series(device: str, kind: str, path: str, engine: str = "") -> KernelSeries:
    """Return a device's series of a kind; of the first engine that has one, if none is named.

    Raises
    ------
    UnknownNameError
        If there is no such kind.
    NotMeasuredError
        If there are no kernels of the kind on the device in that path; says what there is.

    >>> kernel_series("Cloud.H100", "product", "bf16").engine
    'trtllm'
    """
    if kind not in ENGINES:
        raise unknown_name("kind of kernel", kind, ENGINES)
    found = all_series()
    for each in (engine,) if engine else ENGINES[kind]:
        if (device, kind, path, each) in found:
            return found[device, kind, path, each]
    there = [key for key in found if key[:2] == (device, kind)]
    paths = ", ".join(sorted({f"{key[2]} of {key[3]}" for key in there}))
    devices = ", ".join(measured_devices(kind))
    raise NotMeasuredError(
        f"no {kind} kernels of {device} in {path}{f' of {engine}' if engine else ''} are on "
        f"record. {f'It has: {paths}.' if paths else f'Measured are: {devices}.'}"
    )


def near_kernels(device: str, kind: str, path: str, engine: str) -> Relatives | None:
    """Return whose kernels of an engine stand for a device's: its own, or those of its family."""
    there = [key[0] for key in all_series() if key[1:] == (kind, path, engine)]
    kin = relatives(device, there)
    return None if kin is None or kin.level == "class" else kin


def middle(kin: Relatives, kind: str, path: str, engine: str = "") -> dict[str, float]:
    """Return the constants that the kernels of these devices all have: the middle of each.

    Of a constant that is a step of a tile it is one of their values: between two is none.
    """
    several = [kernel_series(key, kind, path, engine).values for key in kin.keys]
    return {
        name: (median_low if name in STEPS else median)(each[name] for each in several)
        for name in several[0]
        if all(name in each for each in several)
    }


def measured_devices(kind: str) -> tuple[str, ...]:
    """Return the keys of the devices whose kernels of a kind are on record.

    >>> "Cloud.B200" in measured_devices("prefill")
    True
    """
    return tuple(dict.fromkeys(key[0] for key in all_series() if key[1] == kind))


@cache
def all_series() -> Mapping[Key, KernelSeries]:
    """Return all series by device, kind, path and engine.

    Raises
    ------
    DataFileError
        If a table is not as it was written; names file and line.
    """
    return read_series(ATLAS)


def read_series(folder: Path) -> Mapping[Key, KernelSeries]:
    """Read the constants and the errors of a folder.

    Raises
    ------
    DataFileError
        If a column is missing, a number can't be, or a series has no errors of its own.
    """
    constants: dict[Key, dict[str, Constant]] = {}
    for key, cells in _lines(folder / "constants.csv", _CONSTANTS):
        value, low, high = (float(cells[name]) for name in ("value", "low", "high"))
        if not 0 < low <= value <= high:
            raise DataFileError(f"{folder / 'constants.csv'}: {key} has {cells} out of order.")
        constants.setdefault(key, {})[cells["name"]] = Constant(value, low, high)
    errors: dict[Key, dict[str, KernelError]] = {}
    about: dict[Key, dict[str, str]] = {}
    for key, cells in _lines(folder / "errors.csv", _ERRORS):
        numbers = (float(cells[name]) for name in ("median", "p80", "bias", "low", "high"))
        found = KernelError(
            cells["level"], tuple(cells["of"].split()), int(cells["rows"]), *numbers
        )
        errors.setdefault(key, {})[found.level] = found
        about[key] = cells
    missing = [key for key in constants if "own" not in errors.get(key, {})]
    if missing:
        raise DataFileError(f"{folder / 'errors.csv'}: {missing[0]} has no errors of its own.")
    return MappingProxyType(
        {
            key: KernelSeries(
                *key,
                version=about[key]["version"],
                kernel=about[key]["kernel"],
                provenance=about[key]["provenance"],
                cores=float(about[key]["cores"]),
                constants=MappingProxyType(named),
                errors=MappingProxyType(errors[key]),
            )
            for key, named in constants.items()
        }
    )


@cache
def least_sides() -> Mapping[Key, tuple[float, float, float]]:
    """Return the least rows, outputs and depth that a backend's products were timed with.

    Raises
    ------
    DataFileError
        If the table is not as it was written; names file and line.

    >>> least_sides()["Cloud.B200", "product", "fp4", "trtllm"]
    (1.0, 128.0, 128.0)
    """
    path = ATLAS / "sides.csv"
    return {
        key: (float(cells["rows"]), float(cells["outputs"]), float(cells["depth"]))
        for key, cells in _lines(path, SIDES)
    }


@cache
def whole_only() -> frozenset[Key]:
    """Return the series of experts that were timed whole only, never on a slice of an expert.

    Raises
    ------
    DataFileError
        If the table is not as it was written; names file and line.

    >>> ("Cloud.H200", "experts", "fp8_block", "vllm") in whole_only()
    True
    """
    return frozenset(key for key, _ in _lines(ATLAS / "whole.csv", WHOLE))


def _lines(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[Key, dict[str, str]]]:
    """Yield the rows of a table, each with its device, kind, path and engine."""
    for cells in rows(path, columns, dict):
        yield (cells["device"], cells["kind"], cells["path"], cells["engine"]), cells
