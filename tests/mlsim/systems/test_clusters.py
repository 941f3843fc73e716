"""Clusters: from arguments, from the zoo and from files, and what is wrong with a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from training_runs import CHIP, CLUSTER, NODE

from mlsim import Cluster, Clusters, Engine, Systems
from mlsim.errors import (
    DataFileError,
    InvalidValueError,
    MlsimError,
    UnitError,
    UnknownNameError,
    WrongKindError,
)
from mlsim.records.references import references
from mlsim.zoo.resolve import cluster

FILE = """key = "Mine"
name = "My cluster"
node = "HGX_A100"
nodes = 4
source = "narayanan2021megatron"

[link.bandwidth]
value = 400
unit = "Gb/s"
direction = "both ways"
per = "device"
kind = "datasheet"
source = "narayanan2021megatron"
where = "a section"
quote = "adapters of 400 Gb/s"
read = 2026-11-21
"""


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Return a function that writes the file with one thing changed."""

    def write(old: str = "", new: str = "", text: str = FILE) -> Path:
        assert old in text
        path = tmp_path / "mine.toml"
        path.write_text(text.replace(old, new, 1) if old else text, encoding="utf-8")
        return path

    return write


# ---- from arguments ---------------------------------------------------------------------


def test_a_cluster_of_ones_own() -> None:
    assert (CLUSTER.devices, CLUSTER.nodes, CLUSTER.device) == (32, 4, CHIP)
    assert CLUSTER.fabric_bandwidth == 10e9
    assert [CLUSTER.link_bandwidth(size) for size in (2, 8, 16, 32)] == [100e9, 100e9, 10e9, 10e9]
    assert (CLUSTER.figure.text, CLUSTER.figure.origin()) == ("10 GB/s", "given")
    assert "4 x Round node" in repr(CLUSTER)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        *(({"nodes": each}, InvalidValueError, "nodes must be a whole number from 1 up")
          for each in (0, 2.0, True, "4", None)),
        *(({"link_bandwidth": each}, InvalidValueError, "link_bandwidth must be positive")
          for each in ("0 GB/s", "-1 GB/s", "inf GB/s")),
        ({"link_bandwidth": 10e9}, UnitError, "needs a unit"),
        ({"link_bandwidth": "10 GB"}, UnitError, "GB"),
        *(({"node": each}, WrongKindError, "node must be a System")
          for each in (CHIP, CLUSTER, "HGX_A100")),
    ],
    ids=str,
)  # fmt: skip
def test_a_cluster_that_cannot_be(
    given: dict[str, Any], kind: type[MlsimError], words: str
) -> None:
    asked = {"node": NODE, "nodes": 2, "link_bandwidth": "10 GB/s", **given}
    with pytest.raises(kind, match=words):
        Cluster("x", asked.pop("node"), **asked)


def test_figures_of_a_cluster_go_by_their_names() -> None:
    """3 nodes of eight; a made object, since those of the zoo remember what they were asked."""
    found = Cluster("x", Systems.HGX_A100, nodes=3, link_bandwidth="7 GB/s")
    assert (found.by_name("devices").si, found.by_name("link.bandwidth").text) == (24, "7 GB/s")
    assert "3 nodes of 8" in str(found.by_name("devices").origin)
    assert (found.link.bandwidth.text, found.figure.si) == ("7 GB/s", 7e9)
    with pytest.raises(UnknownNameError, match=r"figure of this cluster.*'devices'"):
        found.by_name("device")


def test_bits_are_an_eighth_of_bytes() -> None:
    found = Cluster("x", NODE, nodes=2, link_bandwidth="200 Gb/s")
    assert found.fabric_bandwidth == pytest.approx(25e9, rel=1e-12)


# ---- of the zoo -------------------------------------------------------------------------


def test_clusters_of_the_zoo_have_sources() -> None:
    for found in Clusters:
        figure = found.figure
        assert {found.source, figure.source} <= set(references()), found.key
        assert figure.direction in ("one-way", "both ways"), found.key
        assert len(figure.quote.split()) <= 15, found.key
        assert found.devices == found.nodes * found.node.devices
        # No fabric is faster than what joins a node, or a thousand times as slow.
        assert 1e-3 < found.fabric_bandwidth / found.node.device_bandwidth_si <= 1, found.key


def test_selene_by_hand() -> None:
    """560 nodes of eight, each device with an adapter of 200 Gb/s."""
    assert Clusters.Selene.devices == 4480
    assert Clusters.Selene.fabric_bandwidth == pytest.approx(25e9, rel=1e-12)
    assert Clusters.Selene.node is Systems.HGX_A100


def test_a_cluster_serves_as_one_of_its_nodes_where_nothing_leaves_it() -> None:
    one, many = (
        Engine.serve(model="Llama3_8B", hardware=each, tensor_parallel=8)
        for each in ("HGX_A100", "Selene")
    )
    assert many.value("time_per_output_token") == one.value("time_per_output_token")


# ---- from files -------------------------------------------------------------------------


def test_a_file_is_read(written: Any) -> None:
    found = cluster(str(written()))
    assert (found.key, found.devices, found.node) == ("Mine", 32, Systems.HGX_A100)
    # Both directions are printed together: 400 Gb/s is 25 GB/s each way.
    assert found.fabric_bandwidth == pytest.approx(25e9, rel=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('key = "Mine"\n', "", None, "key"),
        ("nodes = 4", "", None, "nodes"),
        ("nodes = 4", "nodes = 0", 4, "nodes must be a whole number from 1 up, not 0"),
        ("nodes = 4", "nodes = true", 4, "nodes"),
        ("nodes = 4", "nodes = 4\nracks = 2", 5, "racks"),
        ('"HGX_A100"', '"HGX_A1000"', 3, "Did you mean 'HGX_A100'?"),
        ('"both ways"', '"sideways"', 7, "direction"),
        ("value = 400", "value = -400", 8, "-400"),
        ('quote = "adapters of 400 Gb/s"\n', "", None, "quote"),
        (FILE[FILE.index("[link") :], "", None, "link"),
    ],
)
def test_what_is_wrong_is_named(
    written: Any, old: str, new: str, line: int | None, words: str
) -> None:
    path = written(old, new)
    with pytest.raises(DataFileError) as caught:
        cluster(str(path))
    message = str(caught.value)
    assert re.match(rf"{re.escape(str(path))}:\d+: ", message)
    assert words in message
    if line is not None:
        assert f"mine.toml:{line}:" in message
