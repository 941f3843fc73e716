"""`Engine.footprint` in places: data centres, grids, regions, hosts, and what is refused."""

from __future__ import annotations

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
)
from mlsim.errors import InvalidValueError, UnknownNameError, WrongKindError
from mlsim.records import given


@pytest.fixture(scope="module")
def serving() -> Serving:
    return Engine.serve(model="Llama3_8B", hardware="H100", batch_size=16, prompt_tokens=1024)


# Places.


def test_a_data_centre_and_a_grid() -> None:
    load = {"hardware": "A100", "device_hours": 1000, "device_power": "300 W", "host": False}
    found = Engine.footprint(**load, data_centre="Google", grid="Germany")
    pue = DataCentres.Google.figure("pue").si
    assert found.value("facility_energy") == pytest.approx(300 * KWH * pue)
    intensity = Grids.Germany.figure("carbon_intensity").si
    assert found.value("operational_carbon") == pytest.approx(300 * KWH * pue * intensity)


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
    germany = Grids.Germany
    day = germany.hourly
    assert day is not None
    whole = hours(grid="Germany", carbon_intensity=None)
    noon = hours(grid="Germany", carbon_intensity=None, hour=12)
    ratio = day.at(12).magnitude / day.mean.magnitude
    assert noon.value("operational_carbon") == pytest.approx(
        ratio * whole.value("operational_carbon")
    )
    # All hours together are the average, and hours are none of energy's business.
    every = hours(grid="Germany", carbon_intensity=None, hour=range(24))
    assert every.value("operational_carbon") == pytest.approx(whole.value("operational_carbon"))
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
    microsoft = CloudOperators.Microsoft
    for account in ("location", "market"):
        found = hours(carbon_intensity=None, accounting=account, operator="Microsoft")
        own = microsoft.figure(f"scope2_{account}", 2020).si
        own /= microsoft.figure("electricity", 2020).si
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
    assert found.value("host_power") == pytest.approx(share.to("W").magnitude)
    lent = Engine.footprint(serving, host=system, **PLACE)
    assert lent.value("host_power") == found.value("host_power")
    assert Engine.footprint(serving, host="HGX_H100", **PLACE).host_energy == lent.host_energy


def test_a_system_that_was_measured_idle_has_a_host_that_follows_its_devices() -> None:
    found = System("Node", A100, devices=2, link_bandwidth="100 GB/s")
    figures = {
        **found.figures,
        "power.max": given("power.max", 1400.0, "W"),
        "power.idle": given("power.idle", 422.0, "W"),
    }
    node = System.of_figures(
        "Node", "Node", device=A100, devices=2, topology="switch", source="", figures=figures
    )
    # Hosts: 1,400 / 2 - 400 = 300 W at most, 422 / 2 - 61 = 150 W idle.
    tdp, idle = (A100.figures[f"power.{each}"].si for each in ("tdp", "idle"))
    low = hours(compute_utilisation=0.0, memory_utilisation=0.0, host=node)
    high = hours(compute_utilisation=1.0, memory_utilisation=1.0, host=node)
    assert low.value("host_power") == pytest.approx(422 / 2 - idle)
    assert high.value("host_power") == pytest.approx(1400 / 2 - tdp)


def test_the_embodied_carbon_of_a_device_is_on_record() -> None:
    found = hours(lifetime_use=0.5)
    assert found.value("embodied_per_device") == 150.0
    whole = hours(lifetime_use=0.5, lifetime="3 yr", embodied="A100_With_Host")
    assert whole.value("embodied_per_device") == 318.0


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
        with pytest.raises(InvalidValueError, match=r"give lifetime_use=0\.5"):
            getattr(found, name)
    assert found.operational_carbon.magnitude > 0
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
    with pytest.raises(
        InvalidValueError, match=r"WUE of Amazon.* is on record for .*, not for 2023"
    ):
        _ = new.site_water


def test_tokens_that_are_not_known_are_refused_when_asked() -> None:
    with pytest.raises(InvalidValueError, match="give tokens="):
        hours().per_token()
    with pytest.raises(UnknownNameError, match="result per token"):
        hours(tokens=10).per_token("power")
    with pytest.raises(UnknownNameError, match="Did you mean 'it_energy'"):
        hours().value("itenergy")
