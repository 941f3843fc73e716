"""Ask aiconfigurator 0.12.0 all cases that it can answer.

    rival/bin/python benchmarks/rivals/ask_aiconfigurator.py --cases CASES.csv --models MODELS.csv
        [--mode SILICON]

With the measured kernels of the newest version of a backend (`--mode SILICON`, its default;
"HYBRID" fills gaps by a formula): vLLM where a case says so, else TensorRT-LLM. One static
batch without a scheduler where a case describes that, and its steps of a scheduler (`agg`) for
services in a steady state. Models that it doesn't ship are given as a `config.json` of the
family; that of Mixtral is read from its own folder, since by name it wants to download it.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from functools import cache
from pathlib import Path

import ask

logging.disable(logging.WARNING)
import aiconfigurator_core  # noqa: E402
from aiconfigurator.cli.api import cli_estimate  # noqa: E402

DEVICES = {
    "A100-80": "a100_sxm",
    "A100-80-330W": "a100_sxm",
    "A100-40": "a100_sxm",
    "A100-PCIe80": "a100_pcie",
    "H100-SXM": "h100_sxm",
    "H100-PCIe": "h100_pcie",
    "H200": "h200_sxm",
    "H200-1000W": "h200_sxm",
    "B200": "b200_sxm",
    "B300": "b300_sxm",
    "GB200": "gb200",
    "L40S": "l40s",
    "L4": "l4",
}
SHIPPED = {
    "llama3-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama3-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama3-405b": "meta-llama/Meta-Llama-3.1-405B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
}
# Its formats, by those of weights and of the arithmetic.
PRODUCTS = {
    ("fp16", "fp16"): "bfloat16",
    ("bf16", "bf16"): "bfloat16",
    ("fp8", "fp8"): "fp8",
    ("fp4", "fp4"): "nvfp4",
    ("int8", "fp16"): "int8_wo",
    ("int8", "bf16"): "int8_wo",
    ("int4", "fp16"): "int4_wo",
    ("int4", "bf16"): "int4_wo",
}
EXPERTS = {pair: name for pair, name in PRODUCTS.items() if name != "int8_wo"}
EXPERTS[("mxfp4", "bf16")] = "w4a16_mxfp4"
MODE = sys.argv.pop(sys.argv.index("--mode") + 1) if "--mode" in sys.argv else "SILICON"
if "--mode" in sys.argv:
    sys.argv.remove("--mode")
FOLDER = Path(tempfile.mkdtemp())


def model(case: ask.Case) -> str:
    """Return its name of the model, or a folder with the model's `config.json`."""
    name = case["model"]
    if name in SHIPPED:
        return SHIPPED[name]
    if name == "mixtral-8x7b":
        known = Path(aiconfigurator_core.__file__).parent / "model_configs"
        path = FOLDER / name / "config.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((known / "mistralai--Mixtral-8x7B-v0.1_config.json").read_bytes())
        return str(path.parent)
    if case.model["gated"] != "1" or case.model["moe"] or case.model["mla"]:
        raise ask.NoAnswerError("of models not shipped, those of Llama's family only")
    path = FOLDER / name / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        json.dumps(
            {
                "architectures": ["LlamaForCausalLM"],
                "model_type": "llama",
                "hidden_act": "silu",
                "torch_dtype": "bfloat16",
                "hidden_size": case.size("hidden"),
                "intermediate_size": case.size("ffn"),
                "num_hidden_layers": case.size("layers"),
                "num_attention_heads": case.size("heads"),
                "num_key_value_heads": case.size("kv_heads"),
                "head_dim": case.size("head_dim"),
                "vocab_size": case.size("vocab"),
                "max_position_embeddings": 131072,
                "tie_word_embeddings": case.model["tied_embeddings"] == "1",
            }
        ),
        encoding="utf-8",
    )
    return str(path.parent)


@cache
def estimated(asked: tuple[tuple[str, object], ...]):
    """Return its estimate; cases repeat themselves."""
    return cli_estimate(**dict(asked))


def estimate(case: ask.Case, batch: int, prompt: int, output: int):
    """Return its estimate of a static batch."""
    if case["device"] not in DEVICES:
        raise ask.NoAnswerError(f"no device {case['device']}")
    if case["sw_class"] not in ("engine", "vllm", "engine_host"):
        raise ask.NoAnswerError(f"no software like {case['sw_class']}")
    formats = (case["w_dtype"], case["a_dtype"])
    mixture = bool(case.model["moe"])
    if formats not in (EXPERTS if mixture else PRODUCTS):
        raise ask.NoAnswerError(f"no format {formats[0]} with {formats[1]}")
    mode = "static" if output > 1 else "static_ctx"
    if case["kind"] == "serve_steady":
        mode = "agg"
    tensor, over = case.whole("tp", 1), case.whole("ep", 1)
    asked = {
        "model_path": model(case),
        "system_name": DEVICES[case["device"]],
        "backend_name": "vllm" if case["sw_class"] == "vllm" else "trtllm",
        "mode": mode,
        "database_mode": MODE,
        "isl": prompt,
        "osl": max(output, 2),
        "batch_size": batch,
        "tp_size": tensor,
        "pp_size": case.whole("pp", 1),
        "gemm_quant_mode": PRODUCTS.get(formats, "bfloat16"),
        "kvcache_quant_mode": "fp8" if case["kv_dtype"] == "fp8" else "bfloat16",
    }
    if mixture:
        # Experts over as many devices as the tensors, where the case says so.
        copies = max(over // tensor, 1)
        asked |= {"moe_quant_mode": EXPERTS[formats], "moe_ep_size": over}
        asked |= {"moe_tp_size": max(tensor // over, 1), "attention_dp_size": copies}
        # Its batch is that of one copy of the attention.
        asked["batch_size"] = max(round(batch / copies), 1)
    return estimated(tuple(asked.items()))


def prefill(case: ask.Case, batch: int, tokens: int) -> float:
    """Return seconds of a prefill."""
    return estimate(case, batch, tokens, 1).ttft / 1e3


def decode(case: ask.Case, batch: int, context: int) -> float:
    """Return seconds of a step, on average over the answer."""
    prompt = max(case.whole("input_len", 0), 1)
    return estimate(case, batch, prompt, case.whole("output_len")).tpot / 1e3


def steady(case: ask.Case) -> float:
    """Return tokens a second of a service whose scheduler mixes prompts and answers."""
    batch = case.whole("batch")
    seconds = estimate(case, batch, case.whole("input_len"), case.whole("output_len")).tpot / 1e3
    return case.whole("dp", 1) * batch / seconds


def encoder(case: ask.Case) -> float:
    """Refuse: it serves models that write."""
    raise ask.NoAnswerError("no encoders")


if __name__ == "__main__":
    name = f"aiconfigurator-{MODE.lower()}"
    ask.run(
        [ask.Rival(name, prefill, decode, others={"enc_infer": encoder, "serve_steady": steady})]
    )
