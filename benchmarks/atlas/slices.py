"""Write slices of measured products for the chapter on formats: stairs, and formats side by side.

    python benchmarks/atlas/slices.py WHEEL_OR_FOLDER OUT

`stairs.csv` has all rows of M of two products in 16 bits on an A100, of one backend: their
times grow in stairs. `formats.csv` has, for squares of weights and rows that are powers of two,
the time of the fastest backend in each format. Times are in microseconds, as measured.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from clean import Series, _of_kind, places
from kinds import KINDS
from wheel import Tables

STAIRS = {"Cloud.A100": ("bf16", "sglang", ((51200, 8192), (7168, 4096)), 1800)}
FORMATS = {"Cloud.H100": ("bf16", "fp8"), "Cloud.B200": ("bf16", "fp8", "fp4")}
ALL_FORMATS = ("bf16", "fp8", "fp4")
SQUARES = tuple(2**power for power in range(7, 15))
ROWS = tuple(2**power for power in range(16))

Line = tuple[str, ...]


def series_of(tables: Tables, key: str) -> Iterator[Series]:
    """Yield the series of products of a device."""
    place = next(each for each in places() if each.key == key)
    kind = next(each for each in KINDS if each.name == "product")
    yield from _of_kind(tables, place, kind, [])


def rows_of(series: Series) -> Iterator[tuple[tuple[int, int, int], float]]:
    """Yield the rows, outputs and depth of each product, and its microseconds."""
    columns = (series.shapes[name].astype(int).tolist() for name in ("m", "n", "k"))
    for shape, seconds in zip(zip(*columns, strict=True), series.seconds, strict=True):
        yield shape, float(seconds) * 1e6


def stairs(tables: Tables) -> Iterator[Line]:
    """Yield the lines of `stairs.csv`."""
    for key, (path, engine, wanted, most) in STAIRS.items():
        for series in series_of(tables, key):
            if (series.path, series.table.engine) != (path, engine):
                continue
            for (m, n, k), time in sorted(rows_of(series), key=lambda row: row[0][1:] + row[0][:1]):
                if (n, k) in wanted and m <= most:
                    yield key, engine, str(m), str(n), str(k), f"{time:.4g}"


def formats(tables: Tables) -> Iterator[Line]:
    """Yield the lines of `formats.csv`."""
    for key, paths in FORMATS.items():
        fastest: dict[str, dict[tuple[int, int, int], float]] = {name: {} for name in paths}
        for series in series_of(tables, key):
            if series.path in fastest:
                found = fastest[series.path]
                for shape, time in rows_of(series):
                    found[shape] = min(time, found.get(shape, time))
        for size in SQUARES:
            for m in ROWS:
                shape = (m, size, size)
                if all(shape in found for found in fastest.values()):
                    times = (
                        f"{fastest[name][shape]:.4g}" if name in fastest else ""
                        for name in ALL_FORMATS
                    )
                    yield key, str(m), str(size), str(size), *times


def write(path: Path, head: Line, lines: Iterator[Line]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(lines)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: slices.py WHEEL_OR_FOLDER OUT")
    given, out = Tables(Path(sys.argv[1])), Path(sys.argv[2])
    write(out / "stairs.csv", ("device", "engine", "rows", "outputs", "depth", "us"), stairs(given))
    head = ("device", "rows", "outputs", "depth", *(f"{name}_us" for name in ALL_FORMATS))
    write(out / "formats.csv", head, formats(given))
