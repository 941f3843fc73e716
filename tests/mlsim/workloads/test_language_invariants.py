"""What holds of any transformer, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from language_models import by_name, tiny
from refusals import answered

from mlsim.errors import InvalidValueError
from mlsim.workloads.blocks import Attention, Experts, FeedForward, LatentAttention, StateSpace
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import OperatorTable
from mlsim.workloads.steps import STEP_COLUMNS, Parallelism
from mlsim.zoo.spaces import Models


@st.composite
def transformers(draw: st.DrawFn) -> Transformer:
    """Draw a small decoder of any kind."""
    hidden = draw(st.integers(1, 8)) * 8
    window = draw(st.sampled_from([0, 0, 3, 17]))
    spread = {"window": window, "full_every": draw(st.integers(0, 3)) if window else 0}
    if draw(st.booleans()):
        attention: Attention | LatentAttention = Attention(
            heads=4,
            kv_heads=draw(st.sampled_from([1, 2, 4])),
            head_size=draw(st.integers(1, 16)),
            bias=draw(st.booleans()),
            qk_norm=draw(st.booleans()),
            sinks=draw(st.booleans()),
            **spread,
        )
    else:
        attention = LatentAttention(
            heads=4,
            query_rank=draw(st.integers(0, 8)),
            kv_rank=draw(st.integers(1, 8)),
            content_size=draw(st.integers(1, 8)),
            rope_size=draw(st.integers(1, 8)),
            value_size=draw(st.integers(1, 8)),
            **spread,
        )
    layers, experts = draw(st.integers(1, 6)), None
    if draw(st.booleans()):
        count = draw(st.sampled_from([2, 4, 8]))
        shared = draw(st.integers(0, 2))
        experts = Experts(
            count=count,
            per_token=draw(st.integers(1, count)),
            size=draw(st.integers(1, 4)) * 4,
            bias=draw(st.booleans()),
            shared=shared,
            shared_gate=draw(st.booleans()) and shared > 0,
            router_bias=draw(st.booleans()),
            dense_layers=draw(st.integers(0, layers)),
        )
    return tiny(
        layers=layers,
        hidden=hidden,
        vocabulary=draw(st.integers(1, 50)) * 4,
        context=10_000,
        attention=attention,
        feed_forward=FeedForward(size=draw(st.integers(1, 8)) * 4, gated=draw(st.booleans())),
        experts=experts,
        norm=draw(st.sampled_from(["rms", "layer", "plain"])),
        tied_embeddings=draw(st.booleans()),
        output_bias=draw(st.booleans()),
    )


@given(transformers(), st.integers(1, 200), st.integers(1, 200))
def test_any_transformer_holds_what_its_parts_count(
    model: Transformer, new: int, cached: int
) -> None:
    held = sum(each.parameters * each.resident_repeats for each in model.operators())
    assert held == pytest.approx(model.parameter_count, rel=1e-12)
    assert model.active_parameter_count <= model.parameter_count
    # A mask spares work, but of one token.
    causal, full = model.flop_count(new, cached), model.flop_count(new, cached, causal=False)
    assert causal == full if new == 1 else causal <= full


@given(transformers(), st.integers(1, 40))
def test_a_prompt_is_its_tokens_one_after_another(model: Transformer, length: int) -> None:
    """A causal prompt costs what its tokens cost one by one, each on top of those before."""
    at_once = model.flop_count(length, all_logits=True)
    one_by_one = sum(model.flop_count(1, cached) for cached in range(length))
    if model.latent:
        # Token by token it may take the compressed way, where that is less.
        assert one_by_one <= at_once + 2 * sum(
            each.expand_multiply_adds * each.repeats for each in model.operators()
        ) * sum(range(length))
    else:
        assert one_by_one == at_once


@given(transformers(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_devices_together_do_at_least_the_work(model: Transformer, tensor: int, data: int) -> None:
    operators = model.operators(Parallelism(tensor=tensor, data=data))
    for name in ("token_multiply_adds", "pair_multiply_adds", "absorbed_pair_multiply_adds"):
        alone = sum(getattr(each, name) * each.repeats for each in model.operators())
        divided = sum(getattr(each, name) * each.repeats for each in operators)
        assert divided * tensor >= alone
        assert divided <= alone


def test_columns_are_what_operators_say() -> None:
    table = OperatorTable(tiny().operators(), STEP_COLUMNS, {"peak_flops": tuple(range(8))})
    assert len(table) == len(list(table)) == 8
    assert table.columns["token_multiply_adds"] == [0, 0, 32, 0, 16, 48, 24, 40]
    assert table.columns["peak_flops"] == list(range(8))
    for name, column in table.arrays.items():
        assert column.tolist() == table.columns[name]
        assert table.columns_2d[name].shape == (8, 1)
    assert "live_elements" not in table.columns


def test_what_a_perfect_program_could_avoid() -> None:
    unquantised = by_name(tiny(), Parallelism(tensor=2))["all-reduce"].compulsory()
    assert unquantised.link_elements == 0
    one = by_name(tiny())["feed-forward, up"]
    assert one.compulsory() == replace(one, token_elements=0)


# The context.


def test_a_longer_context_is_a_replacement_away() -> None:
    short = Models.Llama2_7B
    longer = replace(short, context=32_768)
    with pytest.raises(InvalidValueError) as e:
        short.flop_count(1, 4096)
    assert str(e.value) == (
        "1 new and 4,096 cached tokens are not within the context of Llama 2 7B, 4,096."
    )
    assert longer.flop_count(1, 4095) == short.flop_count(1, 4095)
    more = longer.flop_count(1, 4096) - longer.flop_count(1, 4095)
    assert more == 2 * 32 * 2 * 4096


def test_work_is_counted_within_the_context() -> None:
    for new, cached in ((0, 0), (-1, 5), (1, -1), (33, 0), (16, 17), (1, 32)):
        with pytest.raises(InvalidValueError, match="are not within the context of Tiny, 32"):
            tiny().flop_count(new, cached)
    # One more cached token is one pair more for each of 16: two layers of 8 multiply-adds.
    assert tiny().flop_count(16, 16) - tiny().flop_count(16, 15) == 2 * 2 * 16 * 8


# What can't be.

ONE = Attention(heads=2, kv_heads=1, head_size=2)
NAMED = {
    "plain": ONE,
    "near": replace(ONE, window=4),
    "far": replace(ONE, window=8),
    "reads": replace(ONE, shared_cache=True),
    "reads near": replace(ONE, window=8, shared_cache=True),
    "state": StateSpace(heads=2, head_size=2, state_size=2, groups=1),
    "latent": LatentAttention(
        heads=2, query_rank=6, kv_rank=4, content_size=3, rope_size=2, value_size=3
    ),
}


def test_parts_that_cannot_be() -> None:
    makers = {each.__name__: each for each in (tiny, Attention, Experts, FeedForward)}

    def ask(part: str, feeds: int = 0, **given: Any) -> Any:
        if "experts" in given:
            given["experts"] = Experts(**given["experts"])
        if "attention" in given:
            given["attention"] = NAMED[given["attention"]]
        if "mixer_layers" in given:
            given["mixer_layers"] = tuple((n, NAMED[name]) for n, name in given["mixer_layers"])
        if feeds:
            given["feed_layers"] = ((feeds, FeedForward(size=8)),)
        return makers[part](**given)

    assert answered(ask, "parts") == []
