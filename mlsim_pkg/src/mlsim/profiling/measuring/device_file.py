"""A measured machine as a device's file, like those of the zoo: every figure with its source."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mlsim.errors import DataFileError
from mlsim.hardware import Device
from mlsim.hardware.device_files import load_device
from mlsim.units import scale_for
from mlsim.zoo.local import local_path

if TYPE_CHECKING:
    from mlsim.hardware.this_machine import Machine
    from mlsim.profiling.measuring.measurement import MeasuredFigure, Measurement

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
