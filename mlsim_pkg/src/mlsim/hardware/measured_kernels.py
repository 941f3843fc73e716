"""What others measured of single kernels: matrix products, streams, all-reduces.

Nothing here was measured by this project. Each row is as printed, with its
source and its words; `device_calibration` and `mlsim.systems.link_calibration` use them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mlsim.errors import DataFileError, MlsimError
from mlsim.precision import precision as find_precision, recorded
from mlsim.records import DATA
from mlsim.records.tables import Published, count, positive, read
from mlsim.units import factor, known_factor
from mlsim.values import literal, quantity

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

FOLDER = DATA / "measurements" / "kernels"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow(Published):
    """One published result.

    Attributes
    ----------
    id, series
        A name of its own; the table that it stands in: one source, one machine.
    device
        Key of the zoo.
    value, unit
        As printed.
    software, year, source, quote, note
        What ran, when, in which document, in which words; anything else worth knowing.
    """

    id: str
    series: str
    device: str
    value: float
    unit: str
    software: str
    year: int
    source: str
    quote: str
    note: str

    def said(self) -> tuple[str, str]:
        """Return what was measured, in words: as a name, and in one line of Markdown."""
        device = self.device.rpartition(".")[2].replace("_", " ")
        words = f"measured on {device}, {self.software}, {self.year}"
        return "measured of a kernel", literal(words)

    def _in(self, base: str) -> float:
        return self.value * factor(self.unit, base)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductRow(KernelRow):
    """A matrix product: m rows, n columns, and k products added up for each number."""

    m: int
    n: int
    k: int
    precision: str

    @property
    def flops(self) -> float:
        """Its work: a product and a sum for each of m x n x k."""
        return 2.0 * self.m * self.n * self.k

    @property
    def bytes_moved(self) -> float:
        """Its traffic: two matrices read and one written, all in its precision."""
        elements = self.m * self.k + self.k * self.n + self.m * self.n
        return elements * find_precision(self.precision).bytes

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self._in("s") if "/" not in self.unit else self.flops / self._in("FLOP/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRow(KernelRow):
    """Attention as one kernel, forward, whose scores never leave the chip."""

    precision: str
    kernel: str
    head_size: int
    tokens: int

    @property
    def rate(self) -> float:
        """Work done in a second, in FLOP/s."""
        return self._in("FLOP/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow(KernelRow):
    """Bytes read and written one after another, by a kernel such as "copy"."""

    kernel: str

    @property
    def rate(self) -> float:
        """Bytes that moved in a second."""
        return self._in("B/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduceRow(KernelRow):
    """A message that `devices` add up and share, over links of a kind."""

    devices: int
    link: str
    message_bytes: int

    @property
    def ring_bytes(self) -> float:
        """Bytes that each device sends if they form a ring: 2 (n - 1) / n of the message."""
        return 2 * (self.devices - 1) / self.devices * self.message_bytes

    @property
    def seconds(self) -> float:
        """How long it took. A printed rate is the bus bandwidth: ring bytes over time."""
        return self._in("s") if "/" not in self.unit else self.ring_bytes / self._in("B/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRow(KernelRow):
    """The time on the device of a kernel that does next to nothing."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self._in("s")


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlaceRow(KernelRow):
    """A kernel that reads a tensor, which the one before it wrote, and writes it again."""

    kernel: str
    elements: int
    precision: str

    @property
    def tensor_bytes(self) -> Quantity:
        """What a cache has to hold to keep the tensor."""
        size = quantity(self.elements * find_precision(self.precision).bytes, "B")
        numbers = f"{self.elements:,} numbers in {self.precision} [@{self.source}]"
        return size.named("size of the tensor", because=numbers)

    @property
    def bandwidth(self) -> Quantity:
        """Bytes read and written in a second, wherever they were."""
        found: Quantity = 2 * self.tensor_bytes / self.published
        return found.named("rate of the kernel")


Row = TypeVar("Row", bound=KernelRow)

_LAST = ("value", "unit", "software", "year", "source", "quote", "note")


def products() -> tuple[ProductRow, ...]:
    """Return all matrix products.

    >>> products()[0].precision
    'bf16'
    """
    return load(FOLDER / "gemm.csv", ProductRow)


def attentions() -> tuple[AttentionRow, ...]:
    """Return all kernels of attention."""
    return load(FOLDER / "attention.csv", AttentionRow)


def streams() -> tuple[StreamRow, ...]:
    """Return all streams of bytes."""
    return load(FOLDER / "bandwidth.csv", StreamRow)


def all_reduces() -> tuple[AllReduceRow, ...]:
    """Return all all-reduces."""
    return load(FOLDER / "all_reduce.csv", AllReduceRow)


def launches() -> tuple[LaunchRow, ...]:
    """Return all kernels that do next to nothing."""
    return load(FOLDER / "overhead.csv", LaunchRow)


def in_place() -> tuple[InPlaceRow, ...]:
    """Return all kernels that change what the one before them wrote."""
    return load(FOLDER / "in_place.csv", InPlaceRow)


_UNITS: dict[type[KernelRow], tuple[str, ...]] = {
    ProductRow: ("FLOP/s", "s"),
    AttentionRow: ("FLOP/s",),
    StreamRow: ("B/s",),
    AllReduceRow: ("B/s", "s"),
    LaunchRow: ("s",),
    InPlaceRow: ("s",),
}


_COUNTS = ("m", "n", "k", "head_size", "tokens", "devices", "message_bytes", "elements", "year")


@cache
def load(path: Path, kind: type[Row]) -> tuple[Row, ...]:
    """Read a table of rows of a kind.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, a number can't be, an id stands
        twice, or a source is not in the bibliography; names file and line.
    """
    own = tuple(each.name for each in fields(kind) if each.name not in ("id", "series", "device"))
    columns = ("id", "series", "device", *(name for name in own if name not in _LAST), *_LAST)
    return read(path, columns, lambda record: _row(record, kind))


def _row(record: dict[str, str], kind: type[Row]) -> Row:
    for name in ("id", "series", "device", "software", "quote"):
        if not record[name]:
            raise DataFileError(f"{name} is empty.")
    if "precision" in record:
        recorded(record["precision"])
    _check_unit(record["unit"], _UNITS[kind])
    values: dict[str, Any] = {
        name: count(record, name) if name in _COUNTS else text for name, text in record.items()
    }
    values["value"] = positive(record, "value")
    return kind(**values)


def _check_unit(unit: str, bases: tuple[str, ...]) -> None:
    # Without Pint, whose import takes longer than the rest.
    if any(known_factor(unit, base) is not None for base in bases):
        return
    for base in bases:
        try:
            factor(unit, base)
        except MlsimError:
            continue
        return
    raise DataFileError(f"unit must be one of {' or '.join(bases)}, not {unit!r}.")
