"""The constants of measured kernels, fitted elsewhere, and how far off they are.

`benchmarks/atlas` of the repository reads a package of measured kernels, fits the equations
of `kernel_times` to a fifth of the shapes, and writes what stands in
`data/measurements/atlas`: constants with their spread over five such fits, and errors on the
shapes that were not fitted, with a device's own constants and with those of its relatives.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from mlsim.errors import DataFileError, NotMeasuredError, unknown_name
from mlsim.records import DATA

FOLDER = DATA / "measurements" / "atlas"
SOURCE = "nvidia2026aiconfigurator"

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
    return read(FOLDER)


def read(folder: Path) -> Mapping[Key, KernelSeries]:
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
    path = FOLDER / "sides.csv"
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
    return frozenset(key for key, _ in _lines(FOLDER / "whole.csv", WHOLE))


def _lines(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[Key, dict[str, str]]]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != columns:
            raise DataFileError(f"{path}:1: the columns must be {', '.join(columns)}.")
        for cells in reader:
            if None in cells or None in cells.values():
                raise DataFileError(f"{path}:{reader.line_num}: not as many cells as columns.")
            try:
                yield (cells["device"], cells["kind"], cells["path"], cells["engine"]), cells
            except ValueError as error:
                raise DataFileError(f"{path}:{reader.line_num}: {error}") from error
