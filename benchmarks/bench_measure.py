"""Whether `mlsim.profiling.measure()` finds the ceilings of this machine, and finds them again.

    python benchmarks/bench_measure.py --runs 3 --json results.json

Beside it, in the same run and on the same machine:

- a triad in C with all threads, written here by the rules of STREAM (arrays of four times all
  caches, the best of ten passes after the first). It is a program of its own, by OpenMP;
- the best of NumPy's products for sides from 256 to 3072, in a process of its own;
- the caches as the system reports them.

They take turns with the measurements, so that a busy machine slows all of them. Nothing else
should run meanwhile; the load before and after is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

from tables import lay_out

from mlsim.hardware.this_machine import Machine, this_machine
from mlsim.profiling import Measurement, measure

TRIAD = r"""
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    size_t n = strtoull(argv[1], NULL, 10);
    double *a = aligned_alloc(64, n * 8), *b = aligned_alloc(64, n * 8);
    double *c = aligned_alloc(64, n * 8), best = 1e30;
    if (!a || !b || !c) return 1;
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) { a[i] = 1.0; b[i] = 2.0; c[i] = 0.5; }
    for (int pass = 0; pass < 10; pass++) {
        double begin = omp_get_wtime();
#pragma omp parallel for
        for (size_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i];
        double taken = omp_get_wtime() - begin;
        if (pass && taken < best) best = taken;
    }
    if (a[n / 2] != 3.5) return 2;
    printf("%.6e\n", 24.0 * n / best);
    return 0;
}
"""
PRODUCTS = """
import json, sys, time
import numpy as np
best = {}
for name, kind in (("fp64", "float64"), ("fp32", "float32")):
    for side in (256, 512, 1024, 1536, 2048, 3072):
        a, b = (np.random.default_rng(0).random((side, side)).astype(kind) for _ in range(2))
        out = np.empty((side, side), kind)
        np.matmul(a, b, out=out)
        for _ in range(7):
            begin = time.perf_counter()
            np.matmul(a, b, out=out)
            rate = 2.0 * side**3 / (time.perf_counter() - begin)
            best[name] = max(best.get(name, 0.0), rate)
print(json.dumps(best))
"""


def triad_program(folder: Path) -> Path:
    """Compile the triad."""
    source, program = folder / "triad.c", folder / "triad"
    source.write_text(TRIAD)
    command = ["cc", "-O3", "-march=native", "-fopenmp", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def run_triad(program: Path, machine: Machine) -> float:
    """Return the rate of the triad in B/s."""
    caches = max((each.total for each in machine.caches), default=2**24)
    count = 4 * caches // 8
    environment = {**os.environ, "OMP_NUM_THREADS": str(machine.cores)}
    done = subprocess.run(
        [str(program), str(count)], capture_output=True, text=True, check=True, env=environment
    )
    return float(done.stdout)


def best_products() -> dict[str, float]:
    """Return NumPy's best products in FLOP/s."""
    done = subprocess.run(
        [sys.executable, "-c", PRODUCTS], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def rows_of(found: Measurement, triad: float, products: dict[str, float]) -> list[list[str]]:
    """Return a row for each figure that has something beside it."""
    rows = []

    def compare(name: str, beside: float, what: str, in_: tuple[str, float], most: float) -> None:
        unit, scale = in_
        figure = found.figures.get(name)
        if figure is None:
            why = f"left out: {found.refused.get(name, 'not measured')}"
            rows.append([name, why, f"{what} {beside / scale:.4g} {unit}", "", "NO"])
            return
        ratio = figure.value / beside
        held = 1 / most <= ratio <= most
        low, high = figure.spread.low / scale, figure.spread.high / scale
        rows.append(
            [
                name,
                f"{figure.value / scale:.4g} {unit} ({low:.4g} to {high:.4g})",
                f"{what} {beside / scale:.4g} {unit}",
                f"{ratio:.3f}",
                "yes" if held else "NO",
            ]
        )

    compare("memory.bandwidth", triad, "triad in C", ("GB/s", 1e9), 1.15)
    for name, rate in products.items():
        compare(f"compute.{name}", rate, "NumPy's best", ("GFLOP/s", 1e9), 1.10)
    for cache in found.machine.caches:
        compare(f"one_core.l{cache.level}", cache.size, "reported", ("KiB", 2**10), 1.5)
        compare(f"memory.l{cache.level}", cache.total, "reported", ("KiB", 2**10), 1.5)
    return rows


def agreement(runs: list[Measurement]) -> list[list[str]]:
    """Return a row for each figure: its interval in every run, and whether they all meet."""
    rows = []
    for name in sorted({name for run in runs for name in run.figures}):
        found = [run.figures.get(name) for run in runs]
        spreads = [each.spread for each in found if each]
        meet = all(a.agrees(b) for a, b in combinations(spreads, 2))
        verdict = "yes" if meet else "NO"
        rows.append(
            [
                name,
                *(str(each) if each else "left out" for each in found),
                f"{max(each.relative for each in spreads):.1%}",
                verdict if len(spreads) == len(runs) else f"{verdict}, of {len(spreads)}",
            ]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kernels", default="auto")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine, runs, triads = this_machine(), [], []
    products: dict[str, float] = {}
    print(f"load before: {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        program = triad_program(Path(folder))
        for _ in range(options.runs):
            triads.append(run_triad(program, machine))
            for name, rate in best_products().items():
                products[name] = max(products.get(name, 0.0), rate)
            runs.append(measure(kernels=options.kernels))
            triads.append(run_triad(program, machine))
    print(f"load after: {os.getloadavg()[0]:.2f}; the triad from {min(triads) / 1e9:.3g} to "
          f"{max(triads) / 1e9:.3g} GB/s")  # fmt: skip
    head = ["figure", "measured (interval)", "beside it", "ratio", "within"]
    results: list[dict[str, Any]] = []
    for number, run in enumerate(runs, start=1):
        print(f"\nrun {number}: {run.seconds:.0f} s, {run.rounds} rounds, "
              f"{len(run.figures)} figures, {len(run.refused)} left out")  # fmt: skip
        print(lay_out(head, rows_of(run, max(triads), products)))
        results.append(run.to_dict())
    if len(runs) > 1:
        rows = agreement(runs)
        columns = [f"run {number}" for number in range(1, len(runs) + 1)]
        print("\n" + lay_out(["figure", *columns, "widest", "agree"], rows))
        everywhere = [row for row in rows if row[-1] in ("yes", "NO")]
        meet = sum(row[-1] == "yes" for row in everywhere)
        print(f"\nof {len(everywhere)} figures in all runs, the intervals of {meet} agree; "
              f"{len(rows) - len(everywhere)} more were left out of a run or two")  # fmt: skip
    if options.json:
        beside = {"triad": triads, "products": products}
        options.json.write_text(json.dumps({"beside": beside, "runs": results}, indent=2))


if __name__ == "__main__":
    main()
