"""Transformers by hand: latent attention, windows, encoders, layouts over devices."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from language_models import LANGUAGE, by_name, counts, shared_by, tiny
from refusals import answered

from mlsim.workloads.blocks import Attention, Experts, FeedForward, LatentAttention, StateSpace
from mlsim.workloads.steps import Parallelism
from mlsim.zoo.spaces import Models

# Latent attention.


def test_latent_attention_by_hand() -> None:
    """Two heads; queries by 3, keys and values by 2, a rotary key of 1.

    query reduction 4 x 3, queries 3 x 2 x (2 + 1) = 18, compression 4 x 3,
    keys and values 2 x 2 x (2 + 2) = 16, output 2 x 2 x 4 = 16, norms 3 + 2.
    """
    attention = LatentAttention(
        heads=2, query_rank=3, kv_rank=2, content_size=2, rope_size=1, value_size=2
    )
    assert attention.parameters(4) == 12 + 18 + 12 + 16 + 16 + 5 == 79
    assert (attention.cached_elements, attention.kv_heads) == (3, 1)
    model = tiny(attention=attention)
    assert model.latent
    assert model.parameter_count == 340 + 2 * (79 - 48)
    operators = by_name(model)
    assert counts(operators["attention"]) == {
        # A pair: score 2 x 3, value 2 x 2; compressed: score 2 x 3, value 2 x 2.
        "pair_multiply_adds": 10,
        "absorbed_pair_multiply_adds": 2 * (2 * 2 + 1),
        "expand_multiply_adds": 16,
        "cached_elements": 3,
        "token_elements": 6 + 4,
        "live_elements": 4 + 12 + 4,
    }
    found = {
        name: (each.token_multiply_adds, each.parameters, each.token_elements)
        for name, each in list(operators.items())[2:8]
    }
    assert found == {
        "query reduction": (12, 12, 4 + 3),
        # A norm of 3 stands before the queries, one of 2 before keys and values.
        "queries": (18, 18 + 3, 3 + 6),
        # The compressed vector is written to the cache: as activation it is read only.
        "key and value compression": (12, 12, 4),
        "keys and values": (16, 16 + 2, 2 + 8),
        "attention": (0, 0, 6 + 4),
        "attention output": (16, 16, 4 + 4 + 4),
    }
    # Without a rank one matrix 4 x 6 for the queries, and one norm less.
    plain = replace(attention, query_rank=0)
    assert plain.parameters(4) == 24 + 12 + 16 + 16 + 2
    assert "query reduction" not in by_name(tiny(attention=plain))


def test_latent_attention_takes_the_way_with_less_work() -> None:
    """DeepSeek-V3: to read a prompt keys and values are expanded, to write they are not.

    A pair costs 40,960 MAC expanded and 139,264 compressed; expanding one
    cached token costs 16,777,216.
    """
    model = Models.DeepSeek_V3
    attention = by_name(model)["attention"]
    assert attention.pair_multiply_adds == 128 * (128 + 64 + 128) == 40_960
    assert attention.absorbed_pair_multiply_adds == 128 * (2 * 512 + 64) == 139_264
    assert attention.expand_multiply_adds == 512 * 128 * 256 == 16_777_216
    # One more token, 1,000 cached: 61 layers x 139,264 MAC for each more cached one.
    more = model.flop_count(1, 1000) - model.flop_count(1, 999)
    assert more == 2 * 61 * 139_264
    # A prompt: 1,000 more pairs for the 1,000th token, and its own projections.
    alone = model.flop_count(1, 0) - 2 * by_name(model)["output layer"].token_multiply_adds
    more = model.flop_count(1000) - model.flop_count(999)
    assert more == alone + 2 * 61 * 40_960 * 999


# Windows.


def test_a_window_by_hand() -> None:
    """Five tokens that see three at most: 1 + 2 + 3 + 3 + 3 = 12 pairs instead of 15."""
    window = Attention(heads=2, kv_heads=1, head_size=2, window=3)
    full, windowed = tiny(), tiny(attention=window)
    assert full.flop_count(5) - windowed.flop_count(5) == 2 * 2 * 8 * 3
    # With two cached: 3 + 3 + 3 instead of 3 + 4 + 5; with seven, 3 instead of 8.
    assert full.flop_count(3, 2) - windowed.flop_count(3, 2) == 2 * 2 * 8 * 3
    assert full.flop_count(1, 7) - windowed.flop_count(1, 7) == 2 * 2 * 8 * 5
    assert windowed.flop_count(1, 7) == windowed.flop_count(1, 30)
    (operator,) = [each for each in windowed.operators() if each.kind == "attention"]
    assert (operator.name, operator.attention_window) == ("attention in a window", 3)
    assert operator.repeats == 2


def test_some_layers_see_all_nevertheless() -> None:
    """Of six layers every third is full: two. Of the six, those in a window are four."""
    attention = Attention(heads=2, kv_heads=1, head_size=2, window=3, full_every=3)
    model = tiny(layers=6, attention=attention)
    assert model.full_layers == 2
    rows = {each.name: each for each in model.operators() if each.kind == "attention"}
    assert rows["attention"].repeats == 2
    assert rows["attention"].attention_window == model.context == 32
    assert rows["attention in a window"].repeats == 4
    # With ten cached: two layers meet 11 tokens, four meet 3.
    matrices = tiny(layers=6).flop_count(1, 0) - 6 * 2 * 8
    assert model.flop_count(1, 10) == matrices + 2 * 8 * (2 * 11 + 4 * 3)


# Encoders.


def test_an_encoder_sees_all_and_caches_nothing() -> None:
    """Three tokens meet nine times; keys and values are written and read as activations."""
    model = tiny(decoder=False)
    assert model.flop_count(3) == tiny().flop_count(3, causal=False)
    operators = by_name(model)
    assert all(each.cached_elements == 0 for each in operators.values())
    # 8 and 8 elements as in a decoder, and 4 of a key and a value for both.
    assert operators["queries, keys, values"].token_elements == 12
    assert operators["attention"].token_elements == 12


def test_bert_has_a_pooler_and_no_output_layer() -> None:
    operators = by_name(Models.BERT_Base)
    assert "output layer" not in operators
    pooler = operators["pooler"]
    assert pooler.parameters == 768 * 768 + 768
    assert pooler.token_limit == 1
    # 384 tokens: 12 layers of 12 x 768^2 weights, 384^2 pairs, and the pooler.
    layer = 12 * 768**2 * 384 + 384**2 * 2 * 768
    assert Models.BERT_Base.flop_count(384) == 2 * (12 * layer + 768**2)


# Layouts, by hand.


def test_tensor_parallel_by_hand() -> None:
    """Two devices: one head each, the same key and value, half of each other matrix."""
    operators = by_name(tiny(), Parallelism(tensor=2))
    expected = {
        # MAC, parameters, elements of activation.
        "embedding": (0, 20, 8),
        "norms": (0, 4, 8),
        # 4 x (2 + 2 + 2): the queries are halved, the one KV head is not.
        "queries, keys, values": (24, 24, 6),
        "attention": (0, 0, 4),
        "attention output": (8, 8, 10),
        "feed-forward, up": (24, 24, 7),
        "feed-forward, down": (12, 12, 11),
        "output layer": (20, 20, 9),
    }
    for name, (work, held, elements) in expected.items():
        operator = operators[name]
        assert operator.token_multiply_adds == work, name
        assert operator.parameters == held, name
        assert operator.token_elements == elements, name
    assert operators["attention"].pair_multiply_adds == 4
    assert operators["attention"].cached_elements == 4
    # A vector of 4 is added up over two: each sends half of it twice. Once
    # after each attention and feed-forward network, once after the embedding.
    reduce = operators["all-reduce"]
    assert (reduce.link_elements, reduce.repeats) == (4.0, 5)
    # Half of ten scores is elsewhere, for the last token only.
    gather = operators["gather of the output"]
    assert (gather.link_elements, gather.repeats, gather.token_limit) == (5.0, 1, 1)


def test_kv_heads_are_divided_before_they_are_repeated() -> None:
    attention = Attention(heads=8, kv_heads=2, head_size=2)
    for tensor, cached in ((1, 8), (2, 4), (4, 4), (8, 4)):
        operators = by_name(
            tiny(attention=attention, feed_forward=FeedForward(size=8)), Parallelism(tensor=tensor)
        )
        assert operators["attention"].cached_elements == cached


def test_pipeline_parallel_by_hand() -> None:
    """Two stages: a layer each; the one that holds more has the output layer."""
    operators = by_name(tiny(), Parallelism(pipeline=2))
    resident = {name: operator.resident_repeats for name, operator in operators.items()}
    others = {"embedding": 0.0, "norms": 2.5, "stage to stage": 0.0}
    assert len(resident) == 9
    assert resident == {name: others.get(name, 1.0) for name in resident}
    # All layers are still passed through, one vector is sent between the two.
    assert operators["attention"].repeats == 2
    sent = operators["stage to stage"]
    assert (sent.link_elements, sent.repeats) == (4, 1)


def test_a_tied_table_lies_on_the_last_stage_too() -> None:
    tied = tiny(tied_embeddings=True)
    assert by_name(tied)["output layer"].parameters == 0
    assert by_name(tied, Parallelism(pipeline=2))["output layer"].parameters == 40
    # An encoder's last stage has no output layer: the first one holds most.
    encoder = tiny(decoder=False, output_layer=False)
    assert by_name(encoder, Parallelism(pipeline=2))["embedding"].resident_repeats == 1.0


def test_expert_parallel_by_hand() -> None:
    """Four experts over four copies of the attention part: one on each device."""
    model = tiny(experts=Experts(count=4, per_token=2, size=3), feed_forward=None)
    layout = Parallelism(data=4, expert=4)
    assert layout.expert_replicas == 4
    operators = by_name(model, layout)
    assert operators["experts, up"].parameters == operators["experts, up"].parameters_routed == 24
    # The work of a device's own tokens, on average.
    assert operators["experts, up"].token_multiply_adds == 48
    # Both experts of a token are elsewhere three times in four; there and back.
    sent = operators["tokens to their experts and back"]
    assert (sent.link_elements, sent.repeats) == (2 * 2 * 4 * 3 / 4, 2)
    # All of attention is on each.
    assert operators["attention output"].parameters == 16


# Experts, chosen ones, devices of a tensor group, and all devices.
SPREADS = [(8, 2, 1, 8), (4, 2, 1, 2), (8, 8, 1, 4), (8, 3, 1, 4), (6, 3, 2, 6), (8, 4, 2, 4)]


def test_a_token_goes_once_to_each_device_of_its_experts() -> None:
    """Every choice of experts, counted one by one; devices of one tensor group need no copy."""
    for count, chosen, tensor, devices in SPREADS:
        each = count // devices
        visits = [
            len({expert // each for expert in choice if expert // each >= tensor})
            for choice in itertools.combinations(range(count), chosen)
        ]
        experts = Experts(count=count, per_token=chosen, size=4)
        layout = Parallelism(tensor=tensor, data=devices // tensor, expert=devices)
        mean = sum(visits) / len(visits)
        sent = experts.exchanged_elements(16, layout)
        assert sent == pytest.approx(16 * mean / tensor, rel=1e-12), (count, chosen)
        if tensor == 1:  # there and back
            model = tiny(experts=experts, feed_forward=None)
            link = by_name(model, layout)["tokens to their experts and back"].link_elements
            assert link == pytest.approx(2 * 4 * mean, rel=1e-12)


def test_experts_within_a_tensor_group_send_nothing_more() -> None:
    model = tiny(experts=Experts(count=4, per_token=2, size=4), feed_forward=None)
    together, spread = Parallelism(tensor=2), Parallelism(tensor=2, expert=2)
    assert by_name(model, together).keys() == by_name(model, spread).keys()
    assert by_name(model, together)["experts, up"] == by_name(model, spread)["experts, up"]
    assert spread.expert_replicas == 1


def test_devices_together_hold_at_least_the_model() -> None:
    broken = []
    for model, tensor in itertools.product(LANGUAGE, (1, 2, 4, 8)):
        if not shared_by(model, tensor):
            continue
        operators, whole = model.operators(Parallelism(tensor=tensor)), model.operators()
        held = tensor * sum(each.parameters * each.resident_repeats for each in operators)
        work = tensor * sum(each.token_multiply_adds * each.repeats for each in operators)
        alone = sum(each.token_multiply_adds * each.repeats for each in whole)
        # An indexer is on each device, whole.
        indexer = sum(
            each.token_multiply_adds * each.repeats
            for each in whole
            if each.name.startswith("index ")
        )
        # A table whose rows don't divide is a row short on some device; norms, routers, tables of
        # positions and shared KV heads repeat.
        least, most = model.parameter_count - tensor * model.hidden, 1.25 * model.parameter_count
        if not least <= held <= most:
            broken.append(f"{model.key} on {tensor} holds {held}, not {least} to {most}")
        if not alone * (1 - 1e-6) <= work <= alone * 1.25 + (tensor - 1) * indexer:
            broken.append(f"{model.key} on {tensor} works {work} instead of {alone}")
    assert broken == []


def test_a_layout_in_words() -> None:
    cases: list[tuple[dict[str, Any], str, int]] = [
        ({}, "1 device", 1),
        ({"tensor": 4, "pipeline": 2}, "TP4 PP2", 8),
        ({"data": 2, "expert": 8}, "DP2 EP8", 2),
        ({"tensor": 4, "pipeline": 2, "data": 3}, "TP4 PP2 DP3", 24),
        ({"tensor": 8, "sequence": True, "shard": "zero1"}, "TP8 sequence parallel zero1", 8),
    ]
    for sizes, words, devices in cases:
        layout = Parallelism(**sizes)
        assert (str(layout), layout.devices) == (words, devices)
    spread = Parallelism(tensor=8, pipeline=4, data=3, context=2)
    assert (spread.devices, spread.copies) == (192, 6)
    # Copies send nothing.
    assert tiny().operators(Parallelism(data=4)) == tiny().operators()


def test_a_layout_that_does_not_divide() -> None:
    base = tiny(layers=4)
    state = StateSpace(heads=4, head_size=2, state_size=3, groups=2)
    own = {
        "narrow": tiny(attention=Attention(heads=4, kv_heads=4, head_size=1)),
        "hybrid": replace(base, mixer_layers=((3, state), (1, base.attention))),
    }

    def ask(model: str, **layout: int) -> Any:
        return (own.get(model) or Models.get(model)).operators(Parallelism(**layout))

    assert answered(ask, "layouts") == []
