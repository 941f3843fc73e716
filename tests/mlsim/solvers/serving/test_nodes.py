"""Services in several nodes: two levels of links, by hand, and what must not change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlsim import Engine, Systems
from mlsim.errors import InvalidValueError
from mlsim.solvers.serving import levels
from mlsim.solvers.serving.levels import constants
from mlsim.solvers.serving.serving import Serving
from mlsim.systems import Cluster, System
from mlsim.systems.link_calibration import exchange_or_roofline

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


def test_energy_and_bands_know_of_nodes() -> None:
    serving = served(tensor_parallel=16, estimate="calibrated")
    assert serving.band("time_per_output_token") is None
    assert served(NODE, tensor_parallel=8, estimate="calibrated").band("time_per_output_token")
    assert served(tensor_parallel=16).load().devices == 16


def test_an_exchange_between_nodes_is_as_a_librarys_between_as_many_devices() -> None:
    """Of two nodes that of two devices in one, at the link's rate at most; each sends all it has."""
    table = served(tensor_parallel=16, estimate="calibrated").service.table
    across = next(each for each in table if each.name == "all-reduce, between nodes")
    inside = exchange_or_roofline(NODE, 2, "all-reduce", graph=False)
    found = constants(PAIR, across, graph=True)
    assert found.link_latency == inside.link_latency != 0
    assert found.link_fraction == min(inside.link_fraction, 1)
    assert found.own_steps == 0 != inside.own_steps
    assert found.origin == f"between nodes the same is assumed: {inside.origin}"
    within = next(each for each in table if each.name == "all-reduce")
    for graph in (True, False):
        own = exchange_or_roofline(NODE, 8, "all-reduce", graph=graph)
        assert constants(PAIR, within, graph=graph) == own


def test_between_nodes_as_many_are_assumed_as_a_node_has_and_no_more_than_the_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 2 nodes two devices, of 32 the 8 of a node; 1.3 times the link counts as the link."""
    table = served(tensor_parallel=16, estimate="calibrated").service.table
    across = next(each for each in table if each.name == "all-reduce, between nodes")
    fast = replace(exchange_or_roofline(NODE, 2, "all-reduce", graph=False), link_fraction=1.3)
    asked: list[tuple[int, str]] = []

    def measured(_: System, group: int, name: str, **__: bool) -> Any:
        asked.append((group, name))
        return fast

    monkeypatch.setattr(levels, "exchange_or_roofline", measured)
    for graph in (True, False):
        for group, devices in ((2, 2), (32, 8)):
            found = constants(PAIR, replace(across, link_group=group), graph=graph)
            assert (asked[-1], found.link_fraction) == ((devices, "all-reduce"), 1)


def test_where_links_come_from_is_said() -> None:
    text = str(served(tensor_parallel=16).decode.explain("total_network_time"))
    assert "between nodes" in text
    assert "Fourth-Generation NVLink" in text


def test_layouts_that_find_no_room() -> None:
    for arguments, words in (
        ({"tensor_parallel": 8, "data_parallel": 4}, "needs 32 devices; Pair has 16. Use fewer"),
        (
            {"pipeline_parallel": 5, "data_parallel": 3},
            "PP5 DP3 on nodes of 8 takes 3 nodes, since what fits in a node is not torn; Pair has 2",
        ),
        ({"tensor_parallel": 12}, "does not divide the 64 attention heads"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            served(**arguments)


def test_load_runs_on_a_cluster() -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "rate": 5, "requests": 50, "tensor_parallel": 8}
    there, alone = (Engine.load(hardware=each, **asked) for each in (PAIR, NODE))
    assert there.value("time_to_first_token") == alone.value("time_to_first_token")
    with pytest.raises(InvalidValueError, match="does not divide"):
        Engine.load(**{**asked, "hardware": PAIR, "tensor_parallel": 12})
