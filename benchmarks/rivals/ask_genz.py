"""Ask genz-llm 0.0.16 all cases that it can answer.

    rival/bin/python benchmarks/rivals/ask_genz.py --cases CASES.csv --models MODELS.csv

With its own defaults: the whole peak and the whole bandwidth (`system_eff=1`).
"""

from __future__ import annotations

import contextlib
import io
import json

import ask
from GenZ import decode_moddeling, prefill_moddeling
from GenZ.Models.default_models import ModelConfig

DEVICES = {
    "A100-40": "A100_40GB_GPU",
    "A100-80": "A100_80GB_GPU",
    "A100-80-330W": "A100_80GB_GPU",
    "H100-SXM": "H100_GPU",
    "GH200": "GH200_GPU",
    "GB200": "GB200",
    "MI300X": "MI300X",
    "MI325X": "MI325X",
    "TPUv4": "TPUv4",
    "TPUv5p": "TPUv5p",
    "Gaudi3": "Gaudi3",
}
BITS = {"fp8": "fp8", "int8": "int8", "fp4": "fp4", "bf16": "bf16", "fp16": "bf16", "fp32": "f32"}


def asked(case: ask.Case) -> dict:
    """Return what both of its functions are told of a case."""
    if case["device"] not in DEVICES:
        raise ask.NoAnswerError(f"no device {case['device']}")
    if case["w_dtype"] != case["a_dtype"] or case["w_dtype"] not in BITS:
        raise ask.NoAnswerError("one format for weights and arithmetic only")
    if case.model["mla"]:
        raise ask.NoAnswerError("no latent attention")
    mixture = json.loads(case.model["moe"] or "null")
    experts = {}
    if mixture:
        experts = {
            "num_experts": mixture["E"],
            "expert_top_k": mixture["k"],
            "moe_layer_freq": 1,
            "moe_intermediate_size": mixture["ffn"],
        }
    model = ModelConfig(
        model=case["model"],
        vocab_size=case.size("vocab"),
        hidden_size=case.size("hidden"),
        intermediate_size=mixture["ffn"] if mixture else case.size("ffn"),
        num_ffi=2 if case.model["gated"] == "1" else 1,
        num_decoder_layers=case.size("layers"),
        num_attention_heads=case.size("heads"),
        head_dim=case.size("head_dim"),
        num_key_value_heads=case.size("kv_heads"),
        **experts,
    )
    tensor, stages = case.whole("tp", 1), case.whole("pp", 1)
    experts_over = case.whole("ep", 1)
    return {
        "model": model,
        "system_name": DEVICES[case["device"]],
        "bits": BITS[case["w_dtype"]],
        "tensor_parallel": tensor,
        "pipeline_parallel": stages,
        "expert_parallel": experts_over,
        "parallelism_heirarchy": f"TP{{{tensor}}}_EP{{{experts_over}}}_PP{{{stages}}}",
    }


def prefill(case: ask.Case, batch: int, tokens: int) -> float:
    """Return seconds of a prefill."""
    with contextlib.redirect_stdout(io.StringIO()):
        found = prefill_moddeling(batch_size=batch, input_tokens=tokens, **asked(case))
    return found["Latency"] / 1e3


def decode(case: ask.Case, batch: int, context: int) -> float:
    """Return seconds of a decode step."""
    with contextlib.redirect_stdout(io.StringIO()):
        found = decode_moddeling(
            batch_size=batch, input_tokens=context, output_tokens=0, Bb=1, **asked(case)
        )
    return found["Latency"] / 1e3


if __name__ == "__main__":
    ask.run([ask.Rival("genz-llm", prefill, decode)])
