"""Clusters: from arguments, from the zoo and from files, and what is wrong with a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from training_runs import CHIP, CLUSTER, NODE, SMALL

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


@pytest.mark.parametrize("nodes", [0, -1, 2.0, True, "4", None])
def test_nodes_are_a_whole_number(nodes: Any) -> None:
    with pytest.raises(InvalidValueError, match="nodes must be a whole number from 1 up"):
        Cluster("x", NODE, nodes=nodes, link_bandwidth="10 GB/s")


@pytest.mark.parametrize(
    ("rate", "kind"),
    [
        ("0 GB/s", InvalidValueError),
        ("-1 GB/s", InvalidValueError),
        ("inf GB/s", InvalidValueError),
        (10e9, UnitError),
        ("10 GB", UnitError),
    ],
)
def test_a_link_has_a_rate(rate: Any, kind: type[MlsimError]) -> None:
    with pytest.raises(kind):
        Cluster("x", NODE, nodes=2, link_bandwidth=rate)


@pytest.mark.parametrize("node", [CHIP, CLUSTER, "HGX_A100", None])
def test_a_node_is_a_system(node: Any) -> None:
    with pytest.raises(WrongKindError, match="node must be a System"):
        Cluster("x", node, nodes=2, link_bandwidth="10 GB/s")


def test_bits_are_an_eighth_of_bytes() -> None:
    found = Cluster("x", NODE, nodes=2, link_bandwidth="200 Gb/s")
    assert found.fabric_bandwidth == pytest.approx(25e9, rel=1e-12)


# ---- of the zoo -------------------------------------------------------------------------


@pytest.mark.parametrize("found", tuple(Clusters), ids=lambda each: each.key)
def test_clusters_of_the_zoo_have_sources(found: Cluster) -> None:
    assert found.source in references()
    figure = found.figure
    assert figure.source in references()
    assert figure.direction in ("one-way", "both ways")
    assert len(figure.quote.split()) <= 15
    assert found.devices == found.nodes * found.node.devices
    assert 0 < found.fabric_bandwidth <= found.node.device_bandwidth_si


def test_selene_by_hand() -> None:
    """560 nodes of eight, each device with an adapter of 200 Gb/s."""
    assert Clusters.Selene.devices == 4480
    assert Clusters.Selene.fabric_bandwidth == pytest.approx(25e9, rel=1e-12)
    assert Clusters.Selene.node is Systems.HGX_A100


def test_a_cluster_is_found_by_name_and_itself() -> None:
    assert cluster("Selene") is Clusters.Selene
    assert cluster(CLUSTER) is CLUSTER
    assert cluster("HGX_A100") is Systems.HGX_A100


def test_an_unknown_cluster_gets_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'Selene'"):
        cluster("Selena")


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


def test_a_file_trains_a_model(written: Any) -> None:
    run = Engine.train(
        model=SMALL, hardware=str(written()), global_batch=32, data_parallel=32, sequence_tokens=128
    )
    assert run.devices == 32


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('key = "Mine"\n', "", None, "key"),
        ("nodes = 4", "", None, "nodes"),
        ("nodes = 4", "nodes = 0", 4, "nodes must be a whole number from 1 up, not 0"),
        ("nodes = 4", "nodes = 2.5", 4, "nodes"),
        ("nodes = 4", 'nodes = "4"', 4, "nodes"),
        ("nodes = 4", "nodes = true", 4, "nodes"),
        ("nodes = 4", "nodes = 4\nracks = 2", 5, "racks"),
        ('"HGX_A100"', '"HGX_A1000"', 3, "Did you mean 'HGX_A100'?"),
        ('"both ways"', '"sideways"', 7, "direction"),
        ('direction = "both ways"\n', "", None, "direction"),
        ('"Gb/s"', '"GB"', 9, "GB"),
        ("value = 400", "value = -400", 8, "-400"),
        ("value = 400", 'value = "400"', 8, "value"),
        ('quote = "adapters of 400 Gb/s"\n', "", None, "quote"),
        ("[link.bandwidth]", "[link.speed]", None, "speed"),
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


def test_a_file_that_is_none(written: Any, tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"mine\.toml"):
        cluster(str(written(text="node = \n")))
    with pytest.raises(MlsimError):
        cluster(str(tmp_path / "missing.toml"))


def test_a_file_is_checked_before_it_is_sent_in(written: Any) -> None:
    from mlsim.zoo.review.file_report import validate_file

    assert not validate_file(str(written())).errors
    text = str(
        validate_file(
            str(written('source = "narayanan2021megatron"\nwhere', 'source = "no"\nwhere'))
        )
    )
    assert "source 'no' is not in references.bib" in text
