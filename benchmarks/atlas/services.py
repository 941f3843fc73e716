"""Write measured services with a fixed number of users, for the chapter on capacity.

    python benchmarks/atlas/services.py WHEEL > services.csv

`silicon_sample.csv` of the wheel `aiconfigurator-core` 0.12.0 has the mean time to the first
token and per token at a stated concurrency. Kept are the rows of Llama 3.1 70B in FP8 on vLLM
and H100 or H200, whose times are rounded to four digits. Rows of private files and of
separate prefill and decode are left out.
"""

from __future__ import annotations

import csv
import io
import sys
import zipfile
from collections.abc import Iterator

TABLE = "aiconfigurator_core/systems/silicon_sample.csv"
DEVICES = {"h100_sxm": "Cloud.H100", "h200_sxm": "Cloud.H200"}
SOURCE = "nvidia2026aiconfigurator"
HEAD = (
    *(
        "id",
        "model",
        "device",
        "scheduler",
        "precision",
        "tensor_parallel",
        "users",
        "prompt_tokens",
    ),
    *("output_tokens", "first_token_ms", "per_token_ms", "measured", "source"),
)
MODELS = {"meta-llama/Llama-3.1-70B": "Llama3_70B"}


def lines(wheel: str) -> Iterator[tuple[str, ...]]:
    """Yield the lines of `services.csv`."""
    with zipfile.ZipFile(wheel) as archive, archive.open(TABLE) as file:
        for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")):
            told = row["silicon_data_source"]
            if row["mode"] != "agg" or "/Users/" in told or "gap_analysis" in told:
                continue
            wanted = row["model_path"] in MODELS and row["system"] in DEVICES
            if not wanted or (row["backend"], row["precision"]) != ("vllm", "fp8"):
                continue
            times = (f"{float(row[f'silicon_{name}_ms']):.4g}" for name in ("ttft", "tpot"))
            when = told.partition("measured=")[2][:10]
            sizes = (row[name] for name in ("tp_size", "batch_size", "isl", "osl"))
            model, device = MODELS[row["model_path"]], DEVICES[row["system"]]
            yield model, device, row["backend"], row["precision"], *sizes, *times, when


def main() -> None:
    """Write the table."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEAD)
    ordered = sorted(lines(sys.argv[1]), key=_order)
    writer.writerows((f"LOAD-{n:03}", *line, SOURCE) for n, line in enumerate(ordered, 1))


def _order(line: tuple[str, ...]) -> tuple[object, ...]:
    return line[0], line[1], *map(int, line[6:8]), int(line[4]), int(line[5])


if __name__ == "__main__":
    main()
