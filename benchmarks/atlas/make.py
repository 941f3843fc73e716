"""Make the atlas: read the wheel, clean, fit, and write constants, errors and the shelf.

    python benchmarks/atlas/make.py aiconfigurator_core-0.12.0-...whl OUT

OUT is `mlsim_pkg/src/mlsim/data/measurements/atlas` for what ships. The same wheel makes the
same bytes. It takes about a quarter of an hour and 2 GB.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

import shelf
import sides
from clean import Series, all_series
from errors import Error, error, left_out
from fit import all_folds
from wheel import Tables

# Series that nothing of the kernel explains: a floor of the host hides it.
WORST = 0.35

CONSTANTS = ("device", "kind", "path", "engine", "name", "value", "low", "high")
ERRORS = (
    "device",
    "kind",
    "path",
    "engine",
    "version",
    "kernel",
    "provenance",
    "cores",
    "level",
    "of",
    "rows",
    "median",
    "p80",
    "bias",
    "low",
    "high",
)


def main(where: Path, out: Path) -> None:
    dropped: list[str] = []
    kept: list[Series] = []
    fitted: dict[tuple[str, ...], dict[str, float]] = {}
    spread: list[tuple[str, ...]] = []
    own: dict[tuple[str, ...], Error] = {}
    for series in all_series(Tables(where), dropped):
        folds = all_folds(series)
        found = error(series, folds[0], "own", series.place.key)
        if found.median > WORST and series.kind.topic != "comm":
            dropped.append(f"{series.table.path}, {series.path}: off by {found.median:.0%}")
            continue
        kept.append(series)
        fitted[series.key], own[series.key] = folds[0], found
        spread.extend(_constants(series, folds))
        print(*series.key, f"{found.median:.1%}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "constants.csv", CONSTANTS, spread)
    lines = [
        _error(series, each)
        for series in kept
        for each in (own[series.key], *left_out(series, fitted))
    ]
    _write(out / "errors.csv", ERRORS, lines)
    sides.write(out / "sides.csv", [each for each in kept if each.kind.name == "product"])
    (out / "dropped.txt").write_text("".join(f"{line}\n" for line in dropped), encoding="utf-8")
    print(f"{len(kept)} series, {shelf.write(out / 'shelf', kept)} rows on the shelf")


def _constants(series: Series, folds: list[dict[str, float]]) -> Iterable[tuple[str, ...]]:
    for name, value in folds[0].items():
        several = [fold[name] for fold in folds]
        numbers = (f"{each:.4g}" for each in (value, min(several), max(several)))
        yield (*series.key, name, *numbers)


def _error(series: Series, found: Error) -> tuple[str, ...]:
    table, cores = series.table, series.rates.cores
    numbers = (found.median, found.p80, found.bias, found.low, found.high)
    return (
        *series.key,
        table.version,
        series.kernel,
        series.provenance,
        f"{cores:.0f}",
        found.level,
        found.of,
        str(found.rows),
        *(f"{each:.4f}" for each in numbers),
    )


def _write(path: Path, head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(lines)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: make.py WHEEL_OR_FOLDER OUT")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
