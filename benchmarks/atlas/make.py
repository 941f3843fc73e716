"""Make the atlas: read the wheel, clean, fit, and write constants, errors and the shelf.

    python benchmarks/atlas/make.py aiconfigurator_core-0.12.0-...whl OUT [KIND ...]

OUT is `mlsim_pkg/src/mlsim/data/measurements/atlas` for what ships. The same wheel makes the
same bytes. It takes about a quarter of an hour and 2 GB. Where kinds are named, such as
"experts", only they are fitted again: lines of the others stay as they are.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

import shelf
import sides
from clean import Series, all_series, places
from errors import Error, error, left_out
from fit import all_folds, middles
from kinds import KINDS
from wheel import Tables

# Series that nothing of the kernel explains: a floor of the host hides it.
WORST = 0.35

KEY = ("device", "kind", "path", "engine")
CONSTANTS = (*KEY, "name", "value", "low", "high")
ERRORS = (
    *KEY,
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


def main(where: Path, out: Path, named: Collection[str] = ()) -> None:
    """Fit the series of all kinds, or of those that are named, and write what ships."""
    kinds = [each for each in KINDS if not named or each.name in named]
    dropped: list[str] = []
    kept: list[Series] = []
    fitted: dict[tuple[str, ...], dict[str, float]] = {}
    spread: list[tuple[str, ...]] = []
    own: dict[tuple[str, ...], Error] = {}
    tables = Tables(where)
    near = middles(list(all_series(tables, [], [each for each in kinds if each.pooled])))
    for series in all_series(tables, dropped, kinds):
        folds = all_folds(series, near.get(series.key))
        found = error(series, folds[0], "own", series.place.key)
        if found.median > WORST and series.kind.topic != "comm":
            dropped.append(f"{series.table.path}, {series.path}: off by {found.median:.0%}")
            continue
        kept.append(series)
        fitted[series.key], own[series.key] = folds[0], found
        spread.extend(_constants(series, folds))
        print(*series.key, f"{found.median:.1%}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    again = {each.name for each in kinds}
    _write(out / "constants.csv", CONSTANTS, spread, again)
    lines = [
        _error(series, each)
        for series in kept
        for each in (own[series.key], *left_out(series, fitted))
    ]
    _write(out / "errors.csv", ERRORS, lines, again)
    if "product" in again:
        sides.write(out / "sides.csv", [each for each in kept if each.kind.name == "product"])
    if "experts" in again:
        _write(out / "whole.csv", KEY, (each.key for each in kept if whole(each)), again)
    _write_dropped(out / "dropped.txt", dropped, again)
    print(f"{len(kept)} series, {shelf.write(out / 'shelf', kept, again)} rows on the shelf")


def whole(series: Series) -> bool:
    """Tell whether experts were timed whole only: their kernel may not run on slices of them."""
    return series.kind.name == "experts" and bool(series.shapes["moe_tp_size"].max() == 1)


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


def _write(
    path: Path, head: tuple[str, ...], lines: Iterable[tuple[str, ...]], again: Collection[str]
) -> None:
    """Write a table; of kinds that were not fitted again, the lines that it has stay."""
    every = [*lines, *_stay(path, again)]
    order = {key: n for n, key in enumerate(_order())}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(sorted(every, key=lambda line: order[line[0], line[1]]))


def _stay(path: Path, again: Collection[str]) -> list[tuple[str, ...]]:
    if again >= {each.name for each in KINDS} or not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        _, *lines = csv.reader(file)
    return [tuple(line) for line in lines if line[1] not in again]


def _order() -> list[tuple[str, str]]:
    """Return devices and kinds as a run over all of them meets them."""
    return [(place.key, kind.name) for place in places() for kind in KINDS]


def _write_dropped(path: Path, dropped: list[str], again: Collection[str]) -> None:
    """Write what was dropped whole, in the order in which a run over all kinds meets it."""
    tables = {each.table: each.name for each in KINDS}
    order = {
        (place.folder, kind.table): n
        for n, (place, kind) in enumerate((place, kind) for place in places() for kind in KINDS)
    }

    def which(line: str) -> tuple[str, str]:
        parts = line.partition(".parquet")[0].split("/")
        return parts[0], parts[-1]

    if not again >= set(tables.values()):
        there = path.read_text(encoding="utf-8").splitlines()
        dropped = [*dropped, *(line for line in there if tables[which(line)[1]] not in again)]
    lines = sorted(dropped, key=lambda line: order[which(line)])
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit("usage: make.py WHEEL_OR_FOLDER OUT [KIND ...]")
    wrong = set(sys.argv[3:]) - {each.name for each in KINDS}
    if wrong:
        known = ", ".join(each.name for each in KINDS)
        raise SystemExit(f"No kind is called {', '.join(sorted(wrong))}. Kinds: {known}.")
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
