"""What kernels draw: weights of use, fitted to products of the atlas with a power reading.

    python benchmarks/atlas/power.py aiconfigurator_core-0.12.0-...whl OUT

OUT is `mlsim_pkg/src/mlsim/data/measurements/atlas/power.csv` for what ships. The same wheel
makes the same bytes; it takes some seconds. Readings are there of one engine on B200, for
experts, which are matrix products, and for attention. Weights are fitted to the products of
more than 20 us; attention, to which nothing is fitted, tests them. A shape belongs to the
fifth that its hash names; errors are those of each fifth by weights fitted to the others.
"""

from __future__ import annotations

import csv
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas
from wheel import Tables

from mlsim import Hardware
from mlsim.equations import energy
from mlsim.precision import precision

FOLDER, KEY, DEVICE = "b200_sxm", "Cloud.B200", Hardware.Cloud.B200
LEAST, FOLDS, SLACK = 20e-6, 5, 1.02
FORMATS = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8"}
# A gated expert has three matrices; what goes between them is in 16 bits.
MATRICES, WIDE = 3, 2
SOURCE = "nvidia2026aiconfigurator"
WEIGHTS = ("running", "compute", "memory")
COLUMNS = ("id", "device", "kind", *WEIGHTS, "rows", "median", "low", "high", "source")


def products(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return the use of arithmetic and memory, and the power, of experts."""
    plain = (table.distribution == "balanced") & table.moe_dtype.isin(list(FORMATS))
    t = table[plain]
    formats = t.moe_dtype.map(FORMATS)
    rows = t.num_tokens * t.topk / t.moe_ep_size
    width = t.inter_size / t.moe_tp_size
    held = np.minimum(t.num_experts / t.moe_ep_size, rows)
    flops = 2 * MATRICES * t.hidden_size * width * rows
    moved = MATRICES * t.hidden_size * width * held * formats.map(lambda f: precision(f).bytes)
    moved += WIDE * (2 * t.num_tokens * t.hidden_size + rows * (2 * t.hidden_size + 4 * width))
    peaks = formats.map(lambda f: DEVICE.compute.figure(f).si)
    return uses("products in " + t.moe_dtype, t, flops, moved, peaks)


def attention(table: pandas.DataFrame, *, prompt: bool) -> pandas.DataFrame:
    """Return the same of attention over prompts, or of one token over a cache."""
    t = table[table.window_size == 0]
    element = t.kv_cache_dtype.map({"bfloat16": 2, "fp8": 1})
    seen = t.isl.astype(float) if prompt else t.step + 1.0
    pairs = seen * seen / 2 if prompt else seen
    flops = 2 * 2 * t.batch_size * t.num_heads * t.head_dim * pairs
    cache = 2 * t.batch_size * seen * t.num_key_value_heads * t.head_dim * element
    own = WIDE * 2 * t.batch_size * t.isl * t.num_heads * t.head_dim
    kind = "attention, prefill" if prompt else "attention, decode"
    names = pandas.Series(kind, index=t.index)
    return uses(names, t, flops, cache + own, DEVICE.compute.figure("bf16").si)


def uses(kind, table, flops, moved, peak) -> pandas.DataFrame:  # type: ignore[no-untyped-def]
    """Return what is used of the device in each row; what is above its rates is left out."""
    seconds = table.latency / 1e3
    found = pandas.DataFrame(
        {
            "kind": kind,
            "compute": flops / seconds / peak,
            "memory": moved / seconds / DEVICE.bandwidth_si,
            "power": table.power,
            "limit": table.power_limit,
            "seconds": seconds,
        }
    )
    shapes = table.drop(columns=["latency", "power"]).astype(str).agg("/".join, axis=1)
    found["fold"] = [zlib.crc32(each.encode()) % FOLDS for each in shapes]
    right = (found.compute < SLACK) & (found.memory < SLACK) & (found.seconds > LEAST)
    return found[right]


def load(rows: pandas.DataFrame) -> np.ndarray:
    """Return the load that the power says: the curve of power, solved for it."""
    idle = DEVICE.figures["power.idle"].si
    share = np.clip((rows.power - idle) / (rows.limit - idle), 0, 1)
    return 1 - np.sqrt(1 - share.to_numpy())


def fit(rows: pandas.DataFrame) -> np.ndarray:
    """Return the weights of running at all, of compute and of memory."""
    columns = np.c_[np.ones(len(rows)), rows.compute, rows.memory]
    return np.linalg.lstsq(columns, load(rows), rcond=None)[0]


def ratios(rows: pandas.DataFrame, weights: np.ndarray) -> np.ndarray:
    """Return measured over predicted power."""
    running, compute, memory = weights
    idle = DEVICE.figures["power.idle"].si
    reached = energy.power_load(
        running, compute, rows.compute.to_numpy(), memory, rows.memory.to_numpy()
    )
    return rows.power.to_numpy() / energy.device_power(
        idle, rows.limit.to_numpy(), energy.power_share(reached)
    )


def line(kind: str, weights: np.ndarray | None, found: np.ndarray) -> list[str]:
    """Return a line of the table: weights if they are fitted, and what they are off by."""
    shown = ["", "", ""] if weights is None else [f"{each:.4g}" for each in weights]
    error = np.median(abs(1 / found - 1))
    low, high = np.quantile(found, [0.1, 0.9])
    rates = [f"{each:.3f}" for each in (error, low, high)]
    return [f"{KEY}, {kind}", KEY, kind, *shown, str(len(found)), *rates, SOURCE]


def main(where: Path, out: Path) -> None:
    """Fit, and write what ships."""
    tables = Tables(where)

    def read(topic: str, name: str) -> pandas.DataFrame:
        for table in tables.of(FOLDER, topic, name):
            rows = tables.read(table)
            if "power" in rows:
                return rows
        raise SystemExit(f"no table of {name} has a power.")

    made = products(read("moe", "moe_perf"))
    weights = fit(made)
    parts = [(made[made.fold == f], fit(made[made.fold != f])) for f in range(FOLDS)]
    left_out = np.concatenate([ratios(rows, others) for rows, others in parts])
    lines = [line("products", weights, left_out)]
    kinds = np.concatenate([rows.kind for rows, _ in parts])
    lines += [line(kind, None, left_out[kinds == kind]) for kind in sorted(set(kinds))]
    for phase, prompt in (("context", True), ("generation", False)):
        rows = attention(read("attention", f"{phase}_attention_perf"), prompt=prompt)
        lines.append(line(rows.kind.iloc[0], None, ratios(rows, weights)))
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *lines])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
