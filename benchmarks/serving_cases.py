"""Published measurements of language models, put as questions to `Engine.serve`.

A case names a model, devices, formats and lengths; its `kind` says what was
measured. What a case leaves open (`assumed`) and what stands in for a device
that the zoo does not have (`STAND_INS`) is said here, not tuned.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mlsim import Device, Engine, Hardware, System, Transformer
from mlsim.errors import MlsimError, UnknownNameError
from mlsim.precision import PRECISIONS
from mlsim.solvers.serving.serving import StepProfile
from mlsim.workloads.blocks import Attention, FeedForward
from mlsim.zoo.resolve import transformer

Case = dict[str, str]
# A case, its prediction, its measurement, and the ratio of their speeds.
Scored = tuple[Case, float, float, float]

DOMAINS = ("llm_prefill", "llm_decode")
TIERS = ("A", "B")
LARGEST_BATCH = 2048  # of a copy, where the case says "max 2048"

# Names of the cases -> names of the zoo. What is not the same thing says so in STAND_INS.
DEVICES = {
    "V100-SXM2": "Cloud.V100",
    "T4": "Cloud.T4",
    "A100-80": "Cloud.A100",
    "A100-80-330W": "Cloud.A100",
    "A100-PCIe80": "Cloud.A100_PCIe",
    "A40": "Cloud.A40",
    "H100-SXM": "Cloud.H100",
    "H100-PCIe": "Cloud.H100_PCIe",
    "H200": "Cloud.H200",
    "H200-1000W": "Cloud.H200",
    "GH200": "Cloud.H200",
    "B200": "Cloud.B200",
    "GB200": "Cloud.GB200",
    "L4": "Cloud.L4",
    "L40S": "Cloud.L40S",
    "MI300X": "Cloud.MI300X",
    "RTX3070": "Workstation.RTX3070",
    "RTX3090": "Workstation.RTX3090",
    "RTX4000Ada": "Workstation.RTX4000Ada",
    "RTX4090": "Workstation.RTX4090",
    "RTX6000Ada": "Workstation.RTX6000Ada",
    "GB10": "Workstation.DGXSpark",
    "M1": "Workstation.M1",
    "M1Max": "Workstation.M1Max",
    "M2Ultra": "Workstation.M2Ultra",
    "M3Max": "Workstation.M3Max",
}
STAND_INS = {
    "A100-80-330W": "an A100 SXM limited to 330 W, asked as one of 400 W",
    "H200-1000W": "an H200 allowed 1,000 W, asked as one of 700 W",
    "GH200": "a GH200 with 144 GB, asked as an H200 (its HBM is 2 % faster)",
}
MODELS = {
    "bert-base": "BERT_Base",
    "bert-large": "BERT_Large",
    "gptj-6b": "GPT_J_6B",
    "llama2-7b": "Llama2_7B",
    "llama2-70b": "Llama2_70B",
    "llama3-8b": "Llama3_8B",
    "llama3-70b": "Llama3_70B",
    "llama3-405b": "Llama3_405B",
    "mixtral-8x7b": "Mixtral_8x7B",
    "qwen2.5-7b": "Qwen2_5_7B",
    "gpt-oss-20b": "GPT_OSS_20B",
    "gpt-oss-120b": "GPT_OSS_120B",
    "deepseek-v3": "DeepSeek_V3",
}
# Wider formats to compute in, for a device that lacks one.
SIXTEEN = ("bf16", "fp16", "fp32")
WIDER = {
    "fp4": ("fp8", *SIXTEEN),
    "fp8": SIXTEEN,
    "int8": SIXTEEN,
    "bf16": SIXTEEN[1:],
    "fp16": ("fp32",),
}
SHORTEST = 1  # tokens: a prompt of none is one token that starts the text


class NotExpressibleError(Exception):
    """A case that can't be put as a question; says why."""


def read(path: Path) -> list[Case]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cases(reference: Path) -> list[Case]:
    """Return the open cases of language models that can be scored."""
    rows = read(reference / "accuracy" / "cases-open.csv")
    return [row for row in rows if row["domain"] in DOMAINS and row["tier"] in TIERS]


# What is asked: the model, the devices, the formats.


@functools.cache
def model_of(name: str, reference: Path) -> Transformer:
    """Return the zoo's model of a case, or one made of the reference folder's architecture."""
    if name in MODELS:
        return transformer(MODELS[name])
    found = [row for row in read(reference / "accuracy" / "models.csv") if row["model"] == name]
    if not found or found[0]["moe"] or found[0]["mla"]:
        raise NotExpressibleError(f"model {name} is not in the zoo")
    row = {key: int(value) for key, value in found[0].items() if value and key != "model"}
    return Transformer(
        key=name,
        name=name,
        architecture="from models.csv",
        source="",
        layers=row["layers"],
        hidden=row["hidden"],
        vocabulary=row["vocab"],
        context=2**17,
        attention=Attention(
            heads=row["heads"], kv_heads=row["kv_heads"], head_size=row["head_dim"]
        ),
        feed_forward=FeedForward(size=row["ffn"], gated=bool(row["gated"])),
        tied_embeddings=bool(row["tied_embeddings"]),
    )


@functools.cache
def device_of(name: str) -> Device:
    try:
        found = Hardware.find(DEVICES[name])
    except (KeyError, UnknownNameError):
        raise NotExpressibleError(f"device {name} is not in the zoo") from None
    if not isinstance(found, Device):
        raise NotExpressibleError(f"{name} is not a device")
    return found


@functools.cache
def hardware_of(device: Device, count: int) -> Device | System:
    """Return the devices of a case; more than one are joined by the fastest link on record."""
    if count == 1:
        return device
    rates = [
        figure.si / 2 if figure.direction == "both ways" else figure.si
        for name, figure in device.figures.items()
        if name.startswith("links.")
    ]
    if not rates:
        raise NotExpressibleError(f"no link of {device.name} is on record")
    name, rate = f"{count} x {device.name}", max(rates)
    return System(name, device, devices=count, link_bandwidth=f"{rate} B/s")


def computable(name: str, device: Device) -> str:
    """Return a number format, or the next wider one in which the device can compute."""
    for each in (name, *WIDER.get(name, ())):
        if PRECISIONS[each].computes_as in device.compute.figures:
            return each
    raise NotExpressibleError(f"{device.name} can't compute in {name}, nor in a wider format")


def formats_of(case: Case, device: Device) -> dict[str, Any]:
    """Return the formats of a case; a number of bits that no format has is given in bytes."""
    weights, bits = case["w_dtype"], float(case["w_bits"])
    if weights == "fp4" and bits == PRECISIONS["nvfp4"].bits:
        weights = "nvfp4"
    asked: dict[str, Any] = {
        "weights": weights,
        "activations": computable(case["a_dtype"], device),
        "kv_cache": case["kv_dtype"],
    }
    # gpt-fast quantises each linear layer, the output layer among them (quantize.py).
    everywhere = bits < 16 and "gpt-fast" in case["software"]
    if bits != PRECISIONS[weights].bits or everywhere:
        asked["bytes_per_parameter"] = f"{bits / 8} B/parameter"
    return asked


def tokens(case: Case, name: str) -> int:
    return round(float(case[name])) if case[name] else 0


def extra(case: Case, name: str, default: int) -> int:
    """Return a number that the case carries besides its columns."""
    return int(json.loads(case["extra"]).get(name, default))


def question(case: Case, reference: Path) -> dict[str, Any]:
    """Return the arguments of `Engine.serve` for a case, but for batch and estimate."""
    device = device_of(case["device"])
    model = model_of(case["model"], reference)
    prompt, output = max(tokens(case, "input_len"), SHORTEST), tokens(case, "output_len")
    depth = extra(case, "depth", 0)
    if model.decoder:
        longest = max(model.context, prompt + max(output, 1) + depth)
        if longest > model.context:
            model = dataclasses.replace(model, context=longest)
    layout = {name: int(case[name]) for name in ("tp", "pp", "ep")}
    count = int(case["count"])
    copies = count // (layout["tp"] * layout["pp"])
    return {
        "model": model,
        "hardware": hardware_of(device, count),
        "prompt_tokens": prompt,
        "output_tokens": max(output, 1) if model.decoder else None,
        "tensor_parallel": layout["tp"],
        "pipeline_parallel": layout["pp"],
        "data_parallel": copies,
        "expert_parallel": layout["ep"],
        "check_memory": False,
        **formats_of(case, device),
    }


# What is answered: one way for each kind of case.


def prefill_rate(case: Case, asked: dict[str, Any]) -> float:
    """Prompt tokens per second, after `depth` tokens that are cached already."""
    batch = round(float(case["batch"]))
    depth = extra(case, "depth", 0)
    serving = Engine.serve(batch_size=batch, **asked)
    new = float(asked["prompt_tokens"])
    step = StepProfile(serving.service, "prefill", new, float(depth))
    return batch * new / step.value("latency")


def first_token(case: Case, asked: dict[str, Any]) -> float:
    serving = Engine.serve(batch_size=round(float(case["batch"])), **asked)
    return float(serving.value("time_to_first_token"))


def encoder(case: Case, asked: dict[str, Any]) -> float:
    """Seconds of a pass, or items per second of all copies of the model."""
    batch = round(float(case["batch"])) * asked["data_parallel"]
    serving = Engine.serve(batch_size=batch, **asked)
    time = float(serving.value("time_to_first_token"))
    return time if case["unit"] == "s" else batch / time


def decode_rate(case: Case, asked: dict[str, Any]) -> float:
    serving = Engine.serve(batch_size=round(float(case["batch"])), **asked)
    return float(serving.value("decode_throughput"))


def static_rate(case: Case, asked: dict[str, Any]) -> float:
    """New tokens per second of a batch that starts and ends together."""
    serving = Engine.serve(batch_size=round(float(case["batch"])), **asked)
    return float(serving.value("output_throughput"))


def generation(case: Case, asked: dict[str, Any]) -> float:
    serving = Engine.serve(batch_size=round(float(case["batch"])), **asked)
    return float(serving.value("generation_latency"))


def steady_rate(case: Case, asked: dict[str, Any]) -> float:
    """New tokens per second while sequences come and go and the batch stays full.

    Each sequence takes its part of a prefill and of its decode steps. With
    beams, a prompt is read once and each of its beams decoded.
    """
    if asked["estimate"] == "bound":
        return steady_bound(case, asked)
    beams, output = extra(case, "beam", 1), asked["output_tokens"]
    batch = resident(case, asked) // beams
    if not batch:
        raise NotExpressibleError("not one sequence fits")
    prompts = Engine.serve(batch_size=batch, **asked)
    serving = Engine.serve(batch_size=batch * beams, **asked)
    steps = (output - 1) * serving.value("time_per_output_token")
    return float(batch * output / (prompts.value("time_to_first_token") + steps))


def steady_bound(case: Case, asked: dict[str, Any]) -> float:
    """Return a rate that no program exceeds, whatever the order of its work.

    A program may work on prompts while it reads weights and cache for the other
    sequences' next tokens. So times don't add up: the longer of all arithmetic
    and all traffic counts, and prefill reads no weights. Nothing is reserved,
    the cache holds half of the output on average, and beams share it.
    """
    output = asked["output_tokens"]
    room = {**asked, "reserve": 0.0, "block_tokens": 1, "output_tokens": max(output // 2, 1)}
    batch = resident(case, room)
    beams = Engine.serve(batch_size=batch * extra(case, "beam", 1), **asked)
    serving = Engine.serve(batch_size=batch, **asked)
    arithmetic = serving.prefill.value("total_compute_time")
    arithmetic += (output - 1) * beams.decode.value("total_compute_time")
    traffic = (output - 1) * serving.decode.value("total_memory_time")
    return float(batch * output / max(arithmetic, traffic))


def resident(case: Case, asked: dict[str, Any]) -> int:
    """Return the sequences that run at one time on all copies: as printed, or what fits."""
    if case["batch"]:
        return round(float(case["batch"]))
    fits = Engine.serve(batch_size=1, **asked).largest_batch
    return int(min(fits, LARGEST_BATCH * asked["data_parallel"]))


ANSWERS: dict[str, Callable[[Case, dict[str, Any]], float]] = {
    "prefill": prefill_rate,
    "ttft": first_token,
    "enc_infer": encoder,
    "decode": decode_rate,
    "static_gen": static_rate,
    "gen_e2e": generation,
    "serve_offline": steady_rate,
    "serve_steady": steady_rate,
}


def predict(case: Case, reference: Path, estimate: str = "roofline") -> float:
    """Return what mlsim says of a case, in the case's unit.

    Raises
    ------
    NotExpressibleError
        If it can't be asked.
    """
    try:
        asked = question(case, reference)
        return ANSWERS[case["kind"]](case, {**asked, "estimate": estimate})
    except MlsimError as error:
        raise NotExpressibleError(f"{type(error).__name__}: {error}") from error


def speed_ratio(case: Case, predicted: float) -> float:
    """Predicted speed over measured speed; below 1, the measurement is faster."""
    measured = float(case["measured"])
    return predicted / measured if case["higher_better"] == "1" else measured / predicted


def step_seconds(case: Case, value: float, batch: int) -> float:
    """Turn a case's value into seconds of a pass, a step, or a whole prefill."""
    if case["unit"] == "s":
        return value / max(tokens(case, "output_len"), 1) if case["kind"] == "gen_e2e" else value
    if case["kind"] == "prefill":
        return batch * tokens(case, "input_len") / value
    return batch / value


def predict_all(
    rows: Iterable[Case], reference: Path, estimate: str = "roofline"
) -> tuple[dict[str, float], dict[str, str]]:
    """Return predictions by case, and why others have none."""
    found, refused = {}, {}
    for case in rows:
        try:
            found[case["case_id"]] = predict(case, reference, estimate)
        except NotExpressibleError as error:
            refused[case["case_id"]] = str(error)
    return found, refused
