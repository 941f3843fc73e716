"""How far `Engine.serve` is from the services of aiconfigurator's wheel; nothing is fitted to it.

    python benchmarks/silicon_services.py --wheel aiconfigurator_core-0.12.0-....whl [--write]

Reads `systems/silicon_sample.csv` out of the wheel: aggregated serving, a closed loop of so
many requests at a time. Time per token is predicted as a decode step of all requests, and
the prompts of the others that are mixed in: d(C) + (C - 1) p(1) / output tokens. Where
SGLang serves requests of one length, they go in waves: a request waits for half of the other
prompts. Copies of a row count once. Layouts of twelve devices and more, and those that count
devices twice, are left out, since their columns don't say what is shared. So are runs that guess
tokens, or may: `inferencex.py` says which.
"""

from __future__ import annotations

import argparse
import csv
import io
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median

from arrivals_services import configs, guessed, measurement
from fit_software import save
from inferencex import program

from mlsim import Engine
from mlsim.engine.predict.case import system_of
from mlsim.equations.calibration import mixed_token_time, wave_token_time
from mlsim.errors import MlsimError
from mlsim.software import FOLDER
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
# Reads all waiting prompts before it goes on; others mix prompts and tokens in a step.
PROMPTS_FIRST = "sglang"
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
NAMES = ("group", "rows", "error", "close", "ratio")
# What the page shows, by column and value, in the order of its table.
SHOWN = {
    ("", "all"): "all",
    ("backend", "trtllm"): "TensorRT-LLM",
    ("backend", "vllm"): "vLLM",
    ("backend", "sglang"): "SGLang",
    ("system", "h100_sxm"): "H100",
    ("system", "h200_sxm"): "H200",
    ("system", "b200_sxm"): "B200",
    ("system", "b300_sxm"): "B300",
    ("model_path", "meta-llama/Llama-3.1-70B"): "Llama 3.1 70B",
    ("model_path", "meta-llama/Llama-3.1-8B-Instruct"): "Llama 3.1 8B",
    ("model_path", "Qwen/Qwen3-32B"): "Qwen3 32B",
    ("model_path", "deepseek-ai/DeepSeek-R1"): "DeepSeek R1",
    ("model_path", "openai/gpt-oss-120b"): "gpt-oss-120b",
    ("model_path", "MiniMaxAI/MiniMax-M2.5"): "MiniMax M2.5",
    ("model_path", "Qwen/Qwen3-235B-A22B-FP8"): "Qwen3 235B",
    ("model_path", "Qwen/Qwen3.5-397B-A17B"): "Qwen3.5 397B",
    ("model_path", "moonshotai/Kimi-K2.5"): "Kimi K2.5",
}


def main() -> None:
    """Predict each row, and print the errors by backend, device and model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--write", action="store_true", help="keep the scores for the page")
    asked = parser.parse_args()
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    refused: Counter[str] = Counter()
    found = []
    total = 0
    with zipfile.ZipFile(asked.wheel) as archive, tempfile.TemporaryDirectory() as folder:
        models = configs(archive, Path(folder))
        for row in rows(asked.wheel):
            total += 1
            try:
                predicted = token_time(row, models)
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
    if asked.write:
        save(FOLDER / "services.csv", NAMES, kept(errors))
    print(f"answered {len(found)} of {total}")
    for words, count in refused.most_common(12):
        print(f"  {count:4} {words}")
    if asked.csv:
        with asked.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("id", "seconds", "ratio"), *found])


def kept(errors: Mapping[tuple[str, str], list[float]]) -> Iterator[tuple[str, ...]]:
    """Yield the scores of the groups that the page shows."""
    for group, words in SHOWN.items():
        ratios = errors[group]
        off = [abs(each - 1) for each in ratios]
        close = sum(each <= 0.25 for each in off) / len(off)
        yield words, str(len(off)), f"{median(off):.3f}", f"{close:.2f}", f"{median(ratios):.2f}"


def rows(wheel: Path) -> Iterator[Mapping[str, str]]:
    """Yield rows of aggregated serving, each once."""
    with zipfile.ZipFile(wheel) as file:
        text = file.read(MEMBER).decode()
    table = list(csv.DictReader(io.StringIO(text)))
    seen, with_guesses = set(), guessed(table)
    for row in table:
        key = tuple(value for name, value in row.items() if name != "id")
        sizes = int(row["tp_size"] or 0) * int(row["pp_size"] or 1)
        # Devices are counted twice where attention has copies and is divided too, or where it
        # has copies and experts are divided both ways.
        both = int(row["moe_tp_size"] or 1) > 1 and int(row["moe_ep_size"] or 1) > 1
        twice = int(row["attention_dp_size"] or 1) > 1 and (int(row["tp_size"]) > 1 or both)
        if row["mode"] != "agg" or key in seen or twice or not 0 < sizes <= MOST_DEVICES:
            continue
        seen.add(key)
        if measurement(row) in with_guesses:
            continue
        yield row


def token_time(row: Mapping[str, str], models: Mapping[str, Path]) -> float:
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
    path = row["model_path"]
    asked = (path, _model(path, models), row["system"], program(row), sizes, experts, mode)
    step = _answer(asked, requests, prompt, output, "time_per_output_token")
    # Each copy reads prompts of its own, all copies at the same time.
    alone = _answer(asked, copies, prompt, output, "time_to_first_token")
    waves = row["backend"] == PROMPTS_FIRST and of_one_length(row)
    read = wave_token_time if waves else mixed_token_time
    return float(read(step, max(requests / copies, 1), alone, output))


def of_one_length(row: Mapping[str, str]) -> bool:
    """Tell whether all prompts of a row, and all answers, were equally long.

    The makers' own runs have lengths without spread (`eval/benchmarks` of their repository);
    those of InferenceX lie between 0.8 and 1 times what is stated.
    """
    return "/Users/" in row["silicon_data_source"]


@cache
def _answer(
    asked: tuple[str, str, str, str, tuple[int, int], int, str],
    batch: int,
    prompt: int,
    output: int,
    name: str,
) -> float:
    path, model, system, software, (tensor, copies), experts, mode = asked
    # With data-parallel attention, all devices share experts, and each has its own requests.
    weights, activations = FORMATS[mode]
    device = resolve.device(DEVICES[system])
    if "gpt-oss" in path:
        weights, activations = "mxfp4", "fp8" if system in FOUR_BITS else "bf16"
    batch = -(-batch // copies) * copies
    serving = Engine.serve(
        model=model,
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
        software=software,
        check_memory=False,
    )
    return float(serving.value(name))


def _model(path: str, models: Mapping[str, Path]) -> str:
    """Return a model's name in the zoo, else its configuration in the wheel."""
    name = path.rpartition("/")[2].removesuffix("-FP8").removesuffix("-NVFP4")
    try:
        return str(spaces.Models.find(SAME.get(name, name)).key)
    except MlsimError:
        return str(models[path])


if __name__ == "__main__":
    main()
