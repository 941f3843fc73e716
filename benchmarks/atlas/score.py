"""How far the shipped constants are off, on shapes that they were not fitted to.

    python benchmarks/atlas/score.py                     the table that ships
    python benchmarks/atlas/score.py WHEEL_OR_FOLDER     the same, measured again

The second reads the rows again and predicts them with the shipped constants. A clone of the
repository has other rows than the wheel: its `systems/data` is a test of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from tables import lay_out

from mlsim.hardware.kernel_constants import ENGINES, KernelError, KernelSeries, all_series

# What was aimed at: kind, path, engines (all if empty), devices (all if empty), the median.
CENTRE = ("A100", "H100", "H200", "B200", "B300", "GB200", "GB300")
SWITCHED = (*CENTRE,)
RECENT = ("H100", "H200", "B200", "B300", "GB200", "GB300")
GOALS = (
    ("product", "bf16", "", (), 0.07),
    ("product", "fp8", "trtllm", (), 0.06),
    ("product", "fp8", "sglang", (), 0.11),
    ("product", "fp8", "vllm", (), 0.15),
    ("product", "fp4", "", ("B200",), 0.10),
    ("prefill", "", "", CENTRE, 0.12),
    ("decode", "", "", CENTRE, 0.12),
    ("experts", "", "", (), 0.18),
    ("latent_prefill", "", "", RECENT, 0.12),
    ("latent_decode", "", "", RECENT, 0.12),
    ("exchange", "", "", SWITCHED, 0.08),
    ("graph_all_reduce", "", "", SWITCHED, 0.08),
)
LEVELS = ("own", "sibling", "family", "class")


def main(where: Path | None) -> None:
    errors = {series: series.errors for series in all_series().values()}
    if where:
        errors = dict(measured_again(where))
    print("## By kind\n")
    print(lay_out(("kernels", "series", *LEVELS, "80 % band of own"), by_kind(errors)))
    print("\n## By device, with its own constants\n")
    print(lay_out(("kernels", *devices(errors)), by_device(errors)))
    print("\n## Goals\n")
    print(lay_out(("kernels", "goal", "series", "hold it", "misses"), goals(errors)))


def measured_again(where: Path) -> Iterator[tuple[KernelSeries, dict[str, KernelError]]]:
    """Yield the errors of shipped constants on the rows of a wheel or a folder."""
    from clean import all_series as rows_of
    from errors import error
    from wheel import Tables

    shipped = all_series()
    for series in rows_of(Tables(where), []):
        if series.key in shipped:
            own = shipped[series.key]
            yield own, {"own": error(series, own.values, "own", series.place.key)}


def by_kind(errors: dict[KernelSeries, dict[str, KernelError]]) -> Iterator[tuple[str, ...]]:
    for kind, path in kinds(errors):
        several = [found for s, found in errors.items() if (s.kind, s.path) == (kind, path)]
        cells = []
        for level in LEVELS:
            there = [each[level].median for each in several if level in each]
            cells.append(f"{median(there):.1%}" if there else "")
        low, high = (
            median(getattr(each["own"], end) for each in several) for end in ("low", "high")
        )
        yield f"{kind} {path}", str(len(several)), *cells, f"{low:.2f} to {high:.2f}"


def by_device(errors: dict[KernelSeries, dict[str, KernelError]]) -> Iterator[tuple[str, ...]]:
    for kind, path in kinds(errors):
        for engine in ENGINES[kind]:
            cells = {
                short(s): f"{100 * found['own'].median:.1f}"
                for s, found in errors.items()
                if (s.kind, s.path, s.engine) == (kind, path, engine)
            }
            if cells:
                named = f"{kind} {path} {engine}"
                yield named, *(cells.get(name, "") for name in devices(errors))


def goals(errors: dict[KernelSeries, dict[str, KernelError]]) -> Iterator[tuple[str, ...]]:
    for kind, path, engine, places, goal in GOALS:
        found = {
            s: each["own"].median
            for s, each in errors.items()
            if s.kind == kind
            and path in {"", s.path}
            and engine in {"", s.engine}
            and (not places or short(s) in places)
        }
        held = sum(each <= goal for each in found.values())
        worst = sorted(found.items(), key=lambda pair: -pair[1])
        misses = [
            f"{short(s)} {s.path} {s.engine} {100 * off:.1f}" for s, off in worst if off > goal
        ]
        said = "; ".join(misses[:4]) + ("; ..." if len(misses) > 4 else "")
        yield f"{kind} {path} {engine}".strip(), f"{goal:.0%}", str(len(found)), str(held), said


def kinds(errors: Iterable[KernelSeries]) -> list[tuple[str, str]]:
    order = list(ENGINES)
    return sorted({(s.kind, s.path) for s in errors}, key=lambda each: (order.index(each[0]), each))


def devices(errors: Iterable[KernelSeries]) -> list[str]:
    return list(dict.fromkeys(short(s) for s in errors))


def short(series: KernelSeries) -> str:
    return series.device.partition(".")[2].removesuffix("_Server")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
