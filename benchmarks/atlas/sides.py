"""Write the sides of products that each series has: where its backend was timed.

    python benchmarks/atlas/sides.py WHEEL_OR_FOLDER OUT

A backend that lacks small sides may refuse them, so its constants say nothing of them.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

from clean import Series, _of_kind, places
from kinds import KINDS
from wheel import Tables

from mlsim.hardware.kernel_constants import SIDES, all_series

_SIDES = ("m", "n", "k")


def write(path: Path, several: Iterable[Series]) -> None:
    """Write one line for each series of products that ships."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(SIDES)
        for series in several:
            ends = [series.shapes[name] for name in _SIDES]
            writer.writerow([*series.key, *(f"{each.min():.0f}" for each in ends)])


def main(where: Path, out: Path) -> None:
    tables, shipped = Tables(where), all_series()
    kind = next(each for each in KINDS if each.name == "product")
    found = (series for place in places() for series in _of_kind(tables, place, kind, []))
    write(out / "sides.csv", [each for each in found if each.key in shipped])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: sides.py WHEEL_OR_FOLDER OUT")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
