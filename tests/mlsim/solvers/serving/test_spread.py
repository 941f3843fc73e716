"""Services on many devices: shared sequences, uneven experts, nodes, and which links they use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from language_models import tiny
from refusals import answered
from services import CHIP, by_hand, llama

from mlsim import Engine, Hardware, Models, Systems
from mlsim.errors import UnreachableError
from mlsim.solvers.serving import measured_columns
from mlsim.solvers.serving.layouts import spread_columns
from mlsim.solvers.serving.measured_columns import constants
from mlsim.solvers.serving.serving import Serving
from mlsim.systems import Cluster, System
from mlsim.systems.link_calibration import exchange_or_roofline
from mlsim.workloads.blocks import Experts

NODE = Systems.HGX_H100


def shared(devices: int = 4, **arguments: Any) -> Serving:
    asked = {"model": "Llama3_8B", "hardware": NODE, "prompt_tokens": 1024, "precision": "bf16"}
    return Engine.serve(**{**asked, **arguments}, context_parallel=devices)


def routed(imbalance: Any = 1.0, **arguments: Any) -> Serving:
    asked = {"model": "DeepSeek_V3", "hardware": "DeepSeek_H800", "batch_size": 4096}
    asked |= {"data_parallel": 32, "expert_parallel": 32, "check_memory": False}
    return Engine.serve(**{**asked, **arguments}, expert_imbalance=imbalance)


# Context parallelism.


def test_what_goes_round_by_hand() -> None:
    """Three quarters of 1,024 tokens of keys and values, 8 heads of 128; of queries and results 32."""
    for part, elements in (("prefill", 1024 * 2 * 8 * 128), ("decode", 2 * 32 * 128)):
        found = getattr(shared(4), part).value("total_network_time")
        assert found == pytest.approx(32 * 0.75 * elements * 2 / 450e9)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_the_work_is_divided(devices: int) -> None:
    one, several = (shared(each, prompt_tokens=100_000) for each in (1, devices))
    # The scores of the last token are made once.
    scores = 2 * 4096 * 128_256
    whole = one.prefill.value("total_flops") - scores
    each = several.prefill.value("total_flops") - scores
    assert each * devices == pytest.approx(whole, rel=1e-12)
    cache = one.value("cache_memory")
    assert several.value("cache_memory") * devices == pytest.approx(cache)
    assert several.value("weight_memory") == one.value("weight_memory")
    assert several.value("time_to_first_token") < one.value("time_to_first_token")
    # Several times as long a sequence fits, as far as the model reads it.
    assert several.largest_batch > devices * one.largest_batch / 2
    # A step reads a part of the cache, and all weights.
    more = one.decode.value("total_bytes") - several.decode.value("total_bytes")
    assert more == pytest.approx((1 - 1 / devices) * cache, rel=0.01)


def test_a_ring_through_nodes_goes_at_the_outer_rate() -> None:
    inside = shared(2, hardware="DGX_H100_SuperPOD")
    across = shared(2, hardware="DGX_H100_SuperPOD", tensor_parallel=8)
    assert not any(each.between_nodes for each in inside.service.table)
    rings = [each for each in across.service.table if "ring" in each.name]
    assert rings
    assert all(each.between_nodes for each in rings)


def test_sequences_that_are_not_shared_and_layouts_that_find_no_room() -> None:
    assert answered(shared, "serving", "shared") == []
    assert answered(served, "serving", "nodes") == []


# Experts that are chosen unevenly.


def test_the_busiest_device_by_hand() -> None:
    even, uneven = routed(), routed(1.5)
    rows = {each["name"]: each for each in even.decode.operators}
    hot = {each["name"]: each for each in uneven.decode.operators}
    for name, row in hot.items():
        factor = 1.5 if name.startswith("experts") else 1.0
        assert row["flops"] == pytest.approx(factor * rows[name]["flops"])
    assert uneven.decode.value("total_network_time") == pytest.approx(
        1.5 * even.decode.value("total_network_time")
    )
    assert uneven.value("memory_required") == even.value("memory_required")


def test_uniform_routing_is_what_a_drawing_of_lots_gives() -> None:
    import numpy as np

    random = np.random.default_rng(0)
    for tokens, tolerance in ((2048, 0.02), (64, 0.1)):
        most = []
        for _ in range(20):
            chosen = random.random((tokens, 256)).argpartition(8, axis=1)[:, :8]
            most.append(np.bincount(chosen.ravel() // 8, minlength=32).max() / (tokens * 8 / 32))
        found = routed("uniform", batch_size=tokens).decode.value("expert_imbalance")
        assert found == pytest.approx(np.mean(most), rel=tolerance)


def test_the_bound_knows_no_imbalance() -> None:
    plain, uneven = (routed(each, estimate="bound") for each in (1.0, 2.0))
    assert plain.value("time_per_output_token") == uneven.value("time_per_output_token")


def test_the_imbalance_is_in_the_answer() -> None:
    assert "by chance" in str(routed("uniform"))
    assert "tokens of the busiest device with experts: 1.5 times the mean" in str(routed(1.5))
    assert shared(4).to_dict()["layout"]["context_parallel"] == 4
    assert "context_parallel" not in routed().to_dict()["layout"]
    assert routed(1.5).to_dict()["expert_imbalance"] == 1.5
    assert "greatest(expert_parallel)" in str(routed("uniform").decode.explain("load_factor"))


def test_an_imbalance_that_cannot_be() -> None:
    assert answered(routed, "serving", "imbalance") == []


def test_what_goes_round_and_what_is_chosen_by_the_row_of_each_operator() -> None:
    """Keys and values of 8 heads of 128, or queries and results of 32; nothing of other rows."""
    service = shared(4, prompt_tokens=1000).service
    found = spread_columns(service, tuple(service.table))
    places = {each.name: at for at, each in enumerate(service.table)}
    ring = places["keys and values round the ring"]
    for name, elements in (("ring_cached_elements", 2048.0), ("ring_query_elements", 8192.0)):
        wanted = [0.0] * len(places)
        wanted[ring] = elements
        assert list(found[name]) == wanted
        assert service.known.origin(name) == f"{service.model.name}, from its attention"
    uneven = routed(1.5).service
    share = spread_columns(uneven, tuple(uneven.table))["routed_share"]
    chosen = ("experts", "tokens to their experts")
    assert list(share) == [float(each.name.startswith(chosen)) for each in uneven.table]


INSIDE, OUTSIDE = 450e9, 50e9
PAIR = Cluster("Pair", NODE, nodes=2, link_bandwidth="50 GB/s")
LLAMA = {"model": "Llama3_70B", "batch_size": 16, "prompt_tokens": 1024, "precision": "bf16"}
RESULTS = ("time_to_first_token", "time_per_output_token", "generation_latency", "memory_required")


def served(hardware: Any = PAIR, **arguments: Any) -> Serving:
    return Engine.serve(**{**LLAMA, "hardware": hardware, **arguments})


def sent(serving: Serving, *names: str) -> float:
    """Elements of each token that are sent in a decode step, of operators of these names."""
    rows = [each for each in serving.service.table if each.name in names]
    return sum(each.link_elements * each.repeats for each in rows)


@pytest.mark.parametrize("estimate", ["bound", "roofline", "calibrated"])
def test_what_fits_in_a_node_is_as_it_was(estimate: str) -> None:
    for layout in ({"tensor_parallel": 8}, {"tensor_parallel": 4, "pipeline_parallel": 2}):
        there, alone = (served(each, estimate=estimate, **layout) for each in (PAIR, NODE))
        for name in RESULTS:
            assert there.value(name) == alone.value(name)


def test_an_all_reduce_over_two_nodes_by_hand() -> None:
    serving = served(tensor_parallel=16, batch_size=1)
    # Hidden size 8192; 160 sums in 80 layers, and one after the embedding. Each sum is reduced
    # and gathered among eight, then each eighth of it between two nodes. 2 bytes for each.
    sums = 161 * 2 * (2 * 8192 * 7 / 8 / INSIDE + 2 * 8192 / 8 / 2 / OUTSIDE)
    # 128,256 scores are gathered, likewise.
    scores = 2 * (128_256 * 7 / 8 / INSIDE + 128_256 / 8 / 2 / OUTSIDE)
    assert serving.decode.value("total_network_time") == pytest.approx(sums + scores, rel=1e-12)


def test_links_that_are_all_alike_are_one_large_node() -> None:
    fast = Cluster("Alike", NODE, nodes=2, link_bandwidth="450 GB/s")
    whole = System("Sixteen", NODE.device, devices=16, link_bandwidth="450 GB/s")
    two, one = (served(each, tensor_parallel=16) for each in (fast, whole))
    for name in RESULTS:
        assert two.value(name) == pytest.approx(one.value(name), rel=1e-12)


def test_stages_cross_nodes_at_the_outer_rate() -> None:
    serving = served(tensor_parallel=4, pipeline_parallel=4, batch_size=4)
    rows = {each.name: each.repeats for each in serving.service.table if "stage" in each.name}
    # Two stages in each node: two of three hops stay inside.
    assert rows == {"stage to stage": 2, "stage to stage, between nodes": 1}
    hops = 8192 * 2 * (2 / INSIDE + 1 / OUTSIDE)
    sums = 161 * 2 * 2 * 8192 * 3 / 4 / INSIDE
    scores = 2 * 128_256 * 3 / 4 / INSIDE
    assert serving.decode.value("total_network_time") == pytest.approx(hops + sums + scores)


def test_tokens_go_to_experts_inside_and_outside() -> None:
    layout = {"data_parallel": 32, "expert_parallel": 32, "batch_size": 32, "precision": None}
    asked = {**layout, "model": "DeepSeek_V3", "hardware": "DeepSeek_H800"}
    serving = served(**asked)
    inside, outside = (
        sent(serving, f"tokens to their experts and back{where}")
        for where in ("", ", between nodes")
    )
    groups = {each.name: each.link_group for each in serving.service.table if each.link_group}
    assert groups["tokens to their experts and back"] == 8
    # Of 31 other devices, 7 are in the same node.
    assert inside / (inside + outside) == pytest.approx(7 / 31)
    share = 1 - (248 * 247 * 246 * 245 * 244 * 243 * 242 * 241) / (
        256 * 255 * 254 * 253 * 252 * 251 * 250 * 249
    )
    assert inside + outside == pytest.approx(58 * 2 * 7168 * 31 * share)


def test_bands_sources_and_loads_know_of_nodes() -> None:
    serving = served(tensor_parallel=16, estimate="calibrated")
    text = " ".join(str(serving.decode.explain("total_network_time")).split())
    for words in (
        *("between nodes the same is assumed: ", "Pair: ", "Fourth-Generation NVLink"),
        "layout: devices that exchange",
    ):
        assert words in text
    assert serving.band("time_per_output_token") is None
    assert served(NODE, tensor_parallel=8, estimate="calibrated").band("time_per_output_token")
    assert served(tensor_parallel=16).load().devices == 16


def test_an_exchange_between_nodes_is_as_a_librarys_between_as_many_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 2 nodes two devices, of 32 the 8 of a node; each sends all it has.

    1.3 times the link counts as the link.
    """
    table = served(tensor_parallel=16, estimate="calibrated").service.table
    within, across = (
        next(each for each in table if each.name == f"all-reduce{where}")
        for where in ("", ", between nodes")
    )
    inside = exchange_or_roofline(NODE, 2, "all-reduce", graph=False)
    found = constants(PAIR, across, graph=True)
    assert found.link_latency == inside.link_latency != 0
    assert found.link_fraction == min(inside.link_fraction, 1)
    assert found.own_steps == 0 != inside.own_steps
    assert found.origin == f"between nodes the same is assumed: {inside.origin}"
    for graph in (True, False):
        own = exchange_or_roofline(NODE, 8, "all-reduce", graph=graph)
        assert constants(PAIR, within, graph=graph) == own
    asked: list[tuple[int, str]] = []

    def measured(_: System, group: int, name: str, **__: bool) -> Any:
        asked.append((group, name))
        return replace(inside, link_fraction=1.3)

    monkeypatch.setattr(measured_columns, "exchange_or_roofline", measured)
    for group, devices in ((2, 2), (32, 8)):
        found = constants(PAIR, replace(across, link_group=group), graph=True)
        assert (asked[-1], found.link_fraction) == ((devices, "all-reduce"), 1)


# Seven links of 64 GB/s at each device, one to each other device.
MESH = System("Mesh", Hardware.Cloud.H100, devices=8, link_bandwidth="448 GB/s", topology="mesh")


def rates(serving: Serving) -> dict[str, float]:
    """Return the rate at which each operator that sends does so."""
    data = serving.decode.explain("network_time").to_dict()
    shared = {known["quantity"]: known["value"] for known in data["inputs"]}
    names = [each.name for each in serving.service.table if each.link_group]
    rows = {row["name"]: row for row in data["operators"]}
    return {
        name: rows[name].get("link_bandwidth", {}).get("value", shared["link_bandwidth"])
        for name in names
    }


# Which links.

SUMS = {"all-reduce": 64e9, "gather of the output": 64e9}
EXPERTS = {"model": Models.Mixtral_8x7B, "expert_parallel": 8}
TENSOR_OF_FOUR = dict.fromkeys(SUMS, 192e9)


@pytest.mark.parametrize(
    ("sizes", "changes", "expected"),
    [
        # A pair uses one link, four devices three, all eight seven. Copies have no part in it.
        ((2, 1, 4), {}, SUMS),
        ((4, 1, 1), {}, TENSOR_OF_FOUR),
        ((8, 1, 1), {}, dict.fromkeys(SUMS, 448e9)),
        # One stage sends to the next, whatever happens within the stages.
        ((1, 8, 1), {}, {"stage to stage": 64e9}),
        ((4, 2, 1), {}, {**TENSOR_OF_FOUR, "stage to stage": 64e9}),
        # Tokens go to experts on all eight, sums stay within a pair.
        ((2, 1, 4), EXPERTS, {**SUMS, "tokens to their experts and back": 448e9}),
    ],
)
def test_a_group_of_a_mesh_has_its_own_links(
    sizes: tuple[int, ...], changes: dict[str, Any], expected: dict[str, float]
) -> None:
    names = ("tensor_parallel", "pipeline_parallel", "data_parallel")
    asked = {**dict(zip(names, sizes, strict=True)), **changes, "check_memory": False}
    assert rates(llama(hardware=MESH, **asked)) == pytest.approx(expected)
    # A switch has one rate for all.
    assert rates(llama(hardware=NODE, **asked)) == dict.fromkeys(expected, 450e9)


def test_sending_on_a_mesh_by_hand() -> None:
    """Llama 3.1 8B over four devices in each of two stages, one token.

    65 sums of 4,096 numbers over four: each device sends 2 x 3/4 of 8,192 B, three
    links of 64 GB/s wide. Of 128,256 scores 3/4 are elsewhere, of 2 B each. From
    stage to stage go 8,192 B over one link.
    """
    serving = llama(hardware=MESH, tensor_parallel=4, pipeline_parallel=2)
    sums, scores, handed = 65 * 12_288 / 192e9, 192_384 / 192e9, 8_192 / 64e9
    assert serving.decode.value("total_network_time") == pytest.approx(
        sums + scores + handed, rel=1e-12
    )
    # A prompt of 2,048 tokens sends as much for each, but the last one's scores.
    assert serving.prefill.value("total_network_time") == pytest.approx(
        2048 * (sums + handed) + scores, rel=1e-12
    )
    # A rate that is given is that of all.
    given = llama(hardware=MESH, tensor_parallel=4, pipeline_parallel=2, link_bandwidth="100 GB/s")
    assert set(rates(given).values()) == {100e9}
    assert given.decode.value("total_network_time") == pytest.approx(
        (65 * 12_288 + 192_384 + 8_192) / 100e9, rel=1e-12
    )


# Where nothing is sent.

ALONE = ({}, {"hardware": NODE}, {"hardware": NODE, "data_parallel": 8}, {"estimate": "bound"})


@pytest.mark.parametrize("what", ALONE, ids=lambda each: " ".join(each) or "one device")
def test_nothing_that_is_sent_takes_no_equation(what: dict[str, Any]) -> None:
    serving = llama(**what)
    for step in (serving.prefill, serving.decode):
        assert step.value("total_network_time") == step.value("network_share") == 0
        assert step.shares["Network Bound"] == 0
        for name in ("link_bandwidth", "network_time", "operator_time"):
            with pytest.raises(UnreachableError, match="nothing gives link_bandwidth"):
                step.value(name)
        data = step.explain().to_dict()
        told = {each["quantity"] for each in (*data["inputs"], *data["steps"])}
        assert not told & {"network_time", "link_bytes", "link_bandwidth", "operator_time"}
    assert "network" not in str(serving.decode.explain())


def test_copies_that_share_their_experts_do_send() -> None:
    """Four copies with an expert each: of two tokens' vectors 3/4 go away and come back.

    2 layers x 2 ways x 2 experts x 3/4 x 4 numbers of 2 B at 8 B/s: 6 s for each of them.
    """
    model = tiny(experts=Experts(count=4, per_token=2, size=3), feed_forward=None)
    four = System("Slow four", CHIP, devices=4, link_bandwidth="8 B/s")
    what = {"model": model, "hardware": four, "batch_size": 4, "data_parallel": 4}
    assert by_hand(**what).decode.value("total_network_time") == 0
    assert by_hand(**what, expert_parallel=4).decode.value("total_network_time") == 6.0
