"""How right `Engine.load` is on measured services: users who wait, of public benchmarks.

    python benchmarks/arrivals_services.py WHEEL [--most N] [--worst N]

WHEEL is the wheel `aiconfigurator-core` 0.12.0, whose table silicon_sample.csv has the time
to the first token and per token of services at a stated concurrency. Nothing is fitted on it.
Rows of private files, copies, layouts that can't be read, and rows whose first token took more
than 20 s (their stated concurrency can't have run) are left out, as the closing table says.
"""

from __future__ import annotations

import argparse
import collections
import csv
import io
import json
import random
import statistics
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from mlsim import Engine
from mlsim.errors import MlsimError

TABLE = "aiconfigurator_core/systems/silicon_sample.csv"
CONFIGS = "aiconfigurator_core/model_configs/"
SYSTEMS = {
    "h100_sxm": "hgx_h100",
    "h200_sxm": "hgx_h200",
    "b200_sxm": "hgx_b200",
    "b300_sxm": "hgx_b300",
    "gb200": "gb200_nvl72",
    "gb300": "gb300_nvl72",
}
SCHEDULERS = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt_llm"}
FORMATS = {
    "fp8": {"precision": "fp8"},
    "fp4": {"weights": "nvfp4", "activations": "fp4", "kv_cache": "fp8"},
    "bf16": {"precision": "bf16"},
    "int4": {"precision": "w4a16"},
    "": {"precision": "fp8"},
}
# Where a device has no units of 4 bits, such weights are MXFP4's, and computed in 16 bits.
NO_FOUR_BITS = ("h100_sxm", "h200_sxm")
PACKED = {"weights": "mxfp4", "activations": "bf16", "kv_cache": "bf16"}
# Names of the table whose configuration has another name in the wheel.
ALIASES = {
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Meta-Llama-3.1-8B",
}
TOO_LONG = 20_000.0


def rows(archive: zipfile.ZipFile) -> tuple[list[dict[str, str]], collections.Counter[str]]:
    """Return the rows that are used, and how many were left out by which rule."""
    left: collections.Counter[str] = collections.Counter()
    seen, kept = set(), []
    with archive.open(TABLE) as file:
        for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")):
            key = tuple(value for name, value in row.items() if name != "id")
            why = _left_out(row) or ("a copy" if key in seen else "")
            seen.add(key)
            if why:
                left[why] += 1
            else:
                kept.append(row)
    return kept, left


def _left_out(row: dict[str, str]) -> str:
    if row["mode"] != "agg":
        return "prefill and decode on separate devices"
    if "/Users/" in row["silicon_data_source"] or "gap_analysis" in row["silicon_data_source"]:
        return "a private file"
    if row["tp_size"] not in ("1", "2", "4", "8"):
        return "a layout that can't be read"
    if float(row["silicon_ttft_ms"]) > TOO_LONG:
        return "more than 20 s to the first token"
    return ""


def configs(archive: zipfile.ZipFile, folder: Path) -> dict[str, Path]:
    """Unpack the configurations of models, and return them by name."""
    found = {}
    for name in archive.namelist():
        if name.startswith(CONFIGS) and name.endswith("_config.json") and "hf_quant" not in name:
            model = name.removeprefix(CONFIGS).removesuffix("_config.json").replace("--", "/")
            path = folder / model.replace("/", "--") / "config.json"
            path.parent.mkdir(parents=True)
            text = json.loads(archive.read(name))
            # The table says which format ran.
            text.pop("quantization_config", None)
            path.write_text(json.dumps(text))
            found[model] = path
    return found


def predicted(row: dict[str, str], models: dict[str, Path]) -> dict[str, float]:
    """Predict both times of a row, in ms."""
    model = ALIASES.get(row["model_path"], row["model_path"])
    attention = int(row["attention_dp_size"] or 1) or 1
    devices = int(row["tp_size"])
    copies = attention if attention > 1 and devices % attention == 0 else 1
    expert = int(row["moe_ep_size"] or 1) or 1
    packed = row["precision"] == "fp4" and row["system"] in NO_FOUR_BITS
    formats = PACKED if packed else FORMATS[row["precision"]]
    loaded = Engine.load(
        model=str(models[model]),
        hardware=SYSTEMS[row["system"]],
        users=int(row["batch_size"]),
        prompt_tokens=int(row["isl"]),
        output_tokens=int(row["osl"]),
        scheduler=SCHEDULERS[row["backend"]],
        running_limit=max(256, int(row["batch_size"])),
        tensor_parallel=devices // copies,
        data_parallel=copies,
        expert_parallel=expert if devices % expert == 0 else 1,
        estimate="calibrated",
        **formats,
    )
    return {
        "ttft": loaded.value("time_to_first_token") * 1e3,
        "tpot": loaded.value("time_per_output_token") * 1e3,
    }


def table(errors: dict[Any, list[float]], name: str) -> None:
    """Print the median error by group."""
    print(f"\n{name:44} rows  median  within 25 %  bias")
    for group, values in sorted(errors.items(), key=lambda each: str(each[0])):
        sizes = [abs(each) for each in values]
        within = sum(each <= 0.25 for each in sizes) / len(sizes)
        print(
            f"{group!s:44} {len(values):4}  {statistics.median(sizes):6.1%}  {within:6.1%}"
            f"      {statistics.median(values):+.1%}"
        )


def main() -> None:
    """Score the rows of the wheel."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--most", type=int, help="so many rows, drawn with a seed")
    parser.add_argument("--worst", type=int, default=0)
    options = parser.parse_args()
    with zipfile.ZipFile(options.wheel) as archive, tempfile.TemporaryDirectory() as folder:
        used, left = rows(archive)
        models = configs(archive, Path(folder))
        if options.most:
            used = random.Random(0).sample(used, options.most)
        found, refused = [], collections.Counter()
        for row in used:
            try:
                values = predicted(row, models)
            except (MlsimError, KeyError) as error:
                refused[f"{type(error).__name__}: {error}"[:90]] += 1
                continue
            for metric, value in values.items():
                measured = float(row[f"silicon_{metric}_ms"])
                found.append((metric, value / measured - 1, row, value))
    for what, counts in (("left out", left), ("refused", refused)):
        for why, count in counts.most_common(12):
            print(f"{what}: {count:5}  {why}")
    for metric in ("ttft", "tpot"):
        own = [each for each in found if each[0] == metric]
        for key in ((), ("backend",), ("model_path",), ("system",), ("isl", "osl")):
            groups: dict[Any, list[float]] = collections.defaultdict(list)
            for _, error, row, _ in own:
                groups[" ".join(row[name] for name in key) or "all"].append(error)
            table(groups, f"{metric} by {', '.join(key) or 'nothing'}")
    for metric, error, row, value in sorted(found, key=lambda each: -abs(each[1]))[: options.worst]:
        print(f"{metric} {error:+8.0%} {value:10.1f} ms  {row['id']}")


if __name__ == "__main__":
    main()
