"""What devices send one another in a step, against hand calculations."""

from __future__ import annotations

import pytest
from training_runs import (
    BETWEEN,
    CHIP,
    INSIDE,
    LAYERS,
    MIXTURE,
    NODE,
    SMALL,
    TOKENS,
    WIDE,
    exactly,
    gpt,
    spent,
    train,
)

from mlsim.systems.system import placement
from mlsim.workloads.blocks import Attention

WEIGHTS = 2 * SMALL.parameter_count
# Bytes of one micro-batch of one sequence, once over the width.
SBH = 2 * TOKENS * WIDE
HOP = 5e-6


# ---- gradients --------------------------------------------------------------------------


def test_gradients_of_copies_are_added_up() -> None:
    """A ring sends all but a part twice, at its slowest link; a tree sends all twice.

    In two levels each device carries an eighth to its peers in the other nodes.
    """
    for n in (2, 4, 8):
        assert spent("gradient_time", data_parallel=n) == exactly(
            2 * (n - 1) / n * WEIGHTS / INSIDE
        )
    for n in (16, 32):
        found = spent("gradient_time", data_parallel=n, collective="ring")
        assert found == exactly(2 * (n - 1) / n * WEIGHTS / BETWEEN)
    for n in (2, 3, 8):
        found = spent("gradient_time", data_parallel=n, collective="tree", global_batch=96)
        assert found == exactly(2 * WEIGHTS / INSIDE)
    for nodes in (2, 4):
        found = spent("gradient_time", data_parallel=8 * nodes)
        between = (nodes - 1) / nodes * (WEIGHTS / 8) / BETWEEN
        assert found == exactly(2 * (7 / 8 * WEIGHTS / INSIDE + between))
        chosen = spent("gradient_time", data_parallel=8 * nodes, collective="hierarchical")
        assert found == chosen


def test_each_hop_must_start() -> None:
    for collective, n, hops in (
        *(("ring", 8, 7), ("ring", 32, 31), ("hierarchical", 32, 7 + 3), ("hierarchical", 8, 7)),
        *(("tree", 8, 3), ("tree", 32, 5)),
    ):
        way = {"data_parallel": n, "collective": collective}
        late = spent("gradient_time", **way, hop_latency="5 us")
        started = late - spent("gradient_time", **way)
        assert started == pytest.approx(2 * hops * HOP, rel=1e-9), (collective, n)
    # In an odd number of nodes a tree has another level.
    odd = {"data_parallel": 9, "collective": "tree", "global_batch": 18, "hop_latency": "5 us"}
    assert spent("pass_latency", **odd) == exactly(4 * HOP)


def test_sharding_sends_what_the_zero_paper_says() -> None:
    """Passes over the parameters, in bytes of weights (2) and of gradients (2 or 4).

    Of four micro-batches: who keeps a part of the gradients adds up after each, and who keeps a
    part of the weights gets them twice for each. Of one, stages 1 and 2 send as much as copies
    do, and stage 3 half more (Rajbhandari et al. 2020).
    """
    for shard, gradients, batch, passes in (
        *(("none", None, 32, 2 + 2), ("none", "fp32", 32, 4 + 4)),
        *(("zero1", None, 32, 2 + 2), ("zero1", "fp32", 32, 2 + 4)),
        *(("zero2", None, 32, 2 + 4 * 2), ("zero2", "fp32", 32, 2 + 4 * 4)),
        *(("zero3", None, 32, 4 * (2 + 2 + 2)), ("zero3", "fp32", 32, 4 * (2 + 2 + 4))),
        *(("none", None, 8, 2 * 2), ("zero1", None, 8, 2 * 2)),
        *(("zero2", None, 8, 2 * 2), ("zero3", None, 8, 3 * 2)),
    ):
        asked = {"data_parallel": 8, "shard": shard, "gradients": gradients}
        found = spent("gradient_time", **asked, global_batch=batch)
        assert found == exactly(passes * SMALL.parameter_count * 7 / 8 / INSIDE), asked


def test_where_a_group_lies_decides_how_its_gradients_travel() -> None:
    odd = placement(9, 1, 8)
    assert (odd.members, odd.groups, odd.size) == (3, 3, 9)
    # Copies of a shard of eight lie in different nodes; of four, two of them fit into one.
    run = train(tensor_parallel=8, data_parallel=4)
    sent = 2 * run.value("device_parameters")
    assert run.value("gradient_time") == exactly(2 * 3 / 4 * sent / BETWEEN)
    run = train(tensor_parallel=4, data_parallel=8)
    sent = 2 * run.value("device_parameters")
    between = 3 / 4 * sent / 2 / BETWEEN
    assert run.value("gradient_time") == exactly(2 * (sent / 2 / INSIDE + between))


# ---- within a stage ---------------------------------------------------------------------


def test_all_reduces_of_tensor_parallelism() -> None:
    """Four a layer, and two more where it is computed again; as halves they come once more.

    Beyond a node: a ring of the eight in it, then each with its peer in the other.
    """
    for t in (2, 4, 8):
        one = 2 * (t - 1) / t * SBH / INSIDE
        for recompute, count in (("none", 4), ("selective", 4), ("full", 6)):
            found = spent("exchange_time", tensor_parallel=t, recompute=recompute)
            assert found == exactly(LAYERS * count * one)
    for recompute, halves in (("none", 4 + 6), ("full", 4 + 4 + 6)):
        asked = {"tensor_parallel": 8, "sequence_parallel": True, "recompute": recompute}
        assert spent("exchange_time", **asked) == exactly(LAYERS * halves * 7 / 8 * SBH / INSIDE)
    wide = {"model": gpt(heads=16), "tensor_parallel": 16}
    two = 2 * SBH * (7 / 8 / INSIDE + 1 / 2 / 8 / BETWEEN)
    assert spent("exchange_time", **wide) == exactly(LAYERS * 4 * two)
    for layout, hops in ((wide, 2 * (7 + 1)), ({"tensor_parallel": 8}, 2 * 7)):
        late = spent("exchange_time", **layout, hop_latency="5 us")
        more = late - spent("exchange_time", **layout)
        assert more == pytest.approx(LAYERS * 4 * hops * HOP, rel=1e-9)


def test_keys_and_values_go_round_the_ring_and_tokens_to_their_experts() -> None:
    """Each of four devices passes on three parts of a quarter of the tokens.

    On the way back the gradients go with them. Of eight experts two are on each device, and a
    token meets two: 6 x 5 of 8 x 7 pairs leave a device out, so that a copy goes to each of
    three others in 26 of 56 cases.
    """
    attention = Attention(heads=8, kv_heads=2, head_size=8)
    part = TOKENS / 4 * 2 * 2 * 8 * 2
    for recompute, rounds in (("none", 3), ("full", 4)):
        asked = {"model": gpt(attention=attention), "context_parallel": 4, "recompute": recompute}
        assert spent("exchange_time", **asked) == exactly(LAYERS * rounds * 3 * part / INSIDE)
    once = 3 * SBH * 26 / 56 / INSIDE
    found = spent("exchange_time", model=MIXTURE, data_parallel=4, expert_parallel=4)
    assert found == exactly(LAYERS * 4 * once)


def test_who_is_alone_sends_nothing() -> None:
    alone = train(hardware=CHIP)
    assert [alone.shares[name] for name in ("exchange", "pipeline", "gradients")] == [0, 0, 0]
    assert alone.value("pass_rate") == alone.value("exchanged_parameters") == 0
    assert (
        spent("exchange_time", data_parallel=8) == spent("exchange_time", pipeline_parallel=4) == 0
    )
    assert spent("pipeline_time", tensor_parallel=2) == 0
    assert spent("gradient_time", tensor_parallel=8, shard="zero3") == 0
    # And a system is one node.
    of_node = spent("step_time", hardware=NODE, data_parallel=8)
    assert of_node == spent("step_time", data_parallel=8)


# ---- between stages ---------------------------------------------------------------------


def test_activations_go_on_and_their_gradients_come_back() -> None:
    """Of 32 micro-batches: within a node, over the fabric, or at the slowest link of the two.

    Two stages of four devices fill a node, so that the third is in another.
    """
    for t, p, v, rate, late in (
        *((1, 2, 1, INSIDE, 0.0), (1, 2, 2, INSIDE, 0.0), (4, 2, 1, INSIDE, 0.0)),
        *((8, 2, 1, BETWEEN, HOP), (4, 4, 1, BETWEEN, 0.0)),
    ):
        given = {"hop_latency": "5 us"} if late else {}
        layout = {"pipeline_parallel": p, "tensor_parallel": t, "interleaved": v}
        found = spent("pipeline_time", **layout, **given)
        assert found == exactly(2 * 32 * v * (late + SBH / t / rate)), layout


# ---- rates and overlap ------------------------------------------------------------------


def test_each_overlap_hides_its_own_part() -> None:
    layout = {"tensor_parallel": 2, "pipeline_parallel": 2, "data_parallel": 2}
    waits = train(**layout).breakdown
    parts = {"exchange": "exchange", "pipeline": "pipeline", "gradient": "gradients"}
    for name, part in parts.items():
        half = train(**layout, overlap={name: 0.5}).breakdown
        assert half[part].to("s").magnitude == exactly(waits[part].to("s").magnitude / 2)
        assert all(half[other] == waits[other] for other in {*parts.values()} - {part})
    # Of gradients no more is hidden than computing takes.
    hides = train(data_parallel=32, overlap=1.0)
    computing = sum(hides.value(f"{each}_time") for each in ("forward", "recompute", "backward"))
    left = hides.value("gradient_time") - computing * hides.value("micro_batches")
    assert hides.value("exposed_gradient_time") == exactly(left)
    assert hides.shares["exchange"] == hides.shares["pipeline"] == 0 < left


EXPERT = 8 * WIDE**2


def test_gradients_of_experts_are_added_up_among_those_that_hold_them() -> None:
    """Eight copies over which experts are spread: each expert has one owner, or two.

    Tokens of all copies go to it, so that its gradient is whole where it is; only owners of the
    same experts have something to add up.
    """
    for copies, groups in ((8, 8), (8, 4), (4, 4)):
        run = train(model=MIXTURE, data_parallel=copies, expert_parallel=groups)
        held = LAYERS * 8 * EXPERT / groups
        dense = run.value("device_parameters") - held
        owners = copies // groups
        hand = 4 * dense * (copies - 1) / copies / INSIDE
        hand += 4 * held * (owners - 1) / owners / INSIDE
        assert run.value("gradient_time") == exactly(hand)
