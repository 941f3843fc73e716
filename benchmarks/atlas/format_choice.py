"""Which of BF16, FP8 and FP4 is the fastest: predicted, beside "always the lowest".

    python benchmarks/atlas/format_choice.py WHEEL_OR_FOLDER

On each shape that was measured in all formats, the time of a format is that of its fastest
backend; the prediction is that of `Engine.compare_formats` with estimate="calibrated", which
knows constants and no shape. Counted are shapes to which nothing was fitted, and on which the
fastest format leads the next by a tenth; of a pair, those on which the two differ by as much.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from clean import _of_kind, places
from kinds import KINDS
from tables import lay_out
from wheel import Tables

from mlsim import Engine

LEAD = 1.1
DEVICES = {
    "Cloud.H100": ("bf16", "fp8"),
    "Cloud.H200": ("bf16", "fp8"),
    "Cloud.B200": ("bf16", "fp8", "fp4"),
    "Cloud.B300": ("bf16", "fp8", "fp4"),
    "Cloud.GB200": ("bf16", "fp8", "fp4"),
    "Cloud.GB300": ("bf16", "fp8", "fp4"),
    "Cloud.L40S": ("bf16", "fp8"),
}


class Measured:
    """The shapes of a device that were measured in all formats, and their fastest times.

    Attributes
    ----------
    shapes
        M, N and K, of shape (3, shapes).
    times, predicted
        In s, of shape (formats, shapes).
    """

    def __init__(self, tables: Tables, key: str, formats: tuple[str, ...]) -> None:
        place = next(each for each in places() if each.key == key)
        kind = next(each for each in KINDS if each.name == "product")
        fastest: dict[str, dict[tuple[int, ...], float]] = {name: {} for name in formats}
        fitted: set[tuple[int, ...]] = set()
        for series in _of_kind(tables, place, kind, []):
            if series.path not in fastest:
                continue
            found = fastest[series.path]
            columns = (series.shapes[name].astype(int).tolist() for name in ("m", "n", "k"))
            for shape, seconds, fold in zip(
                zip(*columns, strict=True), series.seconds, series.folds, strict=True
            ):
                found[shape] = min(float(seconds), found.get(shape, np.inf))
                if not fold:
                    fitted.add(shape)
        shared = set.intersection(*(set(each) for each in fastest.values())) - fitted
        shapes = sorted(shared)
        self.shapes = np.array(shapes).T
        self.times = np.array([[fastest[name][shape] for shape in shapes] for name in formats])
        self.predicted = Engine.compare_formats(
            *self.shapes, hardware=key, formats=formats, estimate="calibrated"
        ).latency


def leads(times: np.ndarray) -> np.ndarray:
    """Return where the fastest leads the next."""
    first, second = np.sort(times, axis=0)[:2]
    return second / first >= LEAD


def choices(found: Measured) -> tuple[int, float, float, float]:
    """Return how many shapes count, and shares: right, always the lowest, time that is lost."""
    counted = leads(found.times)
    best, said = (each.argmin(axis=0)[counted] for each in (found.times, found.predicted))
    times = found.times[:, counted]
    lost = times[said, np.arange(said.size)] / times.min(axis=0) - 1
    return (
        int(counted.sum()),
        float((best == said).mean()),
        float((best == len(times) - 1).mean()),
        float(lost.mean()),
    )


def pairs(found: Measured, formats: tuple[str, ...]) -> Iterator[tuple[str, int, float, float]]:
    """Yield each pair of formats: how many shapes count, right, always the lower."""
    for high, low in combinations(range(len(formats)), 2):
        times, said = found.times[[high, low]], found.predicted[[high, low]]
        counted = leads(times)
        right = (said.argmin(axis=0) == times.argmin(axis=0))[counted]
        lower = (times.argmin(axis=0) == 1)[counted]
        name = f"{formats[high]} or {formats[low]}"
        yield name, int(counted.sum()), float(right.mean()), float(lower.mean())


def main(where: Path) -> None:
    tables = Tables(where)
    whole, by_pair = [], []
    for key, formats in DEVICES.items():
        found = Measured(tables, key, formats)
        device = key.partition(".")[2]
        count, right, lowest, lost = choices(found)
        off = np.abs(found.predicted / found.times - 1)
        medians = ", ".join(
            f"{name} {np.median(each):.1%}" for name, each in zip(formats, off, strict=True)
        )
        whole.append(
            (device, f"{count:,}", f"{right:.1%}", f"{lowest:.1%}", f"{lost:.1%}", medians)
        )
        by_pair += [
            (device, name, f"{n:,}", f"{ok:.1%}", f"{low:.1%}")
            for name, n, ok, low in pairs(found, formats)
        ]
    print("## Which format is the fastest\n")
    heads = ("device", "shapes", "right", "always the lowest", "time lost", "median error of times")
    print(lay_out(heads, whole))
    print("\n## Pair by pair\n")
    print(lay_out(("device", "pair", "shapes", "right", "always the lower"), by_pair))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: format_choice.py WHEEL_OR_FOLDER")
    main(Path(sys.argv[1]))
