"""How fast mlsim is: import, the zoo, one solve, and a sweep of a million configurations.

Beside it, in the same run and on the same machine: mlsysim 0.3.0, in the
interpreter that `--rival` names, and the same sums written by hand in NumPy.

    python benchmarks/bench_mlsim.py --rival /path/to/python --json results.json

Every time is the median of `--repeats` (at least 7). What is compared, and how,
is said in README.md beside this file.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from mlsim import Engine, Hardware, Models
from mlsim.solvers import arrays

DEVICES = ("V100", "A100_40GB", "A100", "H100", "T4")
PRECISIONS = ("fp16", "fp32")
LARGEST_BATCH = 2000  # what every device can hold in both precisions

IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

# The zoo, in a process that has read nothing yet: one device, and everything. By the
# processor's time, which others on a busy machine don't lengthen; reading files waits for nobody.
ONE_DEVICE = """
import time
from mlsim import Hardware
start = time.process_time()
Hardware.Cloud.H100
print(time.process_time() - start)
"""
WHOLE_ZOO = """
import time
from mlsim.zoo import spaces
spaces = [each for each in vars(spaces).values() if isinstance(each, spaces.Namespace)]
start = time.process_time()
read = [list(space) for space in spaces]
print(time.process_time() - start)
"""

# A layout for 1,024 devices, in a process that has trained nothing: what is imported is not
# counted, but no kernel has been made yet.
LAYOUT = """
import time
from mlsim import Engine
from mlsim.solvers.training import choices, run
import numpy
start = time.perf_counter()
Engine.train(model="Llama3_70B", hardware="Eos", devices=1024, global_batch=1024, search=True)
print(time.perf_counter() - start)
"""

# One solve, and then also what a reader asks of it, with units: the rival makes
# these when it solves, mlsim when they are asked for.
SOLVE = """
import json, statistics, sys, time
{imports}
def solve():
    {solve}
def timed(count):
    start = time.perf_counter()
    for _ in range(count):
        solve()
    return (time.perf_counter() - start) / count
timed(20)
print(statistics.median(timed({count}) for _ in range({repeats})))
"""

READ = "\n    profile.latency, profile.throughput, profile.bottleneck"
OURS = {
    "imports": "from mlsim import Engine, Hardware, Models",
    "solve": "profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, "
    "batch_size=1, precision='fp16')",
    "count": 1000,
}
RIVAL = {
    "imports": "import mlsysim",
    "solve": "profile = mlsysim.Engine.solve(model=mlsysim.Models.Vision.ResNet50, "
    "hardware=mlsysim.Hardware.Cloud.A100, batch_size=1, precision='fp16')",
    "count": 30,
}

# A calibrated solve knows of tiles, starts and measured rates: at most twice the time.
ESTIMATES = {"roofline": "", "calibrated": ", estimate='calibrated'"}
CALIBRATED_RATIO = 2.0

# The rival's rate does not depend on how many configurations there are, so a
# part of the million will do.
RIVAL_SWEEP = """
import statistics, time
import mlsysim
cloud = mlsysim.Hardware.Cloud
def timed():
    start = time.perf_counter()
    rows = mlsysim.Engine.sweep(
        model=mlsysim.Models.Vision.ResNet50, hardware_list=[cloud.V100, cloud.A100, cloud.T4],
        batch_sizes=list(range(1, 33)), precisions=["fp16", "fp32"])
    return len(rows) / (time.perf_counter() - start)
timed()
print(statistics.median(timed() for _ in range({repeats})))
"""


# Modules are compiled once, as those of an installed package are, whatever this shell says.
_COMPILED = tempfile.TemporaryDirectory()
_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def run(python: str, program: str) -> float:
    """Run a program in an interpreter of its own; return the number it prints."""
    done = subprocess.run(
        [python, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path.home(),
        env={**_ENVIRONMENT, "PYTHONPYCACHEPREFIX": _COMPILED.name},
    )
    if done.returncode:
        raise SystemExit(f"{python} failed:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# The sweep, by mlsim and by hand.


def batches(points: int) -> np.ndarray:
    each = points // (len(DEVICES) * len(PRECISIONS))
    return np.arange(each) % LARGEST_BATCH + 1


def sweep_mlsim(batch: np.ndarray) -> Any:
    return Engine.sweep(
        model=Models.ResNet50,
        hardware=[getattr(Hardware.Cloud, name) for name in DEVICES],
        batch_size=batch,
        precision=PRECISIONS,
    )


def sweep_by_hand(batch: np.ndarray, *, folded: bool, threads: int) -> dict[str, np.ndarray]:
    """Compute the same columns of numbers, as someone would who knows NumPy well.

    In blocks of the same size and with equal operators merged, as mlsim does;
    no units, no checks, no table. `folded` goes further and divides the
    operators' counts by the device's rates before the loop, so that an operator
    costs a multiplication less for each time.
    """
    table = Models.ResNet50.operators
    column = {name: values[:, None] for name, values in table.merged.arrays.items()}
    repeats = table.merged.arrays["repeats"]
    points = batch.astype(float)
    size = len(points)
    total = size * len(DEVICES) * len(PRECISIONS)
    names = ("latency", "throughput", "memory_bound_share", "memory_required")
    out = {name: np.empty(total) for name in names}
    out["feasible"] = np.empty(total, dtype=bool)

    def fill(offset: int, begin: int, stop: int, rates: tuple[float, ...]) -> None:
        peak, bandwidth, capacity, width = rates
        flops = 2.0 * column["multiply_adds"]
        weights = width * column["parameters"]
        elements = width * (column["activations_read"] + column["activations_written"])
        held = float(repeats @ weights[:, 0])
        live = width * table.activations_live
        if folded:
            flops, weights, elements = flops / peak, weights / bandwidth, elements / bandwidth
        for first in range(begin, stop, arrays.BLOCK):
            last = min(first + arrays.BLOCK, stop)
            b = points[first:last]
            if folded:
                compute, memory = flops * b, weights + elements * b
            else:
                compute, memory = flops * b / peak, (weights + elements * b) / bandwidth
            longer = np.maximum(compute, memory)
            latency = repeats @ longer
            where = slice(offset + first, offset + last)
            out["latency"][where] = latency
            out["throughput"][where] = b / latency
            out["memory_bound_share"][where] = (repeats @ (longer * (memory > compute))) / latency
            required = held + live * b
            out["memory_required"][where] = required
            out["feasible"][where] = required <= capacity

    step = -(-size // (threads * arrays.BLOCK)) * arrays.BLOCK
    jobs = []
    with ThreadPoolExecutor(threads) as pool:
        for number, (name, precision) in enumerate((d, p) for d in DEVICES for p in PRECISIONS):
            device = getattr(Hardware.Cloud, name)
            rates = (
                device.compute.figure(precision).si,
                device.bandwidth_si,
                device.capacity_si,
                {"fp16": 2.0, "fp32": 4.0}[precision],
            )
            jobs += [
                pool.submit(fill, number * size, begin, min(begin + step, size), rates)
                for begin in range(0, size, step)
            ]
        for job in jobs:
            job.result()
    return out


def check_equal(batch: np.ndarray) -> None:
    """Make sure that the hand-written sums are the same ones."""
    table = sweep_mlsim(batch)
    for folded in (False, True):
        for name, values in sweep_by_hand(batch, folded=folded, threads=1).items():
            np.testing.assert_allclose(table[name], values, rtol=1e-12)


def measure(rival: str | None, points: int, repeats: int) -> dict[str, float]:
    """Take all times, in seconds, and rates, in configurations per second."""
    found: dict[str, float] = {}
    pairs = [("mlsim", sys.executable), *([("mlsysim", rival)] if rival else [])]
    for name, python in pairs:
        run(python, IMPORT.format(name))  # compiles and warms the disk's cache
    times: dict[str, list[float]] = {name: [] for name, _ in pairs}
    for _ in range(repeats):
        for name, python in pairs:
            times[name].append(run(python, IMPORT.format(name)))
    for name, _ in pairs:
        found[f"import {name}"] = statistics.median(times[name])
    for label, program in (
        ("one device", ONE_DEVICE),
        ("whole zoo", WHOLE_ZOO),
        ("layout", LAYOUT),
    ):
        runs = [run(sys.executable, program) for _ in range(repeats + 1)]
        found[label] = statistics.median(runs[1:])
    for label, read in (("solve", ""), ("solve and read", READ)):
        for name, python, way in (("mlsim", sys.executable, OURS), ("mlsysim", rival, RIVAL)):
            if python:
                program = SOLVE.format(**{**way, "solve": way["solve"] + read}, repeats=repeats)
                found[f"{label} {name}"] = run(python, program)

    # In turn, since other work on the machine changes from one minute to the next.
    asked = {name: OURS["solve"][:-1] + more + ")" for name, more in ESTIMATES.items()}
    runs = [
        {
            name: run(sys.executable, SOLVE.format(**{**OURS, "solve": way}, repeats=3))
            for name, way in asked.items()
        }
        for _ in range(repeats)
    ]
    for name in asked:
        found[f"solve {name}"] = statistics.median(each[name] for each in runs)

    batch = batches(points)
    check_equal(batch[:5000])
    threads = os.cpu_count() or 1
    ways: dict[str, Callable[[], Any]] = {
        "sweep mlsim": lambda: sweep_mlsim(batch),
        "sweep by hand": lambda: sweep_by_hand(batch, folded=False, threads=threads),
        "sweep by hand, folded": lambda: sweep_by_hand(batch, folded=True, threads=threads),
    }
    size = len(batch) * len(DEVICES) * len(PRECISIONS)
    rounds = [{name: timed(way) for name, way in ways.items()} for _ in range(repeats + 1)]
    for name in ways:  # the first round warms up
        found[name] = size / statistics.median(each[name] for each in rounds[1:])
    if rival:
        found["sweep mlsysim"] = run(rival, RIVAL_SWEEP.format(repeats=repeats))
    return found


def judge(found: dict[str, float]) -> list[dict[str, Any]]:
    """Compare with the targets; a rival that was not run gives no row."""
    rows = [
        {
            "what": "import mlsim",
            "measured": f"{found['import mlsim'] * 1e3:.1f} ms",
            "beside": "",
            "ratio": "",
            "target": "<= 150 ms",
            "reached": found["import mlsim"] <= 0.15,
        }
    ]
    for label, what, target in (
        ("one device", "Hardware.Cloud.H100, cold", 5e-3),
        ("whole zoo", "everything in the zoo, cold", 0.15),
        ("layout", "a layout for 1,024 devices", 0.2),
    ):
        rows.append(
            {
                "what": what,
                "measured": f"{found[label] * 1e3:.1f} ms",
                "beside": "",
                "ratio": "",
                "target": f"<= {target * 1e3:g} ms",
                "reached": found[label] <= target,
            }
        )

    def row(what: str, measured: str, beside: str, *, ratio: float, target: str, ok: bool) -> None:
        shown = f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.2f}x"
        rows.append(
            {
                "what": what,
                "measured": measured,
                "beside": beside,
                "ratio": shown,
                "target": target,
                "reached": ok,
            }
        )

    slow, quick = found["solve calibrated"], found["solve roofline"]
    row(
        "one calibrated solve",
        f"{slow * 1e6:.1f} us",
        f"its roofline {quick * 1e6:.1f} us",
        ratio=slow / quick,
        target=f"<= {CALIBRATED_RATIO:g}x the time",
        ok=slow <= CALIBRATED_RATIO * quick,
    )
    if "import mlsysim" in found:
        ours, theirs = found["import mlsim"], found["import mlsysim"]
        rows[0] |= {"beside": f"mlsysim {theirs:.2f} s", "ratio": f"{theirs / ours:,.0f}x"}
        for label, what, least in (
            ("solve", "one solve, ResNet-50 on A100", 60),
            ("solve and read", "the same, and three results read", 20),
        ):
            ours, theirs = found[f"{label} mlsim"], found[f"{label} mlsysim"]
            row(
                what,
                f"{ours * 1e6:.1f} us",
                f"mlsysim {theirs * 1e6:,.0f} us",
                ratio=theirs / ours,
                target=f">= {least}x faster",
                ok=theirs / ours >= least,
            )
        ours, theirs = found["sweep mlsim"], found["sweep mlsysim"]
        row(
            "sweep of a million",
            f"{ours / 1e6:.1f} M/s",
            f"mlsysim {theirs:,.0f}/s",
            ratio=ours / theirs,
            target=">= 10,000x the rate",
            ok=ours / theirs >= 10_000,
        )
    for name in ("sweep by hand", "sweep by hand, folded"):
        ours, theirs = found["sweep mlsim"], found[name]
        row(
            "the same sweep",
            f"{ours / 1e6:.1f} M/s",
            f"NumPy {name.removeprefix('sweep ')} {theirs / 1e6:.1f} M/s",
            ratio=theirs / ours,
            target="<= 1.5x slower",
            ok=theirs / ours <= 1.5,
        )
    return rows


def show(rows: list[dict[str, Any]]) -> str:
    """Lay rows out as a Markdown table."""
    cells = [["what", "mlsim", "beside it", "ratio", "target", "reached"]]
    for row in rows:
        reached = "yes" if row["reached"] else "NO"
        fields = ("what", "measured", "beside", "ratio", "target")
        cells.append([*(row[field] for field in fields), reached])
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    )


def processor() -> str:
    """Return the processor's name, if the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rival", metavar="PYTHON", help="interpreter that has mlsysim 0.3.0")
    parser.add_argument("--points", type=int, default=1_000_000, help="configurations in the sweep")
    parser.add_argument("--repeats", type=int, default=9, help="runs per median, 7 or more (9)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers to a file")
    options = parser.parse_args()
    if options.repeats < 7:
        parser.error("--repeats must be 7 or more: the median of fewer runs says little")
    machine = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    found = measure(options.rival, options.points, options.repeats)
    rows = judge(found)
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(f"medians of {options.repeats}; sweep of {options.points:,} configurations\n")
    print(show(rows))
    if not options.rival:
        print("\nnot compared with mlsysim: pass --rival PYTHON")
    if options.json:
        data = {"machine": machine, "measured": found, "judged": rows}
        options.json.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
