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
    rates: dict[str, Any] = {"peak_flops": {"bf16": "1e6 TFLOP/s"}, "memory_bandwidth": "1 GB/s"}
    chip = Device("Chip", **rates, memory_capacity=f"{memory} B")
    node = System("Node", chip, devices=8, link_bandwidth=link)
    ask: dict[str, Any] = {"model": MODEL, "hardware": node, "reserve": 0.0}
    ask |= {"prompt_tokens": 256, "output_tokens": 256}
    ask |= {"tensor_parallel": group, "data_parallel": 8 // group}
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
