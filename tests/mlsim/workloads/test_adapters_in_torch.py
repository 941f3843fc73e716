"""What adapters keep for the way back, beside what PyTorch keeps of the same layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlsim import Engine, LoRA, Models
from mlsim.workloads import Attention, FeedForward

torch = pytest.importorskip("torch")

HIDDEN, HEADS, INNER, TOKENS, RANK = 64, 4, 160, 24, 4
SHAPES = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), (HIDDEN, HIDDEN)),
    **dict.fromkeys(("gate_proj", "up_proj"), (HIDDEN, INNER)),
    "down_proj": (INNER, HIDDEN),
}


def kept_by_torch(targets: tuple[str, ...] | None) -> int:
    """Return the bytes that autograd keeps of one layer's activations, each memory once.

    None: all weights learn.
    """
    weights = {
        name: torch.randn(inputs, outputs, requires_grad=targets is None)
        for name, (inputs, outputs) in SHAPES.items()
    }
    narrow = {
        name: (
            torch.randn(SHAPES[name][0], RANK, requires_grad=True),
            torch.randn(RANK, SHAPES[name][1], requires_grad=True),
        )
        for name in targets or ()
    }
    held: dict[int, int] = {}
    own = {each.data_ptr() for each in weights.values()}
    own |= {each.data_ptr() for pair in narrow.values() for each in pair}

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and tensor.numel() > TOKENS:
            held[storage.data_ptr()] = storage.nbytes()
        return tensor

    def product(name: str, given: Any) -> Any:
        found = given @ weights[name]
        if name in narrow:
            first, second = narrow[name]
            found = found + (given @ first) @ second
        return found

    # What comes in has come through adapters of an earlier layer.
    given = torch.randn(TOKENS, HIDDEN, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        queries, keys, values = (product(f"{name}_proj", given) for name in "qkv")
        split = [each.reshape(1, TOKENS, HEADS, -1).transpose(1, 2) for each in (queries, keys)]
        split.append(values.reshape(1, TOKENS, HEADS, -1).transpose(1, 2))
        mixed = torch.nn.functional.scaled_dot_product_attention(*split, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(TOKENS, HIDDEN)
        middle = product("o_proj", mixed)
        gate = torch.nn.functional.silu(product("gate_proj", middle))
        product("down_proj", gate * product("up_proj", middle)).sum().backward()
    return sum(held.values())


def kept_by_us(targets: tuple[str, ...] | None) -> float:
    model = replace(
        Models.Llama2_7B,
        layers=1,
        hidden=HIDDEN,
        attention=Attention(heads=HEADS, kv_heads=HEADS, head_size=HIDDEN // HEADS),
        feed_forward=FeedForward(size=INNER, gated=True),
    )
    found = Engine.train(
        model=model,
        hardware="A100",
        global_batch=1,
        sequence_tokens=TOKENS,
        precision="fp32",
        recompute="none",
        adapters=LoRA(rank=RANK, targets=targets) if targets else None,
    )
    return float(found.value("saved_memory"))


def test_an_adapter_keeps_as_much_more_as_in_torch() -> None:
    """Of a layer whose queries alone have an adapter, and of one that has others."""
    base, broken = ("q_proj",), []
    attention, network = ("q_proj", "v_proj"), ("gate_proj", "down_proj")
    for targets in (base, attention, ("o_proj",), ("up_proj",), network, tuple(SHAPES)):
        both = tuple(dict.fromkeys((*base, *targets)))
        ours, theirs = (kept(both) - kept(base) for kept in (kept_by_us, kept_by_torch))
        broken += [] if ours == theirs else [(targets, ours, theirs)]
    assert broken == []
