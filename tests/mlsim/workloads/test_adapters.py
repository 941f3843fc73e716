"""Adapters: what they hold, by hand and as published, and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from refusals import answered

from mlsim import LoRA, Models, QLoRA
from mlsim.errors import InvalidValueError
from mlsim.workloads import training_lowering
from mlsim.workloads.adapters import adapted
from mlsim.workloads.steps import Parallelism

QV = ("q_proj", "v_proj")
LLAMA = Models.Llama3_8B


def test_published_numbers_of_parameters() -> None:
    """Hu et al., 2021: table 4, GPT-3 (LoRA), and table 5, "18M" for one, two and four types."""
    for rank, targets, published in (
        (1, QV, 4.7e6),
        (8, QV, 37.7e6),
        (8, "q_proj", 18.87e6),
        (4, QV, 18.87e6),
        (2, "attention", 18.87e6),
    ):
        found = LoRA(rank=rank, targets=targets).parameters(Models.GPT3_175B)
        assert found == pytest.approx(published, rel=0.005)
    # "from 350GB to 35MB", rank 4 on queries and values (section 4.2), of two bytes each.
    small = 2 * LoRA(rank=4, targets=QV).parameters(Models.GPT3_175B)
    assert small / 2**20 == pytest.approx(35, rel=0.04)
    assert 2 * Models.GPT3_175B.parameter_count / small == pytest.approx(10_000, rel=0.1)
    # print_trainable_parameters() of PEFT for Llama 2 7B with "all-linear", and for the original
    # LLaMA 7B, which has the same matrices, with q_proj and v_proj.
    assert LoRA(rank=16).parameters(Models.Llama2_7B) == 39_976_960
    assert LoRA(rank=8, targets=QV).parameters(Models.Llama2_7B) == 4_194_304


def test_by_hand_with_shared_heads() -> None:
    # Llama 3.1 8B: 32 layers, 4096 wide, 8 KV heads of 128, a feed-forward of 14336.
    wide, values, inner = 4096, 8 * 128, 14336
    attention = (wide + wide) + 2 * (wide + values) + (wide + wide)
    feed_forward = 3 * (wide + inner)
    assert LoRA(rank=16, targets="attention").parameters(LLAMA) == 32 * 16 * attention
    assert LoRA(rank=16, targets="feed-forward").parameters(LLAMA) == 32 * 16 * feed_forward
    assert LoRA(rank=16).parameters(LLAMA) == 32 * 16 * (attention + feed_forward)


def test_matrices_of_other_architectures() -> None:
    # Mixtral: 32 layers of 8 experts, 4096 x 14336, three matrices; the router has none.
    found = LoRA(rank=4, targets="feed-forward").parameters(Models.Mixtral_8x7B)
    assert found == 32 * 8 * 3 * 4 * (4096 + 14336)
    latent = adapted(Models.DeepSeek_V3, LoRA(rank=8, targets="attention"))
    assert " ".join(sorted({each.target for each in latent})) == (
        "kv_a_proj kv_b_proj o_proj q_a_proj q_b_proj"
    )
    # Without a gate.
    plain = [each.target for each in adapted(Models.GPT2, LoRA(rank=4))]
    assert plain == ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"]


def test_the_matrices_are_those_that_the_model_works_with() -> None:
    """Beside each operator stand matrices with as many multiply-adds as it has."""
    models = (Models.Llama3_8B, Models.Mixtral_8x7B, Models.DeepSeek_V3, Models.BERT_Base)
    for found, spread in itertools.product(models, (Parallelism(), Parallelism(tensor=4))):
        rows = {
            each.name: each
            for each in found.operators(spread)
            if each.kind in ("projection", "experts") and each.token_limit > 1
        }
        wide = adapted(found, LoRA(rank=1), spread)
        assert set(rows) == {each.operator for each in wide}
        for name, row in rows.items():
            beside = [each for each in wide if each.operator == name]
            work = sum(each.inputs * each.outputs * each.met for each in beside)
            assert row.token_multiply_adds == work
            held = sum(each.inputs * each.outputs * each.held for each in beside)
            assert row.parameters - row.wide_parameters == pytest.approx(held)
            assert {each.layers for each in beside} == {row.repeats}


def test_devices_share_adapters() -> None:
    lora = LoRA(rank=16)
    for tensor in (2, 8):  # one of the two matrices is divided
        spread = Parallelism(tensor=tensor)
        for whole, part in zip(adapted(LLAMA, lora), adapted(LLAMA, lora, spread), strict=True):
            row = part.target in ("o_proj", "down_proj")
            inputs, outputs = (tensor, 1) if row else (1, tensor)
            assert (part.inputs, part.outputs) == (whole.inputs / inputs, whole.outputs / outputs)
    for expert in (1, 2, 8):  # together they hold all experts
        model, own = Models.Mixtral_8x7B, LoRA(rank=4, targets="feed-forward")
        spread = Parallelism(data=8, expert=expert)
        dense, held = training_lowering.adapter_parameters_on_device(model, own, spread)
        assert (dense, held * expert) == (0, own.parameters(model))
    # Stages share the layers.
    dense, _ = training_lowering.adapter_parameters_on_device(LLAMA, lora, Parallelism(pipeline=4))
    assert dense * 4 == lora.parameters(LLAMA)


def test_frozen_work_is_all_but_attention() -> None:
    tokens = 512
    frozen, own = training_lowering.multiply_adds(LLAMA, LoRA(rank=16), tokens)
    longer = replace(LLAMA, context=2**20)
    # Work by the token alone: what two sequences need beyond one of twice the length.
    one, two = (longer.flop_count(n, all_logits=True) for n in (tokens, 2 * tokens))
    pairs = 32 * 2 * 4096
    attention = [n * (n + 1) / 2 * pairs for n in (tokens, 2 * tokens)]
    assert frozen == one / 2 - attention[0]
    assert 2 * frozen == two / 2 - attention[1]
    assert own == LoRA(rank=16).parameters(LLAMA) * tokens


def test_what_lies_below_the_first_adapter() -> None:
    wide, inner, tokens = 4096, 14336, 1000
    first = wide * (wide + 2 * 1024)
    scores = 2 * 2 * wide * tokens * (tokens + 1) / 2

    def spared(targets: str, rank: int = 1) -> float:
        lora = LoRA(rank=rank, targets=targets)
        return training_lowering.spared_multiply_adds(LLAMA, lora, tokens, causal=True)

    assert spared("q_proj") == tokens * (first + wide)
    assert spared("o_proj") == tokens * (first + wide * wide + wide) + scores
    up = first + wide * wide + 2 * wide * inner
    assert spared("up_proj") == tokens * (up + wide) + scores
    assert spared("down_proj") == tokens * (up + inner * wide + inner) + scores


def test_adapters_that_cannot_be() -> None:
    def ask(rank: Any = 4, targets: Any = "all-linear", model: str = "Llama3_8B") -> Any:
        return LoRA(rank=rank, targets=targets).parameters(Models.get(model))  # type: ignore[arg-type]

    assert answered(ask, "adapters") == []
    assert LoRA(rank=8) != QLoRA(rank=8)
    assert LoRA(rank=8, targets=["q_proj"]) == LoRA(rank=8, targets="q_proj")  # type: ignore[arg-type]
    # As wide as its matrix it may be.
    assert LoRA(rank=1024, targets="k_proj").parameters(LLAMA)
    with pytest.raises(InvalidValueError, match="must name a matrix or more"):
        LoRA(rank=4, targets=())
