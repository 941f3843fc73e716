"""Devices from TOML files: one file each, every figure with its source."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mlsim import records
from mlsim.errors import nearest, unknown_name
from mlsim.hardware.device import Device
from mlsim.precision import PRECISIONS

FORMS = ("chip", "module", "board", "system")
_TEXTS = ("key", "name", "vendor", "architecture", "form")
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
    return load_device(_index()[key]) if key in _index() else _unknown(key)


@cache
def _index() -> dict[str, Path]:
    """Return the files by key, which each has at the start of a line."""
    found = {}
    for path in sorted((records.DATA / "hardware").glob("*.toml")):
        line = re.search(r'^key = "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        if line:
            found[line[1]] = path
    return found


def _unknown(key: str) -> Device:
    raise unknown_name("device", key, _index())


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
    file.only(data, (*_TEXTS, "release_year", "cores", *_TABLES))
    texts = {name: file.need(data, name, str) for name in _TEXTS}
    if texts["form"] not in FORMS:
        raise file.error(
            f"form must be one of {', '.join(FORMS)}, not {texts['form']!r}."
            f"{nearest(texts['form'], FORMS)}",
            "form",
        )
    figures: dict[str, records.Figure] = {}
    if "release_year" in data:
        figures["release_year"] = file.figure(data["release_year"], "year", "release_year")
    if "cores" in data:
        figures["cores"] = file.figure(data["cores"], "1", "cores")
        if not figures["cores"].si.is_integer():
            raise file.error(
                f"cores must be a whole number, not {figures['cores'].value}.", "cores"
            )
    for table, bases in _TABLES.items():
        rows = data.get(table, {})
        file.only(rows, bases, table)
        for name, row in rows.items():
            figures[f"{table}.{name}"] = file.figure(row, bases[name], table, name)
    for needed in ("memory.capacity", "memory.bandwidth"):
        if needed not in figures:
            table = needed.partition(".")[0]
            raise file.error(f"[{needed}] is missing: no device can be solved without it.", table)
    if not data.get("compute"):
        raise file.error("there is no peak: add a table such as [compute.fp16].")
    _check_sparsity(file, figures)
    _check_directions(file, figures)
    return Device.of_figures(
        texts["key"],
        texts["name"],
        vendor=texts["vendor"],
        architecture=texts["architecture"],
        form=texts["form"],
        figures=figures,
    )


def _check_sparsity(file: records.DataFile, figures: dict[str, records.Figure]) -> None:
    """Hold dense and sparse apart: the commonest error of this field."""
    for name, figure in figures.items():
        table, _, precision = name.partition(".")
        if table == "compute" and figure.sparsity != "dense":
            raise file.error(
                f'{name}: a peak here must say sparsity = "dense"; '
                f"a sparse one belongs in [sparse.{precision}].",
                table,
                precision,
            )
        if table == "sparse":
            dense = figures.get(f"compute.{precision}")
            if figure.sparsity in ("", "dense"):
                raise file.error(f'{name}: say which sparsity, such as "2:4".', table, precision)
            if dense and figure.si < dense.si:
                raise file.error(
                    f"{name}: {figure.text} sparse is less than {dense.text} dense.",
                    table,
                    precision,
                )


def _check_directions(file: records.DataFile, figures: dict[str, records.Figure]) -> None:
    """Refuse a link without its direction."""
    for name, figure in figures.items():
        table, _, link = name.partition(".")
        if table == "links" and figure.direction not in ("one-way", "both ways"):
            raise file.error(
                f'{name}: direction must be "one-way" or "both ways", not {figure.direction!r}.',
                table,
                link,
            )
