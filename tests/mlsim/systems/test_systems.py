"""Systems: devices joined by links, from arguments and from files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mlsim import Device, Engine, Hardware
from mlsim.errors import DataFileError, InvalidValueError, MlsimError, UnitError, WrongKindError
from mlsim.records.references import references
from mlsim.systems import TOPOLOGIES, System
from mlsim.systems.system_files import load_system
from mlsim.values import quantity
from mlsim.zoo.resolve import hardware
from mlsim.zoo.spaces import Systems


def node(**changes) -> System:
    """Return eight H100 that reach one another at 450 GB/s."""
    arguments = {"device": Hardware.Cloud.H100, "devices": 8, "link_bandwidth": "450 GB/s"}
    return System("My node", **{**arguments, **changes})


# From arguments.


def test_a_system_of_ones_own() -> None:
    system = node()
    assert (system.key, system.name, system.source) == ("My node", "My node", "")
    assert (system.devices, system.topology) == (8, "switch")
    assert system.device is Hardware.Cloud.H100
    assert system.device_bandwidth_si == 450e9
    assert system.figure is system.figures["link.bandwidth"]
    assert (system.figure.text, system.figure.origin()) == ("450 GB/s", "given")
    assert repr(system) == "<System My node: 8 x NVIDIA H100 SXM 80 GB>"


def test_a_switch_gives_the_same_rate_to_any_group() -> None:
    system = node()
    assert [system.link_bandwidth(group) for group in (2, 4, 8)] == [450e9] * 3


def test_a_mesh_has_a_link_to_each_other_device() -> None:
    """Seven links of 64 GB/s: a pair uses one, four devices three, all eight seven."""
    system = node(link_bandwidth="448 GB/s", topology="mesh")
    rates = [system.link_bandwidth(group) for group in (2, 4, 8)]
    assert rates == pytest.approx([64e9, 192e9, 448e9], rel=1e-12)


@given(st.integers(2, 64), st.floats(1e6, 1e13))
def test_a_larger_group_of_a_mesh_is_never_slower(devices: int, rate: float) -> None:
    system = node(devices=devices, link_bandwidth=quantity(rate, "B/s"), topology="mesh")
    rates = [system.link_bandwidth(group) for group in range(2, devices + 1)]
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(rate, rel=1e-12)
    assert rates[0] == pytest.approx(rate / (devices - 1), rel=1e-12)


@pytest.mark.parametrize("rate", ["450 GB/s", "0.45 TB/s", quantity(450, "GB/s"), "3600 Gb/s"])
def test_a_rate_in_any_unit(rate: object) -> None:
    assert node(link_bandwidth=rate).device_bandwidth_si == pytest.approx(450e9, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"device": "H100"}, WrongKindError, "device must be a Device, not 'H100'."),
        ({"device": None}, WrongKindError, "device must be a Device, not None."),
        ({"devices": 1}, InvalidValueError, "devices must be a whole number from 2 up, not 1: "),
        ({"devices": 0}, InvalidValueError, "one device alone is no system."),
        ({"devices": 8.0}, InvalidValueError, "devices must be a whole number from 2 up, not 8.0"),
        (
            {"devices": True},
            InvalidValueError,
            "devices must be a whole number from 2 up, not True",
        ),
        ({"devices": "8"}, InvalidValueError, "devices must be a whole number from 2 up, not '8'"),
        (
            {"topology": "mesch"},
            InvalidValueError,
            "topology must be one of switch, mesh, torus, not 'mesch'. Did you mean 'mesh'?",
        ),
        ({"link_bandwidth": 450e9}, UnitError, "link_bandwidth needs a unit"),
        ({"link_bandwidth": "450"}, UnitError, "link_bandwidth needs a unit"),
        ({"link_bandwidth": "450 GB"}, UnitError, "in GB was given where B/s is expected."),
        ({"link_bandwidth": "fast"}, InvalidValueError, "link_bandwidth must be a number and a"),
        ({"link_bandwidth": "0 GB/s"}, InvalidValueError, "link_bandwidth must be positive and"),
        ({"link_bandwidth": "-1 GB/s"}, InvalidValueError, "finite, not '-1 GB/s'."),
        ({"link_bandwidth": "nan GB/s"}, InvalidValueError, "finite, not 'nan GB/s'."),
        ({"link_bandwidth": "inf GB/s"}, InvalidValueError, "finite, not 'inf GB/s'."),
        (
            {"link_bandwidth": quantity(np.array([1.0, 2.0]), "GB/s")},
            InvalidValueError,
            "link_bandwidth must be positive and finite",
        ),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_system_that_cannot_be(
    changes: dict[str, object], error: type[MlsimError], words: str
) -> None:
    with pytest.raises(error) as e:
        node(**changes)
    assert words in str(e.value)


# From files.

PAIR = """\
key = "Pair"
name = "Two H100"
device = "Cloud.H100"
devices = 2
topology = "switch"
source = "nvidia2024h100"

[link.bandwidth]
value = 900
unit = "GB/s"
direction = "both ways"
kind = "datasheet"
source = "nvidia2024h100"
where = "page 1"
quote = "900GB/s"
read = 2026-11-21
"""

Load = Callable[[str], System]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def call(text: str) -> System:
        path = tmp_path / "pair.toml"
        path.write_text(text, encoding="utf-8")
        return load_system(path, Hardware.find)

    return call


def test_a_rate_of_both_ways_is_halved(load: Load) -> None:
    system = load(PAIR)
    assert system.figure.si == 900e9
    assert system.figure.text == "900 GB/s"
    assert system.device_bandwidth_si == system.link_bandwidth(2) == 450e9
    assert (system.key, system.name, system.devices) == ("Pair", "Two H100", 2)
    assert system.device is Hardware.Cloud.H100
    one_way = load(PAIR.replace("both ways", "one-way"))
    assert one_way.device_bandwidth_si == one_way.link_bandwidth(2) == 900e9


def test_a_device_by_the_last_part_of_its_key(load: Load) -> None:
    assert load(PAIR.replace("Cloud.H100", "H100")).device is Hardware.Cloud.H100


def test_a_link_may_have_a_latency(load: Load) -> None:
    latency = PAIR[PAIR.index("[link") :].replace("bandwidth]", "latency]")
    latency = latency.replace('"GB/s"', '"us"').replace('direction = "both ways"\n', "")
    system = load(PAIR + "\n" + latency.replace("value = 900", "value = 2"))
    assert system.figures["link.latency"].si == pytest.approx(2e-6)


def test_a_file_is_a_hardware_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "pair.toml"
    path.write_text(PAIR, encoding="utf-8")
    asked = {"model": "Llama3_8B", "tensor_parallel": 2}
    from_file = Engine.serve(**asked, hardware=str(path))
    by_hand = Engine.serve(**asked, hardware=node(devices=2))
    assert from_file.value("generation_latency") == by_hand.value("generation_latency")
    origins = {
        each["quantity"]: each["origin"]
        for each in from_file.decode.explain("network_time").to_dict()["inputs"]
    }
    assert origins["link_bandwidth"] == (
        'Two H100: datasheet, nvidia2024h100, page 1, "900GB/s", read 2026-11-21'
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('key = "Pair"\n', "", 1, "key is missing."),
        ('topology = "switch"\n', "", 1, "topology is missing."),
        ("devices = 2\n", "", 1, "devices is missing."),
        ("devices = 2", "devices = 2.5", 4, "devices must be a whole number, not 2.5."),
        ("devices = 2", "devices = true", 4, "devices must be a whole number, not True."),
        ("devices = 2", "deviecs = 2", 4, "unknown key 'deviecs'. Did you mean 'devices'?"),
        ('"Cloud.H100"', '"Cloud.H1000"', 3, "no device is called 'Cloud.H1000'. Did you mean"),
        ('"Cloud.H100"', "100", 3, "device must be text in quotes, not 100."),
        ("[link.bandwidth]", "[link.bandwith]", 8, "'bandwith'. Did you mean 'bandwidth'?"),
        ("[link.bandwidth]", "[links.bandwidth]", 8, "'links'. Did you mean 'link'?"),
        (
            'direction = "both ways"\n',
            "",
            8,
            'direction must be "one-way" or "both ways", not \'\'.',
        ),
        ('"both ways"', '"both"', 8, 'direction must be "one-way" or "both ways", not \'both\'.'),
        ('unit = "GB/s"', 'unit = "GB"', 10, "a value in GB was given where B/s is expected."),
        ("value = 900", "value = -900", 9, "value must be positive, not -900."),
        (
            'quote = "900GB/s"\n',
            "",
            8,
            "link.bandwidth lacks its quote: add it. Every figure needs one.",
        ),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_file_that_cannot_be(load: Load, old: str, new: str, line: int, words: str) -> None:
    assert PAIR.count(old) == 1
    with pytest.raises(DataFileError) as e:
        load(PAIR.replace(old, new))
    assert re.search(rf"pair\.toml:{line}: ", str(e.value))
    assert words in str(e.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("devices = 2", "devices = 1", 4, "devices must be a whole number from 2 up, not 1"),
        ('"switch"', '"swich"', 5, "'swich'. Did you mean 'switch'?"),
        ('"switch"', '"torus"\nshape = [2, 2]', 6, "shape 2 x 2 is 4 devices, but devices is 2."),
        ('"switch"', '"torus"', 1, "shape must be the devices along each axis"),
        ('"switch"', '"mesh"\nshape = [2]', 6, "shape is of a torus, not of a mesh: leave [2]"),
    ],
    ids=["one device", "topology", "shape", "no shape", "shape of a mesh"],
)
def test_a_file_of_no_system(load: Load, old: str, new: str, line: int, words: str) -> None:
    with pytest.raises(DataFileError, match=rf"pair\.toml:{line}: ") as e:
        load(PAIR.replace(old, new))
    assert words in str(e.value)


def test_a_file_without_a_link(load: Load) -> None:
    with pytest.raises(DataFileError, match=r"pair\.toml:1: link is missing"):
        load(PAIR[: PAIR.index("[link")])
    with pytest.raises(DataFileError, match=r"\[link\.bandwidth\] is missing: devices must reach"):
        load(PAIR[: PAIR.index("[link")] + "[link]\n")
    with pytest.raises(DataFileError, match=r"pair\.toml:8: link must be a table, not 3\."):
        load(PAIR[: PAIR.index("[link")] + "link = 3\n")


# The zoo's.


def test_systems_of_the_zoo_say_what_they_are() -> None:
    for system in Systems:
        assert isinstance(system.device, Device), system.key
        assert system.devices >= 2, system.key
        assert system.topology in TOPOLOGIES, system.key
        assert system.source in references(), system.key
        for name, figure in system.figures.items():
            assert figure.source in references(), (system.key, name)
            assert figure.quote, (system.key, name)
        assert system.figure.direction in ("one-way", "both ways"), system.key
        halved = 0.5 if system.figure.direction == "both ways" else 1.0
        assert system.device_bandwidth_si == system.figure.si * halved
        assert system.link_bandwidth(system.devices) == pytest.approx(system.device_bandwidth_si)
        # A link is slower than the memory, or the units are wrong.
        assert system.device_bandwidth_si < system.device.bandwidth_si, system.key
        assert hardware(system.key) is hardware(system.name) is system


def test_a_system_of_the_zoo_serves() -> None:
    for system in Systems:
        # TPUs and Gaudi 2 have no FP16.
        wide = "fp16" if "fp16" in system.device.compute.precisions else "bf16"
        serving = Engine.serve(
            model="Llama3_8B",
            hardware=system.key,
            tensor_parallel=system.devices if system.devices <= 8 else 8,
            precision=wide,
        )
        assert serving.time_per_output_token > quantity(0.0, "s"), system.key
        assert system.name in str(serving), system.key
