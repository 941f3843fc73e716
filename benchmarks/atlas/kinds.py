"""What the tables hold: shapes and seconds by kind, and what the equations say of a shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas

from mlsim.hardware.kernel_times import (
    PATHS,
    SHARED_HEADS,
    Rates,
    decode_time,
    exchanged_time,
    experts_time,
    prefill_time,
    product_time,
    state_time,
)

Shapes = Mapping[str, np.ndarray]
NO_WINDOW = 1e12

# The wheel's names of formats, and the data paths that they are.
FORMATS = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "nvfp4": "fp4",
    "sq": "int8",
    "int8_wo": "int8_weights",
    "int4_wo": "int4_weights",
    "w4a16_mxfp4": "mxfp4_weights",
    "w4a8_mxfp4_mxfp8": "mxfp4_fp8",
}
# Of a latent cache: numbers for each token, of which so many are values; of a prompt, widths.
LATENT, LATENT_VALUES, LATENT_WIDTHS = 576, 512, (192, 128)
# More queries a KV head than models have: some engines fall back to a slow kernel there.
MOST_GROUP = 32
MOST_EXPERT_DEVICES = 32
# More tokens than a step has.
MOST_STATE_TOKENS = 131072


@dataclass(frozen=True)
class Kind:
    """A kind of kernel.

    Attributes
    ----------
    name, topic, table
        Of the kind; of the folder and the files of the wheel.
    shape
        Columns that make a shape.
    path
        Which data path a row is on, "" for none.
    least
        Fewest rows of a series.
    fitted
        Constants with their range and start.
    grid
        Constants that are steps: each value is tried.
    time, bound
        Seconds by the equations; and what no kernel can beat.
    keep
        Which rows are believed.
    pooled
        Whether constants stay near the middle of other devices with such a link where rows say
        little: a fifth of an exchange's has a dozen rows for six constants.
    optional
        Constants of a second kernel, which a series has only if they bring the fitted rows
        nearer.
    warm
        Whether each step begins where the one before ended: where the constants pull at each
        other, the fit may end in a valley beside the deepest.
    """

    name: str
    topic: str
    table: str
    shape: tuple[str, ...]
    path: Callable[[pandas.DataFrame], pandas.Series]
    least: int
    fitted: Mapping[str, tuple[float, float, float]]
    grid: tuple[str, tuple[float, ...]] | None
    time: Callable[..., np.ndarray]
    bound: Callable[..., np.ndarray]
    keep: Callable[[pandas.DataFrame], pandas.Series] | None = None
    pooled: bool = False
    optional: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    warm: bool = False

    def told(self, path: str, shapes: Shapes) -> dict[str, tuple[float, float, float]]:
        """Return the constants of which the rows of a series say anything."""
        found = dict(self.fitted)
        if path == "bf16" or path.endswith("_weights"):
            found.pop("quantized_bytes", None)
        if not path.endswith("_fp8"):
            found.pop("converted_passes", None)
        if "edge_tokens" in found and (_seen(shapes, shapes["isl"]) >= shapes["isl"]).all():
            del found["edge_tokens"], found["walked_share"]
        return found


START = (5e-7, 1e-4, 5e-6)


def _product(x: Shapes, path: str, rates: Rates, c: Mapping[str, float]) -> np.ndarray:
    return product_time(x["m"], x["n"], x["k"], path=PATHS[path], rates=rates, c=c)


def _product_bound(x: Shapes, path: str, rates: Rates) -> np.ndarray:
    return 2 * x["m"] * x["n"] * x["k"] / rates.peak


def _seen(x: Shapes, tokens: np.ndarray) -> np.ndarray:
    return (
        np.where(x["window_size"] > 0, x["window_size"], NO_WINDOW)
        if "window_size" in x
        else (np.full_like(tokens, NO_WINDOW))
    )


def _cache_bytes(path: str) -> float:
    return 1.0 if path.endswith("fp8") else 2.0


def _prefill(x: Shapes, path: str, rates: Rates, c: Mapping[str, float]) -> np.ndarray:
    tokens, d = x["isl"], x["head_dim"]
    numbers = x["batch_size"] * tokens * d
    return prefill_time(
        x["batch_size"],
        tokens,
        x["num_heads"],
        widths=(d, d),
        moved=4 * numbers * x["num_heads"],
        cached=2 * _cache_bytes(path) * numbers * x["num_key_value_heads"],
        rates=rates,
        c=c,
        window=_seen(x, tokens),
    )


def _prefill_bound(x: Shapes, path: str, rates: Rates) -> np.ndarray:
    tokens, d = x["isl"], x["head_dim"]
    seen = np.minimum(tokens, _seen(x, tokens))
    pairs = x["batch_size"] * x["num_heads"] * (seen * tokens - seen * (seen - 1) / 2)
    return 4 * pairs * d / rates.peak


def _decode_moved(x: Shapes, path: str) -> tuple[np.ndarray, np.ndarray]:
    context = np.minimum(x["step"] + 1, _seen(x, x["step"]))
    cache = 2 * x["batch_size"] * x["num_key_value_heads"] * x["head_dim"] * context
    return context, cache * _cache_bytes(path)


def _decode(x: Shapes, path: str, rates: Rates, c: Mapping[str, float]) -> np.ndarray:
    context, cache = _decode_moved(x, path)
    moved = cache + 4 * x["batch_size"] * x["num_heads"] * x["head_dim"]
    flops = 4 * x["batch_size"] * x["num_heads"] * x["head_dim"] * context
    pieces = x["batch_size"] * x["num_key_value_heads"]
    return decode_time(
        pieces,
        context,
        flops,
        moved,
        rates=rates,
        c={"compute_fraction": 1.0, **c},
        group=x["num_heads"] / x["num_key_value_heads"],
        width=x["head_dim"],
    )


def _decode_bound(x: Shapes, path: str, rates: Rates) -> np.ndarray:
    cache = _decode_moved(x, path)[1]
    # What a last cache could hold may come from there.
    return np.where(cache > 1e9, cache / rates.bandwidth, 0.0)


def _latent_prefill(x: Shapes, path: str, rates: Rates, c: Mapping[str, float]) -> np.ndarray:
    moved = 4 * x["batch_size"] * x["isl"] * x["num_heads"] * sum(LATENT_WIDTHS)
    return prefill_time(
        x["batch_size"],
        x["isl"],
        x["num_heads"],
        widths=LATENT_WIDTHS,
        moved=moved,
        rates=rates,
        c=c,
    )


def _latent_prefill_bound(x: Shapes, path: str, rates: Rates) -> np.ndarray:
    pairs = x["batch_size"] * x["num_heads"] * x["isl"] * (x["isl"] + 1) / 2
    return 2 * pairs * sum(LATENT_WIDTHS) / rates.peak


def _latent(x: Shapes, path: str, rates: Rates, c: Mapping[str, float]) -> np.ndarray:
    context = x["step"] + 1
    heads = x["batch_size"] * x["num_heads"]
    cached = x["batch_size"] * context * LATENT * _cache_bytes(path)
    moved = cached + 2 * heads * (LATENT + LATENT_VALUES)
    flops = 2 * heads * context * (LATENT + LATENT_VALUES)
    pieces = x["batch_size"] * np.ceil(x["num_heads"] / SHARED_HEADS)
    return decode_time(pieces, context, flops, moved, rates=rates, c=c, cached=cached)


def _latent_bound(x: Shapes, path: str, rates: Rates) -> np.ndarray:
    cache = x["batch_size"] * (x["step"] + 1) * LATENT * _cache_bytes(path)
    return np.where(cache > 1e9, cache / rates.bandwidth, 0.0)


def _experts(x: Shapes, path: str, rates: Rates, c: Mapping[str, float]) -> np.ndarray:
    return experts_time(
        x["num_tokens"],
        hidden=x["hidden_size"],
        width=x["inter_size"] / x["moe_tp_size"],
        chosen=x["topk"],
        experts_of_layer=x["num_experts"],
        devices=x["moe_ep_size"],
        path=PATHS[path],
        rates=rates,
        c=c,
        even=x["even"],
    )


def _experts_bound(x: Shapes, path: str, rates: Rates) -> np.ndarray:
    rows = x["num_tokens"] * x["topk"] / x["moe_ep_size"]
    width = x["inter_size"] / x["moe_tp_size"]
    return 6 * rows * x["hidden_size"] * width / rates.peak


def _state(x: Shapes, path: str, rates: Rates, c: Mapping[str, float]) -> np.ndarray:
    return state_time(
        x["batch_size"],
        x["seq_len"],
        x["num_v_heads"],
        elements=x["head_k_dim"] * x["head_v_dim"],
        rates=rates,
        c=c,
    )


def _state_bound(x: Shapes, path: str, rates: Rates) -> np.ndarray:
    heads = x["batch_size"] * x["seq_len"] * x["num_v_heads"]
    # Values come in and go out; keys may be shared.
    return 2 * 2 * heads * x["head_v_dim"] / rates.bandwidth


def _sent(x: Shapes, operation: str) -> np.ndarray:
    """Return bytes that a device sends in a ring; sizes in the tables count elements of 16 bits."""
    passes = 2 if operation.startswith("all_reduce") else 1
    return passes * (x["num_gpus"] - 1) / x["num_gpus"] * 2 * x["message_size"]


def _exchange(x: Shapes, path: str, rates: Rates, c: Mapping[str, float]) -> np.ndarray:
    # The rates of an exchange are those of a device's links.
    return exchanged_time(x["num_gpus"], _sent(x, path), rates.bandwidth, c)


def _exchange_bound(x: Shapes, path: str, rates: Rates) -> np.ndarray:
    # Where the switch adds up, a device sends the message once.
    return np.minimum(_sent(x, path), 2 * x["message_size"]) / rates.bandwidth


def _format(column: str) -> Callable[[pandas.DataFrame], pandas.Series]:
    return lambda rows: rows[column].map(FORMATS).fillna("")


def _attention_path(column: str) -> Callable[[pandas.DataFrame], pandas.Series]:
    """A path of attention: the arithmetic, and the cache where it is another."""

    def path(rows: pandas.DataFrame) -> pandas.Series:
        known = {
            ("bfloat16", "bfloat16"): "bf16",
            ("bfloat16", "fp8"): "bf16_fp8",
            ("fp8", "fp8"): "fp8",
        }
        pairs = zip(rows[column], rows["kv_cache_dtype"], strict=True)
        return pandas.Series([known.get(pair, "") for pair in pairs], index=rows.index)

    return path


def _chunked(rows: pandas.DataFrame) -> pandas.Series:
    """Kernels that take prompts through a state in chunks; all compute in 16 bits."""
    chunked = rows["kernel_source"].str.contains("chunk") & (rows["phase"] == "context")
    return chunked.map({True: "bf16", False: ""})


def _few_tokens(rows: pandas.DataFrame) -> pandas.Series:
    """Rows of steps as engines take them."""
    return rows["batch_size"] * rows["seq_len"] <= MOST_STATE_TOKENS


def _gated(rows: pandas.DataFrame) -> pandas.Series:
    """Rows of experts with a gate, few enough devices, and no further activation of their own."""
    odd = rows["kernel_source"].str.contains("nongated|situ")
    return ~odd & (rows["moe_ep_size"] <= MOST_EXPERT_DEVICES)


_PRODUCT = {
    "compute_fraction": (0.2, 1.0, 0.75),
    "memory_fraction": (0.3, 1.0, 0.8),
    "kernel_overhead": START,
    "last_round_share": (0.01, 1.0, 0.4),
    "small_tile_fraction": (0.4, 1.0, 0.8),
    "resident_bytes": (1e6, 2e8, 2e7),
    "cache_speedup": (1.0, 8.0, 2.0),
    "split_start": (1e-8, 1e-5, 2e-6),
    "depth_start": (1.0, 800.0, 100.0),
    "quantized_bytes": (1e-3, 30.0, 4.0),
}
_LATENT_PREFILL = {
    "compute_fraction": (0.05, 1.0, 0.6),
    "exponential_time": (1e-16, 1e-11, 1e-13),
    "task_time": (1e-9, 2e-5, 1e-6),
    "longest_share": (1e-3, 6.0, 0.7),
    "data_passes": (0.3, 30.0, 2.0),
    "kernel_overhead": START,
}
_PREFILL = {
    **_LATENT_PREFILL,
    "cache_passes": (1e-2, 100.0, 2.0),
    "edge_tokens": (1.0, 512.0, 64.0),
    "walked_share": (1e-4, 1.0, 0.1),
}
_DECODE = {
    "memory_fraction": (0.2, 1.0, 0.8),
    "kernel_overhead": START,
    "task_time": (1e-9, 3e-5, 2e-6),
    "token_time": (1e-12, 1e-7, 1e-9),
    "split_start": (1e-8, 3e-5, 2e-6),
    "resident_bytes": (1e6, 2e8, 2e7),
    "cache_speedup": (1.0, 10.0, 2.0),
    "longest_filling": (1e-8, 1e-4, 5e-6),
    "filling_bytes": (1e5, 1e9, 3e7),
}
_SENDING = {
    "link_fraction": (0.01, 2.0, 0.7),
    "link_latency": (1e-6, 1e-4, 8e-6),
    "peer_start": (1e-8, 3e-5, 5e-7),
    "own_steps": (0.01, 10.0, 0.5),
    "ramp_start": (1e-7, 3e-4, 2e-5),
}
# A kernel of its own where a query has a KV head for itself.
_LONE = {
    "lone_memory_fraction": (0.2, 1.0, 0.8),
    "lone_kernel_overhead": START,
    "lone_task_time": (1e-9, 3e-5, 2e-6),
    "lone_token_time": (1e-12, 1e-7, 1e-9),
}
_STEPS = ("width_step", (1.0, 128.0))
_PARTS = ("least_context", (64.0, 128.0, 256.0, 512.0, 1024.0))
_ATTENTION = ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "window_size")

KINDS = (
    Kind(
        "product",
        "gemm",
        "gemm_perf",
        ("m", "n", "k"),
        _format("gemm_dtype"),
        1000,
        _PRODUCT,
        None,
        _product,
        _product_bound,
    ),
    Kind(
        "prefill",
        "attention",
        "context_attention_perf",
        ("isl", *_ATTENTION),
        _attention_path("attn_dtype"),
        1000,
        _PREFILL,
        _STEPS,
        _prefill,
        _prefill_bound,
        warm=True,
    ),
    Kind(
        "decode",
        "attention",
        "generation_attention_perf",
        ("step", *_ATTENTION),
        _attention_path("attn_dtype"),
        1000,
        {**_DECODE, "query_time": (1e-11, 1e-6, 1e-8)},
        _PARTS,
        _decode,
        _decode_bound,
        lambda rows: rows["num_heads"] <= MOST_GROUP * rows["num_key_value_heads"],
        _LONE,
    ),
    Kind(
        "latent_prefill",
        "mla",
        "context_mla_perf",
        ("batch_size", "isl", "num_heads"),
        _attention_path("mla_dtype"),
        300,
        _LATENT_PREFILL,
        None,
        _latent_prefill,
        _latent_prefill_bound,
    ),
    Kind(
        "latent_decode",
        "mla",
        "generation_mla_perf",
        ("batch_size", "step", "num_heads"),
        _attention_path("mla_dtype"),
        300,
        {
            "compute_fraction": (0.05, 1.0, 0.6),
            **_DECODE,
            "converted_passes": (1e-3, 30.0, 1.0),
        },
        _PARTS,
        _latent,
        _latent_bound,
    ),
    Kind(
        "experts",
        "moe",
        "moe_perf",
        (
            "num_tokens",
            "hidden_size",
            "inter_size",
            "topk",
            "num_experts",
            "moe_tp_size",
            "moe_ep_size",
            "even",
        ),
        _format("moe_dtype"),
        300,
        {
            "compute_fraction": (0.1, 1.0, 0.6),
            "memory_fraction": (0.2, 1.0, 0.7),
            "kernel_overhead": START,
            "imbalance": (1e-3, 1.0, 0.4),
            "spread": (0.02, 1.0, 0.8),
            "data_passes": (0.1, 20.0, 2.0),
            "half_width": (0.1, 3000.0, 100.0),
            "expert_tile": (1.0, 512.0, 32.0),
            "elsewhere_share": (1e-3, 1.0, 0.3),
        },
        None,
        _experts,
        _experts_bound,
        _gated,
    ),
    Kind(
        "state",
        "linear_attention",
        "gdn_perf",
        ("batch_size", "seq_len", "num_v_heads", "head_k_dim", "head_v_dim"),
        _chunked,
        300,
        {
            "compute_fraction": (1e-3, 1.0, 0.05),
            "scan_step_time": (1e-8, 2e-5, 2e-6),
            "kernel_overhead": START,
        },
        None,
        _state,
        _state_bound,
        _few_tokens,
    ),
    Kind(
        "exchange",
        "comm",
        "nccl_perf",
        ("num_gpus", "message_size"),
        lambda rows: rows["op_name"].where(rows["nccl_dtype"] == "half", ""),
        30,
        {**_SENDING, "ramp_bytes": (1e3, 1e8, 1e6)},
        None,
        _exchange,
        _exchange_bound,
        pooled=True,
    ),
    Kind(
        "graph_all_reduce",
        "comm",
        "custom_allreduce_perf",
        ("num_gpus", "message_size"),
        lambda rows: rows["op_name"].where(~rows["kernel_source"].str.contains("eager"), ""),
        30,
        {**_SENDING, "direct_fraction": (0.01, 2.0, 0.4)},
        None,
        _exchange,
        _exchange_bound,
        pooled=True,
    ),
)
