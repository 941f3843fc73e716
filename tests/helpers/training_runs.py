"""Training runs that tests share: a small GPT and round machines, to work out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Cluster, Device, Engine, Training
from mlsim.systems import System
from mlsim.workloads.blocks import Attention, Experts, FeedForward
from mlsim.workloads.language import Transformer

# 100 TFLOP/s, 1 TB/s, memory without end; a node of eight sends at 100 GB/s
# within itself, and each device at 10 GB/s to the other three nodes.
CHIP = Device(
    "Round chip",
    peak_flops={"bf16": "100 TFLOP/s", "fp32": "25 TFLOP/s"},
    memory_bandwidth="1 TB/s",
    memory_capacity="1 PB",
)
INSIDE, BETWEEN = 100e9, 10e9
NODE = System("Round node", CHIP, devices=8, link_bandwidth="100 GB/s")
CLUSTER = Cluster("Round cluster", NODE, nodes=4, link_bandwidth="10 GB/s")

LAYERS, WIDE, HEADS, WORDS, TOKENS = 4, 64, 8, 512, 128


def gpt(**changes: Any) -> Transformer:
    """Return a GPT of 4 layers, 64 wide, with 8 heads, 512 words, and no biases.

    Its matrices hold 12 x 64**2 parameters a layer, and 512 x 64 in the output.
    """
    wide, heads = changes.get("hidden", WIDE), changes.pop("heads", HEADS)
    arguments = {
        "key": "Small",
        "name": "Small",
        "architecture": "Transformer decoder",
        "source": "vaswani2017attention",
        "layers": LAYERS,
        "hidden": wide,
        "vocabulary": WORDS,
        "context": 4096,
        "attention": Attention(heads=heads, kv_heads=heads, head_size=wide // heads),
        "feed_forward": FeedForward(size=4 * wide),
        "tied_embeddings": True,
    }
    return Transformer(**{**arguments, **changes})


def mixture(**changes: Any) -> Transformer:
    """Return the same with eight experts in each layer, of which a token meets two."""
    experts = Experts(count=8, per_token=2, size=4 * WIDE, gated=False)
    return gpt(**{"feed_forward": None, "experts": experts, **changes})


def train(**changes: Any) -> Training:
    """Train the small GPT, without recomputation, on as many devices as the sizes make."""
    arguments: dict[str, Any] = {
        "model": SMALL,
        "hardware": CLUSTER,
        "global_batch": 32,
        "sequence_tokens": TOKENS,
        "recompute": "none",
    }
    return Engine.train(**{**arguments, **changes})


def spent(name: str, **changes: Any) -> float:
    """Return a result of training the small GPT so."""
    return float(train(**changes).value(name))


def exactly(value: float) -> Any:
    """Return what equals a number worked by hand, but for rounding."""
    return pytest.approx(value, rel=1e-12)


SMALL, MIXTURE = gpt(), mixture()
