"""What devices send one another in a step, against hand calculations."""

from __future__ import annotations

from typing import Any

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
    gpt,
    train,
)

from mlsim import Engine
from mlsim.systems import System
from mlsim.systems.cluster import placement
from mlsim.workloads.blocks import Attention

EXACT = 1e-12
WEIGHTS = 2 * SMALL.parameter_count
# Bytes of one micro-batch of one sequence, once over the width.
SBH = 2 * TOKENS * WIDE
HOP = 5e-6


def exactly(value: float) -> object:
    return pytest.approx(value, rel=EXACT)


def gradient(**changes: Any) -> float:
    return train(**changes).value("gradient_time")


# ---- gradients --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 4, 8])
def test_ring_all_reduce_in_a_node(n: int) -> None:
    assert gradient(data_parallel=n) == exactly(2 * (n - 1) / n * WEIGHTS / INSIDE)


@pytest.mark.parametrize("n", [16, 32])
def test_a_ring_through_nodes_goes_at_the_slowest_rate(n: int) -> None:
    found = gradient(data_parallel=n, collective="ring")
    assert found == exactly(2 * (n - 1) / n * WEIGHTS / BETWEEN)


@pytest.mark.parametrize("nodes", [2, 4])
def test_hierarchical_all_reduce(nodes: int) -> None:
    found = gradient(data_parallel=8 * nodes)
    within = 7 / 8 * WEIGHTS / INSIDE
    # Each device carries an eighth to its peers in the other nodes.
    between = (nodes - 1) / nodes * (WEIGHTS / 8) / BETWEEN
    assert found == exactly(2 * (within + between))
    assert found == gradient(data_parallel=8 * nodes, collective="hierarchical")


@pytest.mark.parametrize("n", [2, 3, 8])
def test_tree_all_reduce_sends_all_twice(n: int) -> None:
    found = gradient(data_parallel=n, collective="tree", global_batch=96)
    assert found == exactly(2 * WEIGHTS / INSIDE)


@pytest.mark.parametrize(
    ("collective", "n", "hops"),
    [
        ("ring", 8, 7),
        ("ring", 32, 31),
        ("hierarchical", 32, 7 + 3),
        ("hierarchical", 8, 7),
        ("tree", 8, 3),
        ("tree", 32, 5),
    ],
)
def test_each_hop_must_start(collective: str, n: int, hops: int) -> None:
    way = {"data_parallel": n, "collective": collective}
    started = gradient(**way, hop_latency="5 us") - gradient(**way)
    assert started == pytest.approx(2 * hops * HOP, rel=1e-9)


def test_in_an_odd_number_of_nodes_a_tree_has_another_level() -> None:
    run = train(data_parallel=9, collective="tree", global_batch=18, hop_latency="5 us")
    assert run.value("pass_latency") == exactly(4 * HOP)


@pytest.mark.parametrize(
    ("shard", "gradients", "passes"),
    [
        ("none", None, 2 + 2),
        ("none", "fp32", 4 + 4),
        ("zero1", None, 2 + 2),
        ("zero1", "fp32", 2 + 4),
        # Four micro-batches: who keeps a part of the gradients adds up after each.
        ("zero2", None, 2 + 4 * 2),
        ("zero2", "fp32", 2 + 4 * 4),
        # And who keeps a part of the weights gets them twice for each.
        ("zero3", None, 4 * (2 + 2 + 2)),
        ("zero3", "fp32", 4 * (2 + 2 + 4)),
    ],
)
def test_sharding_sends_what_the_zero_paper_says(
    shard: str, gradients: str | None, passes: float
) -> None:
    found = gradient(data_parallel=8, shard=shard, gradients=gradients)
    assert found == exactly(passes * SMALL.parameter_count * 7 / 8 / INSIDE)


@pytest.mark.parametrize(
    ("shard", "passes"), [("none", 2), ("zero1", 2), ("zero2", 2), ("zero3", 3)]
)
def test_of_one_micro_batch_the_volume_is_two_or_three_times_the_model(
    shard: str, passes: int
) -> None:
    """Rajbhandari et al. 2020: stages 1 and 2 send as much as copies do, stage 3 half more."""
    found = gradient(data_parallel=8, shard=shard, global_batch=8)
    assert found == exactly(passes * WEIGHTS * 7 / 8 / INSIDE)


def test_one_copy_sends_no_gradients() -> None:
    for shard in ("none", "zero1", "zero3"):
        run = train(tensor_parallel=8, shard=shard)
        assert run.value("gradient_time") == 0
        assert run.shares["gradients"] == 0


def test_copies_of_a_tensor_shard_lie_in_different_nodes() -> None:
    run = train(tensor_parallel=8, data_parallel=4)
    sent = 2 * run.value("device_parameters")
    assert run.value("gradient_time") == exactly(2 * 3 / 4 * sent / BETWEEN)


def test_two_copies_of_four_fit_into_a_node() -> None:
    run = train(tensor_parallel=4, data_parallel=8)
    sent = 2 * run.value("device_parameters")
    between = 3 / 4 * sent / 2 / BETWEEN
    assert run.value("gradient_time") == exactly(2 * (sent / 2 / INSIDE + between))


@pytest.mark.parametrize(
    ("size", "stride", "members", "groups"),
    [(8, 1, 8, 1), (32, 1, 8, 4), (4, 8, 1, 4), (8, 4, 2, 4), (2, 4, 2, 1), (9, 1, 3, 3)],
)
def test_where_a_group_lies(size: int, stride: int, members: int, groups: int) -> None:
    found = placement(size, stride, 8)
    assert (found.members, found.groups, found.size) == (members, groups, size)


# ---- within a stage ---------------------------------------------------------------------


@pytest.mark.parametrize(("recompute", "count"), [("none", 4), ("selective", 4), ("full", 6)])
@pytest.mark.parametrize("t", [2, 4, 8])
def test_all_reduces_of_tensor_parallelism(t: int, recompute: str, count: int) -> None:
    run = train(tensor_parallel=t, recompute=recompute)
    one = 2 * (t - 1) / t * SBH / INSIDE
    assert run.value("exchange_time") == exactly(LAYERS * count * one)


@pytest.mark.parametrize(("recompute", "halves"), [("none", 4 + 6), ("full", 4 + 4 + 6)])
def test_sequence_parallelism_sends_halves_of_all_reduces(recompute: str, halves: int) -> None:
    """Forward as much as plain tensor parallelism; on the way back inputs come once more."""
    run = train(tensor_parallel=8, sequence_parallel=True, recompute=recompute)
    assert run.value("exchange_time") == exactly(LAYERS * halves * 7 / 8 * SBH / INSIDE)


def test_tensor_parallelism_beyond_a_node_goes_in_two_levels() -> None:
    """A ring of the eight in a node, then each with its peer in the other."""
    run = train(model=gpt(heads=16), tensor_parallel=16)
    one = 2 * SBH * (7 / 8 / INSIDE + 1 / 2 / 8 / BETWEEN)
    assert run.value("exchange_time") == exactly(LAYERS * 4 * one)
    late = train(model=gpt(heads=16), tensor_parallel=16, hop_latency="5 us")
    hops = 2 * (7 + 1)
    more = late.value("exchange_time") - run.value("exchange_time")
    assert more == pytest.approx(LAYERS * 4 * hops * HOP, rel=1e-9)


def test_messages_within_a_stage_must_start() -> None:
    run = train(tensor_parallel=8, hop_latency="5 us")
    idle = train(tensor_parallel=8)
    more = run.value("exchange_time") - idle.value("exchange_time")
    assert more == pytest.approx(LAYERS * 4 * 14 * HOP, rel=1e-9)


@pytest.mark.parametrize(("recompute", "rounds"), [("none", 3), ("full", 4)])
def test_keys_and_values_go_round_the_ring(recompute: str, rounds: int) -> None:
    attention = Attention(heads=8, kv_heads=2, head_size=8)
    run = train(model=gpt(attention=attention), context_parallel=4, recompute=recompute)
    # Each of four devices passes on three parts of a quarter of the tokens; on the
    # way back the gradients go with them.
    part = TOKENS / 4 * 2 * 2 * 8 * 2
    assert run.value("exchange_time") == exactly(LAYERS * rounds * 3 * part / INSIDE)


def test_tokens_go_to_their_experts_and_back() -> None:
    run = train(model=MIXTURE, data_parallel=4, expert_parallel=4)
    # Two of eight experts, two on each device: 6 x 5 of 8 x 7 pairs leave a device out, so
    # that a copy goes to each of three others in 26 of 56 cases.
    once = 3 * SBH * 26 / 56 / INSIDE
    assert run.value("exchange_time") == exactly(LAYERS * 4 * once)


def test_one_device_sends_nothing() -> None:
    run = Engine.train(model=SMALL, hardware=CHIP, global_batch=2, sequence_tokens=TOKENS)
    assert [run.shares[name] for name in ("exchange", "pipeline", "gradients")] == [0, 0, 0]


def test_without_tensor_parallelism_a_stage_sends_nothing() -> None:
    assert train(data_parallel=8).value("exchange_time") == 0
    assert train(pipeline_parallel=4).value("exchange_time") == 0


# ---- between stages ---------------------------------------------------------------------


@pytest.mark.parametrize(("t", "v"), [(1, 1), (1, 2), (4, 1)])
def test_activations_go_on_and_their_gradients_come_back(t: int, v: int) -> None:
    run = train(pipeline_parallel=2, tensor_parallel=t, interleaved=v)
    sends = 2 * 32 * v
    assert run.value("pipeline_time") == exactly(sends * SBH / t / INSIDE)


def test_stages_in_other_nodes_are_reached_over_the_fabric() -> None:
    run = train(pipeline_parallel=2, tensor_parallel=8, hop_latency="5 us")
    assert run.value("pipeline_time") == exactly(2 * 32 * (HOP + SBH / 8 / BETWEEN))


def test_a_pipeline_through_nodes_goes_at_its_slowest_link() -> None:
    # Two stages of four devices fill a node, so that the third is in another.
    run = train(pipeline_parallel=4, tensor_parallel=4)
    assert run.value("pipeline_time") == exactly(2 * 32 * SBH / 4 / BETWEEN)
    run = train(pipeline_parallel=2, tensor_parallel=4)
    assert run.value("pipeline_time") == exactly(2 * 32 * SBH / 4 / INSIDE)


def test_one_stage_sends_nothing() -> None:
    assert train(tensor_parallel=2).value("pipeline_time") == 0


# ---- rates and overlap ------------------------------------------------------------------

LAYOUTS = (
    {"data_parallel": 32},
    {"tensor_parallel": 8, "data_parallel": 4, "shard": "zero3"},
    {"tensor_parallel": 4, "pipeline_parallel": 4, "sequence_parallel": True},
    {"context_parallel": 8, "data_parallel": 4},
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("inside", [1, 2])
def test_a_faster_link_never_slows(layout: dict[str, Any], inside: int) -> None:
    from mlsim import Cluster

    node = System("Fast", CHIP, devices=8, link_bandwidth=f"{100 * inside} GB/s")
    fast = Cluster("Fast", node, nodes=4, link_bandwidth=f"{20 / inside} GB/s")
    assert train(hardware=fast, **layout).value("step_time") < train(**layout).value("step_time")


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_overlap_hides_at_most_what_there_is(layout: dict[str, Any]) -> None:
    waits, hides = train(**layout), train(**layout, overlap=1.0)
    computing = sum(hides.value(f"{each}_time") for each in ("forward", "recompute", "backward"))
    computing *= hides.value("micro_batches")
    assert hides.shares["exchange"] == hides.shares["pipeline"] == 0
    left = max(0.0, waits.value("gradient_time") - computing)
    assert hides.value("exposed_gradient_time") == exactly(left)
    sent = sum(waits.breakdown[name].to("s").magnitude for name in ("exchange", "pipeline"))
    sent += waits.value("gradient_time")
    # A shorter stage also makes a shorter bubble.
    idle = waits.value("bubble_time") - hides.value("bubble_time")
    saved = waits.value("step_time") - hides.value("step_time")
    assert saved <= (sent + idle) * (1 + 1e-12)


def test_each_overlap_hides_its_own_part() -> None:
    layout = {"tensor_parallel": 2, "pipeline_parallel": 2, "data_parallel": 2}
    waits = train(**layout).breakdown
    for name, part in (
        ("exchange", "exchange"),
        ("pipeline", "pipeline"),
        ("gradient", "gradients"),
    ):
        half = train(**layout, overlap={name: 0.5}).breakdown
        assert half[part].to("s").magnitude == exactly(waits[part].to("s").magnitude / 2)
        others = {"exchange", "pipeline", "gradients"} - {part}
        assert all(half[other] == waits[other] for other in others)


def test_a_system_is_one_node() -> None:
    of_node = train(hardware=NODE, data_parallel=8).value("step_time")
    assert of_node == train(data_parallel=8).value("step_time")
