"""Ask llm-analysis 0.2.2 all cases that it can answer.

    rival/bin/python benchmarks/rivals/ask_llm_analysis.py --cases CASES.csv --models MODELS.csv

Its README says what to assume where nothing is measured: 0.7 of the peak in inference, 0.5 in
training, 0.9 of the bandwidth. It multiplies two matrices in a feed-forward part, so a gated
one (three) is given as one and a half times as wide, as its own Llama 2 is.
"""

from __future__ import annotations

import ask
from llm_analysis import config
from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis

INFERENCE, TRAINING, BANDWIDTH = 0.7, 0.5, 0.9
DEVICES = {
    "A100-80": "a100-sxm-80gb",
    "A100-80-330W": "a100-sxm-80gb",
    "A100-40": "a100-sxm-40gb",
    "A100-PCIe80": "a100-pcie-80gb",
    "H100-SXM": "h100-sxm-80gb",
    "H100-PCIe": "h100-pcie-80gb",
    "V100-SXM2": "v100-sxm-16gb",
    "MI100": "mi100-32gb",
    "MI210": "mi210-64gb",
}
BITS = {4: "4", 8: "8", 16: "16"}
RECOMPUTE = {
    "none": ActivationRecomputation.NONE,
    "selective": ActivationRecomputation.SELECTIVE,
    "full": ActivationRecomputation.FULL,
}
config.populate_model_and_gpu_configs()


def device(case: ask.Case):
    """Return its record of the case's device."""
    if case["device"] not in DEVICES:
        raise ask.NoAnswerError(f"no device {case['device']}")
    return config.gpu_configs[DEVICES[case["device"]]]


def analysis(case: ask.Case, share: float, replicas: int = 1) -> LLMAnalysis:
    """Return its analysis of a model on a device."""
    if case.model["mla"] or case["w_dtype"] in ("fp32", "tf32"):
        raise ask.NoAnswerError("no latent attention and no 32 bits")
    width, experts = case.model["ffn"], {}
    if case.model["moe"]:
        import json

        mixture = json.loads(case.model["moe"])
        width = mixture["ffn"]
        experts = {"moe_num_experts": mixture["E"], "moe_top_k": mixture["k"]}
    width = int(width) * (3 if case.model["gated"] == "1" else 2) // 2
    model = config.ModelConfig(
        name=case["model"],
        max_seq_len=1 << 20,
        num_layers=case.size("layers"),
        n_head=case.size("heads"),
        hidden_dim=case.size("hidden"),
        vocab_size=case.size("vocab"),
        num_key_value_heads=case.size("kv_heads"),
        ffn_embed_dim=width,
        expansion_ratio=width / case.size("hidden"),
        **experts,
    )
    weights = 4 if case.number("w_bits") < 6 else 8 if case.number("w_bits") < 12 else 16
    works = 8 if case["a_dtype"] in ("fp8", "int8") else 16
    return LLMAnalysis(
        model,
        device(case),
        config.dtype_configs[f"w{weights}a{works}e16"],
        config.ParallelismConfig(
            tp_size=case.whole("tp", 1), pp_size=case.whole("pp", 1), dp_size=replicas
        ),
        flops_efficiency=share,
        hbm_memory_efficiency=BANDWIDTH,
    )


def prefill(case: ask.Case, batch: int, tokens: int) -> float:
    """Return seconds of a prefill."""
    found = analysis(case, INFERENCE).inference(batch, tokens, 1)
    return found["prefill_latency"]


def decode(case: ask.Case, batch: int, context: int) -> float:
    """Return seconds of a decode step."""
    cache = 1 if case["kv_dtype"] in ("fp8", "int8") else 2
    found = analysis(case, INFERENCE).inference(batch, context, 1, kv_cache_dtype_bytes=cache)
    return found["decode_latency"]


def train(case: ask.Case, batch: int) -> float:
    """Return seconds of a training step."""
    split = case.whole("tp", 1) * case.whole("pp", 1)
    replicas = case.whole("count") // split
    micro = case.whole("mb", 1)
    found = analysis(case, TRAINING, replicas).training(
        batch_size_per_gpu=micro,
        gradient_accumulation_steps=max(round(batch / (replicas * micro)), 1),
        seq_len=case.whole("input_len"),
        activation_recomputation=RECOMPUTE[case.extra.get("recompute", "none")],
        ds_zero=DSZeRO.STAGE_3 if case.extra.get("fsdp") else DSZeRO.STAGE_1,
    )
    # Where its step holds more or fewer sequences than the case's, in proportion.
    return found["latency_per_iter"] * batch / found["global_batch_size"]


def peak(case: ask.Case) -> float:
    """Return the peak that it takes for the device, in FLOP/s."""
    found = device(case)
    return 1e12 * (
        found.peak_i8_TFLOPS if case["a_dtype"] in ("fp8", "int8") else found.peak_fp16_TFLOPS
    )


if __name__ == "__main__":
    ask.run([ask.Rival("llm-analysis", prefill, decode, train, peak)])
