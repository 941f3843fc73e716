"""Checks: each finds the mistake that it is for, and nothing in what is right."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from told import FIXTURES

from mlsim import Cluster, Device, Hardware, Models, System
from mlsim.records import Figure
from mlsim.zoo.review import rules
from mlsim.zoo.review.rules import checks_of, fabrics, joints, peers, provenance, published

A100, RTX5090 = Hardware.Cloud.A100, Hardware.Workstation.RTX5090
TABLES = tomllib.loads((FIXTURES / "record_rules.toml").read_text("utf-8"))


def changed(
    device: Device, figures: Mapping[str, Any], key: str = "", lacks: Collection[str] = ()
) -> Device:
    """Return a device with other values (in base units), or other fields, of some figures."""
    new = {name: each for name, each in device.figures.items() if name not in lacks}
    for name, change in figures.items():
        fields = change if isinstance(change, dict) else {"si": change}
        if "si" in fields:
            fields = {"value": fields["si"], "unit": new[name].base, **fields}
        new[name] = replace(new[name], **fields)
    texts = {name: getattr(device, name) for name in ("vendor", "architecture", "form")}
    return Device.of_figures(key or device.key, device.name, **texts, figures=new)


def found(check, record) -> list[tuple[str, str]]:
    return [(each.figure, each.message) for each in check(record) if each.error]


def test_each_rule_finds_its_mistake_and_nothing_else() -> None:
    broken = []
    for case in TABLES["cases"]:
        more = {name: case[name] for name in ("key", "lacks") if name in case}
        device = changed(Hardware.get(case["of"]), case.get("figures", {}), **more)
        findings = [
            (each.figure if each.error else f"note: {each.figure}", each.message)
            for each in getattr(rules, case["rule"])(device)
        ]
        said = "\n".join(message for _, message in findings)
        named = sorted({name for name, _ in findings}) == case.get("finds", [])
        if not named or not all(words in said for words in case.get("says", ())):
            broken.append(f"{case}: {findings}")
    assert broken == []


def test_peers_are_of_the_class_and_five_years_and_may_be_four_times_as_far() -> None:
    near = [each for each in Hardware.Workstation if 2020 <= (each.release_year or 2025) <= 2030]
    rates = [each.bandwidth_si for each in near if each is not RTX5090]
    for rate, said in {
        min(rates) / 3.99: "",
        min(rates) / 4.02: "is 4.02 times less than the least of Workstation within 5 years",
        max(rates) * 3.99: "",
        max(rates) * 4.02: "is 4.02 times the most of Workstation within 5 years",
    }.items():
        messages = [each for _, each in found(peers, changed(RTX5090, {"memory.bandwidth": rate}))]
        assert [said in each for each in messages] == [True] * bool(said), (rate, messages)


def of(key: str, figures: dict[str, float], **more: Any) -> SimpleNamespace:
    """Return a record of figures in their base units."""
    made = {name: Figure(name, value, "B", value, "B") for name, value in figures.items()}
    return SimpleNamespace(key=key, figures=made, **more)


def test_rules_of_what_surrounds_a_device_end_at_their_limits() -> None:
    def said(rule: str, figures: dict[str, float]) -> list[str]:
        device = of("Cloud.Mine", {"power.tdp": 400.0})
        years = {"electricity": ["2024"]} | {name[:-5]: ["2024"] for name in figures}
        record = of("Mine", figures, device=device, devices=2, years=lambda x: years.get(x, []))
        return [each.figure for each in getattr(rules, rule)(record)]

    for case in TABLES["limits"]:
        rule, holds, over = (case[name] for name in ("rule", "holds", "over"))
        assert (said(rule, holds), said(rule, {**holds, **over})) == ([], list(over)), case
        # Without what it is compared with nothing is said.
        assert said(rule, {"carbon": 9.0} if rule == "manufacturing" else {}) == [], rule


def test_a_link_of_a_system_is_slower_than_memory() -> None:
    slow, even, fast = (
        System("Pair", A100, devices=2, link_bandwidth=f"{rate} GB/s")
        for rate in (2038, 2039, 3000)
    )
    assert (found(joints, slow), len(found(joints, even))) == ([], 1)
    said = "3 TB/s one way is not below the memory's 2.039 TB/s."
    assert found(joints, fast) == [("link.bandwidth", said)]
    node = System("Pair", A100, devices=2, link_bandwidth="300 GB/s")
    alike, fast = (Cluster("C", node, nodes=2, link_bandwidth=f"{x} GB/s") for x in (300, 400))
    assert found(fabrics, alike) == []
    said = "400 GB/s to other nodes is above 300 GB/s within one."
    assert found(fabrics, fast) == [("link.bandwidth", said)]


def test_parameters_are_held_against_the_published_to_the_digits_that_were_printed() -> None:
    """138,357,544 may be cut off as well as rounded."""
    figure = Models.VGG16.figures["published_parameters"]
    more = replace(figure, value=138_357_545, si=138_357_545.0)
    said = "138,357,545 parameter was published, but 138,357,544 follow from the architecture."
    wrong = replace(Models.VGG16, figures={"published_parameters": more})
    assert found(published, wrong) == [("published_parameters", said)]
    for millions, right in {138: 1, 138.4: 1, 138.3: 1, 138.2: 0, 140: 1, 150: 0}.items():
        given = replace(figure, value=millions, unit="Mparameter", si=millions * 1e6)
        model = replace(Models.VGG16, figures={"published_parameters": given})
        assert (found(published, model) == []) == bool(right), millions
    bare = replace(Models.VGG16, figures={}, source="nobody2026nothing")
    assert [each.error for each in published(bare)] == [False]
    assert [(each.figure, each.error) for each in provenance(bare)] == [("source", False)]


def test_what_a_user_gives_needs_no_source_and_no_reader(slow_chip: Device) -> None:
    checks = checks_of(slow_chip)
    assert {*rules.FIGURE_CHECKS, *rules.DEVICE_CHECKS, rules.reread} == set(checks)
    assert [each for check in checks for each in check(slow_chip) if each.error] == []
    assert list(rules.reread(slow_chip)) == []
