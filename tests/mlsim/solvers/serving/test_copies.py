"""When copies of a model bring more tokens than dividing it, with as many users as fit."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Device, Engine, Serving, System
from mlsim.workloads.blocks import Attention, FeedForward
from mlsim.workloads.language import Transformer

# 1 GB/s of memory, links without end: time is bytes read, and only room decides.
MODEL = Transformer(
    key="Round",
    name="Round",
    architecture="Transformer decoder",
    source="vaswani2017attention",
    layers=128,
    hidden=1024,
    vocabulary=1024,
    context=4096,
    attention=Attention(heads=8, kv_heads=8, head_size=128),
    feed_forward=FeedForward(size=4096),
    tied_embeddings=True,
)


def full(memory: float, group: int, link: str = "1e9 GB/s") -> Serving:
    """Serve as many users as fit on eight devices, in groups that divide the matrices."""
    chip = Device(
        "Chip",
        peak_flops={"bf16": "1e6 TFLOP/s"},
        memory_bandwidth="1 GB/s",
        memory_capacity=f"{memory} B",
    )
    ask: dict[str, Any] = {
        "model": MODEL,
        "hardware": System("Node", chip, devices=8, link_bandwidth=link),
        "prompt_tokens": 256,
        "output_tokens": 256,
        "tensor_parallel": group,
        "data_parallel": 8 // group,
        "reserve": 0.0,
    }
    most = Engine.serve(**ask).largest_batch
    return Engine.serve(**ask, batch_size=most)


def test_users_are_room_less_weights_over_cache() -> None:
    """Copies hold the weights eight times: 8 M - 8 W, where one group has 8 M - W."""
    weights = 2 * MODEL.parameter_count
    # Two bytes, a key and a value, 1,024 numbers, 128 layers, 512 tokens.
    cache = 2 * 2 * 1024 * 128 * 512
    memory = 4 * weights
    for group in (1, 2, 4, 8):
        most = full(memory, group).batch_size
        # Activations take a little of the room.
        assert most == pytest.approx((8 * memory - 8 // group * weights) / cache, rel=0.03)


@pytest.mark.parametrize(("room", "winner"), [(1.3, 8), (50.0, 1)])
def test_copies_win_where_weights_are_small(room: float, winner: int) -> None:
    """With links that take time: at 1.3 times the weights dividing wins, at 50 times copying."""
    memory = room * 2 * MODEL.parameter_count
    rates = {group: full(memory, group, "3 GB/s").decode_throughput for group in (1, 2, 4, 8)}
    assert max(rates, key=lambda group: rates[group]) == winner


def test_without_sending_rates_go_by_users() -> None:
    """A step reads the whole memory of each device: 32 times the weights on eight of them."""
    memory = 4 * 2 * MODEL.parameter_count
    copies = full(memory, 1).decode_throughput
    for group in (2, 4, 8):
        gain = full(memory, group).decode_throughput / copies
        assert gain == pytest.approx((32 - 8 // group) / (32 - 8), rel=0.04)


@pytest.mark.parametrize(
    ("name", "node", "precision", "decode", "whole"),
    [
        ("Mixtral_8x7B", "HGX_H200", "bf16", 4, 4),
        ("Llama2_13B", "HGX_A100", "bf16", 4, 4),
        # 70 GB of weights in the 151 GB that a driver lists: dividing gains little.
        ("Llama3_70B", "HGX_H200", "fp8", 1, 1),
        ("Llama3_8B", "HGX_H200", "bf16", 1, 1),
    ],
)
def test_published_models(name: str, node: str, precision: str, decode: int, whole: int) -> None:
    found = {}
    for group in (8, 4, 1):
        ask: dict[str, Any] = {
            "model": name,
            "hardware": node,
            "precision": precision,
            "prompt_tokens": 2048,
            "output_tokens": 256,
            "tensor_parallel": group,
            "data_parallel": 8 // group,
        }
        most = Engine.serve(**ask).largest_batch
        found[group] = Engine.serve(**ask, batch_size=most)
    for quantity, winner in (("decode_throughput", decode), ("output_throughput", whole)):
        assert max(found, key=lambda group: found[group].value(quantity)) == winner
