"""`Engine.footprint` in places: data centres, grids, regions, hosts, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from footprints import A100, KWH, PLACE, hours

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
from mlsim.errors import InvalidValueError, UnitError, UnknownNameError, WrongKindError
from mlsim.records import given


@pytest.fixture(scope="module")
def serving() -> Serving:
    return Engine.serve(model="Llama3_8B", hardware="H100", batch_size=16, prompt_tokens=1024)


# Places.


def test_a_data_centre_and_a_grid() -> None:
    found = Engine.footprint(
        hardware="A100",
        device_hours=1000,
        device_power="300 W",
        host=False,
        data_centre="Google",
        grid="Germany",
    )
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


def test_a_region_with_figures_of_its_own_data_centres() -> None:
    found = hours(region="AWS.us_east_1", pue=None, wue=None, carbon_intensity=None)
    own = DataCentres.AWS_Regions.us_east_1
    assert found.value("pue") == own.figure("pue").si
    assert found.value("wue") == own.figure("wue").si
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


def test_the_residual_mix_is_market_based() -> None:
    found = hours(grid="Germany", carbon_intensity=None, accounting="market")
    assert found.value("carbon_intensity") == Grids.Germany.figure("residual_mix").si


def test_an_operators_contracts_change_the_grid_by_their_ratio() -> None:
    """Meta reports emissions in both ways, but not the electricity of that year."""
    found = hours(grid="Germany", carbon_intensity=None, accounting="market", operator="Meta")
    year = CloudOperators.Meta.pairs[-1]
    market, location = (
        CloudOperators.Meta.figure(f"scope2_{each}", year).si for each in ("market", "location")
    )
    average = Grids.Germany.figure("carbon_intensity").si
    assert found.value("carbon_intensity") == pytest.approx(average * market / location)
    assert "by contracts" in str(found.explain("operational_carbon"))


@pytest.mark.parametrize("account", ["location", "market"])
def test_an_operators_own_intensity(account: str) -> None:
    found = hours(carbon_intensity=None, accounting=account, operator="Microsoft")
    own = CloudOperators.Microsoft.intensity(account).to("kg_CO2e/J").magnitude
    assert found.value("carbon_intensity") == pytest.approx(own)


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
    assert (
        hours(lifetime_use=0.5, lifetime="3 yr", embodied="A100_With_Host").value(
            "embodied_per_device"
        )
        == 318.0
    )


# What is not known is refused, and what to give is said.

GRID = {"grid": "Germany", "carbon_intensity": None}


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (Engine.footprint, InvalidValueError, "footprint of what"),
        (lambda: Engine.footprint("Llama3_8B"), WrongKindError, "work must be a service"),
        (lambda: Engine.footprint(hardware="A100"), InvalidValueError, "footprint of what"),
        (
            lambda: Engine.footprint(
                Load.of(hardware=A100, device_hours=1), hardware="A100", device_hours=1
            ),
            InvalidValueError,
            "leave them out",
        ),
        (lambda: hours(pue=None), InvalidValueError, "no PUE is given: say pue=1.1.*Google"),
        (
            lambda: hours(carbon_intensity=None),
            InvalidValueError,
            "what the electricity emits is not given: say grid='Germany'.*France",
        ),
        (lambda: hours(host=True), InvalidValueError, "host of NVIDIA A100.*host=False"),
        (lambda: hours(region="us-centrall1"), UnknownNameError, "Did you mean 'us_central1'"),
        (lambda: hours(grid="Germny"), UnknownNameError, "Did you mean 'Germany'"),
        (lambda: hours(data_centre="Gogle"), UnknownNameError, "Did you mean 'Google'"),
        (lambda: hours(grid=Systems.HGX_H100), WrongKindError, "grid must be a name such as"),
        (
            lambda: hours(**GRID, year=1999),
            InvalidValueError,
            "carbon_intensity of Germany is on record for 2024, not for 1999",
        ),
        (
            lambda: hours(data_centre="Google", pue=None, year=2015),
            InvalidValueError,
            "pue of Google is on record for 2008, 2023, 2024, not for 2015",
        ),
        (lambda: hours(year=2024), InvalidValueError, "but none is used: give grid="),
        (lambda: hours(**GRID, year="2024"), InvalidValueError, "year must be a whole number"),
        (
            lambda: hours(grid="Poland", carbon_intensity=None, hour=3),
            InvalidValueError,
            "no hours are on record for Poland. There are for: .*Germany",
        ),
        (lambda: hours(**GRID, hour=24), InvalidValueError, "from 0 to 23, not 24"),
        (lambda: hours(**GRID, hour=[]), InvalidValueError, "hour is an empty list"),
        (lambda: hours(hour=3), InvalidValueError, "an hour of a grid: give grid="),
        (
            lambda: hours(**GRID, accounting="markt"),
            InvalidValueError,
            "one of location, market, not 'markt'. Did you mean 'market'",
        ),
        (
            lambda: hours(**GRID, accounting="market", hour=3),
            InvalidValueError,
            "contracts don't follow",
        ),
        (
            lambda: hours(grid="India", carbon_intensity=None, accounting="market"),
            InvalidValueError,
            "no residual mix is on record for India.*Germany.*operator= one of",
        ),
        (lambda: hours(**GRID, operator="Google"), InvalidValueError, "accounting='market'"),
        (
            lambda: hours(carbon_intensity=None, accounting="market", operator="Meta"),
            InvalidValueError,
            "give grid= as well",
        ),
        (
            lambda: hours(**GRID, accounting="market", operator="Meta", year=1999),
            InvalidValueError,
            "both ways of counting for .*not for 1999",
        ),
        (lambda: hours(pue=(1.3, 1.1)), InvalidValueError, "upside down"),
        (lambda: hours(pue=(1, 2, 3)), InvalidValueError, "a pair"),
        (lambda: hours(carbon_intensity=350), UnitError, "carbon_intensity needs a unit"),
        (lambda: hours(wue="0.5 L"), UnitError, "wue"),
        (lambda: hours(device_power="30 W"), InvalidValueError, "at least what .* draws idle"),
        (lambda: hours(device_power="-5 W"), InvalidValueError, "positive, finite number"),
        (lambda: hours(compute_utilisation=0.5), InvalidValueError, "give memory_utilisation"),
        (
            lambda: hours(compute_utilisation=1.5, memory_utilisation=0.1),
            InvalidValueError,
            "compute_utilisation is a share: it must be at most 1",
        ),
        (
            lambda: hours(device_power="300 W", max_power="400 W"),
            InvalidValueError,
            "leave max_power out",
        ),
        (lambda: hours(lifetme="4 yr"), UnknownNameError, "Did you mean 'lifetime'"),
    ],
)
def test_what_can_not_be_is_refused(
    ask: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ask()


def test_many_points_are_refused() -> None:
    serving = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=[1, 2])
    with pytest.raises(InvalidValueError, match="pick one"):
        Engine.footprint(serving, host=False, **PLACE)


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
