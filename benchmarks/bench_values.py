"""What a value costs beside Pint's own quantity: an attribute of an answer, and arithmetic.

    python benchmarks/bench_values.py --json values.json

In one run, by turns: a value keeps its name and origin, Pint's quantity has neither. Each time
is the median of `--repeats`, in microseconds. Whatever asks for no origin makes none: a card
takes milliseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import timeit
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import pint

from mlsim import Engine
from mlsim.units import definitions

# Goals in microseconds (issue 32): what was measured before values had an origin.
ATTRIBUTE, ARITHMETIC = 17.0, 19.0


def timed(work: Callable[[], Any], calls: int) -> float:
    """Return microseconds for each of so many calls."""
    # By the processor's time, which others on a busy machine don't lengthen.
    return timeit.timeit(work, timer=process_time, number=calls) / calls * 1e6


def works() -> dict[str, tuple[Callable[[], Any], Callable[[], Any], float | None]]:
    """Return what is timed: with values, with Pint's quantities, and the goal if there is one."""
    units: Any = pint.UnitRegistry(None)
    units.load_definitions(definitions())
    profile = Engine.solve(model="ResNet50", hardware="A100")
    serving = Engine.serve(model="Llama3_8B", hardware="H100")
    time, size, rate = profile.latency, profile.total_bytes, profile.throughput
    second, byte, sample = units.second, units.byte, units.sample
    per = sample / second
    time_, size_, rate_ = 55e-6 * second, 1e8 * byte, 18e3 * per
    total = [serving.weight_memory, serving.cache_memory, serving.activation_memory]
    total_ = [each.si * byte for each in total]
    return {
        "attribute, a time": (lambda: profile.latency, lambda: 55e-6 * second, ATTRIBUTE),
        "attribute, a count": (
            lambda: serving.largest_batch,
            lambda: 211 * sample,
            ATTRIBUTE,
        ),
        "2 * time": (lambda: 2 * time, lambda: 2 * time_, ARITHMETIC),
        "time + time": (lambda: time + time, lambda: time_ + time_, ARITHMETIC),
        "bytes / time": (lambda: size / time, lambda: size_ / time_, ARITHMETIC),
        "time / time": (lambda: time / time, lambda: time_ / time_, ARITHMETIC),
        "2 * rate": (lambda: 2 * rate, lambda: 2 * rate_, ARITHMETIC),
        "rate / rate": (lambda: rate / rate, lambda: rate_ / rate_, ARITHMETIC),
        "sum of three": (lambda: sum(total), lambda: sum(total_), 2 * ARITHMETIC),
        "as text": (lambda: f"{time}", lambda: f"{time_:.3g~P}", None),
    }


def main() -> None:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = {}
    print(f"{'':20}{'value':>10}{'Pint':>10}{'goal':>10}  (microseconds)")
    for name, (ours, theirs, goal) in works().items():
        turns = [
            (timed(ours, options.calls), timed(theirs, options.calls))
            for _ in range(options.repeats)
        ]
        value, beside = (statistics.median(each) for each in zip(*turns, strict=True))
        rows[name] = {"value_us": value, "pint_us": beside, "goal_us": goal}
        met = "" if goal is None else f"{goal:10.0f}  {'met' if value <= goal else 'MISSED'}"
        print(f"{name:20}{value:10.2f}{beside:10.2f}{met}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
