"""Layer 3, beyond a year's average: hours, water, contracts, operators, what it took to make."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import good, unnoticed

from mlsim import (
    CloudOperators,
    DataCentres,
    Embodied,
    Grids,
    Hardware,
    Regions,
    System,
    Systems,
    show,
)
from mlsim.errors import DataFileError, InvalidValueError, UnknownNameError
from mlsim.infrastructure import (
    ACCOUNTS,
    BASES,
    CloudOperator,
    EmbodiedCarbon,
    HourlyIntensity,
    load_data_centres,
    load_embodied,
    load_grid_figures,
    load_hours,
    load_operator,
)
from mlsim.records import DATA, KINDS, Figure
from mlsim.records.references import references
from mlsim.zoo.review.file_report import validate_file
from mlsim.zoo.review.infrastructure_rules import (
    idle_power,
    manufacturing,
    overheads,
    reported_emissions,
    whole_power,
)
from mlsim.zoo.review.rules import checks_of

PLACES = DATA / "infrastructure"
DAYS: list[HourlyIntensity] = [grid.hourly for grid in Grids if grid.hourly is not None]
RECORDS: list[CloudOperator | EmbodiedCarbon] = [*CloudOperators, *Embodied]
FIGURES = [(each, name, figure) for each in RECORDS for name, figure in each.figures.items()]

each_day = pytest.mark.parametrize("day", DAYS, ids=lambda each: each.grid)


def change(figures: dict[str, Figure], name: str, si: float) -> dict[str, Figure]:
    """Return figures of which one has another value."""
    import dataclasses

    return {**figures, name: dataclasses.replace(figures[name], si=si, value=si)}


# Hours.


def test_days_of_several_shapes_are_on_record() -> None:
    assert {"California", "Germany", "UnitedKingdom", "France", "Norway"} <= {
        day.grid for day in DAYS
    }


@each_day
def test_a_day_has_24_hours_and_its_source(day: HourlyIntensity) -> None:
    assert len(day.values) == len(day.si) == 24
    assert day.basis in BASES
    assert day.kind in KINDS
    assert day.source in references()
    assert 1 <= len(day.quote.split()) <= 15
    assert day.note
    assert day.clock == "UTC"
    assert re.fullmatch(r"20\d\d", day.period)
    mean = day.mean.to("gCO2e/kWh").magnitude
    assert min(day.values) < mean < max(day.values)
    assert day.at(day.lowest).magnitude == min(day.values)
    assert day.at(day.highest).magnitude == max(day.values)
    assert day.si[5] * 3.6e9 == pytest.approx(day.values[5])


@each_day
def test_a_day_is_about_the_average_of_a_year(day: HourlyIntensity) -> None:
    """Authors and years differ: within a half for what is not clean already."""
    year = Grids.get(day.grid).figure("carbon_intensity").si
    ratio = day.mean.to("kg_CO2e/J").magnitude / year
    assert 0.6 < ratio < 1.6


def test_the_sun_cleans_the_noon_where_there_is_much_of_it() -> None:
    """California's noon is about 20 h UTC, Germany's and Spain's about 11 h."""
    assert 17 <= Grids.California.hourly.lowest <= 22
    assert 9 <= Grids.Germany.hourly.lowest <= 14
    assert 9 <= Grids.Spain.hourly.lowest <= 14
    swing = {day.grid: max(day.values) / min(day.values) for day in DAYS}
    assert swing["California"] > 1.5 > swing["Germany"] > swing["Brazil"] > 1


def test_a_grid_without_hours_names_those_that_have_some() -> None:
    assert Grids.World.hourly is None
    with pytest.raises(InvalidValueError, match="There are for: Brazil, California, France"):
        Grids.World.at(12)


def test_an_hour_knows_where_it_comes_from_and_so_does_what_is_computed_of_it() -> None:
    day = Grids.California.hourly
    noon, night = day.at(20), Grids.California.at(6)
    assert noon.name == "carbon intensity of California at 20 h UTC, 2023"
    assert all(f"[@{day.source}]" in each.origin.how for each in (noon, night, day.mean))
    assert day.quote[:10] in noon.origin.how
    assert (night / noon).name == f"{night.name} / {noon.name}"
    assert day.mean.name == "carbon intensity of California of a day, 2023"


@pytest.mark.parametrize("hour", [-1, 24, 1.5, True, "noon"])
def test_what_is_no_hour_is_refused(hour: object) -> None:
    with pytest.raises(InvalidValueError, match="from 0 to 23"):
        Grids.Germany.at(hour)


TABLE = (PLACES / "hourly" / "typical_day.csv").read_text(encoding="utf-8")
GRIDS = Grids.keys()


@pytest.mark.parametrize(
    ("change_to", "words"),
    [
        (lambda text: text.replace("grid,", "gird,", 1), r"day\.csv:1: the columns must be"),
        (lambda text: text.replace("\nBrazil,", "\nBrasil,"), r"day\.csv:2: grid 'Brasil'.*Did"),
        (lambda text: text.replace("life-cycle", "lifecycle", 1), "basis 'lifecycle' is unknown"),
        (lambda text: text.replace(",derived,", ",guessed,", 1), "kind 'guessed' is unknown"),
        (lambda text: text + text.splitlines()[1] + "\n", "two rows are of Brazil"),
        (lambda text: re.sub(r",[\d.]+\n", ",0\n", text, count=1), "h23: 0 gCO2e/kWh can't be"),
        (lambda text: re.sub(r",[\d.]+\n", ",9999\n", text, count=1), "h23: 9999 gCO2e/kWh"),
        (lambda text: re.sub(r",[\d.]+\n", ",x\n", text, count=1), "could not convert"),
        (lambda text: re.sub(r",[\d.]+\n", ",\n", text, count=1), "every cell a value"),
        (lambda text: text.replace("gCO2e/kWh,", "gCO2e,", 1), "a value in gCO2e was given"),
        (lambda text: text.replace("2026-11-21", "yesterday", 1), "yesterday"),
    ],
)
def test_a_table_that_cannot_be_names_file_and_line(
    tmp_path: Path, change_to: Callable[[str], str], words: str
) -> None:
    path = tmp_path / "day.csv"
    path.write_text(change_to(TABLE), encoding="utf-8")
    with pytest.raises(DataFileError, match=words) as e:
        load_hours(path, GRIDS, BASES)
    assert re.search(r"day\.csv:\d+: ", str(e.value))


def test_the_table_is_the_one_of_the_zoo() -> None:
    rows = list(csv.DictReader(TABLE.splitlines()))
    assert [row["grid"] for row in rows] == sorted(day.grid for day in DAYS)


# Contracts and water.


def test_where_certificates_are_sold_the_rest_is_dirtier() -> None:
    """Norway sells its water's certificates; what is left is bought from the whole continent."""
    for name in ("Norway", "Iceland", "Germany", "Poland"):
        grid = Grids.get(name)
        assert grid.figure("residual_mix").si > grid.figure("carbon_intensity").si
    assert Grids.Norway.figure("residual_mix").si > 10 * Grids.Norway.figure("carbon_intensity").si
    assert Grids.Norway.years("residual_mix") == (2015, 2018, 2020)


def test_water_is_a_few_litres_a_kilowatt_hour() -> None:
    found = [grid for grid in Grids if "water_intensity" in grid.quantities]
    assert len(found) > 30
    for grid in found:
        assert 1 <= grid.figure("water_intensity").si * 3.6e6 <= 20, grid
        assert grid.figure("water_intensity").unit == "L/kWh"
    # Reservoirs evaporate; the sea and the wind don't.
    water = {grid.key: grid.figure("water_intensity").si for grid in found}
    assert water["Brazil"] > water["UnitedStates"] > water["Ireland"]
    assert show(Grids.UnitedStates, "water_intensity").text == "3.1321 L/kWh"


def test_a_fault_is_named_with_its_file_and_line() -> None:
    assert unnoticed(lambda path: load_grid_figures(path, GRIDS), "grid_figures.toml") == []
    assert unnoticed(load_data_centres, "data_centres.toml") == []
    assert unnoticed(lambda path: load_embodied(path, Hardware.keys()), "embodied.toml") == []


def test_further_figures_are_found_by_grid(tmp_path: Path) -> None:
    path = tmp_path / "more.toml"
    path.write_text(good("grid_figures.toml"), encoding="utf-8")
    assert load_grid_figures(path, GRIDS)["France"]["water_intensity.2025"].value == 3


# Data centres of regions.


def test_regions_that_tell_their_overhead_are_regions_of_a_cloud() -> None:
    for group, provider in (("AWS_Regions", "Amazon"), ("Azure_Regions", "Microsoft")):
        centres = list(getattr(DataCentres, group))
        assert len(centres) > 10
        for centre in centres:
            assert centre.scope == "region"
            assert centre.name.startswith(provider)
            assert not list(overheads(centre))
    region = Regions.find("us-east-1")
    assert DataCentres.find(region.name) is DataCentres.AWS_Regions.us_east_1
    assert {each.provider for each in Regions.Azure} == {"Microsoft Azure"}
    for region in Regions.Azure:
        assert DataCentres.find(region.name).scope == "region"


def test_a_fleet_lies_among_its_regions() -> None:
    pues = [centre.figure("pue", 2024).si for centre in DataCentres.AWS_Regions]
    assert min(pues) < DataCentres.AWS.figure("pue", 2024).si < max(pues)


def test_one_centre_is_read_as_one_of_many(tmp_path: Path) -> None:
    path = PLACES / "datacentres" / "meta.toml"
    assert set(load_data_centres(path)) == {"Meta"}
    many = tmp_path / "many.toml"
    many.write_text(good("data_centres.toml"), encoding="utf-8")
    assert load_data_centres(many)["Mine.here"].figure("pue").si == 1.2


# Operators and embodied carbon.


def test_each_figure_has_its_source_and_its_words_and_every_rule_holds() -> None:
    for record, name, figure in FIGURES:
        printed = re.sub(r"[\s,]", "", figure.quote)
        rounded = figure.value == 3.8e6
        assert {figure.source, record.source} <= set(references()), (record, name)
        assert 1 <= len(figure.quote.split()) <= 15, (record, name)
        assert figure.kind in set(KINDS) - {"given"}, (record, name)
        assert figure.note or figure.kind == "datasheet", (record, name)
        assert f"{figure.value:.15g}" in printed or figure.kind == "derived" or rounded, record
    found = [each for record in RECORDS for rule in checks_of(record) for each in rule(record)]
    assert [each for each in found if each.error] == []


def test_contracts_take_emissions_off_the_books() -> None:
    pairs = [(operator, year) for operator in CloudOperators for year in operator.pairs]
    assert len(pairs) >= 3
    for operator, year in pairs:
        located = operator.figure("scope2_location", year).si
        market = operator.figure("scope2_market", year).si
        assert market < located
    assert CloudOperators.Microsoft.pairs == (2017, 2018, 2019, 2020, 2021)
    assert show(CloudOperators.Microsoft, "scope2_market.2021").text == "163,935 tCO2e"
    assert CloudOperators.Microsoft.figure("scope2_market", 2021).si == pytest.approx(163_935e3)


OPERATOR = """\
key = "Mine"
name = "Mine"
covers = "all"
source = "google2014footprint"
"""
REPORTED = """
[{name}.2023]
value = {value}
unit = "{unit}"
kind = "datasheet"
source = "google2014footprint"
where = "page 1"
quote = "{value}"
read = 2026-11-21
"""


def reported(name: str, value: float, unit: str) -> str:
    return REPORTED.format(name=name, value=value, unit=unit)


def test_intensity_is_scope_2_over_electricity(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        OPERATOR
        + reported("electricity", 2, "TWh")
        + reported("scope2_location", 800_000, "tCO2e"),
        encoding="utf-8",
    )
    mine = load_operator(path)
    # 800,000 t over 2 TWh is 400 g for each kilowatt-hour.
    assert mine.intensity().to("gCO2e/kWh").magnitude == pytest.approx(400)
    assert mine.intensity("location", 2023).magnitude == pytest.approx(400)
    assert not list(reported_emissions(mine))
    assert validate_file(path).errors == 0
    assert validate_file(path).title == "operator Mine (Mine); 2 figures"
    with pytest.raises(InvalidValueError, match="no year has both scope2_market"):
        mine.intensity("market")
    with pytest.raises(InvalidValueError, match="has both for 2023, not for 2022"):
        mine.intensity("location", 2022)
    with pytest.raises(InvalidValueError, match="Did you mean 'market'"):
        mine.intensity("markt")
    dirty = CloudOperator(
        key="Mine",
        name="Mine",
        covers="all",
        source="",
        figures=change(dict(mine.figures), "scope2_location.2023", 8e9),
    )
    assert [each.figure for each in reported_emissions(dirty)] == ["scope2_location.2023"]


def test_accounts_are_two() -> None:
    assert ACCOUNTS == ("location", "market")
    with pytest.raises(UnknownNameError, match="There are: scope2_location"):
        CloudOperators.Meta.figure("electricity")


def test_to_make_a_card_takes_less_than_to_make_a_server() -> None:
    kilograms = {each.key: each.per_device.to("kgCO2e").magnitude for each in Embodied}
    assert kilograms["A100"] == 150
    assert kilograms["A100"] < kilograms["H100"] < kilograms["A100_With_Host"]
    assert kilograms["H100"] < kilograms["R740"] < kilograms["GPU_Server"] < kilograms["P5_Server"]
    assert Hardware.get(Embodied.A100.device) is Hardware.Cloud.A100
    assert Embodied.A100.lifetime.to("s").magnitude == 6 * 365 * 86400
    assert Embodied.A100.figures["lifetime"].si == 6 * 365 * 86400
    assert Embodied.A100.utilisation is None
    assert repr(Embodied.H100).startswith("<EmbodiedCarbon NVIDIA H100")


def test_a_board_is_shared_by_its_cards(tmp_path: Path) -> None:
    path = tmp_path / "made.toml"
    path.write_text(good("embodied.toml"), encoding="utf-8")
    assert load_embodied(path, Hardware.keys()).per_device.magnitude == 200
    assert validate_file(path).errors == 0
    assert "embodied carbon Mine" in validate_file(path).title
    path.write_text(good("embodied.toml").replace("kgCO2e", "tCO2e"), encoding="utf-8")
    assert [each.level for each in validate_file(path).remarks].count("error") == 1


def test_what_is_made_of_nothing_or_lasts_for_ever_is_found() -> None:
    made = EmbodiedCarbon(
        key="x",
        name="x",
        covers="x",
        device="",
        devices=1,
        source="",
        figures=change(dict(Embodied.A100.figures), "lifetime", 1e10),
    )
    assert [each.figure for each in manufacturing(made)] == ["lifetime"]


def test_a_file_of_a_data_centre_is_checked() -> None:
    report = validate_file(PLACES / "datacentres" / "aws.toml")
    assert report.errors == 0
    assert report.title == "data center Amazon Web Services (AWS), fleet; 6 figures"


# Power.


def test_idle_devices_draw_a_part_of_what_they_may() -> None:
    found = [device for device in Hardware if device.power.idle is not None]
    assert len(found) >= 12
    for device in found:
        assert device.power.idle < device.power.tdp
        assert not list(idle_power(device))
    assert Hardware.Cloud.T4.power.idle.magnitude == 8


def test_an_idle_device_that_draws_all_is_found() -> None:
    device = Hardware.Cloud.T4
    wrong = type(device).of_figures(
        device.key,
        device.name,
        vendor="",
        architecture="",
        form="board",
        figures=change(dict(device.figures), "power.idle", 70.0),
    )
    assert [each.figure for each in idle_power(wrong)] == ["power.idle"]


def test_a_whole_system_draws_more_than_its_devices() -> None:
    found = [system for system in Systems if system.power.max is not None]
    assert len(found) >= 4
    for system in found:
        assert not list(whole_power(system))
        assert system.host_power_per_device.to("W").magnitude > 0
    # 6,500 W less eight times 400 W, shared by eight.
    assert Systems.HGX_A100.host_power_per_device.magnitude == pytest.approx(412.5)
    pair = System("Two T4", Hardware.Cloud.T4, devices=2, link_bandwidth="16 GB/s")
    assert pair.power.max is pair.power.idle is pair.host_power_per_device is None


@pytest.mark.parametrize(("watts", "count"), [(5000.0, 1), (20000.0, 1), (10200.0, 0)])
def test_a_system_that_draws_too_little_or_too_much_is_found(watts: float, count: int) -> None:
    system = Systems.HGX_H100
    other = System.of_figures(
        system.key,
        system.name,
        device=system.device,
        devices=system.devices,
        topology=system.topology,
        source=system.source,
        figures=change(dict(system.figures), "power.max", watts),
    )
    assert len(list(whole_power(other))) == count


def test_a_system_file_may_tell_its_power_and_nothing_else(tmp_path: Path) -> None:
    text = (DATA / "systems" / "hgx_h100.toml").read_text(encoding="utf-8")
    path = tmp_path / "own.toml"
    path.write_text(text.replace("[power.max]", "[power.maximum]"), encoding="utf-8")
    report = validate_file(path)
    assert report.errors == 1
    assert "unknown key 'maximum'" in report.remarks[0].message


def test_by_contracts_a_kilowatt_hour_is_nearly_clean() -> None:
    """Microsoft's grids are about the average of the United States; its contracts are not."""
    located = CloudOperators.Microsoft.intensity("location", 2020)
    market = CloudOperators.Microsoft.intensity("market", 2020)
    # 4,102,445 t and 228,194 t over 10.77 TWh.
    assert located.magnitude == pytest.approx(4_102_445 / 10.77e3, rel=1e-9)
    assert market.magnitude == pytest.approx(228_194 / 10.77e3, rel=1e-9)
    assert CloudOperators.Microsoft.intensity() == located
