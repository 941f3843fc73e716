"""Slices of measured products: stairs of rows, and the same product in several formats.

They come from the package that `hardware.kernel_constants` names, chosen by `benchmarks/atlas`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from mlsim.errors import DataFileError, NotMeasuredError
from mlsim.hardware.kernel_constants import FOLDER, SOURCE
from mlsim.units import text
from mlsim.values import Origin, of_base

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity
    from mlsim.values.plain import Plain

_STAIRS = ("device", "engine", "rows", "outputs", "depth", "us")
FORMATS = ("bf16", "fp8", "fp4")
_FORMATS = ("device", "rows", "outputs", "depth", *(f"{name}_us" for name in FORMATS))


@dataclass(frozen=True, slots=True)
class MeasuredProduct:
    """A product M x N x K on a device, and its time in s by format.

    Attributes
    ----------
    device
        A key of the zoo.
    rows, outputs, depth
        M, N and K.
    seconds
        By format, that of the fastest backend, or of one backend.
    backend
        That backend.
    source
        Key of the document.
    """

    device: str
    rows: int
    outputs: int
    depth: int
    seconds: Mapping[str, float]
    backend: str = "fastest backend"
    source: str = SOURCE

    def time(self, name: str = "bf16") -> Quantity:
        """Return the time in a format, a value.

        >>> print(measured_formats("Cloud.H100")[-1].time("fp8"))
        11.9 ms
        """
        words = f"measured time in {name}"
        sides = f"M={self.rows:,}, N={self.outputs:,}, K={self.depth:,}"
        measured = f"measured on {self.device.split('.')[-1]}, {self.backend}, {sides}"
        brief = f"{words} = {text(self.seconds[name], 's')}, {measured} [@{self.source}]"
        return of_base(self.seconds[name], "s", Origin(words, brief))

    def speedup(self, name: str) -> Plain:
        """Return how many times as fast a format is as 16 bits, a value.

        >>> row = measured_formats("Cloud.H100")[-1]
        >>> row.speedup("fp8") > 1
        True
        """
        return cast("Plain", self.time() / self.time(name))


def measured_stairs(device: str = "Cloud.A100") -> tuple[MeasuredProduct, ...]:
    """Return two products in BF16 with ever more rows, on one backend of a device.

    Raises
    ------
    NotMeasuredError
        If there are none of the device; lists those that there are.

    >>> sorted({(row.outputs, row.depth) for row in measured_stairs()})
    [(7168, 4096), (51200, 8192)]
    """
    return _of(device, _stairs())


def measured_formats(device: str) -> tuple[MeasuredProduct, ...]:
    """Return products with square weights in several formats, the fastest backend of each.

    Raises
    ------
    NotMeasuredError
        If there are none of the device; lists those that there are.

    >>> list(measured_formats("Cloud.B200")[0].seconds)
    ['bf16', 'fp8', 'fp4']
    """
    return _of(device, _formats())


def _of(device: str, rows: tuple[MeasuredProduct, ...]) -> tuple[MeasuredProduct, ...]:
    found = tuple(row for row in rows if row.device == device)
    if not found:
        there = ", ".join(dict.fromkeys(row.device for row in rows))
        raise NotMeasuredError(f"no such slice of {device} is on record. There are: {there}.")
    return found


@cache
def _stairs() -> tuple[MeasuredProduct, ...]:
    return tuple(_read(FOLDER / "stairs.csv", _STAIRS, lambda cells: {"bf16": cells["us"]}))


@cache
def _formats() -> tuple[MeasuredProduct, ...]:
    def times(cells: Mapping[str, str]) -> dict[str, str]:
        return {name: cells[f"{name}_us"] for name in FORMATS if cells[f"{name}_us"]}

    return tuple(_read(FOLDER / "formats.csv", _FORMATS, times))


def _read(
    path: Path, columns: tuple[str, ...], times: Callable[[Mapping[str, str]], Mapping[str, str]]
) -> Iterator[MeasuredProduct]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != columns:
            raise DataFileError(f"{path}:1: the columns must be {', '.join(columns)}.")
        for cells in reader:
            yield MeasuredProduct(
                cells["device"],
                int(cells["rows"]),
                int(cells["outputs"]),
                int(cells["depth"]),
                {name: float(us) * 1e-6 for name, us in times(cells).items()},
                cells.get("engine", "fastest backend"),
            )
