"""How much work training is: counts by hand, and the formulas of the Megatron papers."""

from __future__ import annotations

import pytest
from training_runs import LAYERS, MIXTURE, SMALL, TOKENS, WIDE, WORDS, gpt, train

from mlsim import Models

BATCH = 32
LAYER = 12 * WIDE**2
EXACT = 1e-12
GPTS = (
    "Megatron_22B",
    "GPT3_175B",
    "MT_NLG_530B",
    "Megatron_1T",
)


def exactly(value: float) -> object:
    return pytest.approx(value, rel=EXACT)


def test_six_for_each_parameter_and_token_and_twelve_for_each_pair() -> None:
    found = train(attention="standard").value("model_flops")
    each_token = 6 * (LAYERS * LAYER + WORDS * WIDE) + 12 * LAYERS * WIDE * TOKENS
    assert found == exactly(BATCH * TOKENS * each_token)


def test_flash_attention_skips_the_masked_half() -> None:
    whole = train(attention="standard").value("model_flops")
    causal = train(attention="flash").value("model_flops")
    masked = BATCH * LAYERS * 12 * WIDE * TOKENS * (TOKENS - 1) / 2
    assert whole - causal == exactly(masked)


@pytest.mark.parametrize("name", ["Llama3_8B", "Mixtral_8x7B", "BERT_Large", "GPT2_XL"])
def test_work_is_three_times_the_forward_pass(name: str) -> None:
    model = getattr(Models, name)
    found = train(
        model=model, attention="standard", sequence_tokens=512, micro_batch=1, check_memory=False
    )
    forward = model.flop_count(512, causal=False, all_logits=True)
    assert found.value("model_flops") == exactly(3 * BATCH * forward)


def test_an_encoder_attends_both_ways_with_flash_too() -> None:
    flash, standard = (
        train(model="BERT_Large", attention=kind, sequence_tokens=512, check_memory=False)
        for kind in ("flash", "standard")
    )
    assert flash.value("model_flops") == standard.value("model_flops")


def test_a_token_of_a_mixture_meets_two_experts_of_eight() -> None:
    found = train(model=MIXTURE, attention="standard").value("model_flops")
    # Queries, keys, values and output: 4 h**2; a router of 8; two experts of 8 h**2.
    layer = 4 * WIDE**2 + 8 * WIDE + 2 * 8 * WIDE**2
    each_token = 6 * (LAYERS * layer + WORDS * WIDE) + 12 * LAYERS * WIDE * TOKENS
    assert found == exactly(BATCH * TOKENS * each_token)


def test_full_recomputation_adds_the_forward_pass_of_the_layers() -> None:
    run = train(attention="standard", recompute="full")
    again = run.value("hardware_flops") - run.value("model_flops")
    assert again == exactly(BATCH * LAYERS * (2 * LAYER * TOKENS + 4 * WIDE * TOKENS**2))


def test_selective_recomputation_adds_the_two_products_of_attention() -> None:
    run = train(attention="standard", recompute="selective")
    again = run.value("hardware_flops") - run.value("model_flops")
    assert again == exactly(BATCH * LAYERS * 4 * WIDE * TOKENS**2)


@pytest.mark.parametrize("attention", ["standard", "flash"])
def test_nothing_is_done_twice_without_recomputation(attention: str) -> None:
    run = train(attention=attention, recompute="none")
    assert run.value("hardware_flops") == run.value("model_flops")
    assert run.model_flops_utilization == run.hardware_flops_utilization


@pytest.mark.parametrize("name", GPTS)
def test_megatron_formula_of_full_recomputation(name: str) -> None:
    """96 B L s h**2 (1 + s/6h + V/16Lh), of Narayanan et al. 2021."""
    model = getattr(Models, name)
    run = train(
        model=model,
        attention="standard",
        recompute="full",
        sequence_tokens=2048,
        global_batch=4,
        check_memory=False,
    )
    layers, wide, words = model.layers, model.hidden, model.vocabulary
    share = 1 + 2048 / (6 * wide) + words / (16 * layers * wide)
    formula = 96 * 4 * layers * 2048 * wide**2 * share
    assert run.value("hardware_flops") == exactly(formula)


@pytest.mark.parametrize("name", GPTS)
def test_korthikanti_formula_of_model_flops(name: str) -> None:
    """72 B L s h**2 (1 + s/6h + V/12hL), of Korthikanti et al. 2022."""
    model = getattr(Models, name)
    run = train(
        model=model,
        attention="standard",
        sequence_tokens=2048,
        global_batch=4,
        check_memory=False,
    )
    layers, wide, words = model.layers, model.hidden, model.vocabulary
    share = 1 + 2048 / (6 * wide) + words / (12 * layers * wide)
    assert run.value("model_flops") == exactly(72 * 4 * layers * 2048 * wide**2 * share)


@pytest.mark.parametrize("layout", [{}, {"tensor_parallel": 8}, {"data_parallel": 4}])
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_kernels_do_what_is_counted(layout: dict[str, int], recompute: str) -> None:
    run = train(attention="standard", recompute=recompute, **layout)
    rows = zip(run.value("flops"), run.run.table.operators, strict=True)
    done = sum(each * row.all_repeats for each, row in rows)
    assert done * run.value("micro_batches") * run.devices == exactly(run.value("hardware_flops"))


def test_backward_of_flash_does_five_products_for_two() -> None:
    run = train(attention="flash")
    by_name = dict(
        zip((row.name for row in run.run.table.operators), run.value("flops"), strict=True)
    )
    pairs = TOKENS * (TOKENS + 1) / 2
    assert by_name["attention"] == exactly(4 * WIDE * pairs)
    assert by_name["attention: gradient"] == exactly(10 * WIDE * pairs)


def test_a_window_bounds_the_pairs() -> None:
    from mlsim.workloads.blocks import Attention

    attention = Attention(heads=8, kv_heads=8, head_size=8, window=32)
    run = train(model=gpt(attention=attention), attention="flash")
    # The first 32 tokens see 1, 2, ... 32; the others 32 each.
    pairs = 32 * 33 / 2 + (TOKENS - 32) * 32
    each = 6 * (LAYERS * LAYER + WORDS * WIDE) * TOKENS + 12 * LAYERS * WIDE * pairs
    assert run.value("model_flops") == exactly(BATCH * each)


def test_work_does_not_depend_on_the_layout() -> None:
    alone = train(attention="standard").value("model_flops")
    for layout in (
        {"tensor_parallel": 4, "sequence_parallel": True},
        {"pipeline_parallel": 2, "interleaved": 2},
        {"data_parallel": 8, "shard": "zero3"},
        {"context_parallel": 2},
    ):
        assert train(attention="standard", **layout).value("model_flops") == alone


def test_flops_of_a_run_by_the_rule_of_six() -> None:
    run = train(tokens=1e9)
    assert run.value("training_flops") == exactly(6 * SMALL.parameter_count * 1e9)
