"""Checks: each finds the mistake that it is for, and nothing in what is right."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from mlsim import Device, Hardware, Models, System, Systems
from mlsim.records import Figure
from mlsim.zoo.resolve import device as find_device
from mlsim.zoo.review.figure_rules import Finding, provenance, quotes
from mlsim.zoo.review.rules import (
    DEVICE_CHECKS,
    SYSTEM_CHECKS,
    checks_of,
    joints,
    links,
    listings,
    memories,
    peers,
    published,
    ridge_points,
    rule,
    sparsity,
    widths,
    years,
)

RTX5090 = Hardware.Workstation.RTX5090


def changed(device: Device, figures: Mapping[str, Any], key: str | None = None) -> Device:
    """Return a device with other values (in base units), or other fields, of some figures."""
    new = dict(device.figures)
    for name, change in figures.items():
        if change is None:
            del new[name]
            continue
        fields = change if isinstance(change, dict) else {"value": change, "si": change}
        if not isinstance(change, dict):
            fields["unit"] = new[name].base
        new[name] = dataclasses.replace(new[name], **fields)
    return Device.of_figures(
        key or device.key,
        device.name,
        vendor=device.vendor,
        architecture=device.architecture,
        form=device.form,
        figures=new,
    )


def found(check, record) -> list[tuple[str, str]]:
    return [(each.figure, each.message) for each in check(record) if each.error]


def test_a_bandwidth_a_thousand_times_too_large_is_caught_twice() -> None:
    """Torchao once listed the RTX 5090 at 1.792e15 B/s."""
    wrong = changed(RTX5090, {"memory.bandwidth": 1.792e15})
    assert {name for name, _ in found(ridge_points, wrong)} == {"memory.bandwidth"}
    (_, message), *_ = found(ridge_points, wrong)
    assert "FLOP/B, not 1 to 5,000" in message
    assert "the bandwidth is too large, or the peak too small" in message
    ((figure, message),) = found(peers, wrong)
    assert figure == "memory.bandwidth"
    # 1,792,000 GB/s over the 1,792 GB/s of the RTX PRO 6000.
    assert "is 1,000 times the most of Workstation within 5 years" in message
    # What the same mistake would do to the others.
    assert found(links, wrong) == []
    assert found(links, RTX5090) == found(peers, RTX5090) == found(ridge_points, RTX5090) == []


def test_a_bandwidth_a_thousand_times_too_small_is_caught() -> None:
    wrong = changed(RTX5090, {"memory.bandwidth": 1.792e9})
    assert any("the bandwidth is too small" in message for _, message in found(ridge_points, wrong))
    ((_, message),) = found(peers, wrong)
    assert "times less than the least of Workstation" in message


@pytest.mark.parametrize("name", ["memory.capacity", "memory.bandwidth", "power.tdp"])
def test_a_figure_is_held_against_its_class_and_years(name: str) -> None:
    for times in (1e3, 1e-3):
        wrong = changed(RTX5090, {name: RTX5090.figures[name].si * times})
        assert name in [figure for figure, _ in found(peers, wrong)]


def test_a_link_is_held_against_its_class_in_one_direction() -> None:
    """128 GB/s both ways are no more than 64 GB/s one way."""
    assert RTX5090.figures["links.pcie"].direction == "both ways"
    assert found(peers, RTX5090) == []
    wrong = changed(RTX5090, {"links.pcie": 128e12})
    ((name, message),) = [each for each in found(peers, wrong) if each[0] == "links.pcie"]
    assert name == "links.pcie"
    assert "both ways, is 1,000 times the most" in message
    assert "one way. Is the prefix right?" in message


@pytest.mark.parametrize(
    ("listed", "printed", "times"),
    [
        (32607e6, 32e9, None),
        (15109 * 2**20, 16e9, None),  # a T4: error correction takes a part
        (16 * 2**30, 16e9, None),  # a GB is a GiB
        (33.6e9, 32e9, None),
        (34.5e9, 32e9, "1.08"),
        (28e9, 32e9, "0.875"),
        (32607 * 2**30, 32e9, "1.09e+03"),
    ],
)
def test_a_driver_lists_about_what_is_printed(listed, printed, times) -> None:
    on_the_box = {"value": printed / 1e9, "si": printed}
    device = changed(RTX5090, {"memory.capacity": listed, "memory.printed": on_the_box})
    if times is None:
        assert found(listings, device) == []
        return
    ((name, message),) = found(listings, device)
    assert name == "memory.capacity"
    assert f" is {times} times the printed 32 GB; 0.9 to 1.07 times can be." in message


def test_a_size_printed_in_gib_is_not_exceeded() -> None:
    tpu = Hardware.Cloud.TPUv4
    assert list(listings(tpu)) == []
    figures = {**tpu.figures, "memory.capacity": RTX5090.figures["memory.capacity"]}
    figures["memory.printed"] = tpu.figures["memory.capacity"]
    alike = Device.of_figures(
        "Cloud.Mine", "Mine", vendor="", architecture="", form="chip", figures=figures
    )
    assert found(listings, changed(alike, {"memory.capacity": 32e9})) == []
    ((_, message),) = found(listings, changed(alike, {"memory.capacity": 34.5e9}))
    assert "0.9 to 1 times can be" in message


def test_a_size_in_gb_that_no_driver_confirms_is_noted() -> None:
    figures = dict(RTX5090.figures)
    figures["memory.capacity"] = figures.pop("memory.printed")
    unread = Device.of_figures(
        "Workstation.Mine", "Mine", vendor="", architecture="", form="board", figures=figures
    )
    (note,) = listings(unread)
    assert not note.error
    assert "32 GB is taken for 32,000,000,000 B" in note.message


def test_without_peers_nothing_is_compared() -> None:
    alone = changed(RTX5090, {"memory.capacity": 1e3}, key="Pocket.Mine")
    findings = list(peers(alone))
    assert [each.figure for each in findings] == [
        "memory.capacity",
        "memory.bandwidth",
        "power.tdp",
        "links.pcie",
    ]
    assert not any(each.error for each in findings)
    assert "0 of Pocket within 5 years in the zoo: not compared." in findings[0].message
    # Without a year it is compared with all of its class.
    ageless = changed(RTX5090, {"release_year": None, "memory.bandwidth": 1.792e15})
    assert found(peers, ageless)


def test_memory_on_the_chip_has_a_range_of_its_own() -> None:
    """Arrays of SRAM yield more bytes than any DRAM, and hold fewer."""
    figures = {"memory.bandwidth": 2e15, "memory.capacity": 4e10}
    assert found(ridge_points, changed(RTX5090, figures))
    bandwidth = RTX5090.figures["memory.bandwidth"]
    note = {"value": 2e15, "si": 2e15, "unit": bandwidth.base, "note": "On-chip SRAM."}
    on_chip = changed(RTX5090, {**figures, "memory.bandwidth": note})
    assert found(ridge_points, on_chip) == found(peers, on_chip) == []
    assert found(ridge_points, changed(on_chip, {"compute.fp32": 1e13}))


@pytest.mark.parametrize("key", ["Cloud.GroqLPU", "Wafer.WSE3", "Tiny.Nano33BLESense"])
def test_devices_of_the_zoo_without_dram_are_held_to_that_range(key: str) -> None:
    device = find_device(key)
    assert "SRAM" in device.figures["memory.bandwidth"].note
    assert found(ridge_points, device) == found(peers, device) == []
    # The same prefix mistake that torchao made is caught here too.
    bandwidth = device.figures["memory.bandwidth"]
    for times in (1e3, 1e-4):
        si = bandwidth.si * times
        figure = {"value": si, "si": si, "unit": bandwidth.base, "note": bandwidth.note}
        assert found(ridge_points, changed(device, {"memory.bandwidth": figure}))


def test_sparse_is_one_to_two_times_dense() -> None:
    a100 = Hardware.Cloud.A100
    dense = a100.figures["compute.fp16"].si
    assert found(sparsity, a100) == []
    for wrong in (0.5 * dense, 2.1 * dense):
        ((figure, message),) = found(sparsity, changed(a100, {"sparse.fp16": wrong}))
        assert figure == "sparse.fp16"
        assert "1 to 2 times can be" in message


def test_fewer_bits_are_not_slower() -> None:
    l4 = Hardware.Cloud.L4
    halved = l4.figures["compute.fp16"].si / 2
    ((figure, message),) = found(widths, changed(l4, {"compute.fp8": halved}))
    assert figure == "compute.fp8"
    assert "in fp8 is slower than" in message
    assert "in fp16, which has more bits" in message
    # Integers may have units of their own, if a note says so; floats may not.
    slow = {"value": 1e13, "si": 1e13, "unit": "FLOP/s", "note": "Emulated."}
    assert found(widths, changed(l4, {"compute.int8": {**slow, "note": ""}}))
    assert not found(widths, changed(l4, {"compute.int8": slow, "compute.int4": 2e13}))
    assert found(widths, changed(l4, {"compute.fp8": slow}))


def test_caches_links_and_years() -> None:
    a100 = Hardware.Cloud.A100
    with_cache = changed(a100, {"memory.l2": a100.capacity_si / 50})
    assert [name for name, _ in found(memories, with_cache)] == ["memory.l2"]
    fast = changed(a100, {"links.nvlink": 2 * a100.bandwidth_si})
    assert [name for name, _ in found(links, fast)] == ["links.nvlink"]
    for year in (1969, 2070):
        old = changed(a100, {"release_year": {"value": year, "si": year}})
        ((_, message),) = found(years, old)
        assert message == f"{year} is not between 2000 and 2030."


def test_a_link_of_a_system_is_slower_than_memory() -> None:
    a100 = Hardware.Cloud.A100
    assert found(joints, System("Pair", a100, devices=2, link_bandwidth="1 TB/s")) == []
    ((figure, message),) = found(joints, System("Pair", a100, devices=2, link_bandwidth="3 TB/s"))
    assert figure == "link.bandwidth"
    assert message == "3 TB/s one way is not below the memory's 2.039 TB/s."


def test_parameters_are_held_against_the_published() -> None:
    figure = Models.VGG16.figures["published_parameters"]
    wrong = dataclasses.replace(
        Models.VGG16,
        figures={
            "published_parameters": dataclasses.replace(figure, value=138_357_545, si=138_357_545.0)
        },
    )
    ((name, message),) = found(published, wrong)
    assert name == "published_parameters"
    assert message == (
        "138,357,545 parameter was published, but 138,357,544 follow from the architecture."
    )
    bare = dataclasses.replace(Models.VGG16, figures={})
    assert [each.error for each in published(bare)] == [False]


def given(value: float, unit: str, base_value: float) -> Figure:
    figure = Models.VGG16.figures["published_parameters"]
    return dataclasses.replace(figure, value=value, unit=unit, si=base_value)


@pytest.mark.parametrize(
    ("figure", "right"),
    [
        (given(138, "Mparameter", 138e6), True),
        (given(138.4, "Mparameter", 138.4e6), True),
        (given(138.3, "Mparameter", 138.3e6), True),  # cut off
        (given(138.2, "Mparameter", 138.2e6), False),
        (given(140, "Mparameter", 140e6), True),
        (given(150, "Mparameter", 150e6), False),
    ],
)
def test_a_rounded_count_is_compared_to_its_digits(figure: Figure, right: bool) -> None:
    model = dataclasses.replace(Models.VGG16, figures={"published_parameters": figure})
    assert (found(published, model) == []) == right


def test_quotes_and_notes() -> None:
    a100 = Hardware.Cloud.A100
    assert found(quotes, a100) == found(provenance, a100) == []
    long = changed(a100, {"power.tdp": {"quote": "400 " * 16}})
    ((_, message),) = found(quotes, long)
    assert message == "the quote has 16 words; 15 at most."
    silent = changed(a100, {"power.tdp": {"quote": "quite a lot", "note": ""}})
    assert [name for name, _ in found(quotes, silent)] == ["power.tdp"]
    told = changed(a100, {"power.tdp": {"quote": "quite a lot", "note": "Twice 200 W."}})
    ((_, message),) = found(quotes, told)
    assert "400 W is neither in the quote" in message
    assert "nor in the note" in message
    told = changed(a100, {"power.tdp": {"quote": "quite a lot", "note": "2 x 200 W: 400 W."}})
    assert found(quotes, told) == []
    copied = changed(a100, {"power.tdp": {"kind": "secondary", "note": ""}})
    ((_, message),) = found(provenance, copied)
    assert message == 'kind = "secondary" needs a note: how, or whose word it is.'


def test_an_unknown_source_is_worth_knowing_but_no_error() -> None:
    strange = changed(Hardware.Cloud.A100, {"power.tdp": {"source": "nobody2026nothing"}})
    (finding,) = provenance(strange)
    assert finding == Finding(
        "power.tdp",
        "source 'nobody2026nothing' is not in references.bib: add it before you send this in.",
        error=False,
    )
    model = dataclasses.replace(Models.VGG16, source="nobody2026nothing")
    assert [each.figure for each in provenance(model)] == ["source"]


def test_what_a_user_gives_needs_no_source() -> None:
    mine = Device(
        "Mine",
        peak_flops={"fp16": "100 TFLOP/s"},
        memory_bandwidth="1 TB/s",
        memory_capacity="16 GB",
    )
    assert find_device(mine) is mine
    assert [each for check in checks_of(mine) for each in check(mine) if each.error] == []


def test_every_kind_of_record_has_its_checks() -> None:
    assert set(DEVICE_CHECKS) < set(checks_of(RTX5090))
    assert set(SYSTEM_CHECKS) < set(checks_of(Systems.HGX_H100))
    assert published in checks_of(Models.VGG16)
    for check in (
        *checks_of(RTX5090),
        *checks_of(Systems.HGX_H100),
        *checks_of(Models.VGG16),
    ):
        assert rule(check).endswith(".")
    assert RTX5090.figures["power.tdp"].read >= datetime.date(2026, 1, 1)
