"""A device: its peaks, memories, links and power, each figure with its source."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim import records
from mlsim.errors import (
    InvalidValueError,
    Suggesting,
    UnitError,
    UnsupportedPrecisionError,
    unknown_name,
)
from mlsim.precision import PRECISIONS, Precision, precision
from mlsim.records import Figure, checked_name, given, known
from mlsim.units import MEMORY, to_base
from mlsim.values import of_base

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


# The precision of "the peak" of a device where none is given.
DEFAULT_PRECISION = "fp16"
# What stands in for it on a device that has no such peak: as many bits first.
INSTEAD = ("bf16", "fp32")


@dataclass(frozen=True)
class Compute(Suggesting):
    """Peak rates of a device, dense, by precision."""

    figures: Mapping[str, Figure]
    device: str = "device"

    @property
    def precisions(self) -> tuple[str, ...]:
        """Precisions for which a peak is on record."""
        return tuple(self.figures)

    @property
    def usual_precision(self) -> str:
        """What is meant where none is named: fp16, else bf16, else fp32, else the first on record.

        >>> from mlsim import Hardware
        >>> [device.compute.usual_precision for device in (
        ...     Hardware.Cloud.A100, Hardware.Cloud.TPUv4, Hardware.Workstation.GTX580)]
        ['fp16', 'bf16', 'fp32']
        """
        names = self.precisions
        wanted = (each for each in (DEFAULT_PRECISION, *INSTEAD) if each in names)
        return next(wanted, names[0])

    @property
    def peak_flops(self) -> Quantity:
        """The dense peak in fp16 (or, without one, in the first precision on record)."""
        names = self.precisions
        return self.peak(DEFAULT_PRECISION if DEFAULT_PRECISION in names else names[0])

    def peak(self, name: str | Precision) -> Quantity:
        """Return the dense peak in a precision."""
        return self.figure(name).of(self.device)

    def figure(self, name: str | Precision) -> Figure:
        """Return the dense peak with its source.

        Raises
        ------
        UnknownNameError
            If there is no such precision.
        UnsupportedPrecisionError
            If the device has no peak for it; lists those that it has.
        """
        found = self.figures.get(name if isinstance(name, str) else name.computes_as)
        if found is None:
            wanted = precision(name).name
            raise UnsupportedPrecisionError(
                f"{self.device} has no {wanted} peak on record. "
                f"It has: {', '.join(self.precisions)}."
            )
        return found


@dataclass(frozen=True)
class Memory(Suggesting):
    """Main memory of a device, and its caches as far as they are known."""

    figures: Mapping[str, Figure]
    device: str = "device"

    @property
    def bandwidth(self) -> Quantity:
        """Highest rate to and from main memory."""
        return self.figures["bandwidth"].of(self.device)

    @property
    def capacity(self) -> Quantity:
        """Main memory that a program can take: what answers count with.

        A maker's "80 GB" may be gibibytes, or more than error correction leaves: what a
        driver lists counts. Where nobody read a driver, it is the printed size.

        >>> from mlsim import Hardware
        >>> print(f"{Hardware.Cloud.A100.memory.capacity:.0f}")
        80 GiB
        """
        figure = self.figures["capacity"]
        return of_base(figure.si, MEMORY, figure.of(self.device)._origin)

    @property
    def printed(self) -> Quantity:
        """Size of main memory as its maker prints it on the box.

        >>> from mlsim import Hardware
        >>> print(Hardware.Cloud.A100.memory.printed, Hardware.Cloud.TPUv4.memory.printed)
        80 GB 32 GiB
        """
        return self.printed_figure.of(self.device)

    @property
    def printed_figure(self) -> Figure:
        """The printed size with its source."""
        return self.figures.get("printed") or self.figures["capacity"]

    @property
    def l2(self) -> Quantity | None:
        """Size of the second-level cache, if known."""
        return known(self.figures, self.device, "l2")

    @property
    def last_level(self) -> Quantity | None:
        """Size of the last cache before main memory, if one is known.

        >>> from mlsim import Hardware
        >>> for device in (Hardware.Cloud.A100, Hardware.Cloud.MI300X):
        ...     print(device.memory.last_level.to("MiB"))
        40 MiB
        256 MiB
        """
        return known(self.figures, self.device, "last_level", "l2")


@dataclass(frozen=True)
class Power(Suggesting):
    """Power of a device, or of a system with its host, as far as it is known."""

    figures: Mapping[str, Figure]
    device: str = "device"

    @property
    def tdp(self) -> Quantity | None:
        """Thermal design power, if known."""
        return known(self.figures, self.device, "tdp")

    @property
    def max(self) -> Quantity | None:
        """The most that a whole system draws, if known."""
        return known(self.figures, self.device, "max")

    @property
    def idle(self) -> Quantity | None:
        """What it draws while it holds no work, if somebody measured it."""
        return known(self.figures, self.device, "idle")


@dataclass(frozen=True)
class Link(Suggesting):
    """What joins a device to others."""

    figures: Mapping[str, Figure]
    device: str = "device"

    @property
    def bandwidth(self) -> Quantity:
        """Its rate as printed; `direction` of the figure says whether of both ways together."""
        return self.figures["bandwidth"].of(self.device)


@dataclass(frozen=True, eq=False, init=False)
class Device(Suggesting):
    """One accelerator, module, board or desktop system.

    Make your own of a name and three keyword arguments:

    >>> chip = Device("My chip", peak_flops={"fp16": "100 TFLOP/s"},
    ...               memory_bandwidth="1 TB/s", memory_capacity="16 GB")
    >>> print(chip.ridge_point())
    100 FLOP/B

    Raises
    ------
    UnitError
        If a figure has no unit or one of another kind, such as a bandwidth in TB.
    InvalidValueError
        If a figure is not a positive, finite number.
    """

    key: str
    name: str
    vendor: str
    architecture: str
    form: str
    compute: Compute
    memory: Memory
    power: Power
    figures: Mapping[str, Figure] = field(repr=False)

    def __init__(
        self,
        name: str,
        *,
        peak_flops: Mapping[str, Any],
        memory_bandwidth: Any,
        memory_capacity: Any,
    ) -> None:
        checked_name(name, "a device")
        if not isinstance(peak_flops, Mapping) or not peak_flops:
            raise InvalidValueError(
                "peak_flops must map precisions to rates, such as "
                f"{{'fp16': '100 TFLOP/s'}}, not {peak_flops!r}."
            )
        figures = {
            f"compute.{precision(key).name}": _given(f"compute.{key}", value, "FLOP/s")
            for key, value in peak_flops.items()
        }
        figures["memory.bandwidth"] = _given("memory_bandwidth", memory_bandwidth, "B/s")
        figures["memory.capacity"] = _given("memory_capacity", memory_capacity, "B")
        self._fill(figures, key=name, name=name, vendor="", architecture="", form="device")

    def _fill(self, figures: Mapping[str, Figure], **texts: str) -> None:
        """Set the fields of this frozen object; called while it is made."""
        values: dict[str, Any] = {
            **texts,
            "compute": Compute(part(figures, "compute"), texts["name"]),
            "memory": Memory(part(figures, "memory"), texts["name"]),
            "power": Power(part(figures, "power"), texts["name"]),
            "figures": figures,
        }
        for attribute, value in values.items():
            object.__setattr__(self, attribute, value)

    @classmethod
    def of_figures(
        cls, key: str, name: str, *, figures: Mapping[str, Figure], **texts: str
    ) -> Device:
        """Make a device of figures that carry their sources, as data files do."""
        device = cls.__new__(cls)
        device._fill(figures, key=key, name=name, **texts)
        return device

    @property
    def release_year(self) -> int | None:
        """The year of its release, if known."""
        figure = self.figures.get("release_year")
        return int(figure.value) if figure else None

    @property
    def cores(self) -> int | None:
        """Streaming multiprocessors or compute units, if known: each works on a tile alone."""
        figure = self.figures.get("cores")
        return int(figure.value) if figure else None

    @cached_property
    def bandwidth_si(self) -> float:
        """Memory bandwidth in B/s."""
        return self.memory.figures["bandwidth"].si

    @property
    def last_level_figure(self) -> Figure | None:
        """The last cache before main memory with its source, if one is known."""
        return self.figures.get("memory.last_level") or self.figures.get("memory.l2")

    @cached_property
    def capacity_si(self) -> float:
        """`memory.capacity` in B.

        >>> from mlsim import Hardware
        >>> Hardware.Cloud.H100.capacity_si == 81559 * 2**20
        True
        """
        return self.memory.figures["capacity"].si

    def origin_of_memory(self, name: str) -> str:
        """Say where a figure of the memory comes from, for an explanation.

        `name` is "memory_bandwidth" or "memory_capacity"; the second says besides what
        the maker prints.

        >>> from mlsim import Hardware
        >>> Hardware.Cloud.T4.origin_of_memory("memory_capacity")[:62]
        'NVIDIA T4: as a driver lists it (16 GB is printed): measured, '
        """
        figure, said = self.memory.figures[name.removeprefix("memory_")], ""
        if name == "memory_capacity" and "printed" in self.memory.figures:
            said = f"as a driver lists it ({self.memory.figures['printed'].text} is printed): "
        return f"{self.name}: {said}{figure.origin()}"

    def ridge_point(self, precision: str = DEFAULT_PRECISION) -> Quantity:
        """Return the arithmetic intensity at which the two limits meet.

        >>> from mlsim import Hardware
        >>> print(f"{Hardware.Cloud.A100.ridge_point('fp16'):.0f}")
        153 FLOP/B
        """
        # Reading a device needs no equations.
        from mlsim.equations import roofline

        figure = self.compute.figure(precision)
        peak = figure.of(self.name, f"peak {precision}")
        # In base units: 612.5 would not be exact as TFLOP/s over TB/s.
        exact = float(roofline.ridge_point(figure.si, self.bandwidth_si))
        shown: Quantity = roofline.ridge_point(peak, self.memory.bandwidth)
        ridge = of_base(exact, "FLOP/B", shown._origin)
        return ridge.named(f"ridge point of {self.name}, {precision}")

    def by_name(self, name: str) -> Quantity:
        """Return a figure by its name: "memory.bandwidth", "power.tdp", "ridge_point.bf16".

        Raises
        ------
        UnknownNameError
            If there is no such figure on record; suggests the nearest.
        """
        what, _, precision = name.partition(".")
        if what == "ridge_point":
            return self.ridge_point(precision or DEFAULT_PRECISION)
        if name not in self.figures:
            raise unknown_name("figure of this device", name, [*self.figures, "ridge_point"])
        return self.figures[name].of(self.name)

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.memory.figures['bandwidth'].text}>"


def part(figures: Mapping[str, Figure], prefix: str) -> dict[str, Figure]:
    """Select the figures below a prefix, compute in the order of precisions."""
    part = {
        name.removeprefix(f"{prefix}."): figure
        for name, figure in figures.items()
        if name.startswith(f"{prefix}.")
    }
    if prefix != "compute":
        return part
    return {name: part[name] for name in PRECISIONS if name in part}


def _given(name: str, value: Any, base: str) -> Figure:
    """Check a figure that a user gives."""
    si = to_base(value, base, name)
    if not isinstance(si, (int, float)):
        raise UnitError(f"{name} must be one number with a unit, not {value!r}.")
    if not (math.isfinite(si) and si > 0):
        raise InvalidValueError(f"{name} must be positive and finite, not {value}.")
    return given(name, float(si), base)


FORMS = ("chip", "module", "board", "system")
_TEXTS = ("key", "name", "vendor", "architecture", "form")
_NUMBERS = {"release_year": "year", "cores": "1"}
_COMPUTED = [name for name, format_ in PRECISIONS.items() if format_.computes_as == name]
_LEVELS = ("l1", "l2", "l3")
_BY_LEVEL = {
    **dict.fromkeys(_LEVELS, "B"),
    **{f"{level}_bandwidth": "B/s" for level in _LEVELS},
}
_TABLES: dict[str, dict[str, str]] = {
    "compute": dict.fromkeys(_COMPUTED, "FLOP/s"),
    "sparse": dict.fromkeys(_COMPUTED, "FLOP/s"),
    "memory": {
        "capacity": "B", "printed": "B", "bandwidth": "B/s", **_BY_LEVEL, "last_level": "B",
    },
    # What one core of several reaches alone, and what units reach with numbers in registers.
    "one_core": {**dict.fromkeys(_COMPUTED, "FLOP/s"), "bandwidth": "B/s", **_BY_LEVEL},
    "ceilings": {
        f"{precision}_{variant}": "FLOP/s"
        for precision in ("fp64", "fp32")
        for variant in ("registers", "no_fma", "no_vectors")
    },
    # What it takes to begin: a call of a library, the launch of a kernel.
    "starts": {"call": "s", "kernel": "s"},
    "disk": {"read": "B/s", "write": "B/s"},
    "power": {"tdp": "W", "idle": "W"},
    "links": dict.fromkeys(("nvlink", "pcie", "infinity_fabric", "ici", "ethernet"), "B/s"),
}  # fmt: skip


@cache
def device_with(key: str) -> Device:
    """Return the device of a key from the files of the package.

    Raises
    ------
    UnknownNameError
        If no file has that key.

    >>> device_with("Cloud.A100").cores
    108
    """
    if key not in _index():
        raise unknown_name("device", key, _index())
    return load_device(_index()[key])


@cache
def _index() -> dict[str, Path]:
    """Return the files by key, which each has at the start of a line."""
    found = {}
    for path in sorted((records.DATA / "hardware").glob("*.toml")):
        line = re.search(r'^key = "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        if line:
            found[line[1]] = path
    return found


def load_device(path: str | Path) -> Device:
    """Read a device's file.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a figure lacks its source, a peak is
        not marked dense, or a sparse peak is below the dense one; names file
        and line.
    """
    file = records.load(path)
    data = file.data
    file.only(data, (*_TEXTS, *_NUMBERS, *_TABLES))
    texts = file.texts(_TEXTS)
    file.one_of("form", FORMS)
    figures = {
        name: file.figure(data[name], base, name) for name, base in _NUMBERS.items() if name in data
    }
    if "cores" in figures and not figures["cores"].si.is_integer():
        raise file.error(f"cores must be a whole number, not {figures['cores'].value}.", "cores")
    for table, bases in _TABLES.items():
        figures |= file.figures(table, bases)
    for needed in ("memory.capacity", "memory.bandwidth"):
        if needed not in figures:
            table = needed.partition(".")[0]
            raise file.error(f"[{needed}] is missing: no device can be solved without it.", table)
    if not data.get("compute"):
        raise file.error("there is no peak: add a table such as [compute.fp16].")
    _check_sparsity(file, figures)
    for name, figure in figures.items():
        if name.startswith("links."):
            check_direction(file, figure)
    return Device.of_figures(figures=figures, **texts)


def _check_sparsity(file: records.DataFile, figures: dict[str, Figure]) -> None:
    """Hold dense and sparse apart: the commonest error of this field."""
    for name, figure in figures.items():
        table, _, precision = name.partition(".")
        dense, words = figures.get(f"compute.{precision}"), ""
        if table == "compute" and figure.sparsity != "dense":
            words = 'a peak here must say sparsity = "dense"; a sparse one belongs in '
            words += f"[sparse.{precision}]."
        elif table == "sparse" and figure.sparsity in ("", "dense"):
            words = 'say which sparsity, such as "2:4".'
        elif table == "sparse" and dense and figure.si < dense.si:
            words = f"{figure.text} sparse is less than {dense.text} dense."
        if words:
            raise file.error(f"{name}: {words}", table, precision)


def check_direction(file: records.DataFile, figure: Figure) -> None:
    """Refuse a link whose rate does not say whether it counts both directions."""
    if figure.direction not in ("one-way", "both ways"):
        words = f'direction must be "one-way" or "both ways", not {figure.direction!r}.'
        raise file.error(f"{figure.name}: {words}", *figure.name.split("."))
