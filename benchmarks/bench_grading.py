"""Grade a class: 200 submissions of ten questions, 25 of them hostile; and what walls cost.

    python benchmarks/bench_grading.py [NUMBER OF SUBMISSIONS]

The notebooks are those of an assignment of the book's own questions with numbers for
each student. Honest ones solve it with `mlsim`, or leave it blank, or take a wrong path;
hostile ones loop, exit, print 200 MB, fill the memory, or reach for the key.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mlsim_book.grading.limits import Limits
from mlsim_book.grading.process import run_notebook
from mlsim_book.grading.walls.choose import TRUST, NoWallsError, choose

ROOT = Path(__file__).parents[1]
REPEATS = 9
HOSTILE = [
    "while True: pass",
    "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass",
    "raise SystemExit",
    "import os; os._exit(1)",
    "print('x' * 2 * 10**8)",
    "x = ' ' * 10**11",
    "import subprocess; subprocess.run(['sleep', '1000'])",
    "import socket; socket.create_connection(('192.0.2.1', 80))",
    "import os\nwhile True: os.fork()",
    "import pathlib; print(pathlib.Path('{key}').read_text())",
]
TEN = [
    "t4-share", "ridge-order", "tensor-cores", "kv-70b", "decode-floor", "users-h200",
    "cache-bits", "experts-read", "state-70b", "days-six",
]  # fmt: skip


def main(count: int) -> None:
    """Make the class, grade it, and print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        names = [f"student{number:03}" for number in range(count)]
        (home / "class.csv").write_text("student\n" + "\n".join(names) + "\n")
        command = [sys.executable, "-m", "mlsim_book.cli"]
        out = home / "week"
        started = time.perf_counter()
        assign = ["assign", *TEN, "--out", str(out), "--variant-by", str(home / "class.csv")]
        subprocess.run([*command, *assign], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        print(f"assign, {count} students: {time.perf_counter() - started:.1f} s")
        for number, name in enumerate(names):
            hand_in(out, name, number)
        started = time.perf_counter()
        subprocess.run([*command, "grade", str(out)], cwd=ROOT, check=True)
        took = time.perf_counter() - started
        with (out / "results" / "results.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert sorted(row["student"] for row in rows) == names
        right = sum(row["points"] == row["of"] for row in rows)
        print(f"grade, {count} submissions: {took:.1f} s, {took / count:.2f} s each;")
        print(f"  {len(rows)} results, {right} with all points")
        started = time.perf_counter()
        subprocess.run([*command, "grade", str(out)], cwd=ROOT, check=True, capture_output=True)
        print(f"again, nothing new: {time.perf_counter() - started:.1f} s")


def cost_of_walls() -> None:
    """Run one notebook with and without walls, in turn, and print the medians."""
    code = (
        "from mlsim import Engine, Hardware, Models\nanswer = Models.ResNet50.parameters.magnitude"
    )
    notebook = json.dumps({"cells": [{"cell_type": "code", "source": code}]}).encode()
    kinds = {"without walls": choose(TRUST)}
    for kind in ("bubblewrap", "podman", "docker"):
        try:
            kinds[kind] = choose(kind)
        except NoWallsError:
            continue
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(REPEATS):
        for name, walls in kinds.items():
            started = time.perf_counter()
            ran = run_notebook(notebook, {"answer": ""}, Limits(), walls)
            seconds[name].append(time.perf_counter() - started)
            assert ran.values["answer"]["number"] > 0, ran
    print(f"one submission, median of {REPEATS}:")
    for name, times in seconds.items():
        print(f"  {name:14} {statistics.median(times) * 1e3:.0f} ms")


def hand_in(out: Path, name: str, number: int) -> None:
    """Write one student's notebook: every eighth is hostile, every fifth of the others blank."""
    solved = number % 5 != 1
    text = (out / ("solutions" if solved else "students") / f"{name}.ipynb").read_text()
    if number % 8 == 0:
        notebook = json.loads(text)
        code = HOSTILE[number // 8 % len(HOSTILE)].replace("{key}", str(out / "key.json"))
        cell = {"cell_type": "code", "id": "hostile", "metadata": {}, "outputs": []}
        notebook["cells"].insert(3, {**cell, "execution_count": None, "source": code})
        text = json.dumps(notebook)
    (out / "submissions" / f"{name}.ipynb").write_text(text)


if __name__ == "__main__":
    cost_of_walls()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
