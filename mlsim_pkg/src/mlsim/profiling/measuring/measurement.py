"""What a measurement of a machine found: figures with their spread, and what was left out."""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, NotMeasuredError
from mlsim.hardware import Device
from mlsim.hardware.device_files import load_device
from mlsim.hardware.this_machine import Machine
from mlsim.profiling.stopwatch import Spread
from mlsim.units import scale_for, text
from mlsim.zoo.local import local_path

# What people call the tables of a device's file, in the order in which they are shown.
TABLES = {
    "compute": "products of matrices",
    "memory": "memory",
    "one_core": "one core",
    "ceilings": "multiply-adds in registers",
    "starts": "a start",
    "disk": "disk",
    "links": "links",
}
_WORDS = {
    "bandwidth": "main memory",
    "capacity": "main memory, size",
    "last_level": "last cache, size",
    "call": "a call of NumPy",
    "kernel": "a kernel, launched",
    "registers": "all units",
    "no_fma": "no fused multiply-add",
    "no_vectors": "no vectors",
    "pcie": "from the host",
}

QUIET = (
    "To quiet the machine: close other programs, a browser above all; plug a laptop in and take it "
    "off battery saving; let it cool; on a shared or virtual machine, try again at another time."
)
ACCEPT = (
    "Or take noisy figures with their wide intervals: mlsim measure --accept-noisy. Each answer "
    "then says that it rests on them."
)
# How a reason begins where it was not noise that left something out.
TIME_UP = "time was up"
KEPT = (
    "Figures with a ~ are no ceilings: they are noisy, and were kept because you asked for it. In "
    "another\nrun they may lie anywhere in their intervals."
)
# A machine where nobody else works has a load below this.
BUSY = 0.5
MEANING = (
    "A figure is the median of six stretches of this time, each with the best of its rounds. In\n"
    "another run it may lie as far to either side as they differ, or as half a step of the clock."
)
# A guest shares its processor: neighbors whom it can't see move its clock, for longer than a run.
# On one server, warm products on undisturbed cores were 11 % faster half an hour later.
VIRTUAL_DRIFT = 0.06
GUEST = (
    "This is a virtual machine: neighbors whom it can't see share its clock and memory, so no rate "
    f"is\ngiven closer than {100 * VIRTUAL_DRIFT:.0f} % to either side."
)


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """One figure of the machine.

    Attributes
    ----------
    name
        As in a device's file: "memory.bandwidth", "compute.fp32".
    base
        The unit of its values: "B/s", "FLOP/s", "B" or "s".
    spread
        Its values, one for each stretch of time.
    how
        What ran, in a sentence.
    noise
        Why it is no ceiling, where it was kept all the same (`accept_noisy`); else "".
    """

    name: str
    base: str
    spread: Spread
    how: str
    noise: str = ""

    @property
    def value(self) -> float:
        """The median of the stretches, in base units."""
        return self.spread.median

    @property
    def words(self) -> str:
        """What it is called in a table.

        >>> MeasuredFigure("memory.l2_bandwidth", "B/s", Spread.of([1.0]), "").words
        'L2 cache'
        """
        return words_of(self.name)

    def __str__(self) -> str:
        low, high = (text(each, self.base) for each in (self.spread.low, self.spread.high))
        return f"{text(self.value, self.base)} ({low} to {high})"


def words_of(name: str) -> str:
    """Return what people call a figure.

    >>> words_of("one_core.fp32"), words_of("ceilings.fp32_no_fma"), words_of("memory.l1")
    ('fp32', 'fp32, no fused multiply-add', 'L1 cache, size')
    """
    short = name.partition(".")[2]
    if short in _WORDS:
        return _WORDS[short]
    if short[:1] == "l" and short[1:2].isdigit():
        return f"L{short[1]} cache" + ("" if short.endswith("bandwidth") else ", size")
    first, _, rest = short.partition("_")
    return f"{first}, {_WORDS.get(rest, rest)}" if rest else first


@dataclass(frozen=True)
class Measurement:
    """The ceilings of one machine.

    Attributes
    ----------
    machine
        What the system says of it.
    kind
        "cpu" or "gpu".
    name
        The processor or the GPU that was measured.
    figures
        By name, as in a device's file.
    refused
        What was too noisy or is not there, by name, with the reason.
    curves
        Working sets in B and rates in B/s, by team of workers: what the levels were found in.
    versions
        Software that measured, by its name.
    seconds
        How long it took.
    load
        How many programs wanted a core just before, on average over a minute; 0 where the system
        does not say.
    """

    machine: Machine
    kind: str
    name: str
    date: datetime.date
    figures: Mapping[str, MeasuredFigure]
    refused: Mapping[str, str] = field(default_factory=dict)
    curves: Mapping[str, tuple[Sequence[int], Sequence[float]]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    rounds: int = 0
    seconds: float = 0.0
    capacity: int = 0
    load: float = 0.0

    @property
    def noisy(self) -> bool:
        """Whether anything was left out because it spread too far."""
        return any(reason.startswith("too noisy") for reason in self.refused.values())

    @property
    def hurried(self) -> bool:
        """Whether anything was left out because time was up, which is no noise."""
        return any(reason.startswith(TIME_UP) for reason in self.refused.values())

    @property
    def kept(self) -> bool:
        """Whether any figure is noisy and was kept all the same."""
        return any(each.noise for each in self.figures.values())

    @property
    def busy(self) -> str:
        """What to know of a machine that others used; "" where nobody did.

        A sample from which they took a core is not counted. On other cores they may still have
        made it slower, all the time and so without any noise.
        """
        if self.load < BUSY:
            return ""
        return (
            f"The machine was busy: {self.load:.1f} programs wanted its {self._cores} before this "
            "began.\nSamples from which they took a core are left out, where the system tells "
            "(Linux). Others\nshare memory and the clock even so: steady work makes figures lower."
        )

    @property
    def _cores(self) -> str:
        return f"{self.machine.cores} core{'s' if self.machine.cores != 1 else ''}"

    @property
    def device(self) -> Device:
        """The machine as a device, for every question of the package.

        Raises
        ------
        NotMeasuredError
            If its memory or all its products were too noisy.
        """
        return as_device(self)

    def require_roof(self) -> None:
        """Refuse a machine without a roof: no bandwidth, or no product.

        Raises
        ------
        NotMeasuredError
            Naming what is missing, and how to quiet the machine.
        """
        missing = [] if "memory.bandwidth" in self.figures else ["memory.bandwidth"]
        if not any(name.startswith("compute.") for name in self.figures):
            missing.append("compute")
        if missing:
            reasons = "; ".join(
                f"{name}: {reason}"
                for name, reason in self.refused.items()
                if name.startswith((*missing, "the rest"))
            )
            raise NotMeasuredError(
                f"{self.name} has no roof: {reasons or 'not measured'}."
                + (f" {QUIET} {ACCEPT}" if self.noisy or not self.hurried else "")
            )

    def save(self, path: str | Path | None = None) -> Path:
        """Write the device's file, and return where; by default where `Hardware.local()` looks.

        It is written beside its place and then swapped in, so that nobody reads half of it.

        Raises
        ------
        NotMeasuredError
            If the memory or all products were too noisy: half a roof is none.
        DataFileError
            If the file can't be written.
        """
        return write_device(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data, in base units."""
        return {
            "name": self.name,
            "kind": self.kind,
            "system": self.machine.system,
            "cores": self.machine.cores,
            "date": self.date.isoformat(),
            "rounds": self.rounds,
            "seconds": self.seconds,
            "load": self.load,
            "versions": dict(self.versions),
            "figures": {
                name: {
                    "value": each.value,
                    "unit": each.base,
                    "low": each.spread.low,
                    "high": each.spread.high,
                    "confidence": each.spread.confidence,
                    "stretches": list(each.spread.values),
                    "how": each.how,
                    "noise": each.noise,
                }
                for name, each in self.figures.items()
            },
            "refused": dict(self.refused),
            "curves": {
                team: {"working_set": list(sizes), "rate": list(rates)}
                for team, (sizes, rates) in self.curves.items()
            },
        }

    def __str__(self) -> str:
        lines = [
            f"{self.name}, {self._cores}, {self.machine.system}",
            f"measured on {self.date} in {self.rounds} rounds, {self.seconds:.0f} s",
        ]
        for table, title in TABLES.items():
            own = [each for name, each in self.figures.items() if name.startswith(f"{table}.")]
            if own:
                lines += ["", title]
                lines += [
                    f"{'~' if each.noise else ' '} {each.words:<28} {_columns(each)}"
                    for each in own
                ]
        if self.figures:
            lines += ["", MEANING, *([GUEST] if self.machine.virtual else [])]
        if self.kept:
            lines += ["", KEPT]
        if self.refused:
            lines += ["", "left out"]
            lines += [f"  {_title(name)}: {reason}" for name, reason in self.refused.items()]
        if self.busy:
            lines += ["", self.busy]
        if self.noisy or self.busy or self.kept:
            lines += ["", QUIET]
        if self.noisy and not self.kept:
            lines += [ACCEPT]
        return "\n".join(lines)


def _title(name: str) -> str:
    table = name.partition(".")[0]
    if table == name:
        return name
    return f"{TABLES.get(table, table)}, {words_of(name)}"


def _columns(figure: MeasuredFigure) -> str:
    scale, unit = scale_for(figure.value, figure.base)
    value, low, high = (
        f"{each / scale:.3g}" for each in (figure.value, figure.spread.low, figure.spread.high)
    )
    return f"{value:>6} {unit:<8} {low} to {high}"


# What measured: it stands in no bibliography, and the file's head says with which software.
SOURCE = "mlsim measure"
_UNITS_USED = {"cpu": "vector or matrix units", "gpu": "as the library chose"}


def device_text(found: Measurement) -> str:
    """Return the file of a measured machine.

    Raises
    ------
    NotMeasuredError
        If it has no roof.
    """
    found.require_roof()
    return "\n".join([*_head(found), *_capacity(found), *_figures(found)]) + "\n"


def _head(found: Measurement) -> Iterator[str]:
    yield "# Made by `mlsim measure`. Measure again rather than edit it."
    for name, version in found.versions.items():
        yield f"# {name}: {_plain(version)}"
    if found.busy:
        yield f"# {_plain(found.busy)}"
    for name, reason in found.refused.items():
        yield f"# left out, {name}: {_plain(reason)}"
    kind = "CPU" if found.kind == "cpu" else "GPU"
    yield from (
        "",
        f'key = "Local.{kind}"',
        f"name = {_quoted(found.name)}",
        f"vendor = {_quoted(found.machine.vendor if kind == 'CPU' else 'unknown')}",
        f"architecture = {_quoted(found.machine.system)}",
        'form = "chip"',
    )


def _capacity(found: Measurement) -> Iterator[str]:
    size = found.capacity
    yield from _table(
        "memory.capacity",
        f"{size / 2**20:.10g}",
        "MiB",
        found,
        quote=f"{size} bytes",
        note=f"As the system reports it: {size} B / 1048576. Not measured.",
        extra='per = "device"',
    )


def _figures(found: Measurement) -> Iterator[str]:
    for name, figure in found.figures.items():
        value, unit, quote = printed(figure)
        extra = ""
        if name.startswith("compute."):
            extra = f'sparsity = "dense"\nunit_used = "{_UNITS_USED[found.kind]}"'
        elif name.startswith("links."):
            extra = 'direction = "one-way"'
        # what is no ceiling is an estimate of one, and answers say so
        kind = "estimate" if figure.noise else "measured"
        note = f"Kept though {figure.noise}. {figure.how}" if figure.noise else figure.how
        yield from _table(name, value, unit, found, quote=quote, note=note, extra=extra, kind=kind)


def printed(figure: MeasuredFigure) -> tuple[str, str, str]:
    """Return a figure's value, its unit, and the words of its spread.

    >>> from mlsim.profiling import MeasuredFigure, Spread
    >>> printed(MeasuredFigure("memory.bandwidth", "B/s", Spread.of([41e9, 42e9, 43.256e9]), ""))
    ('42', 'GB/s', '42 GB/s, from 41 to 43.26, median of 3 stretches of time')
    """
    scale, unit = scale_for(figure.value, figure.base)
    unit = unit.replace("µ", "u")
    if figure.base == "B":
        scale, unit = 2.0**10, "KiB"
    low, high = (f"{each / scale:.4g}" for each in (figure.spread.low, figure.spread.high))
    value = f"{figure.value / scale:.4g}"
    if "e" in value:
        value = f"{figure.value / scale:.0f}"
    count = len(figure.spread.values)
    said = f"{value} {unit}, from {low} to {high}, median of {count} stretches of time"
    return value, unit, said


def _table(
    name: str,
    value: str,
    unit: str,
    found: Measurement,
    *,
    quote: str,
    note: str,
    extra: str = "",
    kind: str = "measured",
) -> Iterator[str]:
    where = f"{found.name}, {found.machine.cores} cores, {found.machine.system}"
    yield from (
        "",
        f"[{name}]",
        f"value = {value}",
        f'unit = "{unit}"',
        *filter(None, [extra]),
        f'kind = "{kind}"',
        f'source = "{SOURCE}"',
        f"where = {_quoted(where)}",
        f"quote = {_quoted(quote)}",
        f"read = {found.date.isoformat()}",
        f"note = {_quoted(note)}",
    )


def _plain(words: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in words).split())


def _quoted(words: str) -> str:
    plain = _plain(words).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def as_device(found: Measurement) -> Device:
    """Return a measured machine as a device, by way of its file.

    Raises
    ------
    NotMeasuredError
        If it has no roof.
    """
    content = device_text(found)
    with tempfile.TemporaryDirectory(prefix="mlsim-") as folder:
        path = Path(folder) / "machine.toml"
        path.write_text(content, encoding="utf-8")
        return load_device(path)


def write_device(found: Measurement, path: str | Path | None = None) -> Path:
    """Write the file of a machine, and swap it in once it is whole and can be read.

    Raises
    ------
    NotMeasuredError
        If it has no roof.
    DataFileError
        If the place can't be written to.
    """
    content = device_text(found)
    place = Path(path) if path is not None else default_place(found.machine, found.kind)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{place.stem}-", suffix=".toml", dir=place.parent)
    except OSError as error:
        raise DataFileError(f"{place}: can't be written: {error.strerror}.") from error
    beside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        load_device(beside)
        beside.replace(place)
    except OSError as error:
        raise DataFileError(f"{place}: can't be written: {error.strerror}.") from error
    finally:
        beside.unlink(missing_ok=True)
    return place


def default_place(machine: Machine, kind: str) -> Path:
    """Return where `Hardware.local()` looks for this machine."""
    return local_path(kind, machine)
