"""What is inside a machine, as published: its units, kinds of memory, and what feeds it.

Nothing here was measured by this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsim.equations.machines import unit_peak
from mlsim.errors import unknown_name
from mlsim.measured.tables import Located, Table
from mlsim.records import DATA
from mlsim.values import Origin, literal, of_base, quantity

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

# Units of documents that are ours; anything else is a plain number.
_UNITS = {
    "images": "sample",
    "images/s": "sample/s",
    "multiplications/s": "1/s",
    **{each: each for each in ("GB", "MB/s", "MiB/s")},
}
INSIDE = DATA / "inside"
# What a number of units is called where it is shown.
_WORDS = {
    "cores": "cores",
    "units_per_core": "units in a core",
    "unit_multiply_adds": "multiply-adds of a unit in a cycle",
    "clock_mhz": "clock in MHz",
    "printed": "printed peak",
}


@dataclass(frozen=True, kw_only=True)
class ExecutionUnits(Located):
    """Units of one kind on a chip, and the peak that its maker prints for them.

    Attributes
    ----------
    id, device, product
        A name of its own; a key of the zoo, or None; what the document calls it.
    units, precision
        What the units are, and in which format they compute.
    cores, units_per_core, unit_multiply_adds, clock_mhz
        How many there are, what one does in a cycle, and cycles in a second (MHz).
    printed
        The peak as printed, in TFLOP/s or TOP/s, dense.
    source, where, quote, read, note
        In which document, at which place, in which words, read when; anything else.
    """

    device: str | None
    product: str
    units: str
    precision: str
    cores: int
    units_per_core: int
    unit_multiply_adds: int
    clock_mhz: float
    printed: float

    @property
    def multiply_adds_per_cycle(self) -> int:
        """What all units together do in a clock cycle."""
        return self.cores * self.units_per_core * self.unit_multiply_adds

    @property
    def peak(self) -> float:
        """The peak in FLOP/s that follows from the counts and the clock.

        >>> row = next(row for row in execution_units() if row.id == "UNIT-005")
        >>> f"{row.peak / 1e12:.1f}", row.printed
        ('311.9', 312.0)
        """
        clock = self.clock_mhz * 1e6
        return float(unit_peak(self.cores, self.units_per_core, self.unit_multiply_adds, 2, clock))

    def by_name(self, name: str = "peak") -> Quantity:
        """Return a count, the clock or a peak as a value, by its attribute's name.

        >>> row = next(row for row in execution_units() if row.id == "UNIT-005")
        >>> print(row.by_name("cores"), row.by_name("printed"), row.by_name("peak"))
        108 312 TFLOP/s 312 TFLOP/s
        """
        counts = ("cores", "units_per_core", "unit_multiply_adds")
        if name == "peak":
            peak: Quantity = unit_peak(*map(self.by_name, counts), 2, self.clock_mhz * 1e6)
            return peak
        if name == "multiply_adds_per_cycle":
            cores, units, each = map(self.by_name, counts)
            found: Quantity = cores * units * each
            return found.named(f"multiply-adds in a cycle of {self.product}, {self.units}")
        words = f"{_WORDS[name]} of {self.product}, {self.units}"
        if name == "printed":
            made, number = of_base(self.printed * 1e12, "FLOP/s"), f"{self.printed:g}"
        else:
            made, number = quantity(getattr(self, name), "1"), f"{getattr(self, name):,}"
        return _as_published(self, made, words, number)


@dataclass(frozen=True, kw_only=True)
class MemorySpace(Located):
    """A kind of memory that a program for a GPU sees, and how much of it an A100 has.

    Attributes
    ----------
    id, name
        A name of its own; what programmers call it.
    lies, seen_by, lives, written
        Where it is, which threads see it, how long, and whether they write to it.
    amount, unit, per
        How much there is, of what, and for each what.
    source, where, quote, read, note
        In which document, at which place, in which words, read when; anything else.
    """

    name: str
    lies: str
    seen_by: str
    lives: str
    written: str
    amount: float
    unit: str
    per: str

    @property
    def bytes(self) -> float:
        """How much there is for each, in bytes.

        >>> [row.bytes for row in memory_spaces() if row.name == "registers"]
        [1020.0]
        """
        if self.unit == "registers":
            return 4 * self.amount
        return float(quantity(self.amount, self.unit).to("B").magnitude)


@dataclass(frozen=True, kw_only=True)
class PublishedRate(Located):
    """How fast something delivers, or how large it is: the stages that feed a device.

    Attributes
    ----------
    id, stage, product
        A name of its own; what it does; what it is.
    value, unit
        As printed.
    source, where, quote, read, note
        In which document, at which place, in which words, read when; anything else.
    """

    stage: str
    product: str
    value: float
    unit: str

    @property
    def published(self) -> Quantity:
        """The number as a value; of images a count, of what has no unit of ours a plain one.

        >>> print(published_rate("storage", "NVMe").published, published_rate("images").published)
        7.25 GB/s 1,281,167
        """
        made = quantity(self.value, _UNITS.get(self.unit, "1"))
        words = f"{self.stage} of {self.product}"
        return _as_published(self, made, words, f"{self.value:,g} {self.unit}")

    def by_name(self, _: str = "") -> Quantity:
        """Return the number as a value, as `show` asks for it."""
        return self.published


def _as_published(row: Any, made: Quantity, words: str, number: str) -> Quantity:
    """Give a value its place in a document."""
    where = literal(f"{row.where}: “{row.quote}”, read {row.read}")
    made._origin = Origin(words, f"{words}: {number}, [@{row.source}], {where}")
    return made


def execution_units() -> tuple[ExecutionUnits, ...]:
    """Return units whose counts, clock and peak were published."""
    return UNITS.rows()


def memory_spaces() -> tuple[MemorySpace, ...]:
    """Return the kinds of memory on a GPU, from registers to main memory.

    >>> [row.name for row in memory_spaces()][:2]
    ['registers', 'shared memory']
    """
    return SPACES.rows()


UNITS = Table(ExecutionUnits, INSIDE / "execution_units.csv")
SPACES = Table(MemorySpace, INSIDE / "memory_spaces.csv")
RATES = Table(PublishedRate, INSIDE / "input_rates.csv")


def published_rate(stage: str, product: str = "") -> PublishedRate:
    """Return the first rate of a stage whose product begins with some words.

    Raises
    ------
    UnknownNameError
        If there is no such stage, or none of that product.

    >>> published_rate("storage", "NVMe").value
    6910.0
    """
    rows = [row for row in RATES.rows() if row.stage == stage]
    if not rows:
        raise unknown_name("stage", stage, {row.stage for row in RATES.rows()})
    found = [row for row in rows if row.product.startswith(product)]
    if not found:
        raise unknown_name(f"product of the stage {stage}", product, [row.product for row in rows])
    return found[0]
