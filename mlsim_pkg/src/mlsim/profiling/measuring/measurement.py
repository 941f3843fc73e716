"""What a measurement of a machine found, what was left out, and the file of a device made of it."""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, NotMeasuredError
from mlsim.hardware import Device
from mlsim.hardware.device import load_device
from mlsim.hardware.this_machine import Machine
from mlsim.profiling.read.tables import known
from mlsim.profiling.stopwatch import Spread
from mlsim.units import scale_for, text
from mlsim.zoo.local import local_path

# What people call tables and figures of a device's file, and what is said of them.
_WORDS = known("measure")
TABLES: Mapping[str, str] = _WORDS["tables"]
_FIGURES: Mapping[str, str] = _WORDS["figures"]
_NOTES: Mapping[str, str] = _WORDS["notes"]
# How a reason begins where it was not noise that left something out.
TIME_UP = "time was up"
# A machine where nobody else works has a load below this.
BUSY = 0.5
# A guest shares its processor: neighbors whom it can't see move its clock, for longer than a run.
# On one server, warm products on undisturbed cores were 11 % faster half an hour later.
VIRTUAL_DRIFT = 0.06


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

    def __str__(self) -> str:
        low, high = (text(each, self.base) for each in (self.spread.low, self.spread.high))
        return f"{text(self.value, self.base)} ({low} to {high})"


def words_of(name: str) -> str:
    """Return what people call a figure.

    >>> words_of("one_core.fp32"), words_of("ceilings.fp32_no_fma"), words_of("memory.l1")
    ('fp32', 'fp32, no fused multiply-add', 'L1 cache, size')
    """
    short = name.partition(".")[2]
    if short in _FIGURES:
        return _FIGURES[short]
    if short[:1] == "l" and short[1:2].isdigit():
        return f"L{short[1]} cache" + ("" if short.endswith("bandwidth") else ", size")
    first, _, rest = short.partition("_")
    return f"{first}, {_FIGURES.get(rest, rest)}" if rest else first


def lacking(figures: Collection[str]) -> list[str]:
    """Return what a roof needs and these figures have not: a bandwidth, or any product.

    >>> lacking(["memory.bandwidth", "starts.call"])
    ['compute']
    """
    missing = [] if "memory.bandwidth" in figures else ["memory.bandwidth"]
    products = any(name.startswith("compute.") for name in figures)
    return missing if products else [*missing, "compute"]


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
        return _NOTES["busy"].format(load=self.load, cores=self._cores)

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
        with tempfile.TemporaryDirectory(prefix="mlsim-") as folder:
            return load_device(self.save(Path(folder) / "machine.toml"))

    def require_roof(self) -> None:
        """Refuse a machine without a roof: no bandwidth, or no product.

        Raises
        ------
        NotMeasuredError
            Naming what is missing, and how to quiet the machine.
        """
        missing = lacking(self.figures)
        if missing:
            reasons = "; ".join(
                f"{name}: {reason}"
                for name, reason in self.refused.items()
                if name.startswith((*missing, "the rest"))
            )
            raise NotMeasuredError(
                f"{self.name} has no roof: {reasons or 'not measured'}."
                + (
                    f" {_NOTES['quiet']} {_NOTES['accept']}"
                    if self.noisy or not self.hurried
                    else ""
                )
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
        content = device_text(self)
        place = Path(path) if path is not None else local_path(self.kind, self.machine)
        beside: Path | None = None
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(f"-{place.stem}.toml", ".", place.parent)
            beside = Path(name)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(content)
            load_device(beside)
            beside.replace(place)
        except OSError as error:
            raise DataFileError(f"{place}: can't be written: {error.strerror}.") from error
        finally:
            if beside:
                beside.unlink(missing_ok=True)
        return place

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
                    f"{'~' if each.noise else ' '} {words_of(each.name):<28} {_columns(each)}"
                    for each in own
                ]
        if self.figures:
            guest = _NOTES["guest"].format(drift=100 * VIRTUAL_DRIFT)
            lines += ["", _NOTES["meaning"], *([guest] if self.machine.virtual else [])]
        if self.kept:
            lines += ["", _NOTES["kept"]]
        if self.refused:
            lines += ["", "left out"]
            for name, reason in self.refused.items():
                table, point, _ = name.partition(".")
                title = f"{TABLES.get(table, table)}, {words_of(name)}" if point else name
                lines.append(f"  {title}: {reason}")
        if self.busy:
            lines += ["", self.busy]
        if self.noisy or self.busy or self.kept:
            lines += ["", _NOTES["quiet"]]
        if self.noisy and not self.kept:
            lines += [_NOTES["accept"]]
        return "\n".join(lines)


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
    size, cpu = found.capacity, found.kind == "cpu"
    left_out = (f"left out, {name}: {reason}" for name, reason in found.refused.items())
    said = [f"{name}: {version}" for name, version in found.versions.items()]
    lines = [
        "# Made by `mlsim measure`. Measure again rather than edit it.",
        *(f"# {_plain(each)}" for each in (*said, found.busy, *left_out) if each),
        "",
        f'key = "Local.{found.kind.upper()}"',
        f"name = {_quoted(found.name)}",
        f"vendor = {_quoted(found.machine.vendor if cpu else 'unknown')}",
        f"architecture = {_quoted(found.machine.system)}",
        'form = "chip"',
    ]
    capacity = {
        "value": f"{size / 2**20:.10g}",
        "unit": "MiB",
        "per": "device",
        "kind": "measured",
        "quote": f"{size} bytes",
        "note": f"As the system reports it: {size} B / 1048576. Not measured.",
    }
    tables = {"memory.capacity": capacity}
    tables |= {name: _figure(found.kind, each) for name, each in found.figures.items()}
    where = f"{found.name}, {found.machine.cores} cores, {found.machine.system}"
    for name, table in tables.items():
        value = table.pop("value")
        words = {**table, "source": SOURCE, "where": where}
        lines += ["", f"[{name}]", f"value = {value}", f"read = {found.date.isoformat()}"]
        lines += [f"{key} = {_quoted(each)}" for key, each in words.items()]
    return "\n".join(lines) + "\n"


def _figure(kind: str, figure: MeasuredFigure) -> dict[str, str]:
    """Return the table of a figure, with the words of its spread.

    >>> _figure("cpu", MeasuredFigure("memory.l1", "B", Spread.of([2048, 4096.0]), ""))["quote"]
    '3 KiB, from 2 to 4, median of 2 stretches of time'
    """
    scale, unit = (2.0**10, "KiB") if figure.base == "B" else scale_for(figure.value, figure.base)
    unit, value = unit.replace("µ", "u"), f"{figure.value / scale:.4g}"
    if "e" in value:
        value = f"{figure.value / scale:.0f}"
    low, high = (f"{each / scale:.4g}" for each in (figure.spread.low, figure.spread.high))
    count = len(figure.spread.values)
    quote = f"{value} {unit}, from {low} to {high}, median of {count} stretches of time"
    # What is no ceiling is an estimate of one, and answers say so.
    noise = f"Kept though {figure.noise}. " if figure.noise else ""
    table = {"value": value, "unit": unit, "kind": "estimate" if noise else "measured"}
    if figure.name.startswith("compute."):
        table |= {"sparsity": "dense", "unit_used": _UNITS_USED[kind]}
    elif figure.name.startswith("links."):
        table["direction"] = "one-way"
    return {**table, "quote": quote, "note": noise + figure.how}


def _plain(words: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in words).split())


def _quoted(words: str) -> str:
    plain = _plain(words).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
