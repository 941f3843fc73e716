"""Layer 3: grids, data centres and regions; what can be, and what their files may say."""

from __future__ import annotations

import csv
import datetime
import re
from functools import partial
from pathlib import Path

import pytest
from faults import FOLDER, good, unnoticed
from kept import FIXTURES

from mlsim import DataCentres, Grids, Regions, show
from mlsim.errors import InvalidValueError, UnknownNameError, WrongKindError
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


def grams(place: Place) -> float:
    """Return the last intensity on record in g CO2e/kWh."""
    return place.figure("carbon_intensity").si * 3.6e9


# What can be.


def test_each_figure_has_its_source_its_words_and_a_plausible_year() -> None:
    wrong = [(place.key, name) for place, name, figure in FIGURES if not sound(place, name, figure)]
    assert wrong == []


def sound(place: Place, name: str, figure: Figure) -> bool:
    # The quote prints the number, but where it was reckoned; one that is somebody
    # else's word says whose.
    printed = {float(each) for each in re.findall(r"\d+(?:\.\d+)?", figure.quote)}
    what, _, year = name.rpartition(".")
    return all((
        figure.name.endswith(name),
        figure.source in references(),
        figure.kind in set(KINDS) - {"given"},
        figure.where,
        1 <= len(figure.quote.split()) <= 15,
        figure.value in printed or figure.kind == "derived",
        figure.note or figure.kind not in ("secondary", "derived"),
        2005 <= int(year) <= figure.read.year,
        place.figure(what, int(year)) is figure,
    ))  # fmt: skip


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


def test_overhead_and_intensity_never_stand_on_one_record() -> None:
    for place in PLACES:
        assert not {"pue", "wue"} & set(place.quantities) or isinstance(place, DataCentre)
        assert "carbon_intensity" not in place.quantities or not isinstance(place, DataCentre)


def test_grids_agree_with_another_copy_of_the_year_before() -> None:
    """Our World in Data, 2023, by codecarbon: a grid changes by a third in a year at most."""
    with (FIXTURES / "measured" / "grids_2023.csv").open(encoding="utf-8") as file:
        rows = [(row["country"], float(row["gCO2e_per_kWh"])) for row in csv.DictReader(file)]
    assert len(rows) > 25
    for country, value in rows:
        assert grams(Grids.find(country)) == pytest.approx(value, rel=1 / 3), country


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

REGIONS = partial(load_regions, grid=Grids.find)


def test_a_fault_is_named_with_its_file_and_line() -> None:
    assert unnoticed(load_grids, "grids.toml") == []
    assert unnoticed(load_data_centre, "centre.toml") == []
    assert unnoticed(REGIONS, "regions.toml") == []


def test_a_row_takes_from_the_head_what_it_does_not_say() -> None:
    grid = load_grids(FOLDER / "grids.toml")["Utopia"]
    figure = grid.figure("carbon_intensity")
    assert (figure.value, figure.unit, figure.base) == (20, "gCO2e/kWh", "kg_CO2e/J")
    assert figure.si == pytest.approx(20e-3 / 3.6e6, rel=1e-15)
    assert figure.read == datetime.date(2026, 11, 21)
    assert grid.basis in BASES


def test_the_least_of_each(tmp_path: Path) -> None:
    assert load_data_centre(FOLDER / "centre.toml").figure("pue").si == 1.2
    assert REGIONS(FOLDER / "regions.toml")["Mine.here"].grid is Grids.France
    bare = re.sub(r"(?s)basis.*?\n\n\[shared.*?\n\n", "\n", good("regions.toml"))
    (tmp_path / "bare.toml").write_text(bare.partition("\n[here.")[0], encoding="utf-8")
    assert REGIONS(tmp_path / "bare.toml")["Mine.here"].figures == {}
