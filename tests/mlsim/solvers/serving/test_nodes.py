"""Services in several nodes: two levels of links, by hand, and what must not change."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Clusters, Engine, Systems
from mlsim.errors import InvalidValueError
from mlsim.solvers.serving.serving import Serving
from mlsim.systems import Cluster, System

NODE = Systems.HGX_H100
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
@pytest.mark.parametrize(
    "layout", [{"tensor_parallel": 8}, {"tensor_parallel": 4, "pipeline_parallel": 2}], ids=str
)
def test_what_fits_in_a_node_is_as_it_was(estimate: str, layout: dict[str, int]) -> None:
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


def test_both_levels_send_what_one_ring_would() -> None:
    whole = System("Sixteen", NODE.device, devices=16, link_bandwidth="450 GB/s")
    two, one = (served(each, tensor_parallel=16) for each in (PAIR, whole))
    for name in ("all-reduce", "gather of the output"):
        both = sent(two, name, f"{name}, between nodes")
        assert both == pytest.approx(sent(one, name), rel=1e-12)


def test_an_infinitely_fast_outer_link_leaves_what_is_sent_inside() -> None:
    endless = Cluster("Endless", NODE, nodes=4, link_bandwidth="1e30 B/s")
    serving = served(endless, tensor_parallel=8, pipeline_parallel=4)
    alone = served(NODE, tensor_parallel=8)
    # Four micro-batches of four: as a node with a batch of four, and hops that cost nothing.
    small = served(NODE, tensor_parallel=8, batch_size=4)
    found = serving.decode.value("total_network_time")
    assert found == pytest.approx(small.decode.value("total_network_time"), rel=1e-12)
    assert serving.value("time_per_output_token") == pytest.approx(
        small.value("time_per_output_token"), rel=1e-12
    )
    assert serving.value("weight_memory") < alone.value("weight_memory") / 3


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
    # Of 31 other devices, 7 are in the same node.
    assert inside / (inside + outside) == pytest.approx(7 / 31)
    share = 1 - (248 * 247 * 246 * 245 * 244 * 243 * 242 * 241) / (
        256 * 255 * 254 * 253 * 252 * 251 * 250 * 249
    )
    assert inside + outside == pytest.approx(58 * 2 * 7168 * 31 * share)


def test_a_slower_fabric_never_helps() -> None:
    times = [
        served(
            Cluster("Some", NODE, nodes=2, link_bandwidth=f"{rate} GB/s"), tensor_parallel=16
        ).value("time_per_output_token")
        for rate in (400, 50, 12.5)
    ]
    assert times == sorted(times)


def test_a_rack_is_one_node_and_a_cluster_of_racks_two_levels() -> None:
    asked = {"model": "Llama3_405B", "tensor_parallel": 8, "estimate": "roofline"}
    rack = served("GB200_NVL72", pipeline_parallel=9, **asked)
    assert not rack.service.beyond_one_node
    racks = served(Clusters.Tyche, pipeline_parallel=18, batch_size=18, **asked)
    assert [each.repeats for each in racks.service.table if each.between_nodes] == [1]


def test_energy_and_bands_know_of_nodes() -> None:
    serving = served(tensor_parallel=16, estimate="calibrated")
    assert serving.band("time_per_output_token") is None
    assert served(NODE, tensor_parallel=8, estimate="calibrated").band("time_per_output_token")
    used = Engine.footprint(served(tensor_parallel=16), grid="France", pue=1.2)
    assert used.value("device_energy") > 0
    assert served(tensor_parallel=16).load().devices == 16


def test_where_links_come_from_is_said() -> None:
    text = str(served(tensor_parallel=16).decode.explain("total_network_time"))
    assert "between nodes" in text
    assert "Fourth-Generation NVLink" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"tensor_parallel": 8, "data_parallel": 4},
            (
                "tensor_parallel 8 x data_parallel 4 needs 32 devices; Pair has 16. Use fewer, or a "
                "larger cluster."
            ),
        ),
        (
            {"tensor_parallel": 1, "pipeline_parallel": 5, "data_parallel": 3},
            (
                "PP5 DP3 on nodes of 8 takes 3 nodes, since what fits in a node is not torn; Pair "
                "has 2. Choose sizes that divide 8, such as tensor_parallel=1, or use fewer "
                "devices."
            ),
        ),
    ],
)
def test_layouts_that_find_no_room(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValueError) as e:
        served(**arguments)
    assert str(e.value) == message


def test_tensor_parallel_still_divides_the_heads() -> None:
    with pytest.raises(InvalidValueError, match="does not divide the 64 attention heads"):
        served(tensor_parallel=12)


def test_a_plan_takes_clusters() -> None:
    found = Engine.plan(
        model="Llama3_70B", rate=5, hardware="DGX_H100_SuperPOD", estimate="roofline"
    )
    assert found.best.service.system is Clusters.DGX_H100_SuperPOD


def test_load_runs_on_a_cluster() -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "rate": 5, "requests": 50, "tensor_parallel": 8}
    there, alone = (Engine.load(hardware=each, **asked) for each in (PAIR, NODE))
    assert there.value("time_to_first_token") == alone.value("time_to_first_token")
    with pytest.raises(InvalidValueError, match="does not divide"):
        Engine.load(**{**asked, "hardware": PAIR, "tensor_parallel": 12})
