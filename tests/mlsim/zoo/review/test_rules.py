"""Checks: each finds the mistake that it is for, and nothing in what is right."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from mlsim import Cluster, Device, Hardware, Models, System, Systems
from mlsim.records import Figure
from mlsim.zoo.resolve import device as find_device
from mlsim.zoo.review.figure_rules import Finding, provenance, quotes
from mlsim.zoo.review.infrastructure_rules import (
    idle_power,
    manufacturing,
    overheads,
    reported_emissions,
    whole_power,
)
from mlsim.zoo.review.rules import (
    DEVICE_CHECKS,
    SYSTEM_CHECKS,
    checks_of,
    fabrics,
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
        new[name] = replace(new[name], **fields)
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


def test_a_bandwidth_a_thousand_times_off_is_caught_twice() -> None:
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
    assert found(links, wrong) == []
    for check in (links, peers, ridge_points):
        assert found(check, RTX5090) == []
    wrong = changed(RTX5090, {"memory.bandwidth": 1.792e9})
    assert any("the bandwidth is too small" in message for _, message in found(ridge_points, wrong))
    ((_, message),) = found(peers, wrong)
    assert "times less than the least of Workstation" in message


def test_a_figure_is_held_against_its_class_and_years() -> None:
    for name in ("memory.capacity", "memory.bandwidth", "power.tdp"):
        for times in (1e3, 1e-3):
            wrong = changed(RTX5090, {name: RTX5090.figures[name].si * times})
            assert name in [figure for figure, _ in found(peers, wrong)]
    # 128 GB/s both ways are no more than 64 GB/s one way.
    assert RTX5090.figures["links.pcie"].direction == "both ways"
    wrong = changed(RTX5090, {"links.pcie": 128e12})
    (message,) = [each for name, each in found(peers, wrong) if name == "links.pcie"]
    assert "both ways, is 1,000 times the most" in message
    assert "one way. Is the prefix right?" in message


def test_a_driver_lists_about_what_is_printed() -> None:
    for listed, printed, times in (
        (32607e6, 32e9, None),
        (15109 * 2**20, 16e9, None),  # a T4: error correction takes a part
        (16 * 2**30, 16e9, None),  # a GB is a GiB
        (33.6e9, 32e9, None),
        (34.5e9, 32e9, "1.08"),
        (28e9, 32e9, "0.875"),
        (32607 * 2**30, 32e9, "1.09e+03"),
    ):
        on_the_box = {"value": printed / 1e9, "si": printed}
        device = changed(RTX5090, {"memory.capacity": listed, "memory.printed": on_the_box})
        said = f"is {times} times the printed 32 GB; 0.9 to 1.07 times can be."
        names = [(name, said in message) for name, message in found(listings, device)]
        assert names == ([("memory.capacity", True)] if times else []), listed


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


def test_devices_of_the_zoo_without_dram_are_held_to_that_range() -> None:
    for key in ("Cloud.GroqLPU", "Wafer.WSE3", "Tiny.Nano33BLESense"):
        device = find_device(key)
        bandwidth = device.figures["memory.bandwidth"]
        assert "SRAM" in bandwidth.note
        # The same prefix mistake that torchao made is caught here too.
        for times in (1e3, 1e-4):
            figure = {"value": bandwidth.si * times, "si": bandwidth.si * times}
            figure |= {"unit": bandwidth.base, "note": bandwidth.note}
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


def of(key: str, figures: dict[str, float], **more: Any) -> SimpleNamespace:
    """Return a record of figures in their base units."""
    made = {name: Figure(name, value, "B", value, "B") for name, value in figures.items()}
    return SimpleNamespace(key=key, figures=made, **more)


KWH, YEAR = 3.6e6, 365 * 86400.0


@pytest.mark.parametrize(
    ("check", "most", "over"),
    [
        # Idle, a device draws more than a two-hundredth of its 400 W, and less than all.
        (idle_power, {"power.tdp": 400, "power.idle": 399.9}, {"power.idle": 400}),
        (idle_power, {"power.tdp": 400, "power.idle": 2.01}, {"power.idle": 2.0}),
        # Two devices of 400 W: from 800 to 2,400 W in all.
        (whole_power, {"power.max": 2400}, {"power.max": 2401}),
        (whole_power, {"power.max": 800}, {"power.max": 799}),
        (whole_power, {"power.max": 900, "power.idle": 899}, {"power.idle": 900}),
        (overheads, {"pue.2024": 2.99}, {"pue.2024": 3.0}),
        (overheads, {"wue.2024": 9.99 / KWH}, {"wue.2024": 10 / KWH}),
        # 1,500 g for each kWh.
        (
            reported_emissions,
            {"electricity.2024": 2 * KWH, "scope2_market.2024": 2.999},
            {"scope2_market.2024": 3.001},
        ),
        (
            reported_emissions,
            {"electricity.2024": 2 * KWH, "scope2_location.2024": 2.999},
            {"scope2_location.2024": 3.001},
        ),
        # Of two devices: 1 kg to 50 t each.
        (manufacturing, {"carbon": 2.0}, {"carbon": 1.99}),
        (manufacturing, {"carbon": 100_000.0}, {"carbon": 100_001.0}),
        (manufacturing, {"carbon": 9.0, "lifetime": YEAR / 2}, {"lifetime": YEAR / 2.01}),
        (manufacturing, {"carbon": 9.0, "lifetime": 20 * YEAR}, {"lifetime": 20.1 * YEAR}),
    ],
)
def test_rules_of_what_surrounds_a_device_end_at_their_limits(check, most, over) -> None:
    def said(figures: dict[str, float]) -> list[str]:
        device = of("Cloud.Mine", {"power.tdp": 400.0})
        years = {"electricity": ["2024"]}
        for name in figures:
            years.setdefault(name.partition(".")[0], ["2024"])
        record = of("Mine", figures, device=device, devices=2, years=lambda x: years.get(x, []))
        return [each.figure for each in check(record)]

    assert said(most) == []
    assert said({**most, **over}) == list(over)
    # Without what it is compared with nothing is said.
    assert said({"electricity.2024": 1.0, "carbon": 9.0} if check is manufacturing else {}) == []


def test_a_link_of_a_system_is_slower_than_memory() -> None:
    a100 = Hardware.Cloud.A100
    assert found(joints, System("Pair", a100, devices=2, link_bandwidth="1 TB/s")) == []
    ((figure, message),) = found(joints, System("Pair", a100, devices=2, link_bandwidth="3 TB/s"))
    assert figure == "link.bandwidth"
    assert message == "3 TB/s one way is not below the memory's 2.039 TB/s."
    node = System("Pair", a100, devices=2, link_bandwidth="300 GB/s")
    alike, fast = (Cluster("C", node, nodes=2, link_bandwidth=f"{x} GB/s") for x in (300, 400))
    assert found(fabrics, alike) == []
    said = "400 GB/s to other nodes is above 300 GB/s within one."
    assert found(fabrics, fast) == [("link.bandwidth", said)]


def test_parameters_are_held_against_the_published() -> None:
    figure = Models.VGG16.figures["published_parameters"]
    more = replace(figure, value=138_357_545, si=138_357_545.0)
    wrong = replace(Models.VGG16, figures={"published_parameters": more})
    assert found(published, wrong) == [
        (
            "published_parameters",
            "138,357,545 parameter was published, but 138,357,544 follow from the architecture.",
        )
    ]
    bare = replace(Models.VGG16, figures={})
    assert [each.error for each in published(bare)] == [False]


def test_a_rounded_count_is_compared_to_its_digits() -> None:
    """138,357,544 may be cut off as well as rounded."""
    figure = Models.VGG16.figures["published_parameters"]
    for millions, right in {138: 1, 138.4: 1, 138.3: 1, 138.2: 0, 140: 1, 150: 0}.items():
        given = replace(figure, value=millions, unit="Mparameter", si=millions * 1e6)
        model = replace(Models.VGG16, figures={"published_parameters": given})
        assert (found(published, model) == []) == bool(right), millions


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
    model = replace(Models.VGG16, source="nobody2026nothing")
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
