"""The shelf: a few thousand measured rows a device, packed, for those who want kernels.

Of a product's series in 16 bits, all shapes whose sides are powers of two stay: a grid. Of
the others stay those with the smallest hash, a fair sample that no order of rows changes.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import numpy as np
from clean import Series
from kinds import KINDS

SAMPLE, EXCHANGES = 120, 100
HEAD = ("kind", "path", "engine", "version", "kernel", "fitted", "shape", "microseconds")
# The engine whose products in 16 bits stay as a grid.
GRID_ENGINE = "trtllm"


def write(folder: Path, series: Iterable[Series], again: Collection[str]) -> int:
    """Write one file for each device; return how many rows there are.

    Of kinds that were not read again, the rows that are there stay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    order = {each.name: n for n, each in enumerate(KINDS)}
    lines: dict[str, list[tuple[str, ...]]] = {}
    for each in series:
        lines.setdefault(each.place.key, []).extend(_lines(each))
    for key, rows in lines.items():
        path = folder / f"{key}.csv.gz"
        if not again >= set(order):
            rows.extend(line for line in _there(path) if line[0] not in again)
        rows.sort(key=lambda line: order[line[0]])
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(rows)
        # Without a name and a time, the same rows make the same bytes.
        path.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))
    return sum(map(len, lines.values()))


def _there(path: Path) -> list[tuple[str, ...]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        _, *lines = csv.reader(file)
    return [tuple(line) for line in lines]


def _lines(series: Series) -> Iterator[tuple[str, ...]]:
    columns = [series.shapes[name].astype(np.int64).tolist() for name in series.kind.shape]
    shapes = list(zip(*columns, strict=True))
    for n in sorted(_kept(series, shapes)):
        yield (
            series.kind.name,
            series.path,
            series.table.engine,
            series.table.version,
            series.kernel,
            str(int(series.folds[n] == 0)),
            " ".join(map(str, shapes[n])),
            f"{series.seconds[n] * 1e6:.4g}",
        )


def _kept(series: Series, shapes: list[tuple[int, ...]]) -> set[int]:
    if series.kind.topic == "comm":
        return set(range(min(len(shapes), EXCHANGES)))
    by_hash = sorted(range(len(shapes)), key=lambda n: (zlib.crc32(str(shapes[n]).encode()), n))
    kept = set(by_hash[:SAMPLE])
    if (series.kind.name, series.path, series.table.engine) == ("product", "bf16", GRID_ENGINE):
        kept |= {n for n, sides in enumerate(shapes) if all(s & (s - 1) == 0 for s in sides)}
    return kept
