"""Requests with the lengths of published traces, and the time of a step, found apart."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mlsim import Engine
from mlsim.workloads.requests import Requests
from mlsim.workloads.traces import read_trace

QUANTILES = Path(__file__).parents[1] / "fixtures" / "trace_quantiles.csv"
TRACES = ("splitwise_code", "splitwise_conv", "arxiv_summarization")


def requests_like(trace: str, count: int = 400, rate: float = 4.0) -> Requests:
    """Requests with the lengths of a published trace: drawn from 21 quantiles of each.

    The quantiles are those of the files of microsoft/vidur (data/processed_traces at commit
    7d47513, MIT; code and conv are Azure's traces of 2023). Where the variable
    MLSIM_TRACES names a folder with the files, the first requests are taken from them.
    """
    folder = os.environ.get("MLSIM_TRACES")
    if folder:
        path = next(Path(folder).glob(f"{trace}*.csv"))
        found = read_trace(path, most=count)
        prompts, outputs = found.prompt_tokens, found.output_tokens
    else:
        with QUANTILES.open(encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["trace"] == trace]
        random = np.random.default_rng(3)
        shares = [float(row["share"]) for row in rows]
        prompts, outputs = (
            np.rint(
                np.interp(random.random(count), shares, [float(row[name]) for row in rows])
            ).astype(int)
            for name in ("prompt_tokens", "output_tokens")
        )
    arrived = np.cumsum(np.random.default_rng(4).exponential(1 / rate, count))
    return Requests(arrived, prompts, outputs, words=trace)


def write(path: Path, asked: Requests) -> Path:
    """Write requests as a trace."""
    columns = (asked.arrived, asked.prompt_tokens, asked.output_tokens)
    rows = ["arrived,prompt_tokens,output_tokens"]
    rows += [f"{a:.9f},{p},{o}" for a, p, o in zip(*columns, strict=True)]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def own_step(model: str, software: str = "engine") -> Callable[..., float]:
    """Return the time of a step, asked of `Engine.serve` at a few points and fitted here."""
    asked = {
        "model": model,
        "hardware": "H100",
        "software": software,
        "estimate": "calibrated",
        "check_memory": False,
    }
    contexts = (200, 6000)
    batches = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256]

    def decode(batch: int, context: int) -> float:
        found = Engine.serve(batch_size=batch, prompt_tokens=16, **asked).decode_at(context)
        return float(found.value("latency"))

    ends = {b: [decode(b, c) for c in contexts] for b in batches}
    lengths = [1, 64, 128, 256, 512, 1024, 2048, 3072, 4096, 6144, 8192]
    prefill = [
        float(Engine.serve(batch_size=1, prompt_tokens=n, **asked).prefill.value("latency"))
        for n in lengths
    ]

    def step(tokens: int, cached: list[int], chunks: list[tuple[int, int]]) -> float:
        # All tokens go through the matrices together; those that decode also read their cache.
        base = float(np.interp(tokens, lengths, prefill))
        if not cached:
            return base
        low, high = (
            float(np.interp(len(cached), batches, [ends[b][i] for b in batches])) for i in (0, 1)
        )
        slope = (high - low) / (contexts[1] - contexts[0])
        reading = slope * (sum(cached) / len(cached))
        if not chunks:
            return low - slope * contexts[0] + reading
        return base + reading

    return step
