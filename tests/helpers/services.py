"""Services that tests share: a tiny one to work out by hand, and Llama 3.1 8B on an H100."""

from __future__ import annotations

from typing import Any

from language_models import tiny

from mlsim import Device, Engine, Hardware, Models
from mlsim.solvers.serving.serving import Serving
from mlsim.systems import System

COMPUTE, MEMORY, NETWORK = "Compute Bound", "Memory Bound", "Network Bound"
WHOLE = (
    "time_per_output_token",
    "generation_latency",
    "user_token_rate",
    "decode_throughput",
    "output_throughput",
)
TIMES = ("time_to_first_token", *WHOLE)


# 100 FLOP/s, 40 B/s, 2,000 B; two of them send at 8 B/s.
CHIP = Device(
    "Slow chip",
    peak_flops={"fp16": "100 FLOP/s", "fp32": "50 FLOP/s"},
    memory_bandwidth="40 B/s",
    memory_capacity="2 kB",
)
PAIR = System("Slow pair", CHIP, devices=2, link_bandwidth="8 B/s")
TINY = tiny()


def by_hand(**changes: Any) -> Serving:
    """Serve two prompts of 3 tokens with 3 new ones each, on the slow chip."""
    arguments = {
        "model": TINY,
        "hardware": CHIP,
        "batch_size": 2,
        "prompt_tokens": 3,
        "output_tokens": 3,
        "precision": "fp16",
        "block_tokens": 4,
    }
    return Engine.serve(**{**arguments, **changes})


def llama(**changes: Any) -> Serving:
    """Serve Llama 3.1 8B on an H100 unless told otherwise."""
    arguments = {"model": Models.Llama3_8B, "hardware": Hardware.Cloud.H100, "prompt_tokens": 2048}
    return Engine.serve(**{**arguments, **changes})


NODE = System("Node", Hardware.Cloud.H100, devices=8, link_bandwidth="450 GB/s")
