"""How right `Engine.load` is on measured services: users who wait, of public benchmarks.

    python benchmarks/arrivals_services.py WHEEL [--most N] [--worst N]

WHEEL is the wheel `aiconfigurator-core` 0.12.0, whose table silicon_sample.csv has the time
to the first token and per token of services at a stated concurrency. Nothing is fitted on it.
Rows of private files, copies, layouts that can't be read, and rows whose first token took more
than 20 s (their stated concurrency can't have run) are left out, as the closing table says. The
same measurement counts once, however often it stands in the table. How a scheduler was set
comes from the benchmark's own scripts (`inferencex.py`).
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
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from inferencex import PER_USER, Settings, guesses, lengths, program, settings

from mlsim import Engine
from mlsim.errors import MlsimError
from mlsim.software import Software, software
from mlsim.systems.schedulers import scheduler

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
# Experts of gpt-oss are in MXFP4, all else in 16 bits; the scripts let devices with units of
# 4 bits bring the experts' inputs to 8 bits, and keep the cache in 8 there and in TensorRT-LLM.
PACKED, EIGHT, WIDE = "mxfp4", "fp8", "bf16"
NO_FOUR_BITS = ("h100_sxm", "h200_sxm")
# Names of the table whose configuration has another name in the wheel.
ALIASES = {
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Meta-Llama-3.1-8B",
}
TOO_LONG = 20_000.0
# What two rows of one measurement may differ in: times to so many places, too.
_NAMES = ("id", "silicon_data_source", "backend_version", "model_path")
_PLACES = {"silicon_ttft_ms": 1, "silicon_tpot_ms": 2}
# The later of the table's sources, whose runs guess no tokens.
DUMP = "db-dump"
# One model in two releases: the benchmark ran the later one.
_SAME = {"deepseek-ai/DeepSeek-V3": "deepseek-ai/DeepSeek-R1"}


def rows(archive: zipfile.ZipFile) -> tuple[list[dict[str, str]], collections.Counter[str]]:
    """Return the rows that are used, and how many were left out by which rule."""
    left: collections.Counter[str] = collections.Counter()
    seen, kept = set(), []
    with archive.open(TABLE) as file:
        table = list(csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")))
    with_guesses = guessed(table)
    for row in table:
        key = measurement(row)
        why = _left_out(row) or ("a copy" if key in seen else "")
        why = why or ("tokens were guessed, or may have been" if key in with_guesses else "")
        seen.add(key)
        if why:
            left[why] += 1
        else:
            kept.append(row)
    return kept, left


def guessed(table: Iterable[Mapping[str, str]]) -> set[tuple[str, ...]]:
    """Return the measurements whose runs guessed tokens, or may have."""
    table = list(table)
    dumped = {measurement(row) for row in table if row["silicon_data_source"].startswith(DUMP)}
    return {measurement(row) for row in table if guesses(row)} - dumped


def measurement(row: Mapping[str, str]) -> tuple[str, ...]:
    """Return what rows of one measurement have in common."""
    values = [_SAME.get(row["model_path"], row["model_path"])]
    for name, value in row.items():
        if name in _PLACES:
            values.append(f"{float(value):.{_PLACES[name]}f}")
        elif name not in _NAMES:
            values.append(value)
    return tuple(values)


def _left_out(row: dict[str, str]) -> str:
    if row["mode"] != "agg":
        return "prefill and decode on separate devices"
    if "/Users/" in row["silicon_data_source"] or "gap_analysis" in row["silicon_data_source"]:
        return "a private file"
    tensor, copies, shares, experts = layout(row)
    shared = shares * experts if row["moe_tp_size"] else tensor * copies
    # Where attention has copies and is divided too, devices are counted twice.
    twice = tensor > 1 and copies > 1
    if twice or tensor * copies not in (1, 2, 4, 8) or shared != tensor * copies:
        return "a layout that can't be read"
    if float(row["silicon_ttft_ms"]) > TOO_LONG:
        return "more than 20 s to the first token"
    return ""


def layout(row: dict[str, str]) -> tuple[int, ...]:
    """Return devices of attention, its copies, devices of an expert, and of all experts."""
    names = ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    return tuple(int(row[name] or 1) or 1 for name in names)


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
    tensor, copies, _, experts = layout(row)
    # The table counts users of one copy.
    users = int(row["batch_size"]) * copies
    ran = settings(row, users, tensor * copies)
    rule = scheduler(SCHEDULERS[row["backend"]]).with_limits(ran.running_limit, ran.tokens_per_step)
    if copies == 1:
        rule = rule.with_patience(
            poll_steps=ran.poll_steps, wait_steps=ran.wait_steps, wait_share=ran.wait_share
        )
    loaded = Engine.load(
        model="GPT_OSS_120B" if "gpt-oss" in model else str(models[model]),
        hardware=SYSTEMS[row["system"]],
        users=users,
        requests=users * PER_USER,
        prompt_tokens=lengths(int(row["isl"])),
        output_tokens=lengths(int(row["osl"])),
        scheduler=rule,
        tensor_parallel=tensor,
        data_parallel=copies,
        expert_parallel=experts,
        estimate="calibrated",
        software=as_run(program(row), ran),
        **({} if ran.reserve is None else {"reserve": ran.reserve}),
        **formats(row),
    )
    return {
        "ttft": loaded.value("time_to_first_token") * 1e3,
        "tpot": loaded.value("time_per_output_token") * 1e3,
    }


def as_run(name: str, ran: Settings) -> Software:
    """Return a class of software with the graphs and the kernels that a script asks for."""
    found = software(name)
    if ran.expert_path:
        found = replace(found, expert_paths={PACKED: ran.expert_path})
    if ran.captured_tokens is None:
        return found
    most = float(ran.captured_tokens)
    term = replace(found.terms["captured_tokens"], value=most, low=most, high=most, most=most)
    return replace(found, terms=MappingProxyType({**found.terms, "captured_tokens": term}))


def formats(row: dict[str, str]) -> dict[str, str]:
    """Return the formats of a row's weights, activations and cache."""
    if "gpt-oss" not in row["model_path"]:
        return FORMATS[row["precision"]]
    narrow = row["system"] not in NO_FOUR_BITS
    kept = EIGHT if narrow or row["backend"] == "trtllm" else WIDE
    return {"weights": PACKED, "activations": EIGHT if narrow else WIDE, "kv_cache": kept}


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
