"""How far `Engine.serve` is from the services of aiconfigurator's wheel; nothing is fitted to it.

    python benchmarks/silicon_services.py --wheel aiconfigurator_core-0.12.0-....whl

Reads `systems/silicon_sample.csv` out of the wheel: aggregated serving, a closed loop of so
many requests at a time. Time per token is predicted as a decode step of all requests, and
the prompts of the others that are mixed in: d(C) + (C - 1) p(1) / output tokens. Copies of a
row count once; layouts of twelve devices and more, and those with copies of a divided
attention, are left out, since their columns don't say what is shared.
"""

from __future__ import annotations

import argparse
import csv
import io
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median

from mlsim import Engine
from mlsim.engine.predict.case import system_of
from mlsim.equations.software import mixed_token_time
from mlsim.errors import MlsimError
from mlsim.zoo import resolve, spaces

MEMBER = "aiconfigurator_core/systems/silicon_sample.csv"
DEVICES = {
    "b200_sxm": "Cloud.B200",
    "h200_sxm": "Cloud.H200",
    "h100_sxm": "Cloud.H100",
    "gb200": "Cloud.GB200",
    "b300_sxm": "Cloud.B300",
    "gb300": "Cloud.GB300",
}
SOFTWARE = {"trtllm": "torch_engine", "vllm": "vllm", "sglang": "torch_engine"}
# With units of 4 bits, inputs of experts in MXFP4 are brought to 8 bits.
FOUR_BITS = ("b200_sxm", "b300_sxm", "gb200", "gb300")
FORMATS = {
    "fp8": ("fp8", "fp8"),
    "fp8_block": ("fp8", "fp8"),
    "nvfp4": ("fp4", "fp4"),
    "int4_wo": ("int4", "bf16"),
    "bf16": ("bf16", "bf16"),
    "fp4": ("fp4", "fp4"),
    "int4": ("int4", "bf16"),
    "": ("bf16", "bf16"),
}
# Models whose layers are those of another one of the zoo.
SAME = {
    "Llama-3.1-70B": "Llama3_70B",
    "Llama-3.1-8B-Instruct": "Llama3_8B",
    "DeepSeek-R1": "DeepSeekV3",
    "MiniMax-M2.5": "MiniMax_M2",
    "Kimi-K2.5": "Kimi_K2",
}
MOST_DEVICES = 11


def main() -> None:
    """Predict each row, and print the errors by backend, device and model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args()
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    refused: Counter[str] = Counter()
    found = []
    total = 0
    for row in rows(asked.wheel):
        total += 1
        try:
            predicted = token_time(row)
        except (MlsimError, ValueError, KeyError) as error:
            refused[f"{row['model_path']}: {str(error)[:90]}"] += 1
            continue
        ratio = predicted / (float(row["silicon_tpot_ms"]) * 1e-3)
        found.append((row["id"], f"{predicted:.6g}", f"{ratio:.3f}"))
        for group in ("", "backend", "system", "model_path", "gemm_quant_mode"):
            errors[group, row.get(group, "all")].append(ratio)
    for (_, name), ratios in errors.items():
        off = [abs(each - 1) for each in ratios]
        close = sum(each <= 0.25 for each in off) / len(off)
        words = f"{name or 'none':32} {len(off):5} rows, median {median(off):6.1%}, {close:4.0%}"
        print(f"{words} within a quarter, middle ratio {median(ratios):.2f}")
    print(f"answered {len(found)} of {total}")
    for words, count in refused.most_common(12):
        print(f"  {count:4} {words}")
    if asked.csv:
        with asked.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("id", "seconds", "ratio"), *found])


def rows(wheel: Path) -> Iterator[Mapping[str, str]]:
    """Yield rows of aggregated serving, each once."""
    with zipfile.ZipFile(wheel) as file:
        text = file.read(MEMBER).decode()
    seen = set()
    for row in csv.DictReader(io.StringIO(text)):
        key = tuple(value for name, value in row.items() if name != "id")
        sizes = int(row["tp_size"] or 0) * int(row["pp_size"] or 1)
        # Where attention has copies and is divided too, devices are counted twice.
        twice = int(row["attention_dp_size"] or 1) > 1 and int(row["tp_size"]) > 1
        if row["mode"] != "agg" or key in seen or twice or not 0 < sizes <= MOST_DEVICES:
            continue
        seen.add(key)
        yield row


def token_time(row: Mapping[str, str]) -> float:
    """Return the predicted seconds per token of a row."""
    tensor, copies, share, experts = (
        int(row[name] or 1) or 1
        for name in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    )
    # Experts lie on all devices; where attention has copies, the columns say of what.
    if copies > 1 and share * experts != tensor * copies:
        tensor = max(1, tensor // copies)
    elif share * experts > tensor * copies:
        copies = share * experts // tensor
    sizes = (tensor, copies)
    named = "fp8" if row["model_path"].endswith("-FP8") else ""
    mode = row["gemm_quant_mode"] or row["precision"] or named
    requests, prompt, output = (int(row[name]) for name in ("batch_size", "isl", "osl"))
    # The table counts requests of one copy.
    requests *= int(row["attention_dp_size"] or 1) or 1
    asked = (row["model_path"], row["system"], row["backend"], sizes, experts, mode)
    step = _answer(asked, requests, prompt, output, "time_per_output_token")
    alone = _answer(asked, 1, prompt, output, "time_to_first_token")
    return float(mixed_token_time(step, requests, alone, output))


@cache
def _answer(
    asked: tuple[str, str, str, tuple[int, int], int, str],
    batch: int,
    prompt: int,
    output: int,
    name: str,
) -> float:
    path, system, backend, (tensor, copies), experts, mode = asked
    # With data-parallel attention, all devices share experts, and each has its own requests.
    weights, activations = FORMATS[mode]
    device = resolve.device(DEVICES[system])
    if "gpt-oss" in path:
        weights, activations = "mxfp4", "fp8" if system in FOUR_BITS else "bf16"
    batch = -(-batch // copies) * copies
    serving = Engine.serve(
        model=_model(path),
        hardware=device if tensor * copies == 1 else system_of(device, tensor * copies),
        batch_size=batch,
        prompt_tokens=prompt,
        output_tokens=output,
        weights=weights,
        activations=activations,
        kv_cache="fp8" if weights != "bf16" else "bf16",
        tensor_parallel=tensor,
        data_parallel=copies,
        expert_parallel=max(experts, tensor if experts > 1 else 1),
        estimate="calibrated",
        software=SOFTWARE[backend],
        check_memory=False,
    )
    return float(serving.value(name))


@cache
def _model(path: str) -> str:
    name = path.rpartition("/")[2].removesuffix("-FP8").removesuffix("-NVFP4")
    return str(spaces.Models.find(SAME.get(name, name)).key)


if __name__ == "__main__":
    main()
