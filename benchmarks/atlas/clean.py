"""Which rows are believed, and what a series is.

A series is one device, kind, data path and engine: the newest version of it whose table
holds together, and of that the kernel with most rows. Dropped are rows without a size or a
time. A table of which more than one row in 200 is faster than physics is dropped whole: some
tables beat the peak 260 times, so their other rows are no better. Single rows above the
bound are dropped too. Several rows of one shape become their median.
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pandas
from kinds import KINDS, PATHS, Kind, Rates
from wheel import Table, Tables

from mlsim import Hardware
from mlsim.hardware import Device

SEED, FOLDS = 18, 5
# Part of a table's rows that may beat physics before all of it is dropped.
TORN = 0.005
# Rates are rounded on data sheets, and clocks differ a little.
SLACK = 1.02


@dataclass(frozen=True)
class Place:
    """A device of the atlas: its folder, its record in the zoo, its relatives."""

    folder: str
    key: str
    family: str
    link: str
    sibling: str = ""
    cores: int = 0
    why: str = ""

    @cached_property
    def device(self) -> Device:
        """The record of the zoo."""
        group, _, name = self.key.partition(".")
        return getattr(getattr(Hardware, group), name)

    def rates(self, kind: Kind, path: str) -> Rates | None:
        """Return the rates of a path; None if the device has no such arithmetic."""
        cores = float(self.device.cores or self.cores)
        if kind.topic == "comm":
            figure = self.device.figures[f"links.{self.link}"]
            return Rates(0.0, figure.si / (2 if figure.direction == "both ways" else 1), cores)
        peak = PATHS[path].peak if kind.topic in {"gemm", "moe"} else path.partition("_")[0]
        if peak not in self.device.compute.figures:
            return None
        return Rates(self.device.compute.figure(peak).si, self.device.bandwidth_si, cores)


@cache
def places() -> tuple[Place, ...]:
    """Return the devices of the atlas."""
    with (Path(__file__).parent / "devices.toml").open("rb") as file:
        return tuple(Place(folder, **entry) for folder, entry in tomllib.load(file).items())


@dataclass(frozen=True)
class Series:
    """Rows that one set of constants describes."""

    place: Place
    kind: Kind
    path: str
    table: Table
    kernel: str
    provenance: str
    rates: Rates
    shapes: dict[str, np.ndarray]
    seconds: np.ndarray

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Device, kind, path and engine."""
        return self.place.key, self.kind.name, self.path, self.table.engine

    @cached_property
    def folds(self) -> np.ndarray:
        """Return a fifth for each shape, by its hash, so that no order of rows matters."""
        columns = [self.shapes[name].astype(np.int64).tolist() for name in self.kind.shape]
        texts = (" ".join(map(str, (SEED, *shape))) for shape in zip(*columns, strict=True))
        return np.array([zlib.crc32(text.encode()) % FOLDS for text in texts])

    def predicted(self, constants: dict[str, float], which: np.ndarray) -> np.ndarray:
        """Return in s what the equations say of some shapes."""
        shapes = {name: column[which] for name, column in self.shapes.items()}
        return self.kind.time(shapes, self.path, self.rates, constants)


def all_series(
    tables: Tables, dropped: list[str], kinds: Iterable[Kind] = KINDS
) -> Iterator[Series]:
    """Yield all series of some kinds; what was dropped whole, and why, is added to a list."""
    for place in places():
        for kind in kinds:
            yield from _of_kind(tables, place, kind, dropped)


def _of_kind(tables: Tables, place: Place, kind: Kind, dropped: list[str]) -> Iterator[Series]:
    done: set[tuple[str, str]] = set()
    for table in tables.of(place.folder, kind.topic, kind.table):
        rows = _rows(tables.read(table), kind)
        for path, group in rows.groupby("path"):
            rates = place.rates(kind, str(path)) if path else None
            if rates is None or (table.engine, str(path)) in done or len(group) < kind.least:
                continue
            kernel, named = _main_kernel(group)
            median = named.groupby(list(kind.shape), as_index=False)["latency"].median()
            shapes = {name: median[name].to_numpy(float) for name in kind.shape}
            seconds = median["latency"].to_numpy(float) * 1e-3
            beaten = kind.bound(shapes, str(path), rates) > seconds * SLACK
            if beaten.mean() > TORN:
                share = f"{beaten.mean():.1%} of its rows are faster than physics"
                dropped.append(f"{table.path}, {path}: {share}")
                continue
            if (~beaten).sum() < kind.least:
                continue
            shapes = {name: column[~beaten] for name, column in shapes.items()}
            done.add((table.engine, str(path)))
            yield Series(
                place,
                kind,
                str(path),
                table,
                kernel,
                tables.provenance(table),
                rates,
                shapes,
                seconds[~beaten],
            )


def _rows(rows: pandas.DataFrame, kind: Kind) -> pandas.DataFrame:
    """Return rows with a size and a time, with the columns that shapes need."""
    if "window_size" in kind.shape and "window_size" not in rows:
        rows["window_size"] = 0
    if "distribution" in rows:
        rows["even"] = (rows["distribution"] == "balanced").astype(float)
    rows["path"] = kind.path(rows)
    sizes = [name for name in kind.shape if name not in {"window_size", "even"}]
    good = (rows[sizes] > 0).all(axis=1) & (rows["latency"] > 0)
    good &= rows[list(kind.shape)].notna().all(axis=1)
    return rows[good & kind.keep(rows)] if kind.keep else rows[good]


def _main_kernel(rows: pandas.DataFrame) -> tuple[str, pandas.DataFrame]:
    counts = rows["kernel_source"].value_counts()
    kernel = min(counts[counts == counts.max()].index)
    return kernel, rows[rows["kernel_source"] == kernel]
