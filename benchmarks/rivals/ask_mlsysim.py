"""Ask mlsysim 0.3.0 all cases that it can answer.

    rival/bin/python benchmarks/rivals/ask_mlsysim.py --cases CASES.csv --models MODELS.csv

With its own defaults: half of the peak (`efficiency=0.5`), the whole bandwidth. Its
`ServingModel` knows one device, so cases of a model over several are left out. Training
is not asked: the share of the peak that is given to it is nearly all of its answer.
"""

from __future__ import annotations

import ask
from mlsysim import Hardware, Models
from mlsysim.core.units import Q_, ureg
from mlsysim.engine.engine import Engine
from mlsysim.engine.solvers.serving import ServingModel
from mlsysim.models.types import TransformerWorkload

DEVICES = {
    "A100-80": "A100",
    "A100-80-330W": "A100",
    "A100-40": "A100_40GB",
    "H100-SXM": "H100",
    "H100-PCIe": "H100_PCIe",
    "H200": "H200",
    "B200": "B200",
    "V100-SXM2": "V100",
    "T4": "T4",
    "MI300X": "MI300X",
    "MI325X": "MI325X",
    "Gaudi2": "Gaudi2",
    "Gaudi3": "Gaudi3",
    "TPUv3": "TPUv3",
    "TPUv4": "TPUv4",
    "TPUv5p": "TPUv5p",
}
FORMATS = {"fp16": "fp16", "bf16": "fp16", "fp8": "fp8", "int8": "int8", "int4": "int4"}
FORMATS |= {"tf32": "tf32", "fp32": "fp32", "fp4": "int4", "mxfp4": "int4"}


def device(case: ask.Case):
    """Return its record of the case's device."""
    if case["device"] not in DEVICES:
        raise ask.NoAnswerError(f"no device {case['device']}")
    return getattr(Hardware.Cloud, DEVICES[case["device"]])


def precision(case: ask.Case, name: str) -> str:
    """Return its word for a format that it knows of the device: 16 bits are its usual peak."""
    word = FORMATS[case[name]]
    if word != "fp16" and word not in device(case).compute.precision_flops:
        raise ask.NoAnswerError(f"no {word} of this device: it would take the peak of 16 bits")
    return word


def transformer(case: ask.Case) -> TransformerWorkload:
    """Return the case's model as one of its own."""
    if case.model["mla"]:
        raise ask.NoAnswerError("no latent attention asked")
    if case.model["moe"]:
        raise ask.NoAnswerError("its ServingModel gives experts no answer of their own")
    return TransformerWorkload(
        name=case["model"],
        architecture="Transformer",
        parameters=Q_(case.size("params_total"), ureg.count),
        layers=case.size("layers"),
        hidden_dim=case.size("hidden"),
        heads=case.size("heads"),
        kv_heads=case.size("kv_heads"),
        head_dim=case.size("head_dim"),
    )


def serving(case: ask.Case, batch: int, tokens: int, word: str):
    """Return its answer for a service."""
    if case.whole("tp", 1) * case.whole("pp", 1) > 1:
        raise ask.NoAnswerError("serves on one device")
    return ServingModel().solve(transformer(case), device(case), tokens, batch, word)


def prefill(case: ask.Case, batch: int, tokens: int) -> float:
    """Return seconds of a prefill, in the format of the arithmetic."""
    return serving(case, batch, tokens, precision(case, "a_dtype")).ttft.m_as("s")


def decode(case: ask.Case, batch: int, context: int) -> float:
    """Return seconds of a decode step, in the format of the weights."""
    return serving(case, batch, context, precision(case, "w_dtype")).itl.m_as("s")


def network(case: ask.Case) -> float:
    """Return images per second of ResNet-50."""
    if case["model"] != "resnet50":
        raise ask.NoAnswerError(f"no model {case['model']}")
    batch = case.whole("batch")
    found = Engine.solve(Models.Vision.ResNet50, device(case), batch, precision(case, "a_dtype"))
    seconds = found.latency.m_as("s")
    if case["metric_kind"] == "latency_s":
        return seconds
    return batch * case.whole("dp", 1) / seconds


if __name__ == "__main__":
    ask.run([ask.Rival("mlsysim", prefill, decode, others={"cnn_infer": network})])
