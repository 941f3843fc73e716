"""Layers that keep a state, or look at chosen tokens: counted by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from config_files import write
from language_models import counts, tiny
from real_configs import REAL

from mlsim import load_config
from mlsim.errors import WrongKindError
from mlsim.workloads.blocks import (
    Attention,
    DeltaRule,
    Experts,
    Indexer,
    LatentAttention,
    StateSpace,
)
from mlsim.workloads.kernels import Recipe
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism
from mlsim.workloads.training_lowering import kernels

# 4 heads of 2, a state of 3 numbers each, in 2 groups; a convolution over 4 tokens.
SPACE = StateSpace(heads=4, head_size=2, state_size=3, groups=2)
DELTA = DeltaRule(key_heads=2, heads=4, key_size=3, value_size=2)
ALONE = Parallelism()


def hybrid(**changes: object) -> Transformer:
    """Return the tiny model with states in three of four layers."""
    base = tiny(layers=4, vocabulary=32, context=64)
    mixers = ((3, SPACE), (1, base.attention))
    return replace(base, mixer_layers=mixers, **changes)


def test_a_state_space_layer_by_hand() -> None:
    """8 wide inside; 8 + 2 x 2 x 3 = 20 channels; 8 + 20 + 4 = 32 columns."""
    hidden = 5
    learned = 20 * (4 + 1) + 3 * 4 + 8
    assert SPACE.parameters(hidden) == 5 * 32 + 8 * 5 + learned
    # 4 x 2 x 3 numbers of 4 B, and 3 earlier inputs of 20 channels of 2 B.
    assert SPACE.state_bytes() == 24 * 4 + 60 * 2
    assert replace(SPACE, state_format="bf16").state_bytes() == 24 * 2 + 60 * 2
    rows = {each.name: each for each in SPACE.operators(hidden, ALONE)}
    state = rows["state"]
    # Into the state and out of it, and the convolution.
    assert state.token_multiply_adds == 2 * 24 + 20 * 4
    assert (state.parameters, state.sequence_state) == (learned, SPACE.state_bytes())
    assert (state.cached_elements, state.pair_multiply_adds) == (0, 0)
    assert rows["state inputs"].token_multiply_adds == 5 * 32
    assert rows["state output"].token_multiply_adds == 8 * 5


def test_a_layer_with_the_delta_rule_by_hand() -> None:
    """2 x 6 + 8 = 20 channels, 8 more that multiply the output, two gates for each head."""
    assert DELTA.parameters(5) == 5 * (20 + 8 + 8) + 8 * 5 + 20 * 4 + 2 * 4 + 2
    state = next(each for each in DELTA.operators(5, ALONE) if each.name == "state")
    # What the state holds under the key, the difference added, and the query.
    assert state.token_multiply_adds == 3 * (4 * 3 * 2) + 20 * 4
    assert DELTA.state_bytes() == 24 * 4 + 60 * 2


def test_devices_share_the_heads_of_a_state() -> None:
    for layer in (SPACE, DELTA):
        halves = list(layer.operators(4, Parallelism(tensor=2)))
        whole = list(layer.operators(4, ALONE))
        for half, one in zip(halves, whole, strict=True):
            assert 2 * half.sequence_state == one.sequence_state
            assert 2 * half.token_multiply_adds == one.token_multiply_adds
    # Groups that are too few stand on each device.
    one_group = replace(SPACE, groups=1)
    state = next(
        each for each in one_group.operators(4, Parallelism(tensor=2)) if each.sequence_state
    )
    # 2 heads of 2 x 3 numbers; 4 + 2 x 3 channels.
    assert state.sequence_state == 12 * 4 + 3 * 10 * 2


def test_only_attention_caches() -> None:
    model = hybrid()
    assert model.model_cached_elements == model.attention.cached_elements
    assert model.state_bytes_per_sequence == 3 * SPACE.state_bytes()
    held = sum(each.parameters * each.resident_repeats for each in model.operators())
    assert held == model.parameter_count


def test_work_of_a_state_does_not_grow_with_the_context() -> None:
    """One more token of cache is one more pair in the one layer with attention."""
    model = hybrid()
    grown = model.flop_count(1, 41) - model.flop_count(1, 40)
    # Two heads of 2: a score and a value for each pair.
    assert grown == 2 * 2 * 2 * 2
    plain = tiny(layers=4, context=64)
    assert plain.flop_count(1, 41) - plain.flop_count(1, 40) == 4 * grown


def test_a_real_hybrid_does_little_per_token_of_context(tmp_path: Path) -> None:
    """Nemotron-3-Nano: 6 of its 52 layers have attention, 32 heads of 128."""
    model = load_config(write(tmp_path, REAL["Nemotron-3-Nano-30B-A3B"][0]))
    grown = model.flop_count(1, 10_001) - model.flop_count(1, 10_000)
    assert grown == 6 * 2 * 2 * 32 * 128
    assert model.state_bytes_per_sequence == 23 * (4 * 64 * 64 * 128 + 2 * 3 * 6144)
    states = model.sequence_states
    assert (states.si, states.base) == (model.state_bytes_per_sequence, "B")
    assert "23 layers with a state" in states.origin.brief


# Tokens that an indexer chooses.

LATENT = LatentAttention(
    heads=2, query_rank=6, kv_rank=4, content_size=3, rope_size=2, value_size=3
)


def test_an_indexer_by_hand() -> None:
    """2 heads of 3: queries from a rank of 6, one key and 2 weights from a width of 5."""
    indexer = Indexer(heads=2, size=3)
    rows = {each.name: each for each in indexer.operators(5, 6)}
    assert rows["index scores"].pair_multiply_adds == 2 * 3
    assert rows["index scores"].cached_elements == 3
    assert sum(each.parameters for each in rows.values()) == 6 * 6 + 5 * 3 + 5 * 2 + 2 * 3
    # No device is spared any of it.
    sparse = replace(LATENT, chosen=8, indexer=indexer)
    pair = {each.name: each for each in sparse.operators(5, Parallelism(tensor=2))}
    assert counts(pair["index scores"]) == counts(rows["index scores"])


def test_attention_to_chosen_tokens_stops_growing() -> None:
    base = tiny(attention=LATENT, context=64, layers=2)
    sparse = replace(LATENT, chosen=8, indexer=Indexer(heads=2, size=3))
    model = replace(base, attention=sparse)
    assert model.window == 8
    pairs = {each.name: each for each in model.operators()}
    assert pairs["attention"].attention_window == 8
    # All tokens are kept, and all are looked at by the indexer.
    assert pairs["attention"].cache_window == pairs["index scores"].attention_window == 64
    before, after = (model.flop_count(1, cached) for cached in (40, 41))
    assert after - before == 2 * 2 * 2 * 3
    assert model.flop_count(1, 4) - model.flop_count(1, 3) > after - before
    assert model.model_cached_elements == 2 * (4 + 2 + 3)


def test_an_indexer_may_choose_for_heads_that_share_keys() -> None:
    """2 heads of 3 from a width of 5, without weights: one key, two norms."""
    indexer = Indexer(heads=2, size=3, weighted=False)
    plain = Attention(heads=4, kv_heads=2, head_size=6)
    found = replace(plain, chosen=8, indexer=indexer)
    assert found.parameters(5) - plain.parameters(5) == 5 * 6 + 5 * 3 + 2 * 3
    assert found.cached_elements == plain.cached_elements + 3
    rows = {each.name: each for each in found.operators(5, ALONE)}
    assert sum(each.parameters for each in rows.values()) == found.parameters(5)
    assert rows["attention"].attention_window == 8
    assert "index weights" not in rows


# Experts at a width of their own.


def test_experts_at_another_width_by_hand() -> None:
    """3 experts of 4 that work 2 wide in a model 6 wide, without a gate."""
    experts = Experts(count=3, per_token=2, size=4, gated=False, latent=2, shared=1)
    one = 2 * 2 * 4
    assert experts.parameters(6) == 3 * one + 2 * 6 * 2 + 3 * 6 + 2 * 6 * 4
    assert experts.idle_parameters(6) == one
    rows = {each.name: each for each in experts.operators(6, ALONE)}
    assert rows["experts, up"].token_multiply_adds == 2 * 2 * 4
    assert rows["experts, to their width"].token_multiply_adds == 6 * 2
    assert sum(each.parameters for each in rows.values()) == experts.parameters(6)


# Attention that is not alike.


def test_a_value_may_be_narrower_than_a_key() -> None:
    found = Attention(heads=4, kv_heads=2, head_size=6, value_size=4)
    assert found.cached_elements == 2 * (6 + 4)
    assert found.parameters(8) == 8 * (24 + 12 + 8) + 16 * 8
    rows = {each.name: each for each in found.operators(8, ALONE)}
    assert rows["attention"].pair_multiply_adds == 4 * (6 + 4)
    assert sum(each.parameters for each in rows.values()) == found.parameters(8)
    same = replace(found, value_size=6)
    assert same.cached_elements == replace(found, value_size=0).cached_elements


def test_a_gate_a_wide_norm_and_values_of_keys() -> None:
    plain = Attention(heads=4, kv_heads=2, head_size=6)
    assert replace(plain, output_gate=True).parameters(8) - plain.parameters(8) == 8 * 24
    wide = replace(plain, qk_norm=True, wide_norm=True)
    assert wide.parameters(8) - plain.parameters(8) == 24 + 12
    keyed = replace(plain, values_from_keys=True)
    assert plain.parameters(8) - keyed.parameters(8) == 8 * 12
    # Values are kept all the same.
    assert keyed.cached_elements == plain.cached_elements


def test_training_of_such_a_model_is_refused() -> None:
    for model in (hybrid(), tiny(attention=replace(LATENT, chosen=8))):
        assert not model.alike
        with pytest.raises(WrongKindError, match="has layers of several kinds"):
            kernels(model, Parallelism(), Recipe())
    assert tiny().alike
