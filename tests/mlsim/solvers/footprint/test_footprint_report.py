"""A footprint explained, printed, as data, and by the command `mlsim footprint`."""

from __future__ import annotations

import argparse
import json

import pytest
from footprints import KWH, PLACE, hours

from mlsim import Engine, Serving
from mlsim.cli import footprint as cli_footprint
from mlsim.errors import InvalidValueError


@pytest.fixture(scope="module")
def serving() -> Serving:
    return Engine.serve(model="Llama3_8B", hardware="H100", batch_size=16, prompt_tokens=1024)


# Explained, printed, and as data.


def test_it_explains_itself(serving: Serving) -> None:
    found = Engine.footprint(serving, region="us-central1", host=False)
    shown = str(found.explain("operational_carbon"))
    for words in (
        "facility_energy = pue * it_energy",
        "power_share = power_load * (2 - power_load)",
        "fitted by least squares",
        "us-central1 2024: 412.72 gCO2e/kWh",
        "google2025regions",
        "patterson2021carbon",
    ):
        assert words in shown
    assert found.explain("energy_per_token").value == found.value("energy_per_token")
    assert "mlenergy2025" in found.explain("device_power").to_json()
    assert "$$" in found.explain("it_energy")._repr_markdown_()


@pytest.mark.parametrize(
    "name", ["device_energy", "facility_energy", "total_carbon", "total_water"]
)
def test_every_result_is_explained(name: str) -> None:
    found = hours(lifetime_use=0.5, compute_utilisation=0.1, memory_utilisation=0.2)
    explanation = found.explain(name)
    assert explanation.value == pytest.approx(found.value(name))
    assert all(each["origin"] for each in explanation.to_dict()["inputs"])


def test_it_prints_a_table(serving: Serving) -> None:
    shown = str(Engine.footprint(serving, host="100 W", embodied=False, **PLACE))
    for words in ("Llama 3.1 8B", "per device", "PUE 1.2", "on site", "per token", "left out"):
        assert words in shown
    assert "330 to 390 kWh" in str(hours(pue=(1.1, 1.3)))
    assert "neither" in str(hours(wue=None, water_intensity=None))
    assert repr(hours()).startswith("<Footprint 1,000 device-hours, a data centre")


def test_it_is_plain_data(serving: Serving) -> None:
    data = Engine.footprint(serving, host=False, **PLACE).to_dict()
    again = json.loads(json.dumps(data))
    assert again["facility_energy"]["unit"] == "J"
    assert again["inputs"]["pue"] == {"value": 1.2, "unit": "1", "origin": "given"}
    assert again["embodied_carbon"] is None
    assert "give lifetime" in again["missing"]["embodied_carbon"]
    dry = hours(wue=None).to_dict()
    assert (dry["site_water"], "site_water" in dry["inputs"]) == (None, False)
    assert dry["total_water"] == dry["source_water"]
    ranged = hours(pue=(1.1, 1.3)).to_dict()["facility_energy"]
    assert ranged["low"] < ranged["high"]


# The command.


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run `mlsim footprint` by its own parser, and return what it prints."""
    parser = argparse.ArgumentParser()
    cli_footprint.add(parser.add_subparsers())
    options = parser.parse_args(["footprint", *arguments])
    print(options.run(options))
    return capsys.readouterr().out


def test_the_command_takes_a_service(capsys: pytest.CaptureFixture[str]) -> None:
    shown = command(
        capsys,
        *("Llama3_8B", "H100", "--batch", "16", "--region", "us-central1", "--host", "no"),
        *("--embodied", "no", "--pue", "1.1,1.3"),
    )
    assert "16 x (512 + 128) tokens" in shown
    assert "PUE 1.1 to 1.3" in shown


def test_the_command_takes_device_hours(capsys: pytest.CaptureFixture[str]) -> None:
    place = ("--pue", "1.2", "--grid", "Germany", "--host", "80 W", "--hour", "10-14")
    asked = ("A100", "--device-hours", "1000", "--device-power", "300 W", *place)
    assert "456 kWh" in command(capsys, *asked)
    data = json.loads(command(capsys, *asked, "--json"))
    assert data["facility_energy"]["value"] == pytest.approx(456 * KWH)
    assert "hour(s) 10, 11, 12, 13, 14" in command(capsys, *asked, "--explain", "carbon_intensity")
    assert '"steps"' in command(capsys, *asked, "--explain", "it_energy", "--json")


def test_the_command_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    for asked, message in (
        *(("A100", "footprint of what"), ("A100 --device-hours 5", "no PUE is given")),
        ("Llama3_8B H100 --device-hours 5", "in place of a model"),
        ("A100 --device-hours 5 --hour noon", "--hour must be like 12"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            command(capsys, *asked.split())
