"""How fast a sweep is: a loop over the door, a table, a folder, and a cluster of two workers.

    python benchmarks/bench_sweep_out.py --rows 100_000_000 --out /tmp/plans

Services of a language model: batches and prompts on two devices. The folder is written by one
worker and by two, each a process of a local Dask cluster with one thread; then the sweep of two
is stopped half way and asked again. What is compared is said in README.md beside this file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tables import lay_out

from mlsim import Engine

# A table in memory, and a loop, of so many rows; what one worker does to know its rate.
IN_MEMORY, LOOPED = 1_000_000, 200
ASKED = {"model": "Llama3_8B", "hardware": ["H100", "A100"], "output_tokens": 128}
NETWORK = {"model": "ResNet50", "hardware": ["H100", "A100"]}
SHARE = 0.8


class Rates(NamedTuple):
    """Rows that were computed, seconds, and seconds of the workers' processors."""

    rows: int
    seconds: float
    own: float

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds

    @property
    def own_rate(self) -> float:
        """Rows a second of the workers' processors."""
        return self.rows / self.own

    def text(self) -> tuple[str, str]:
        """Return the rate, and what it is made of."""
        done = f"{self.rows:,} in {self.seconds:,.0f} s"
        return f"{self.rate:,.0f} rows/s", f"{done}, {self.own_rate:,.0f} a processor's second"


class StopError(Exception):
    """Half of the rows are there."""


def question(rows: int, door: str = "serve") -> dict[str, Any]:
    """Return a sweep of so many rows: two devices, batches, and prompts or bandwidths."""
    each = max(1, rows // 2)
    if door == "solve":
        batches = min(each, 2_000)
        rates = [f"{1000 + i / 8:g} GB/s" for i in range(each // batches)]
        batch = np.arange(1, batches + 1)
        return {**NETWORK, "batch_size": batch, "memory_bandwidth": rates, "results": "latency"}
    batches = 250
    lengths = min(each // batches, 100_000)
    asked = {**ASKED, "batch_size": np.arange(1, 251), "prompt_tokens": np.arange(1, lengths + 1)}
    rest = each // (batches * lengths)
    # Where there are more rows than lengths, a quantity takes the rest.
    if rest > 1:
        asked["memory_bandwidth"] = [f"{2000 + i} GB/s" for i in range(rest)]
    return asked


def looped() -> float:
    """Return rows a second of a loop over the door that reads what the table has."""
    names = ("time_to_first_token", "time_per_output_token", "generation_latency")
    names += ("decode_throughput", "memory_required", "memory_free", "largest_batch")
    began = time.perf_counter()
    for number in range(LOOPED):
        one = {**ASKED, "hardware": ASKED["hardware"][number % 2]}
        answer = Engine.serve(**one, batch_size=1 + number % 250, prompt_tokens=100 + number)
        for name in names:
            answer.value(name)
    return LOOPED / (time.perf_counter() - began)


def in_memory() -> float:
    asked = question(IN_MEMORY)
    began = time.perf_counter()
    return len(Engine.sweep(**asked)) / (time.perf_counter() - began)


def into(
    path: Path, rows: int, workers: int, *, door: str, stop: float = 1.0
) -> tuple[int, float, float]:
    """Write a sweep; return rows that were computed, seconds, and the workers' own seconds."""
    from distributed import Client, LocalCluster

    def watch(progress: Any) -> None:
        state.append(progress)
        print(f"\r{workers} worker(s): {progress.text():<70}", end="", flush=True)
        if progress.rows >= stop * progress.of and stop < 1:
            raise StopError

    state: list[Any] = []
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        # What each worker imports once is not its rate.
        warm = path.with_name(f"{path.name}-warm")
        Engine.sweep(**question(200_000, door), out=warm, scheduler=client, block_rows=25_000)
        shutil.rmtree(warm)
        began, worked = time.perf_counter(), sum(client.run(time.process_time).values())
        with contextlib.suppress(StopError):
            Engine.sweep(**question(rows, door), out=path, scheduler=client, progress=watch)
        seconds = time.perf_counter() - began
        own = sum(client.run(time.process_time).values()) - worked
    print()
    return state[-1].computed, seconds, own


def size_of(path: Path) -> float:
    return sum(each.stat().st_size for each in path.iterdir()) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--one", type=int, default=0, help="rows for one worker alone")
    parser.add_argument("--door", choices=("serve", "solve"), default="serve")
    parser.add_argument("--out", type=Path, default=Path("plans"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load, door = os.getloadavg()[0], options.door
    loop, memory = looped(), in_memory()
    paths = [options.out.with_name(f"{options.out.name}-{n}") for n in (1, 2)]
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
    one = Rates(*into(paths[0], options.one or options.rows, 1, door=door))
    shutil.rmtree(paths[0])
    half = Rates(*into(paths[1], options.rows, 2, door=door, stop=0.5))
    on = Rates(*into(paths[1], options.rows, 2, door=door))
    two = Rates(*(sum(pair) for pair in zip(half, on, strict=True)))
    share, own = two.rate / (2 * one.rate), two.own_rate / one.own_rate
    rows = [
        ("a loop over Engine.serve", f"{loop:,.0f} rows/s", ""),
        ("a table of a million services", f"{memory:,.0f} rows/s", f"{memory / loop:,.0f}x"),
        (f"a folder of {door}, one worker", *one.text()),
        ("two workers, stopped half way", *half.text()),
        ("two workers, gone on", *on.text()),
        ("two workers, in all", *two.text()),
        ("two workers over twice one", f"{share:.0%}", f">= {SHARE:.0%}"),
        ("the same, of the workers' own time", f"{own:.0%}", "whatever else the machine does"),
        ("on disk", f"{size_of(paths[1]):.2f} GB", ""),
        ("load average, before and after", f"{load:.1f}, {os.getloadavg()[0]:.1f}", ""),
    ]
    shutil.rmtree(paths[1])
    print(lay_out(("what", "mlsim", "beside it"), rows))
    if options.json:
        found = {"loop": loop, "table": memory, "one": one, "two": two, "share": share, "own": own}
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
