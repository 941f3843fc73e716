"""Systems and clusters: devices joined by links, from arguments, from files and of the zoo."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import overlooked
from hypothesis import given, strategies as st
from kept import FIXTURES
from own_chips import chip
from refusals import answered
from training_runs import CHIP, CLUSTER, NODE

from mlsim import Cluster, Clusters, Device, Engine, Hardware, Models, System, Systems
from mlsim.equations.links import ring_pass_rate
from mlsim.errors import InvalidValueError, UnknownNameError, WrongKindError
from mlsim.records.references import references
from mlsim.systems.system import TOPOLOGIES, Placement, links_within, load_system, spread
from mlsim.values import quantity
from mlsim.workloads.steps import Parallelism
from mlsim.zoo.resolve import cluster, hardware

PAIR, FOUR = (FIXTURES / "texts" / f"{name}.toml" for name in ("system", "cluster"))
load = partial(load_system, device=Hardware.find)


def node(**changes: Any) -> System:
    """Return eight H100 that reach one another at 450 GB/s."""
    arguments = {"device": Hardware.Cloud.H100, "devices": 8, "link_bandwidth": "450 GB/s"}
    return System("My node", **{**arguments, **changes})


def torus(*shape: int, rate: str = "400 GB/s", **changes: Any) -> System:
    arguments = {"devices": math.prod(shape), "topology": "torus", "shape": shape, **changes}
    return System("My slice", Hardware.Cloud.TPUv5e, link_bandwidth=rate, **arguments)


def nodes(name: str = "x", **changes: Any) -> Cluster:
    """Return two round nodes."""
    return Cluster(name, **{"node": NODE, "nodes": 2, "link_bandwidth": "10 GB/s", **changes})


def changed(path: Path, folder: Path, *edits: tuple[str, str]) -> Path:
    text = path.read_text("utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / path.name).write_text(text, "utf-8")
    return folder / path.name


def test_what_cannot_be_is_refused() -> None:
    assert answered(node, "systems", "system") == []
    assert answered(partial(torus, 4, 4), "systems", "torus") == []
    assert answered(nodes, "systems", "cluster") == []
    for each in (CHIP, CLUSTER):
        with pytest.raises(WrongKindError, match="node must be a System"):
            nodes(node=each)
    with pytest.raises(InvalidValueError, match="positive"):
        node(link_bandwidth=quantity(np.array([1.0, 2.0]), "GB/s"))


# ---- a node ----


def test_a_system_of_ones_own() -> None:
    system = node()
    assert (system.key, system.name, system.source) == ("My node", "My node", "")
    assert (system.devices, system.topology) == (8, "switch")
    assert system.device is Hardware.Cloud.H100
    # A switch gives the same rate to any group.
    rates = [system.link_bandwidth(group) for group in (2, 4, 8)]
    assert {system.device_bandwidth_si, *rates} == {450e9}
    assert system.figure is system.figures["link.bandwidth"]
    assert (system.figure.text, system.figure.origin()) == ("450 GB/s", "given")
    assert repr(system) == "<System My node: 8 x NVIDIA H100 SXM 80 GB>"
    # One of its own: those of the zoo and of others remember what they were asked.
    halved = node(devices=2, link_bandwidth="225 GB/s")
    names = ("device_bandwidth", "link.bandwidth")
    assert {halved.by_name(name).text for name in names} == {"225 GB/s"}
    with pytest.raises(UnknownNameError, match="Did you mean 'device_bandwidth'"):
        system.by_name("device_bandwith")
    for rate in ("0.45 TB/s", quantity(450, "GB/s"), "3600 Gb/s"):
        assert node(link_bandwidth=rate).device_bandwidth_si == pytest.approx(450e9, rel=1e-12)


def test_what_is_drawn_beside_the_devices_is_known_of_both_or_not_at_all() -> None:
    """10.2 kW for eight devices of 700 W: 1,275 - 700 = 575 W each."""
    whole, link = Systems.HGX_H100.figures["power.max"], node().figures["link.bandwidth"]
    assert whole.si == 10_200
    about = {"devices": 8, "topology": "switch", "source": ""}
    found = [
        System.of_figures("x", "x", device=device, **about, figures={f.name: f for f in figures})
        for device, *figures in (
            (Hardware.Cloud.H100, link, whole),
            (Hardware.Cloud.H100, link),
            (chip(fp16="2 TFLOP/s"), link, whole),
        )
    ]
    drawn = [each.host_power_per_device for each in found]
    assert [each and each.text for each in drawn] == ["575 W", None, None]


def test_a_mesh_has_a_link_to_each_other_device() -> None:
    """Seven links of 64 GB/s: a pair uses one, four devices three, all eight seven."""
    system = node(link_bandwidth="448 GB/s", topology="mesh")
    rates = [system.link_bandwidth(group) for group in (2, 4, 8)]
    assert rates == pytest.approx([64e9, 192e9, 448e9], rel=1e-12)


def test_a_group_of_a_torus_uses_the_links_that_lead_within_it() -> None:
    """4 x 4 with four links of 100 GB/s.

    A pair has one link between them; four devices of a row form a ring, with two; eight are
    two rows, with one more; all sixteen use all four. Of three a ring goes round, of two not.
    """
    rates = [torus(4, 4).link_bandwidth(group) for group in (2, 3, 4, 8, 16)]
    assert rates == pytest.approx([100e9, 100e9, 200e9, 300e9, 400e9], rel=1e-12)
    assert [links_within(shape, 4) for shape in ((2, 2), (3, 2), (4,))] == [2, 3, 2]
    assert torus(2, 2).link_bandwidth(2) == pytest.approx(200e9)
    assert torus(4, 4, 2).link_bandwidth(16) == pytest.approx(400e9 * 4 / 5)


def test_a_slice_worked_by_hand() -> None:
    """An all-reduce of 4 GB over 64 chips, six links of 45 GB/s each.

    It is a reduction that scatters, and a gather: twice 4 GB x 63/64 at 270 GB/s. The book
    that the equation is from leaves out the 63/64: 2 x 4 / (3 axes x 90 GB/s) = 29.6 ms.
    """
    system = torus(4, 4, 4, rate="270 GB/s")
    seconds = 2 * 4e9 * float(ring_pass_rate(64, system.link_bandwidth(64)))
    assert seconds == pytest.approx(2 * 4e9 * 63 / 64 / 270e9, rel=1e-12)
    assert seconds == pytest.approx(29.6e-3 * 63 / 64, rel=2e-3)


@given(st.lists(st.integers(2, 8), min_size=1, max_size=3), st.floats(1e6, 1e12))
def test_a_larger_group_is_never_slower(shape: list[int], rate: float) -> None:
    devices = math.prod(shape)
    mesh = node(devices=devices, link_bandwidth=f"{rate} B/s", topology="mesh")
    for system in (torus(*shape, rate=f"{rate} B/s"), mesh):
        rates = [system.link_bandwidth(group) for group in range(2, devices + 1)]
        assert rates == sorted(rates)
        assert rates[-1] == pytest.approx(rate, rel=1e-12)
    assert rates[0] == pytest.approx(rate / (devices - 1), rel=1e-12)


def test_tokens_are_not_sent_to_experts_across_a_torus() -> None:
    """Bytes would pass through the devices between: the rate of a ring promises too much."""
    asked: dict[str, Any] = {"model": Models.Mixtral_8x7B, "hardware": torus(4, 4)}
    wide = {"tensor_parallel": 4, "expert_parallel": 8}
    with pytest.raises(InvalidValueError, match=r"above tensor_parallel 4, .* not modeled"):
        Engine.serve(**asked, prompt_tokens=128, output_tokens=16, data_parallel=2, **wide)
    with pytest.raises(InvalidValueError, match=r"Take expert_parallel=4, or a system with a"):
        Engine.train(**asked, global_batch=16, devices=16, **wide)
    run = Engine.train(**asked, global_batch=16, devices=16, tensor_parallel=4, expert_parallel=4)
    assert run.devices == 16


def test_systems_of_the_zoo_say_what_they_are() -> None:
    for system in Systems:
        assert isinstance(system.device, Device), system.key
        assert system.devices >= 2, system.key
        assert system.topology in TOPOLOGIES, system.key
        named = {system.source, *(figure.source for figure in system.figures.values())}
        assert named <= set(references()), system.key
        assert all(figure.quote for figure in system.figures.values()), system.key
        assert system.figure.direction in ("one-way", "both ways"), system.key
        halved = 0.5 if system.figure.direction == "both ways" else 1.0
        assert system.device_bandwidth_si == system.figure.si * halved
        assert system.link_bandwidth(system.devices) == pytest.approx(system.device_bandwidth_si)
        # A link is slower than the memory, or the units are wrong.
        assert system.device_bandwidth_si < system.device.bandwidth_si, system.key
        assert hardware(system.key) is hardware(system.name) is system


# ---- a cluster ----


def test_a_cluster_of_ones_own() -> None:
    assert (CLUSTER.devices, CLUSTER.nodes, CLUSTER.device) == (32, 4, CHIP)
    assert CLUSTER.fabric_bandwidth == 10e9
    assert [CLUSTER.link_bandwidth(size) for size in (2, 8, 16, 32)] == [100e9, 100e9, 10e9, 10e9]
    assert (CLUSTER.figure.text, CLUSTER.figure.origin()) == ("10 GB/s", "given")
    assert "4 x Round node" in repr(CLUSTER)
    # Figures go by their names: 3 nodes of eight, and bits are an eighth of bytes.
    found = nodes(node=Systems.HGX_A100, nodes=3, link_bandwidth="56 Gb/s")
    assert (found.by_name("devices").si, found.by_name("link.bandwidth").text) == (24, "7 GB/s")
    assert "3 nodes of 8" in str(found.by_name("devices").origin)
    assert found.link.bandwidth.text == found.figure.text
    assert found.figure.si == found.fabric_bandwidth == pytest.approx(7e9, rel=1e-12)
    with pytest.raises(UnknownNameError, match=r"figure of this cluster.*'devices'"):
        found.by_name("device")


def test_clusters_of_the_zoo_have_sources() -> None:
    for found in Clusters:
        figure = found.figure
        assert {found.source, figure.source} <= set(references()), found.key
        assert figure.direction in ("one-way", "both ways"), found.key
        assert len(figure.quote.split()) <= 15, found.key
        assert found.devices == found.nodes * found.node.devices
        # No fabric is faster than what joins a node, or a thousand times as slow.
        assert 1e-3 < found.fabric_bandwidth / found.node.device_bandwidth_si <= 1, found.key
    # 560 nodes of eight, each device with an adapter of 200 Gb/s.
    selene = Clusters.Selene
    assert (selene.devices, selene.node) == (4480, Systems.HGX_A100)
    assert selene.fabric_bandwidth == pytest.approx(25e9, rel=1e-12)
    # A cluster serves as one of its nodes where nothing leaves it.
    one, many = (
        Engine.serve(model="Llama3_8B", hardware=each, tensor_parallel=8)
        for each in ("HGX_A100", "Selene")
    )
    assert many.value("time_per_output_token") == one.value("time_per_output_token")


def test_a_layout_takes_so_many_nodes() -> None:
    """Nothing is torn that fits in a node of eight: how often stages cross, and nodes."""
    for layout, crossings, count in (
        (Parallelism(), 0, 1),
        (Parallelism(tensor=8), 0, 1),
        (Parallelism(tensor=4, pipeline=2), 0, 1),
        (Parallelism(tensor=4, pipeline=4), 1, 2),
        (Parallelism(tensor=8, pipeline=4), 3, 4),
        (Parallelism(tensor=8, pipeline=4, data=3), 3, 12),
        (Parallelism(tensor=2, data=8), 0, 2),
        # Three copies of three devices: two fit in a node, the third is not torn.
        (Parallelism(tensor=3, data=3), 0, 2),
        (Parallelism(tensor=16), 0, 2),
        (Parallelism(tensor=16, pipeline=2), 1, 4),
        (Parallelism(tensor=8, context=4), 0, 4),
        (Parallelism(tensor=4, context=2, pipeline=2), 1, 2),
    ):
        found = spread(layout, 8)
        assert (found.crossings, found.nodes) == (crossings, count), layout
    # Experts lie beside those of copies in the same node.
    assert spread(Parallelism(data=32, expert=32), 8).copies == Placement(8, 4)
    assert spread(Parallelism(tensor=8, data=4, expert=32), 8).copies == Placement(1, 4)
    assert spread(Parallelism(data=64, expert=64), 72).copies.groups == 1


# ---- files ----


def test_what_is_wrong_with_a_file_is_named_with_its_line() -> None:
    assert overlooked(load, PAIR.read_text("utf-8"), "system_faults") == []
    assert (
        overlooked(lambda path: cluster(str(path)), FOUR.read_text("utf-8"), "cluster_faults") == []
    )


def test_files_are_read(tmp_path: Path) -> None:
    """Both directions are printed together: 900 GB/s is 450 each way, 400 Gb/s is 25 GB/s."""
    system = load(PAIR)
    assert (system.figure.si, system.figure.text) == (900e9, "900 GB/s")
    assert system.device_bandwidth_si == system.link_bandwidth(2) == 450e9
    assert (system.key, system.name, system.devices) == ("Pair", "Two H100", 2)
    # A device goes by the last part of its key, too.
    one_way = load(changed(PAIR, tmp_path, ("both ways", "one-way"), ("Cloud.H100", "H100")))
    assert system.device is one_way.device is Hardware.Cloud.H100
    assert one_way.device_bandwidth_si == one_way.link_bandwidth(2) == 900e9
    text = PAIR.read_text("utf-8")
    latency = (
        text[text.index("\n[link") :].replace("bandwidth]", "latency]").replace("GB/s", "us", 1)
    )
    latency = latency.replace('direction = "both ways"\n', "").replace("value = 900", "value = 2")
    late = tmp_path / "late.toml"
    late.write_text(text + latency, "utf-8")
    assert load(late).figures["link.latency"].si == pytest.approx(2e-6)
    four = cluster(str(FOUR))
    assert (four.key, four.devices, four.node) == ("Mine", 32, Systems.HGX_A100)
    assert four.fabric_bandwidth == pytest.approx(25e9, rel=1e-12)


def test_a_file_is_a_hardware_like_any_other() -> None:
    asked = {"model": "Llama3_8B", "tensor_parallel": 2}
    from_file = Engine.serve(**asked, hardware=str(PAIR))
    by_hand = Engine.serve(**asked, hardware=node(devices=2))
    assert from_file.value("generation_latency") == by_hand.value("generation_latency")
    inputs = from_file.decode.explain("network_time").to_dict()["inputs"]
    words = 'Two H100: datasheet, nvidia2024h100, page 1, "900GB/s", read 2026-11-21'
    assert {each["quantity"]: each["origin"] for each in inputs}["link_bandwidth"] == words
