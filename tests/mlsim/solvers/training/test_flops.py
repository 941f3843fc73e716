"""How much work training is: counts by hand, and the formulas of the Megatron papers."""

from __future__ import annotations

import pytest
from training_runs import HEADS, LAYERS, MIXTURE, SMALL, TOKENS, WIDE, WORDS, gpt, train

from mlsim import Models
from mlsim.workloads.blocks import Attention

BATCH = 32
LAYER = 12 * WIDE**2
EXACT = 1e-12


def exactly(value: float) -> object:
    return pytest.approx(value, rel=EXACT)


def work(name: str = "model_flops", **changes: object) -> float:
    return float(train(**{"attention": "standard", **changes}).value(name))


def test_six_for_each_parameter_and_token_and_twelve_for_each_pair() -> None:
    """A mixture's token meets two of eight experts of 8 h**2, and a router of 8.

    Of a causal mask flash attention skips half, and of a window all but its width: the first 32
    tokens see 1, 2, ... 32; the others 32 each.
    """
    pairs = 12 * LAYERS * WIDE
    each_token = 6 * (LAYERS * LAYER + WORDS * WIDE) + pairs * TOKENS
    assert work() == exactly(BATCH * TOKENS * each_token)
    layer = 4 * WIDE**2 + 8 * WIDE + 2 * 8 * WIDE**2
    of_experts = 6 * (LAYERS * layer + WORDS * WIDE) + pairs * TOKENS
    assert work(model=MIXTURE) == exactly(BATCH * TOKENS * of_experts)
    masked = BATCH * pairs * TOKENS * (TOKENS - 1) / 2
    assert work() - work(attention="flash") == exactly(masked)
    window = Attention(heads=8, kv_heads=8, head_size=8, window=32)
    seen = 32 * 33 / 2 + (TOKENS - 32) * 32
    each = 6 * (LAYERS * LAYER + WORDS * WIDE) * TOKENS + pairs * seen
    assert work(model=gpt(attention=window), attention="flash") == exactly(BATCH * each)
    # By the rule of six a run of so many tokens needs:
    found = train(tokens=1e9).value("training_flops")
    assert found == exactly(6 * SMALL.parameter_count * 1e9)


def test_work_is_three_times_the_forward_pass_in_any_layout() -> None:
    for name in ("Llama3_8B", "Mixtral_8x7B", "BERT_Large", "GPT2_XL"):
        model = getattr(Models, name)
        found = work(model=model, sequence_tokens=512, check_memory=False)
        forward = model.flop_count(512, causal=False, all_logits=True)
        assert found == exactly(3 * BATCH * forward), name
    # An encoder attends both ways with flash attention too.
    asked = {"model": "BERT_Large", "sequence_tokens": 512, "check_memory": False}
    assert work(**asked, attention="flash") == work(**asked)
    for layout in (
        {"tensor_parallel": 4, "sequence_parallel": True},
        {"pipeline_parallel": 2, "interleaved": 2},
        {"data_parallel": 8, "shard": "zero3"},
        {"context_parallel": 2},
    ):
        assert work(**layout) == work()


def test_what_is_recomputed_is_done_again() -> None:
    """In full the forward pass of the layers; selectively the two products of attention."""
    products = 4 * WIDE * TOKENS**2
    for recompute, again in (
        *(("none", 0), ("selective", products)),
        ("full", 2 * LAYER * TOKENS + products),
    ):
        run = train(attention="standard", recompute=recompute)
        more = run.value("hardware_flops") - run.value("model_flops")
        assert more == exactly(BATCH * LAYERS * again)
    flash = train(attention="flash", recompute="none")
    assert flash.value("hardware_flops") == flash.value("model_flops")
    assert flash.model_flops_utilization == flash.hardware_flops_utilization


def test_formulas_of_the_megatron_papers() -> None:
    """96 B L s h**2 (1 + s/6h + V/16Lh) with full recomputation, of Narayanan et al. 2021.

    And without, 72 B L s h**2 (1 + s/6h + V/12hL), of Korthikanti et al. 2022.
    """
    asked = {"sequence_tokens": 2048, "global_batch": 4, "check_memory": False}
    for name in ("Megatron_22B", "GPT3_175B", "MT_NLG_530B", "Megatron_1T"):
        model = getattr(Models, name)
        layers, wide, words = model.layers, model.hidden, model.vocabulary
        once = 4 * layers * 2048 * wide**2
        share = 1 + 2048 / (6 * wide)
        full = work("hardware_flops", model=model, recompute="full", **asked)
        assert full == exactly(96 * once * (share + words / (16 * layers * wide)))
        plain = work(model=model, **asked)
        assert plain == exactly(72 * once * (share + words / (12 * layers * wide)))


def test_kernels_do_what_is_counted() -> None:
    for layout in ({}, {"tensor_parallel": 8}, {"data_parallel": 4}):
        for recompute in ("none", "selective", "full"):
            run = train(attention="standard", recompute=recompute, **layout)
            rows = zip(run.value("flops"), run.run.table.operators, strict=True)
            done = sum(each * row.all_repeats for each, row in rows)
            done *= run.value("micro_batches") * run.devices
            assert done == exactly(run.value("hardware_flops"))


def test_attention_forward_and_backward_by_hand() -> None:
    """Of 128 tokens, 64 wide, one array of the width is 128 x 64 x 2 = 16,384 B.

    Flash attention reads three and writes one; on the way back it reads five (the output and its
    gradient too) and writes three, and does five products for two: 4 and 10 operations for each
    of 64 features and each of 128 x 129 / 2 pairs. Standard attention also writes and reads
    scores, 8 x 128 x 128 x 2 = 262,144 B: once each around two products, a softmax reads and
    writes them, and its gradient reads two of them and writes one. Four products go back, each
    with scores once and with two arrays. All of it waits for memory, at 1 TB/s.
    """
    array, scores = 2 * TOKENS * WIDE, 2 * HEADS * TOKENS**2
    seen, square = WIDE * TOKENS * (TOKENS + 1) / 2, WIDE * TOKENS**2
    by_hand = {
        "flash": {
            "attention": (4 * seen, 4 * array),
            "attention: gradient": (10 * seen, 8 * array),
        },
        "standard": {
            "attention, products": (4 * square, 4 * array + 2 * scores),
            "attention, softmax": (0, 2 * scores),
            "attention, softmax: gradient": (0, 3 * scores),
            "attention, products: gradient": (8 * square, 8 * array + 4 * scores),
        },
    }
    for kind, expected in by_hand.items():
        run = train(attention=kind)
        names = [row.name for row in run.run.table.operators]
        for name, (flops, moved) in expected.items():
            at = names.index(name)
            assert run.value("flops")[at] == exactly(flops)
            assert run.value("bytes_moved")[at] == exactly(moved)
            assert run.value("kernel_time")[at] == exactly(moved / 1e12)
            assert run.run.table.operators[at].all_repeats == LAYERS
