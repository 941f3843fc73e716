"""`Engine.footprint`: worked by hand, in its ranges and places, refused, explained, and as a command."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from footprints import A100, KWH, PLACE, hours
from refusals import answered

from mlsim import (
    CloudOperators,
    DataCentres,
    Engine,
    Grids,
    Load,
    Regions,
    Serving,
    System,
    Systems,
    show,
)
from mlsim.errors import InvalidValueError, UnknownNameError, WrongKindError
from mlsim.records import given
from mlsim.solvers.footprint.footprint import Interval


@pytest.fixture(scope="module")
def serving() -> Serving:
    return Engine.serve(model="Llama3_8B", hardware="H100", batch_size=16, prompt_tokens=1024)


# By hand.


def all_of(found: Any, units: dict[str, str]) -> dict[str, float]:
    return {name: getattr(found, name).to(unit).magnitude for name, unit in units.items()}


def test_device_hours_by_hand() -> None:
    """1,000 h at 300 W are 300 kWh; 360 with PUE 1.2; 36 kg; 150 L on site, 720 L at the source.

    Hosts and network add 80 and 20 kWh; made of 150 kg for 4 years, half of them used, 1,000 h
    are 1,000 of 17,520.
    """
    energy = dict.fromkeys(("device_energy", "it_energy", "facility_energy"), "kWh")
    water = dict.fromkeys(("site_water", "source_water", "total_water"), "L")
    units = {**energy, **water, "operational_carbon": "kgCO2e", "device_power": "W"}
    by_hand = (300, 300, 360, 150, 720, 870, 36, 300)
    assert all_of(hours(), units) == pytest.approx(dict(zip(units, by_hand, strict=True)))
    units = {**energy, "host_energy": "kWh", "network_energy": "kWh"}
    by_hand = (300, 400, 480, 80, 20)
    found = all_of(hours(host="80 W", network="20 W"), units)
    assert found == pytest.approx(dict(zip(units, by_hand, strict=True)))
    found = hours(embodied="150 kgCO2e", lifetime="4 yr", lifetime_use=0.5)
    units = dict.fromkeys(("embodied_carbon", "total_carbon"), "kgCO2e")
    made = 150 * 1000 / 17_520
    assert list(all_of(found, units).values()) == pytest.approx([made, 36 + made])
    # A data centre without losses takes what its machines take; WUE counts these alone.
    one, two = hours(pue=1), hours(pue=2)
    assert one.facility_energy == one.it_energy
    assert one.site_water == two.site_water
    assert one.source_water < two.source_water
    # Of 150 kg for six years, half of them used; and made with its host.
    assert hours(lifetime_use=0.5).value("embodied_carbon") == pytest.approx(150 / (3 * 8.76))
    whole = hours(lifetime_use=0.5, lifetime="3 yr", embodied="A100_With_Host")
    assert whole.value("embodied_per_device") == 318.0
    parts = hours(host="80 W", embodied=False).parts
    energy, water = {"device_energy", "host_energy"}, {"site_water", "source_water"}
    assert set(parts) == energy | water | {"operational_carbon"}


def test_per_token() -> None:
    found = hours(tokens=1e9, embodied=False)
    assert found.energy_per_token.to("J/token").magnitude == pytest.approx(360 * KWH / 1e9)
    assert found.device_energy_per_token.magnitude == pytest.approx(300 * KWH / 1e9)
    carbon, water = (found.quantity(f"{name}_per_token") for name in ("carbon", "water"))
    assert carbon.to("gCO2e/token").magnitude == pytest.approx(36e3 / 1e9)
    assert water.to("L/token").magnitude == pytest.approx(870 / 1e9)


def test_a_service(serving: Serving) -> None:
    found = Engine.footprint(serving, host="100 W", **PLACE)
    seconds = serving.latency.to("s").magnitude
    energy = found.device_power.to("W").magnitude * seconds
    assert found.device_energy.to("J").magnitude == pytest.approx(energy)
    assert found.host_energy.to("J").magnitude == pytest.approx(100 * seconds)
    assert found.energy_per_token.magnitude == pytest.approx(
        found.facility_energy.to("J").magnitude / (16 * 128)
    )
    assert show(found, "it_energy") == found.it_energy
    assert isinstance(found.value("it_energy"), float)


def test_a_training_run() -> None:
    layout = {"devices": 8, "shard": "zero3", "recompute": "full", "sequence_tokens": 8192}
    training = Engine.train(
        model="Llama3_8B", hardware="HGX_H100", global_batch=64, tokens=1e9, **layout
    )
    found = Engine.footprint(training, **PLACE)
    energy = found.value("device_power") * 8 * training.load().time
    assert found.value("device_energy") == pytest.approx(energy)
    assert found.value("energy_per_token") == pytest.approx(found.value("facility_energy") / 1e9)
    assert "hosts at most" in str(found)
    assert str(found).startswith("training of Llama 3.1 8B")


# Limits.


def test_energy_lies_between_idle_and_full_power() -> None:
    idle, full = (A100.figures[f"power.{each}"].si for each in ("idle", "tdp"))
    powers = [
        hours(compute_utilisation=use, memory_utilisation=use).value("device_power")
        for use in (0.0, 0.01, 0.3, 1.0)
    ]
    assert powers[0] == pytest.approx(idle)
    limits = {"idle_power": "50 W", "max_power": "350 W", "memory_utilisation": 0}
    assert hours(**limits, compute_utilisation=0).value("device_power") == 50
    assert powers == sorted(powers)
    assert powers[-1] <= full * (1 + 1e-12)


# Ranges.


def test_a_range_gives_a_range() -> None:
    found = hours(pue=(1.1, 1.3))
    assert found.high.facility_energy.to("kWh").magnitude == pytest.approx(390)
    assert found.facility_energy.to("kWh").low.magnitude == pytest.approx(330)
    assert not isinstance(found.device_energy, Interval)
    assert str(found.facility_energy) == "330 to 390 kWh"
    assert found.low.low is found.low
    # Two ranges span their corners; a longer life is the low end.
    found = hours(pue=(1.0, 2.0), carbon_intensity=("50 gCO2e/kWh", "200 gCO2e/kWh"))
    ends = [each.value("operational_carbon") for each in (found.low, found.high)]
    assert ends == pytest.approx([15, 120])
    found = hours(embodied="150 kgCO2e", lifetime=("3 yr", "6 yr"), lifetime_use=0.5)
    low, high = (each.embodied_carbon.to("kgCO2e").magnitude for each in (found.low, found.high))
    assert (low, high) == (pytest.approx(150 * 1000 / 26_280), pytest.approx(2 * low))
    life = found.value("device_lifetime")
    assert life.low < life.high


def test_unknown_use_is_a_range_from_idle_to_full() -> None:
    found = Engine.footprint(hardware="A100", device_hours=10, host=False, **PLACE)
    power = found.device_power
    assert power.low.magnitude == A100.figures["power.idle"].si
    assert power.high.magnitude == A100.figures["power.tdp"].si
    with pytest.raises(InvalidValueError, match=r"\.low\.explain\('facility_energy'\)"):
        found.explain("facility_energy")
    assert "the low end" in str(found.low.explain("facility_energy"))
    with pytest.raises(InvalidValueError, match="how much of the devices is used is not known"):
        found.low.value("power_load")


def test_tokens_that_contradict_the_load(serving: Serving) -> None:
    made = 16 * 128
    same = Engine.footprint(serving, tokens=made, host=False, **PLACE)
    assert same.value("load_tokens") == made
    assert Engine.footprint(serving, tokens=(2000, 3000), host=False, **PLACE).value("load_tokens")
    with pytest.raises(InvalidValueError, match=f"contradicts the load, which makes {made:,} tok"):
        Engine.footprint(serving, tokens=made + 1, host=False, **PLACE)


def test_a_utilisation_above_1_by_rounding_is_1() -> None:
    uses = dict.fromkeys(("compute_utilisation", "memory_utilisation"), 1 + 5e-10)
    load = Load(device=A100, system=None, devices=1, time=3600.0, **uses)
    found = Engine.footprint(load, host=False, **PLACE)
    assert [found.value(name) for name in uses] == [1.0, 1.0]


# Places.


def test_a_region_sets_grid_intensity_and_data_centre() -> None:
    region = Regions.Google.us_central1
    found = hours(region=region, pue=None, wue=None, carbon_intensity=None, water_intensity=None)
    assert found.value("pue") == DataCentres.Google.figure("pue").si
    assert found.value("carbon_intensity") == region.figure("carbon_intensity").si
    assert found.value("water_intensity") == region.grid.figure("water_intensity").si
    # What is given goes before it.
    other = hours(region=region, grid="France", pue=1.5, carbon_intensity=None)
    assert other.value("carbon_intensity") == Grids.France.figure("carbon_intensity").si
    assert other.value("pue") == 1.5
    # A region whose data centres have figures of their own.
    found = hours(region="AWS.us_east_1", pue=None, wue=None, carbon_intensity=None)
    own = DataCentres.AWS_Regions.us_east_1
    assert (found.value("pue"), found.value("wue")) == (own.figure("pue").si, own.figure("wue").si)
    assert found.value("carbon_intensity") == Grids.UnitedStates.figure("carbon_intensity").si


def test_an_hour_takes_the_shape_of_the_day() -> None:
    day = Grids.Germany.hourly
    assert day is not None
    whole = hours(grid="Germany", carbon_intensity=None)
    noon = hours(grid="Germany", carbon_intensity=None, hour=12)
    every = hours(grid="Germany", carbon_intensity=None, hour=range(24))
    carbon = whole.value("operational_carbon")
    by_hand = carbon * day.at(12).magnitude / day.mean.magnitude
    assert noon.value("operational_carbon") == pytest.approx(by_hand)
    # All hours together are the average, and hours are none of energy's business.
    assert every.value("operational_carbon") == pytest.approx(carbon)
    assert noon.facility_energy == whole.facility_energy


def test_contracts_in_place_of_the_grid() -> None:
    """The residual mix; an operator's own intensity; or the grid's, by the ratio of its accounts.

    Meta reports emissions in both ways, but not the electricity of that year. Microsoft does, and
    2020 is the last year of which both are on record.
    """
    market: dict[str, Any] = {"carbon_intensity": None, "accounting": "market"}
    residual = hours(grid="Germany", **market)
    assert residual.value("carbon_intensity") == Grids.Germany.figure("residual_mix").si
    found = hours(grid="Germany", operator="Meta", **market)
    contracts, location = (
        CloudOperators.Meta.figure(f"scope2_{each}", 2022).si for each in ("market", "location")
    )
    average = Grids.Germany.figure("carbon_intensity").si
    assert found.value("carbon_intensity") == pytest.approx(average * contracts / location)
    told = " ".join(str(found.explain("operational_carbon")).split())
    assert "by contracts over" in told
    assert "contracts of Meta 2022" in " ".join(str(found).split())
    figure = CloudOperators.Microsoft.figure
    for account in ("location", "market"):
        found = hours(carbon_intensity=None, accounting=account, operator="Microsoft")
        own = figure(f"scope2_{account}", 2020).si / figure("electricity", 2020).si
        assert found.value("carbon_intensity") == pytest.approx(own)
        origin = found.to_dict()["inputs"]["carbon_intensity"]["origin"]
        assert origin.startswith("Microsoft 2020: ")


# Host, embodied.


def test_the_host_is_what_the_system_draws_beside_its_devices(serving: Serving) -> None:
    system = Systems.HGX_H100
    inside = Engine.serve(model="Llama3_8B", hardware=system, batch_size=16, prompt_tokens=1024)
    found = Engine.footprint(inside, **PLACE)
    share = system.host_power_per_device
    assert share is not None
    for each in (
        found,
        *(Engine.footprint(serving, host=h, **PLACE) for h in (system, "HGX_H100")),
    ):
        assert each.value("host_power") == pytest.approx(share.to("W").magnitude)


def test_a_system_that_was_measured_idle_has_a_host_that_follows_its_devices() -> None:
    figures = System("Node", A100, devices=2, link_bandwidth="100 GB/s").figures
    watts = {"power.max": 1400.0, "power.idle": 422.0}
    figures = figures | {name: given(name, value, "W") for name, value in watts.items()}
    of_it: dict[str, Any] = {"device": A100, "devices": 2, "topology": "switch", "source": ""}
    node = System.of_figures("Node", "Node", figures=figures, **of_it)
    # Hosts: 1,400 / 2 - 400 = 300 W at most, 422 / 2 - 61 = 150 W idle.
    for use, watt in ((0.0, 150), (1.0, 300)):
        found = hours(compute_utilisation=use, memory_utilisation=use, host=node)
        assert found.value("host_power") == pytest.approx(watt)


# What is not known is refused, and what to give is said.


def test_what_can_not_be_is_refused() -> None:
    assert answered(hours, "footprint") == []
    many = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=[1, 2])
    load = Load.of(hardware=A100, device_hours=1)
    for ask, error, words in (
        (Engine.footprint, InvalidValueError, "footprint of what"),
        (partial(Engine.footprint, "Llama3_8B"), WrongKindError, "work must be a service"),
        (partial(Engine.footprint, hardware="A100"), InvalidValueError, "footprint of what"),
        (partial(Engine.footprint, load, hardware="A100"), InvalidValueError, "leave them out"),
        (partial(Engine.footprint, many, host=False, **PLACE), InvalidValueError, "pick one"),
        (partial(hours, pue=(1.3, 1.1)), InvalidValueError, "upside down"),
        (partial(hours, pue=(1, 2, 3)), InvalidValueError, "a pair"),
    ):
        with pytest.raises(error, match=words):
            ask()


def test_embodied_carbon_that_is_not_known_is_refused_when_asked() -> None:
    found = hours()
    for name in ("embodied_carbon", "total_carbon"):
        with pytest.raises(InvalidValueError, match=r"making NVIDIA A100, .* lifetime_use=0\.5"):
            getattr(found, name)
    assert "not all is known" in " ".join(str(found).split())
    left = hours(embodied=False)
    assert left.total_carbon == left.operational_carbon
    assert "making the devices" in left.left_out


def test_water_that_is_not_known_is_refused_when_asked() -> None:
    found = hours(wue=None, water_intensity=None)
    for name in ("site_water", "source_water", "total_water"):
        with pytest.raises(InvalidValueError, match="is not known"):
            getattr(found, name)
    one = hours(wue=None)
    assert one.total_water == one.source_water
    assert "water on site: not known" in one.left_out
    with pytest.raises(InvalidValueError, match=r"no WUE is given\. Give wue='0\.3 L/kWh'"):
        _ = one.site_water
    old = hours(data_centre="AWS", wue=None, grid="Germany", carbon_intensity=None, year=2024)
    assert old.has("site_water")
    new = hours(data_centre="AWS", wue=None, year=2023, pue=None)
    with pytest.raises(InvalidValueError, match=r"WUE of Amazon.* is on record for .*, not for 20"):
        _ = new.site_water


def test_tokens_that_are_not_known_are_refused_when_asked() -> None:
    with pytest.raises(InvalidValueError, match="give tokens="):
        _ = hours().energy_per_token
    with pytest.raises(UnknownNameError, match="Did you mean 'it_energy'"):
        hours().value("itenergy")


# Explained, printed, and as data.


def test_it_explains_itself(serving: Serving) -> None:
    found = Engine.footprint(serving, region="us-central1", host=False)
    shown = str(found.explain("operational_carbon"))
    for words in (
        *("facility_energy = pue * it_energy", "power_share = power_load * (2 - power_load)"),
        *("fitted by least squares", "us-central1 2024: 412.72 gCO2e/kWh"),
        *("google2025regions", "patterson2021carbon"),
    ):
        assert words in shown
    assert found.explain("energy_per_token").value == found.value("energy_per_token")
    assert "mlenergy2025" in found.explain("device_power").to_json()
    assert "$$" in found.explain("it_energy")._repr_markdown_()


def test_it_prints_a_table(serving: Serving) -> None:
    shown = str(Engine.footprint(serving, host="100 W", embodied=False, **PLACE))
    for words in ("Llama 3.1 8B", "per device", "PUE 1.2", "on site", "per token", "left out"):
        assert words in shown
    assert "330 to 390 kWh" in str(hours(pue=(1.1, 1.3)))
    assert "neither" in str(hours(wue=None, water_intensity=None))
    assert repr(hours()).startswith("<Footprint 1,000 device-hours, a data center")


def test_it_is_plain_data(serving: Serving) -> None:
    data = Engine.footprint(serving, host=False, **PLACE).to_dict()
    again = json.loads(json.dumps(data))
    assert again["facility_energy"]["unit"] == "J"
    assert again["inputs"]["pue"] == {"value": 1.2, "unit": "1", "origin": "given"}
    assert again["embodied_carbon"] is None
    assert "give lifetime" in again["missing"]["embodied_carbon"]
    dry = hours(wue=None).to_dict()
    assert (dry["site_water"], dry["total_water"]) == (None, dry["source_water"])
    ranged = hours(pue=(1.1, 1.3)).to_dict()["facility_energy"]
    assert ranged["low"] < ranged["high"]
