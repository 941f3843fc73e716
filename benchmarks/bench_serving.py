"""How fast `Engine.serve` is: one service with both latencies, and 100,000 at once.

Beside it, in the same run and on the same machine: ServingModel of mlsysim
0.3.0, in the interpreter that `--rival` names, and analyze() of LLM-Viewer, in
a copy of its repository that `--llm-viewer` names.

    python benchmarks/bench_serving.py --rival /path/to/python --llm-viewer /path/to/LLM-Viewer

Each tool is asked for Llama 3 8B on an H100 in 16 bits, 2,048 tokens of prompt,
and another batch from 1 to 64 each time, in a process of its own. The processes
take turns, so that a busy machine slows all of them; each time is the median of
`--repeats` turns. All data are loaded before.
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
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
from tables import lay_out

from mlsim import Engine

PROMPT, BATCHES = 2048, 64
SEVERAL = 100_000
WITHIN = 1.0  # seconds for that many
LONGEST = 7000  # tokens of a prompt

# A worker makes its tool ready, and then answers each line with seconds per call.
WORKER = """
import sys, time
{setup}
def turn():
    start = time.perf_counter()
    for number in range({count}):
        ask(number % {batches} + 1)
    return (time.perf_counter() - start) / {count}
turn()
print("ready", flush=True)
for line in sys.stdin:
    print(turn(), flush=True)
"""

# Both latencies are reckoned; `read` makes them quantities with units too.
OURS = """
from itertools import count
from mlsim import Engine, Hardware, Models
model, device, asked = Models.Llama3_8B, Hardware.Cloud.H100, count()
def ask(batch):
    serving = Engine.serve(model=model, hardware=device, batch_size=batch, prompt_tokens={prompt},
                           check_memory={check})
    {read}
"""
VALUES = 'serving.value("time_to_first_token"), serving.value("time_per_output_token")'
FOUR = f'{VALUES}, serving.value("decode_throughput"), serving.value("memory_required")'
QUANTITIES = "serving.time_to_first_token, serving.time_per_output_token"
# What is compared: ours, with whom, and how many times as fast it should be.
COMPARED = {
    "one service, both latencies with units": ("mlsim, quantities", "mlsysim", 1.0),
    "one service, both latencies": ("mlsim", "LLM-Viewer", 1.5),
    "the same, another prompt each time": ("mlsim, new", "LLM-Viewer", 1.5),
    "and throughput and memory, checked": ("mlsim, four", "LLM-Viewer", 1.0),
}

# mlsysim's quantities are made when it solves.
RIVAL = """
import mlsysim
from mlsysim.engine.solvers.serving import ServingModel
model, device = mlsysim.Models.Language.Llama3_8B, mlsysim.Hardware.Cloud.H100
solver = ServingModel()
def ask(batch):
    found = solver.solve(model, device, seq_len={prompt}, batch_size=batch, precision="fp16")
    return found.ttft, found.itl
"""

# LLM-Viewer wants transformers to fetch a configuration. Its fields are given
# instead, so that neither is needed: they are not part of analyze().
VIEWER = """
import importlib, os, types
sys.path.insert(0, os.getcwd())
stub = types.ModuleType("transformers")
stub.AutoTokenizer = stub.AutoConfig = stub.AutoModelForCausalLM = None
sys.modules["transformers"] = stub
from model_analyzer import ModelAnalyzer
analyzer = ModelAnalyzer.__new__(ModelAnalyzer)
analyzer.model_id, analyzer.hardware = "Llama-3-8B", "nvidia_H100"
analyzer.config = importlib.import_module("configs.Llama")
analyzer.model_params = types.SimpleNamespace(
    num_attention_heads=32, num_key_value_heads=8, hidden_size=4096, intermediate_size=14336,
    num_hidden_layers=32, vocab_size=128256)
def ask(batch):
    total = analyzer.analyze({prompt}, batch)["total_results"]
    return total["prefill"]["inference_time"], total["decode"]["inference_time"]
"""


class Worker:
    """A process that asks one tool again and again, when it is its turn."""

    def __init__(self, python: str, setup: str, *, count: int, folder: Path) -> None:
        program = WORKER.format(setup=setup, count=count, batches=BATCHES)
        self.process = subprocess.Popen(
            [python, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        if self._read() != "ready":
            raise SystemExit(f"{python} failed; its message stands above")

    def _read(self) -> str:
        out = self.process.stdout
        return out.readline().strip() if out else ""

    def turn(self) -> float:
        """Return the seconds of one call, in the mean of a turn."""
        into = self.process.stdin
        if into:
            into.write("\n")
            into.flush()
        return float(self._read())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.process.communicate("")


def one(rival: str | None, viewer: Path | None, repeats: int) -> dict[str, float]:
    """Take the median time of one service for each tool, in turns."""
    home = Path.home()
    new = f"next(asked) % {LONGEST} + 1"
    ours = {
        "mlsim": OURS.format(prompt=PROMPT, read=VALUES, check=False),
        "mlsim, quantities": OURS.format(prompt=PROMPT, read=QUANTITIES, check=False),
        "mlsim, new": OURS.format(prompt=new, read=VALUES, check=False),
        "mlsim, four": OURS.format(prompt=new, read=FOUR, check=True),
    }
    ways = {name: (sys.executable, setup, 500, home) for name, setup in ours.items()}
    if rival:
        ways["mlsysim"] = (rival, RIVAL.format(prompt=PROMPT), 50, home)
    if viewer:
        ways["LLM-Viewer"] = (sys.executable, VIEWER.format(prompt=PROMPT), 500, viewer)
    times: dict[str, list[float]] = {name: [] for name in ways}
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(Worker(python, setup, count=count, folder=folder))
            for name, (python, setup, count, folder) in ways.items()
        }
        for _ in range(repeats):
            for name, worker in workers.items():
                times[name].append(worker.turn())
    return {name: statistics.median(taken) for name, taken in times.items()}


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def several(repeats: int) -> float:
    """Take the median time of many services at once, with both latencies."""
    batch = np.arange(1, SEVERAL // 100 + 1)[:, None]
    prompt = np.arange(1, 101) * 64

    def ask() -> None:
        serving = Engine.serve(
            model="Llama3_8B", hardware="H100", batch_size=batch, prompt_tokens=prompt
        )
        found = serving.time_to_first_token, serving.time_per_output_token
        if found[0].size != SEVERAL:
            raise SystemExit(f"{found[0].size} services were answered, not {SEVERAL}")

    return statistics.median(timed(ask) for _ in range(repeats + 1))


def judge(found: dict[str, float], many: float) -> list[dict[str, Any]]:
    """Compare with the targets; a tool that was not run gives no row."""
    rows = []
    for what, (ours, name, target) in COMPARED.items():
        if name in found:
            ratio = found[name] / found[ours]
            rows.append(
                {
                    "what": what,
                    "mlsim": f"{found[ours] * 1e6:.1f} us",
                    "beside it": f"{name} {found[name] * 1e6:,.1f} us",
                    "ratio": f"{ratio:.2f}x",
                    "target": f">= {target:g}x" if target else "",
                    "reached": ratio >= target,
                }
            )
    rows.append(
        {
            "what": f"{SEVERAL:,} services at once",
            "mlsim": f"{many:.3f} s",
            "beside it": "",
            "ratio": f"{SEVERAL / many / 1e3:,.0f} k/s",
            "target": f"<= {WITHIN:g} s",
            "reached": many <= WITHIN,
        }
    )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rival", metavar="PYTHON", help="interpreter that has mlsysim 0.3.0")
    parser.add_argument(
        "--llm-viewer", metavar="PATH", type=Path, help="a copy of LLM-Viewer's repository"
    )
    parser.add_argument("--repeats", type=int, default=9, help="turns per median, 7 or more (9)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers to a file")
    options = parser.parse_args()
    if options.repeats < 7:
        parser.error("--repeats must be 7 or more: the median of fewer turns says little")
    machine = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    found = one(options.rival, options.llm_viewer, options.repeats)
    many = several(options.repeats)
    rows = judge(found, many)
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(f"medians of {options.repeats} turns\n")
    shown = [
        [
            *list(map(str, row.values()))[:-1],
            ("yes" if row["reached"] else "NO") if row["target"] else "",
        ]
        for row in rows
    ]
    print(lay_out(list(rows[0]), shown))
    for name, option in (("mlsysim", "--rival"), ("LLM-Viewer", "--llm-viewer")):
        if name not in found:
            print(f"\nnot compared with {name}: pass {option}")
    if options.json:
        data = {"machine": machine, "measured": {**found, "several": many}, "judged": rows}
        options.json.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
