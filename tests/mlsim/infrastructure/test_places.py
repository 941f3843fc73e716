"""Layer 3: grids, data centres, regions, operators, what it took to make; and their files."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from faults import FOLDER, good, overlooked, unnoticed
from kept import FIXTURES

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
from mlsim.errors import InvalidValueError, UnknownNameError, WrongKindError
from mlsim.infrastructure import DataCentre, Grid
from mlsim.infrastructure.accounts import ACCOUNTS, load_embodied, load_operator
from mlsim.infrastructure.places import (
    BASES,
    SCOPES,
    Place,
    load_data_centre,
    load_data_centres,
    load_grid_figures,
    load_grids,
    load_hours,
    load_regions,
)
from mlsim.records import DATA, KINDS, Figure
from mlsim.records.references import references
from mlsim.zoo.resolve import hardware, model
from mlsim.zoo.review.file_report import validate_file
from mlsim.zoo.review.rules import (
    checks_of,
    idle_power,
    manufacturing,
    overheads,
    reported_emissions,
    whole_power,
)

DATA_FILES = DATA / "infrastructure"
PLACES: list[Place] = [*Grids, *DataCentres, *Regions]
RECORDS: list[Any] = [*CloudOperators, *Embodied]
DAYS = [grid.hourly for grid in Grids if grid.hourly is not None]
# Years of Julian days, as they are said.
SIX_YEARS = 6 * 365 * 86400


def grams(place: Place) -> float:
    """Return the last intensity on record in g CO2e/kWh."""
    return place.figure("carbon_intensity").si * 3.6e9


def change(record: Any, name: str, si: float) -> dict[str, Figure]:
    """Return the figures of a record, of which one has another value."""
    figures = dict(record.figures)
    return {**figures, name: dataclasses.replace(figures[name], si=si, value=si)}


# ---- what can be ----


def test_each_figure_has_its_source_its_words_and_a_plausible_year() -> None:
    def sound(record: Any, name: str, figure: Figure) -> bool:
        # The quote prints the number, but where it was reckoned; one that is somebody
        # else's word says whose.
        printed = {float(each) for each in re.findall(r"\d+(?:\.\d+)?", figure.quote)}
        digits = re.sub(r"[\s,]", "", figure.quote)
        thousands = figure.value >= 1000 and f"{figure.value:.15g}" in digits
        return all((
            {getattr(record, "source", figure.source), figure.source} <= set(references()),
            figure.kind in set(KINDS) - {"given"},
            figure.where,
            1 <= len(figure.quote.split()) <= 15,
            figure.value in {*printed, 3.8e6} or thousands or figure.kind == "derived",
            figure.note or figure.kind == "datasheet",
        ))  # fmt: skip

    everything = [(each, *pair) for each in [*PLACES, *RECORDS] for pair in each.figures.items()]
    assert [(each[0].key, each[1]) for each in everything if not sound(*each)] == []
    for place in PLACES:
        for name, figure in place.figures.items():
            what, _, year = name.rpartition(".")
            assert figure.name.endswith(name)
            assert 2005 <= int(year) <= figure.read.year
            assert place.figure(what, int(year)) is figure
        assert not {"pue", "wue"} & set(place.quantities) or isinstance(place, DataCentre)
        assert "carbon_intensity" not in place.quantities or not isinstance(place, DataCentre)
    found = [each for record in RECORDS for rule in checks_of(record) for each in rule(record)]
    assert [each for each in found if each.error] == []


def test_grids_lie_between_water_alone_and_coal_alone() -> None:
    """Hydropower emits some 10 to 30 g over its life, the worst lignite some 1,200 g."""
    for grid in Grids:
        assert 10 <= grams(grid) <= 1200, grid
        assert grid.basis == "life-cycle"
        assert {grid.source, grid.basis_source} <= set(references())
    order = ("Norway", "France", "EuropeanUnion", "World", "Poland")
    every = sorted(map(grams, Grids))
    assert every[0] < every[-1]
    found = [grams(Grids.get(name)) for name in order]
    assert found == sorted(found)
    assert grams(Grids.France) == pytest.approx(44.18, rel=1e-12)
    # Our World in Data, 2023, by codecarbon: a grid changes by a third in a year at most.
    with (FIXTURES / "measured" / "grids_2023.csv").open(encoding="utf-8") as file:
        rows = [(row["country"], float(row["gCO2e_per_kWh"])) for row in csv.DictReader(file)]
    assert len(rows) > 25
    for country, value in rows:
        assert grams(Grids.find(country)) == pytest.approx(value, rel=1 / 3), country


def test_regions_may_fall_to_nothing_but_not_above_coal() -> None:
    """While they run, water, wind and the atom emit nothing."""
    for region in Regions:
        assert isinstance(region.grid, Grid)
        assert Grids.get(region.grid.key) is region.grid
        assert region.source in references()
        assert region.place
        assert region.key.rpartition(".")[2] == region.name.replace("-", "_")
        if region.figures:
            assert 0 < grams(region) < 1000
            assert region.basis == "direct"
            assert region.basis_source in references()
            assert 0 <= region.figure("carbon_free").si <= 1
        else:
            assert region.basis == region.basis_source == ""
    for cloud, name in (("Google", "Google Cloud"), ("AWS", "Amazon Web Services")):
        assert {each.provider for each in getattr(Regions, cloud)} == {name}
    for region in Regions.Azure:
        assert region.provider == "Microsoft Azure"
        assert DataCentres.find(region.name).scope == "region"
    # A country of one clean grid is cleaner without the building of its plants.
    for name in ("europe-north2", "europe-west9", "europe-west6"):
        assert grams(Regions.find(name)) < grams(Regions.find(name).grid)


def test_no_building_uses_less_than_its_machines() -> None:
    for centre in DataCentres:
        assert centre.scope in SCOPES
        assert not list(overheads(centre))
        assert all(1 <= centre.figure("pue", year).si < 3 for year in centre.years("pue"))
        litres = [centre.figure("wue", year).si * 3.6e6 for year in centre.years("wue")]
        assert all(0 <= each < 10 for each in litres), "litres per kWh"
    aws = DataCentres.AWS
    assert DataCentres.AWS_Best.figure("pue").si < aws.figure("pue").si
    assert DataCentres.Microsoft_Newest.figure("pue").si < DataCentres.Microsoft.figure("pue").si
    # A fleet lies among its regions, of which each is a region of a cloud.
    pues = [centre.figure("pue", 2024).si for centre in DataCentres.AWS_Regions]
    assert min(pues) < aws.figure("pue", 2024).si < max(pues)
    for group, provider in (("AWS_Regions", "Amazon"), ("Azure_Regions", "Microsoft")):
        centres = list(getattr(DataCentres, group))
        assert len(centres) > 10
        assert all(each.scope == "region" and each.name.startswith(provider) for each in centres)
    region = Regions.find("us-east-1")
    assert DataCentres.find(region.name) is DataCentres.AWS_Regions.us_east_1


# ---- how a place is asked ----


def test_a_figure_is_the_last_unless_a_year_is_named() -> None:
    aws = DataCentres.AWS
    assert aws.years("wue") == (2021, 2024, 2025)
    assert aws.figure("wue") is aws.figure("wue", 2025) is aws.figures["wue.2025"]
    assert aws.quantities == ("pue", "wue")
    assert Regions.find("eu-west-1").quantities == ()
    words = "wue of Amazon Web Services is on record for 2021, 2024, 2025, not for 1999."
    with pytest.raises(InvalidValueError, match=re.escape(words)):
        aws.figure("wue", 1999)
    with pytest.raises(UnknownNameError, match=r"There are: pue\."):
        DataCentres.Google.figure("wue")
    with pytest.raises(UnknownNameError, match="Did you mean 'carbon_intensity'"):
        Grids.France.figure("carbon_intensty")
    assert repr(Grids.France) == "<Grid France: 44.18 gCO2e/kWh, life-cycle>"
    assert repr(aws) == "<DataCentre Amazon Web Services: PUE 1.14, fleet>"
    region = Regions.find("europe-west9")
    assert repr(region) == "<CloudRegion europe-west9 of Google Cloud: Paris, France>"


def test_a_number_of_a_place_shows_its_work() -> None:
    number = show(Grids.France, "carbon_intensity")
    assert number.text == "44.18 gCO2e/kWh"
    assert number.name == "carbon intensity of France, 2024"
    assert "[@greenweb2026co2js]" in number.origin.how
    assert show(DataCentres.AWS, "pue.2023").name == "PUE of Amazon Web Services, 2023"
    assert show(DataCentres.AWS, "wue").text == "0.12 L/kWh"
    assert show(Grids.UnitedStates, "water_intensity").text == "3.1321 L/kWh"
    ratio = show(Grids.Poland, "carbon_intensity") / number
    assert ratio == pytest.approx(614.98 / 44.18)


def test_a_place_is_found_however_it_is_written() -> None:
    for name in ("United States", "united-states", "UnitedStates"):
        assert Grids.find(name) is Grids.UnitedStates
    # Clouds whose names differ by a dash are kept apart.
    assert Regions.find("us-east1") is Regions.Google.us_east1
    assert Regions.find("us-east-1") is Regions.find("us_east_1") is Regions.AWS.us_east_1
    words = "'useast1' is not one region: say Regions.AWS.us_east_1 or Regions.Google.us_east1."
    with pytest.raises(InvalidValueError, match=re.escape(words)):
        Regions.find("useast1")
    for spaces, name, near in (
        (Regions, "europe-wset9", "europe_west9"),
        (Grids, "Germny", "Germany"),
        (DataCentres, "Gogle", "Google"),
    ):
        with pytest.raises(UnknownNameError, match=f"Did you mean '{near}'"):
            spaces.find(name)
    with pytest.raises(WrongKindError, match="'France' is a grid"):
        model("France")
    with pytest.raises(UnknownNameError):
        hardware("nowhere")


# ---- hours, contracts and water ----


def test_a_day_has_24_hours_and_its_source(tmp_path: Path) -> None:
    table = (DATA_FILES / "hourly" / "typical_day.csv").read_text(encoding="utf-8")
    assert [row["grid"] for row in csv.DictReader(table.splitlines())] == [
        day.grid for day in sorted(DAYS, key=lambda day: day.grid)
    ]
    for day in DAYS:
        assert len(day.values) == len(day.si) == 24
        assert (day.basis in BASES, day.kind in KINDS, day.clock) == (True, True, "UTC")
        assert day.source in references()
        assert 1 <= len(day.quote.split()) <= 15
        assert day.note
        assert re.fullmatch(r"20\d\d", day.period)
        assert day.mean.to("gCO2e/kWh").magnitude == pytest.approx(sum(day.values) / 24)
        assert day.at(day.lowest).magnitude == min(day.values) < max(day.values)
        assert day.at(day.highest).magnitude == max(day.values)
        assert day.si[5] * 3.6e9 == pytest.approx(day.values[5])
        # Authors and years differ: within a half for what is not clean already.
        assert 0.6 < day.mean.si / Grids.get(day.grid).figure("carbon_intensity").si < 1.6
    load = partial(load_hours, grids=Grids.keys(), bases=BASES)
    assert overlooked(load, table, "hours", "csv") == []
    dirty = tmp_path / "day.csv"
    dirty.write_text(table.replace(",76.8\n", ",1499\n"), encoding="utf-8")
    assert max(load(dirty)["Brazil"].values) == 1499


def test_the_sun_cleans_the_noon_where_there_is_much_of_it() -> None:
    """California's noon is about 20 h UTC, Germany's and Spain's about 11 h."""
    assert 17 <= Grids.California.hourly.lowest <= 22
    assert 9 <= Grids.Germany.hourly.lowest <= 14
    assert 9 <= Grids.Spain.hourly.lowest <= 14
    swing = {day.grid: max(day.values) / min(day.values) for day in DAYS}
    assert swing["California"] > 1.5 > swing["Germany"] > swing["Brazil"] > 1
    day = Grids.California.hourly
    noon, night = day.at(20), Grids.California.at(6)
    assert noon.name == "carbon intensity of California at 20 h UTC, 2023"
    assert all(f"[@{day.source}]" in each.origin.how for each in (noon, night, day.mean))
    assert day.quote[:10] in noon.origin.how
    assert (night / noon).name == f"{night.name} / {noon.name}"
    assert day.mean.name == "carbon intensity of California of a day, 2023"
    for hour in (-1, 24, 1.5, True, "noon"):
        with pytest.raises(InvalidValueError, match="from 0 to 23"):
            Grids.Germany.at(hour)
    assert Grids.World.hourly is None
    with pytest.raises(InvalidValueError, match="There are for: Brazil, California, France"):
        Grids.World.at(12)


def test_where_certificates_are_sold_the_rest_is_dirtier() -> None:
    """Norway sells its water's certificates; what is left is bought from the whole continent."""
    for name in ("Norway", "Iceland", "Germany", "Poland"):
        grid = Grids.get(name)
        rest = grid.figure("residual_mix").si / grid.figure("carbon_intensity").si
        assert rest > (10 if name == "Norway" else 1)
    assert Grids.Norway.years("residual_mix") == (2015, 2018, 2020)
    found = {grid.key: grid for grid in Grids if "water_intensity" in grid.quantities}
    assert len(found) > 30
    water = {key: grid.figure("water_intensity") for key, grid in found.items()}
    assert {each.unit for each in water.values()} == {"L/kWh"}
    litres = {key: each.si * 3.6e6 for key, each in water.items()}
    assert all(1 <= each <= 20 for each in litres.values())
    # Reservoirs evaporate; the sea and the wind don't.
    assert litres["Brazil"] > litres["UnitedStates"] > litres["Ireland"]


# ---- operators and embodied carbon ----


def test_contracts_take_emissions_off_the_books() -> None:
    pairs = [(operator, year) for operator in CloudOperators for year in operator.pairs]
    assert len(pairs) >= 3
    for operator, year in pairs:
        located, market = (operator.figure(f"scope2_{each}", year).si for each in ACCOUNTS)
        assert market < located
    microsoft = CloudOperators.Microsoft
    assert ACCOUNTS == ("location", "market")
    assert microsoft.pairs == (2017, 2018, 2019, 2020, 2021)
    assert show(microsoft, "scope2_market.2021").text == "163,935 tCO2e"
    # Its grids are about the average of the United States; its contracts are not: of 2020
    # 4,102,445 t and 228,194 t over 10.77 TWh.
    located, market = (microsoft.intensity(each, 2020) for each in ACCOUNTS)
    assert located.magnitude == pytest.approx(4_102_445 / 10.77e3, rel=1e-9)
    assert market.magnitude == pytest.approx(228_194 / 10.77e3, rel=1e-9)
    assert microsoft.intensity() == located
    with pytest.raises(UnknownNameError, match="There are: scope2_location"):
        CloudOperators.Meta.figure("electricity")


def test_intensity_is_scope_2_over_electricity() -> None:
    """800,000 t over 2 TWh is 400 g for each kilowatt-hour."""
    path = FIXTURES / "texts" / "operator.toml"
    mine = load_operator(path)
    assert mine.intensity().to("gCO2e/kWh").magnitude == pytest.approx(400)
    assert mine.intensity("location", 2023).magnitude == pytest.approx(400)
    assert not list(reported_emissions(mine))
    report = validate_file(path)
    assert (report.errors, report.title) == (0, "operator Mine (Mine); 2 figures")
    for asked, words in (
        (("market",), "no year has both scope2_market"),
        (("location", 2022), "has both for 2023, not for 2022"),
        (("markt",), "Did you mean 'market'"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            mine.intensity(*asked)
    dirty = dataclasses.replace(mine, figures=change(mine, "scope2_location.2023", 8e9))
    assert [each.figure for each in reported_emissions(dirty)] == ["scope2_location.2023"]


def test_to_make_a_card_takes_less_than_to_make_a_server(tmp_path: Path) -> None:
    order = ("A100", "H100", "R740", "GPU_Server", "P5_Server")
    kilograms = {each.key: each.per_device.to("kgCO2e").magnitude for each in Embodied}
    found = [kilograms[each] for each in order]
    assert (found[0], found) == (150, sorted(found))
    assert kilograms["H100"] < kilograms["A100_With_Host"]
    a100 = Embodied.A100
    assert Hardware.get(a100.device) is Hardware.Cloud.A100
    assert a100.lifetime.to("s").magnitude == a100.figures["lifetime"].si == SIX_YEARS
    assert a100.utilisation is None
    assert repr(Embodied.H100).startswith("<EmbodiedCarbon NVIDIA H100")
    # A board is shared by its cards; what lasts for ever is found.
    path = tmp_path / "made.toml"
    path.write_text(good("embodied.toml"), encoding="utf-8")
    assert load_embodied(path, Hardware.keys()).per_device.magnitude == 200
    assert validate_file(path).errors == 0
    assert "embodied carbon Mine" in validate_file(path).title
    path.write_text(good("embodied.toml").replace("kgCO2e", "tCO2e"), encoding="utf-8")
    assert [each.level for each in validate_file(path).remarks].count("error") == 1
    made = dataclasses.replace(a100, figures=change(a100, "lifetime", 1e10))
    assert [each.figure for each in manufacturing(made)] == ["lifetime"]


# ---- power ----


def test_idle_devices_draw_a_part_of_what_they_may_and_systems_more() -> None:
    found = [device for device in Hardware if device.power.idle is not None]
    assert len(found) >= 12
    for device in found:
        assert device.power.idle < device.power.tdp
        assert not list(idle_power(device))
    t4 = Hardware.Cloud.T4
    assert t4.power.idle.magnitude == 8
    about = {"vendor": "", "architecture": "", "form": "board"}
    wrong = type(t4).of_figures(t4.key, t4.name, **about, figures=change(t4, "power.idle", 70.0))
    assert [each.figure for each in idle_power(wrong)] == ["power.idle"]
    whole = [system for system in Systems if system.power.max is not None]
    assert len(whole) >= 4
    for system in whole:
        assert not list(whole_power(system))
        assert system.host_power_per_device.si > 0
    # 6,500 W less eight times 400 W, shared by eight.
    assert Systems.HGX_A100.host_power_per_device.magnitude == pytest.approx(412.5)
    pair = System("Two T4", t4, devices=2, link_bandwidth="16 GB/s")
    assert pair.power.max is pair.power.idle is pair.host_power_per_device is None


def test_a_system_that_draws_too_little_or_too_much_is_found(tmp_path: Path) -> None:
    system = Systems.HGX_H100
    about = {"topology": system.topology, "source": system.source, "device": system.device}
    for watts, count in ((5000.0, 1), (20000.0, 1), (10200.0, 0)):
        figures = change(system, "power.max", watts)
        other = System.of_figures(system.key, system.name, devices=8, **about, figures=figures)
        assert len(list(whole_power(other))) == count
    text = (DATA / "systems" / "hgx_h100.toml").read_text(encoding="utf-8")
    path = tmp_path / "own.toml"
    path.write_text(text.replace("[power.max]", "[power.maximum]"), encoding="utf-8")
    report = validate_file(path)
    assert (report.errors, "unknown key 'maximum'" in report.remarks[0].message) == (1, True)


# ---- files ----


def test_a_fault_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    regions = partial(load_regions, grid=Grids.find)
    figures = partial(load_grid_figures, grids=Grids.keys())
    for load, name in (
        (load_grids, "grids.toml"),
        (load_data_centre, "centre.toml"),
        (regions, "regions.toml"),
        (figures, "grid_figures.toml"),
        (load_data_centres, "data_centres.toml"),
        (lambda path: load_embodied(path, Hardware.keys()), "embodied.toml"),
    ):
        assert unnoticed(load, name) == []
    # The least of each, and what a row takes from the head.
    figure = load_grids(FOLDER / "grids.toml")["Utopia"].figure("carbon_intensity")
    assert (figure.value, figure.unit, figure.base, figure.read) == (
        *(20, "gCO2e/kWh", "kg_CO2e/J"),
        datetime.date(2026, 11, 21),
    )
    assert figure.si == pytest.approx(20e-3 / 3.6e6, rel=1e-15)
    centers = (
        load_data_centre(FOLDER / "centre.toml"),
        load_data_centres(FOLDER / "data_centres.toml")["Mine.here"],
    )
    assert [each.figure("pue").si for each in centers] == [1.2, 1.2]
    assert set(load_data_centres(DATA_FILES / "datacentres" / "meta.toml")) == {"Meta"}
    assert figures(FOLDER / "grid_figures.toml")["France"]["water_intensity.2025"].value == 3
    assert regions(FOLDER / "regions.toml")["Mine.here"].grid is Grids.France
    bare = re.sub(r"(?s)basis.*?\n\n\[shared.*?\n\n", "\n", good("regions.toml"))
    (tmp_path / "bare.toml").write_text(bare.partition("\n[here.")[0], encoding="utf-8")
    assert regions(tmp_path / "bare.toml")["Mine.here"].figures == {}
    report = validate_file(DATA_FILES / "datacentres" / "aws.toml")
    assert report.errors == 0
    assert report.title == "data center Amazon Web Services (AWS), fleet; 6 figures"
