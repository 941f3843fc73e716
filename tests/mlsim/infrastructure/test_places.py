"""Layer 3: grids, data centres and regions; what can be, and what their files may say."""

from __future__ import annotations

import csv
import datetime
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim import DataCentres, Grids, Regions, show
from mlsim.errors import DataFileError, InvalidValueError, UnknownNameError, WrongKindError
from mlsim.infrastructure import (
    BASES,
    SCOPES,
    DataCentre,
    Grid,
    load_data_centre,
    load_grids,
    load_regions,
)
from mlsim.infrastructure.places import Place
from mlsim.records import KINDS, Figure
from mlsim.records.references import references
from mlsim.zoo.resolve import hardware, model

PLACES = [*Grids, *DataCentres, *Regions]
FIGURES = [(place, name, figure) for place in PLACES for name, figure in place.figures.items()]

each_place = pytest.mark.parametrize("place", PLACES, ids=lambda each: each.key)
each_figure = pytest.mark.parametrize(
    ("place", "name", "figure"), FIGURES, ids=[f"{each.key} {name}" for each, name, _ in FIGURES]
)


def grams(place: Place) -> float:
    """Return the last intensity on record in g CO2e/kWh."""
    return place.figure("carbon_intensity").si * 3.6e9


# What can be.


@each_figure
def test_a_figure_has_its_source_and_its_words(place: Place, name: str, figure: Figure) -> None:
    assert figure.name.endswith(name)
    assert figure.source in references()
    assert figure.kind in set(KINDS) - {"given"}
    assert figure.where
    assert figure.read
    assert 1 <= len(figure.quote.split()) <= 15
    # The quote prints the number, but where it was reckoned; one that is somebody
    # else's word says whose.
    printed = {float(each) for each in re.findall(r"\d+(?:\.\d+)?", figure.quote)}
    assert figure.value in printed or figure.kind == "derived"
    assert figure.note or figure.kind not in ("secondary", "derived")


@each_figure
def test_a_year_is_past_and_plausible(place: Place, name: str, figure: Figure) -> None:
    year = int(name.rpartition(".")[2])
    assert 2005 <= year <= figure.read.year
    assert place.figure(name.partition(".")[0], year) is figure


def test_grids_lie_between_water_alone_and_coal_alone() -> None:
    """Hydropower emits some 10 to 30 g over its life, the worst lignite some 1,200 g."""
    for grid in Grids:
        assert 10 <= grams(grid) <= 1200, grid
        assert grid.basis == "life-cycle"
        assert {grid.source, grid.basis_source} <= set(references())
    assert grams(Grids.Norway) < grams(Grids.France) < grams(Grids.Germany) < grams(Grids.Poland)
    assert grams(Grids.France) == pytest.approx(44.18, rel=1e-12)


def test_the_world_lies_between_its_countries() -> None:
    every = sorted(map(grams, Grids))
    assert every[0] < grams(Grids.World) < every[-1]
    assert every[0] < grams(Grids.EuropeanUnion) < grams(Grids.World)


def test_regions_may_fall_to_nothing_but_not_above_coal() -> None:
    """While they run, water, wind and the atom emit nothing."""
    for region in Regions:
        assert isinstance(region.grid, Grid)
        assert Grids.get(region.grid.key) is region.grid
        assert region.source in references()
        assert region.place
        if region.figures:
            assert 0 < grams(region) < 1000
            assert region.basis == "direct"
            assert region.basis_source in references()
            assert 0 <= region.figure("carbon_free").si <= 1
        else:
            assert region.basis == region.basis_source == ""


def test_a_region_is_of_the_cloud_that_its_key_names() -> None:
    assert {each.provider for each in Regions.Google} == {"Google Cloud"}
    assert {each.provider for each in Regions.AWS} == {"Amazon Web Services"}
    for region in Regions:
        assert region.key.rpartition(".")[2] == region.name.replace("-", "_")


def test_a_country_of_one_clean_grid_is_cleaner_without_the_building_of_its_plants() -> None:
    for name in ("europe-north2", "europe-west9", "europe-west6"):
        region = Regions.find(name)
        assert grams(region) < grams(region.grid)


def test_no_building_uses_less_than_its_machines() -> None:
    for centre in DataCentres:
        assert centre.scope in SCOPES
        for year in centre.years("pue"):
            assert 1 <= centre.figure("pue", year).si < 3
        for year in centre.years("wue"):
            assert 0 <= centre.figure("wue", year).si * 3.6e6 < 10, "litres per kWh"


def test_a_part_that_is_named_best_is_better_than_its_fleet() -> None:
    assert DataCentres.AWS_Best.figure("pue").si < DataCentres.AWS.figure("pue").si
    assert DataCentres.Microsoft_Newest.figure("pue").si < DataCentres.Microsoft.figure("pue").si


@each_place
def test_overhead_and_intensity_never_stand_on_one_record(place: Place) -> None:
    assert not {"pue", "wue"} & set(place.quantities) or isinstance(place, DataCentre)
    assert "carbon_intensity" not in place.quantities or not isinstance(place, DataCentre)


def test_grids_agree_with_another_copy_of_the_year_before(reference: Path) -> None:
    """Our World in Data, 2023, by codecarbon: a grid changes by a third in a year at most."""
    with (reference / "data" / "measurements-open.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["series"] == "grid_owid"]
    assert len(rows) > 25
    for row in rows:
        country = row["hardware"].removesuffix(" grid")
        assert grams(Grids.find(country)) == pytest.approx(float(row["value"]), rel=1 / 3), country


# How a place is asked.


def test_a_figure_is_the_last_unless_a_year_is_named() -> None:
    aws = DataCentres.AWS
    assert aws.years("wue") == (2021, 2024, 2025)
    assert aws.figure("wue") is aws.figure("wue", 2025) is aws.figures["wue.2025"]
    assert aws.quantities == ("pue", "wue")
    assert Regions.find("eu-west-1").quantities == ()


def test_a_year_outside_the_data_names_those_inside() -> None:
    words = "wue of Amazon Web Services is on record for 2021, 2024, 2025, not for 1999."
    with pytest.raises(InvalidValueError, match=re.escape(words)):
        DataCentres.AWS.figure("wue", 1999)


def test_a_figure_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(UnknownNameError, match=r"There are: pue\."):
        DataCentres.Google.figure("wue")
    with pytest.raises(UnknownNameError, match="Did you mean 'carbon_intensity'"):
        Grids.France.figure("carbon_intensty")


def test_names_print_what_matters() -> None:
    assert repr(Grids.France) == "<Grid France: 44.18 gCO2e/kWh, life-cycle>"
    assert repr(DataCentres.AWS) == "<DataCentre Amazon Web Services: PUE 1.14, fleet>"
    assert repr(Regions.find("europe-west9")) == (
        "<CloudRegion europe-west9 of Google Cloud: Paris, France>"
    )


def test_a_number_of_a_place_shows_its_work() -> None:
    number = show(Grids.France, "carbon_intensity")
    assert number.text == "44.18 gCO2e/kWh"
    assert number.name == "carbon intensity of France, 2024"
    assert "[@greenweb2026co2js]" in number.origin.how
    assert show(DataCentres.AWS, "pue.2023").name == "PUE of Amazon Web Services, 2023"
    assert show(DataCentres.AWS, "wue").text == "0.12 L/kWh"
    ratio = show(Grids.Poland, "carbon_intensity") / show(Grids.France, "carbon_intensity")
    assert ratio == pytest.approx(614.98 / 44.18)


# Names.


@pytest.mark.parametrize("name", ["United States", "united-states", "UnitedStates"])
def test_a_grid_is_found_however_it_is_written(name: str) -> None:
    assert Grids.find(name) is Grids.UnitedStates


def test_clouds_whose_names_differ_by_a_dash_are_kept_apart() -> None:
    assert Regions.find("us-east1") is Regions.Google.us_east1
    assert Regions.find("us-east-1") is Regions.AWS.us_east_1
    assert Regions.find("us_east_1") is Regions.AWS.us_east_1
    with pytest.raises(InvalidValueError) as e:
        Regions.find("useast1")
    assert str(e.value) == (
        "'useast1' is not one region: say Regions.AWS.us_east_1 or Regions.Google.us_east1."
    )


@pytest.mark.parametrize(
    ("find", "name", "near"),
    [
        (Regions.find, "europe-wset9", "europe_west9"),
        (Grids.find, "Germny", "Germany"),
        (DataCentres.find, "Gogle", "Google"),
    ],
)
def test_an_unknown_place_suggests_the_nearest(find, name: str, near: str) -> None:
    with pytest.raises(UnknownNameError, match=f"Did you mean '{near}'"):
        find(name)


def test_a_place_is_no_model_and_no_device() -> None:
    with pytest.raises(WrongKindError, match="'France' is a grid"):
        model("France")
    with pytest.raises(UnknownNameError):
        hardware("nowhere")


# Files.

HEAD = """\
basis = "life-cycle"
basis_source = "ember2024method"
source = "greenweb2026co2js"

[shared.carbon_intensity]
unit = "gCO2e/kWh"
kind = "secondary"
source = "greenweb2026co2js"
where = "entry of the country"
read = 2026-11-21
"""
GRID = """
[Utopia]
key = "Utopia"
name = "Utopia"

[Utopia.carbon_intensity.2024]
value = 20
quote = "20"
"""
CENTRE = """\
key = "Mine"
name = "Mine"
scope = "fleet"

[pue.2024]
value = 1.2
unit = "1"
kind = "datasheet"
source = "meta2022datacenters"
where = "page 1"
quote = "1.2"
read = 2026-11-21
"""
CLOUD = """\
provider = "A cloud"
source = "google2025regions"
basis = "direct"
basis_source = "google2025regions"

[shared.carbon_intensity]
unit = "gCO2e/kWh"
kind = "datasheet"
source = "google2025regions"
where = "row"
read = 2026-11-21

[here]
key = "Mine.here"
name = "here"
place = "Paris"
grid = "France"

[here.carbon_intensity.2024]
value = 20
quote = "20"
"""

Load = Callable[[str, str], object]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return a loader of text: what kind of file, and what it says."""
    loaders = {
        "grids": load_grids,
        "centre": load_data_centre,
        "regions": lambda path: load_regions(path, Grids.find),
    }

    def call(kind: str, text: str) -> object:
        path = tmp_path / f"{kind}.toml"
        path.write_text(text, encoding="utf-8")
        return loaders[kind](path)

    return call


def test_a_row_takes_from_the_head_what_it_does_not_say(load: Load) -> None:
    grid = load("grids", HEAD + GRID)["Utopia"]
    figure = grid.figure("carbon_intensity")
    assert (figure.value, figure.unit, figure.base) == (20, "gCO2e/kWh", "kg_CO2e/J")
    assert figure.si == pytest.approx(20e-3 / 3.6e6, rel=1e-15)
    assert figure.read == datetime.date(2026, 11, 21)
    assert grid.basis in BASES


def test_the_least_of_each(load: Load) -> None:
    assert load("centre", CENTRE).figure("pue").si == 1.2
    region = load("regions", CLOUD)["Mine.here"]
    assert region.grid is Grids.France
    bare = re.sub(r"(?s)basis.*?\n\n\[shared.*?\n\n", "\n", CLOUD).partition("\n[here.")[0]
    assert load("regions", bare)["Mine.here"].figures == {}


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("grids", GRID, "grids.toml:1: basis is missing."),
        (
            "grids",
            HEAD.replace('"life-cycle"', '"lifecycle"') + GRID,
            "grids.toml:1: basis must be one of life-cycle, direct, not 'lifecycle'. Did you mean",
        ),
        ("grids", "sorce = 1\n" + HEAD + GRID, "grids.toml:1: unknown key 'sorce'. Did you mean"),
        ("grids", HEAD + GRID.partition("[Utopia.")[0], "grids.toml:12: Utopia has no carbon_int"),
        ("grids", HEAD + GRID.replace("name =", "nam ="), "grids.toml:14: unknown key 'nam'."),
        ("grids", HEAD + GRID.replace('quote = "20"', ""), "grids.toml:16: Utopia.carbon_intens"),
        ("grids", HEAD + GRID.replace("2024", "24"), "grids.toml:16: '24' is no year of"),
        ("grids", HEAD + GRID.replace("value = 20", "value = -1"), "grids.toml:17: Utopia.carbon"),
        ("grids", HEAD + GRID.replace(".2024]", "]"), "grids.toml:17: 'value' is no year"),
        (
            "grids",
            HEAD + '\n[Utopia]\nkey = "U"\nname = "U"\ncarbon_intensity = 20\n',
            "grids.toml:15: carbon_intensity must be tables of years",
        ),
        ("grids", HEAD.replace("gCO2e/kWh", "L/kWh") + GRID, "a value in L/kWh was given where"),
        ("grids", HEAD.replace("where", "wher") + GRID, "grids.toml:9: unknown key 'wher'."),
        ("grids", HEAD.replace("carbon_int", "carbn_int") + GRID, "grids.toml:5: unknown key"),
        ("centre", CENTRE.replace("fleet", "flet"), "centre.toml:3: scope must be one of fleet"),
        ("centre", CENTRE.replace("= 1.2", "= 0.9"), "centre.toml:5: pue.2024: 0.9 is below 1"),
        ("centre", CENTRE.replace("[pue", "[wue"), "centre.toml:7: wue.2024: a value in 1 was"),
        ("centre", CENTRE.partition("[pue")[0], "centre.toml:1: there is no PUE"),
        (
            "centre",
            CENTRE + "\n[carbon_intensity.2024]\nvalue = 20\n",
            "centre.toml:14: unknown key 'carbon_intensity'.",
        ),
        (
            "regions",
            CLOUD.replace('"France"', '"Frence"'),
            "regions.toml:17: no grid is called 'Frence'. Did you mean 'France'?",
        ),
        (
            "regions",
            re.sub(r"basis.*\n", "", CLOUD),
            "regions.toml:11: here has an intensity: say its basis, one of life-cycle, direct.",
        ),
        (
            "regions",
            CLOUD.replace("carbon_intensity", "carbon_free").replace("gCO2e/kWh", "1"),
            "regions.toml:19: carbon_free.2024: a share can't be 20.",
        ),
        ("regions", CLOUD + "\n[here.pue.2024]\nvalue = 2\n", "unknown key 'pue'."),
    ],
    ids=lambda each: each[:40].replace("\n", " "),
)
def test_a_file_that_cannot_be_names_file_and_line(
    load: Load, kind: str, text: str, words: str
) -> None:
    with pytest.raises(DataFileError) as e:
        load(kind, text)
    assert words in str(e.value)
    assert re.search(rf"{kind}\.toml:\d+: ", str(e.value))
