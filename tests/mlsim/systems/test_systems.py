"""Systems: devices joined by links, from arguments and from files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mlsim import Device, Engine, Hardware
from mlsim.errors import (
    DataFileError,
    InvalidValueError,
    MlsimError,
    UnitError,
    UnknownNameError,
    WrongKindError,
)
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
    halved = System("Half", system.device, devices=2, link_bandwidth="225 GB/s")
    assert [halved.by_name(name).text for name in ("device_bandwidth", "link.bandwidth")] == [
        *("225 GB/s", "225 GB/s")
    ]
    with pytest.raises(UnknownNameError, match="Did you mean 'device_bandwidth'"):
        system.by_name("device_bandwith")


def test_a_switch_gives_the_same_rate_to_any_group() -> None:
    system = node()
    assert [system.link_bandwidth(group) for group in (2, 4, 8)] == [450e9] * 3


def test_what_is_drawn_beside_the_devices_is_known_of_both_or_not_at_all() -> None:
    """10.2 kW for eight devices of 700 W: 1,275 - 700 = 575 W each."""
    whole, link = Systems.HGX_H100.figures["power.max"], node().figures["link.bandwidth"]
    assert whole.si == 10_200
    chip = Device(
        *("Chip",),
        peak_flops={"fp16": "2 TFLOP/s"},
        memory_bandwidth="3 TB/s",
        memory_capacity="5 GB",
    )
    found = [
        System.of_figures(
            *("x", "x"),
            device=device,
            devices=8,
            topology="switch",
            source="",
            figures={each.name: each for each in figures},
        ).host_power_per_device
        for device, figures in (
            (Hardware.Cloud.H100, (link, whole)),
            (Hardware.Cloud.H100, (link,)),
            (chip, (link, whole)),
        )
    ]
    assert [each and each.text for each in found] == ["575 W", None, None]


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


def test_a_rate_in_bits_and_as_a_value() -> None:
    for rate in ("0.45 TB/s", quantity(450, "GB/s"), "3600 Gb/s"):
        assert node(link_bandwidth=rate).device_bandwidth_si == pytest.approx(450e9, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        ("device", "H100", WrongKindError, "device must be a Device, not 'H100'."),
        ("devices", 1, InvalidValueError, "from 2 up, not 1: one device alone is no system."),
        ("devices", 8.0, InvalidValueError, "devices must be a whole number from 2 up, not 8.0"),
        ("devices", True, InvalidValueError, "devices must be a whole number from 2 up, not True"),
        ("topology", "mesch", InvalidValueError, "switch, mesh, torus, not 'mesch'. Did you mean"),
        ("link_bandwidth", 450e9, UnitError, "link_bandwidth needs a unit"),
        ("link_bandwidth", "450 GB", UnitError, "in GB was given where B/s is expected."),
        ("link_bandwidth", "fast", InvalidValueError, "link_bandwidth must be a number and a"),
        ("link_bandwidth", "0 GB/s", InvalidValueError, "link_bandwidth must be positive and"),
        ("link_bandwidth", "inf GB/s", InvalidValueError, "finite, not 'inf GB/s'."),
        ("link_bandwidth", quantity(np.array([1.0, 2.0]), "GB/s"), InvalidValueError, "positive"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_system_that_cannot_be(
    name: str, value: object, error: type[MlsimError], words: str
) -> None:
    with pytest.raises(error) as e:
        node(**{name: value})
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
    # A device goes by the last part of its key, too.
    one_way = load(PAIR.replace("both ways", "one-way").replace("Cloud.H100", "H100"))
    assert one_way.device is Hardware.Cloud.H100
    assert one_way.device_bandwidth_si == one_way.link_bandwidth(2) == 900e9


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
        ("devices = 2\n", "", 1, "devices is missing."),
        ("devices = 2", "devices = 2.5", 4, "devices must be a whole number, not 2.5."),
        ("devices = 2", "deviecs = 2", 4, "unknown key 'deviecs'. Did you mean 'devices'?"),
        ('"Cloud.H100"', '"Cloud.H1000"', 3, "no device is called 'Cloud.H1000'. Did you mean"),
        ('"Cloud.H100"', "100", 3, "device must be text in quotes, not 100."),
        ("[link.bandwidth]", "[links.bandwidth]", 8, "'links'. Did you mean 'link'?"),
        ('"both ways"', '"both"', 8, 'direction must be "one-way" or "both ways", not \'both\'.'),
        ('unit = "GB/s"', 'unit = "GB"', 10, "a value in GB was given where B/s is expected."),
        ("value = 900", "value = -900", 9, "value must be positive, not -900."),
        ('quote = "900GB/s"\n', "", 8, "link.bandwidth lacks its quote: add it."),
        ("devices = 2", "devices = 1", 4, "devices must be a whole number from 2 up, not 1"),
        ('"switch"', '"swich"', 5, "'swich'. Did you mean 'switch'?"),
        ('"switch"', '"torus"\nshape = [2, 2]', 6, "shape 2 x 2 is 4 devices, but devices is 2."),
        ('"switch"', '"torus"', 1, "shape must be the devices along each axis"),
        ('"switch"', '"mesh"\nshape = [2]', 6, "shape is of a torus, not of a mesh: leave [2]"),
        (PAIR[PAIR.index("[link") :], "", 1, "link is missing"),
        (PAIR[PAIR.index("[link") :], "[link]\n", 8, "[link.bandwidth] is missing: devices must"),
        (PAIR[PAIR.index("[link") :], "link = 3\n", 8, "link must be a table, not 3."),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_file_that_cannot_be(load: Load, old: str, new: str, line: int, words: str) -> None:
    assert PAIR.count(old) == 1
    with pytest.raises(DataFileError) as e:
        load(PAIR.replace(old, new))
    assert f"pair.toml:{line}: " in str(e.value)
    assert words in str(e.value)


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
