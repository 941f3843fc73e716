"""Published powers, energies and whole runs: complete, as printed, and honest about meters."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from mlsim import Models, power_measurements, published_runs
from mlsim.errors import DataFileError, UnknownNameError
from mlsim.measured.power import METRICS, POWER_FOLDER, PowerMeasurement, load
from mlsim.measured.training_runs import (
    METRICS as RUN_METRICS,
    RUNS_FOLDER,
    PublishedRun,
    load as load_runs,
)
from mlsim.records.references import references

ROWS = power_measurements()
BY_ID = {row.id: row for row in ROWS}
RUNS = published_runs()
RUN_BY_ID = {row.id: row for row in RUNS}

POUND = 0.45359237e-3  # in tonnes
# Rows of the reference's series that are left out, and why.
LEFT_OUT = {
    **{f"NRG-{n:03d}": "Stable Diffusion XL is not in the zoo" for n in (16, 17, 18)},
    "NRG-082": "serving by an API, neither a run nor a steady power",
}

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
each_run = pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)


def words(quote: str) -> int:
    return len([word for word in quote.split() if word != "|"])


@each_row
def test_a_power_has_its_source(row: PowerMeasurement) -> None:
    assert row.source in references()
    assert 1 <= words(row.quote) <= 15
    assert row.software
    assert row.boundary
    assert row.note.endswith(".")
    assert row.unit == METRICS[row.metric]
    if row.series.startswith("mlenergy"):
        printed = float(row.quote.partition(": ")[2])
        # The source prints sixteen digits, of which we keep four after the point, or one.
        exact = 5e-5 if row.metric == "energy_per_output_token" else 0.05
        assert row.value == pytest.approx(printed, abs=exact, rel=0)


@each_run
def test_a_run_has_its_source(run: PublishedRun) -> None:
    assert run.source in references()
    assert 1 <= words(run.quote) <= 15
    assert run.boundary
    assert run.note.endswith(".")
    assert run.unit == RUN_METRICS[run.metric]
    assert run.measured in {"metered", "arithmetic", "estimated"}


def test_ids_are_of_one_row() -> None:
    assert len(BY_ID) == len(ROWS) == 51
    assert len(RUN_BY_ID) == len(RUNS) == 60


def test_rows_of_each_series_and_run() -> None:
    assert Counter(row.series for row in ROWS) == {
        "mlenergy_Llama-3.1-8B-Instruct": 14,
        "mlenergy_gpt-oss-120b": 12,
        "mlenergy_DeepSeek-V3.1": 6,
        "mlperf_power_h200": 15,
        "m4mini_energy": 4,
    }
    assert Counter(run.run for run in RUNS if run.run.startswith(("BLOOM", "GPT-3", "OPT"))) == {
        "BLOOM 176B": 6,
        "GPT-3 175B": 5,
        "OPT-175B": 4,
    }


def test_rows_are_those_of_the_reference(reference: Path) -> None:
    with (reference / "data" / "measurements-open.csv").open(encoding="utf-8", newline="") as file:
        published = {row["id"]: row for row in csv.DictReader(file)}
    powers = {row.series for row in ROWS}
    runs = {"llama_cards", "llama_cards_co2", "bloom_co2", "bloom_energy", "strubell"}
    there = {
        key
        for key, row in published.items()
        if (row["series"] in powers and row["domain"] == "energy_carbon") or row["series"] in runs
    }
    ours = {key for key in {**BY_ID, **RUN_BY_ID} if re.fullmatch(r"(NRG|TRN)-\d+", key)}
    assert there == ours | set(LEFT_OUT)
    for key in ours:
        theirs = published[key]
        value = float(theirs["value"])
        scale = {"kWh": 1e-3, "lb CO2e": POUND}.get(theirs["unit"], 1)
        row = BY_ID.get(key) or RUN_BY_ID[key]
        assert row.value == pytest.approx(value * scale)
        assert row.year == int(theirs["year"])


def test_a_power_belongs_with_its_energy_and_its_speed() -> None:
    """Power / tokens per second is the energy of a token, as the file's own numbers have it."""
    for row in ROWS:
        if not row.series.startswith("mlenergy") or row.metric != "energy_per_output_token":
            continue
        power = BY_ID[f"{row.id}-W"]
        assert (power.batch_size, power.devices) == (row.batch_size, row.devices)
        found = re.search(r"([\d.]+) tokens per second", row.note)
        assert found
        assert power.value / float(found[1]) == pytest.approx(row.value, rel=2e-3)
        assert bool(row.serving) == (row.model == "Llama3_8B")
        if row.serving:
            assert row.serving.value == float(found[1])
            assert row.serving.batch_size == row.batch_size


def test_powers_of_a_server() -> None:
    llama = BY_ID["NRG-010"]
    assert (llama.metric, llama.value, llama.devices) == ("server_power", 6153, 8)
    # 6153 W / 25262.1 token/s.
    assert BY_ID["NRG-011"].value == pytest.approx(6153 / 25262.1, rel=1e-3)
    assert BY_ID["NRG-043-W"].per_device == pytest.approx(3853.8 / 8)
    mini = BY_ID["NRG-152-J"]
    assert (mini.device, mini.model) == (None, "Llama3_8B")
    assert mini.value == pytest.approx(30.1 / 20.89, rel=1e-3)
    assert mini.serving is None


def test_runs_of_the_cards_are_arithmetic() -> None:
    """31.22 t of 184,320 h x 400 W are 423 g/kWh; the factor lies close to that in every card."""
    hours = {run.run: run for run in published_runs(metric="device_hours")}
    cards = published_runs(run="Llama", metric="emissions")
    assert len(cards) == 11
    for card in cards:
        assert card.measured == "arithmetic"
        watts = 400 if "Llama 2" in card.run else 700
        grams = card.value * 1e6 / (hours[card.run].value * watts / 1e3)
        assert 380 < grams < 430
        assert f"{grams:.0f} g/kWh" in card.note


def test_runs_of_bloom_and_gpt3() -> None:
    bloom = {run.id: run for run in published_runs(model="BLOOM_176B")}
    # Exactly GPU-hours x TDP: no meter was read.
    assert bloom["NRG-080"].value == pytest.approx(1_082_990 * 0.4 / 1e3, rel=1e-6)
    assert bloom["NRG-080"].measured == "arithmetic"
    assert bloom["NRG-078"].value == pytest.approx(433.196 * 0.057, rel=1e-3)
    assert bloom["NRG-079"].value == pytest.approx(24.7 + 14.6 + bloom["NRG-083"].value)
    gpt = {run.metric: run for run in published_runs(model=Models.GPT3_175B)}
    assert gpt["device_hours"].value == 10_000 * 14.8 * 24
    energy = gpt["device_hours"].value * gpt["power_per_device"].value * 1.10 / 1e6
    assert gpt["energy"].value == pytest.approx(energy, rel=2e-3) == 1287
    assert gpt["emissions"].value == pytest.approx(energy * 0.429, rel=2e-3)
    assert gpt["power_per_device"].measured == "metered"
    assert gpt["energy"].measured == "estimated"


def test_runs_of_patterson_are_chips_times_days() -> None:
    """Power x chips x days x PUE is the energy, energy x intensity the emissions, all of Table 4."""
    for power in published_runs(metric="power_per_device"):
        days = re.search(r"chips for ([\d.]+) days", power.note)
        if days is None:
            continue
        (energy,) = published_runs(run=power.run, metric="energy")
        (gross,) = published_runs(run=power.run, metric="emissions")
        assert power.devices is not None
        assert power.pue is not None
        found = power.value * power.devices * float(days[1]) * 24 * power.pue / 1e6
        assert found == pytest.approx(energy.value, rel=0.03)
        intensity = float(energy.grid.split()[0])
        assert gross.value == pytest.approx(energy.value * intensity, rel=0.02)


def test_pounds_are_made_tonnes() -> None:
    assert RUN_BY_ID["NRG-075"].value == pytest.approx(284, abs=0.1)
    assert "626,155" in RUN_BY_ID["NRG-075"].quote


def test_rows_are_selected() -> None:
    assert len(power_measurements(metric="device_power")) == 16
    assert {row.device for row in power_measurements(model="DeepSeek_V3")} == {"Cloud.B200"}
    assert len(power_measurements(series="mlperf_power_h200", device="H200")) == 15
    assert {run.run for run in published_runs(measured="metered", metric="energy")} == {
        "Evolved Transformer NAS",
        "GShard 600B",
        "Meena",
        "OLMo 2 13B",
        "OLMo 2 7B",
        "T5 11B",
    }


def test_a_selection_that_can_not_be_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no metric is called 'watts'"):
        power_measurements(metric="watts")
    with pytest.raises(UnknownNameError, match="no series of measurements is called 'mlperf'"):
        power_measurements(series="mlperf")
    with pytest.raises(UnknownNameError, match="no metric is called 'cost'"):
        published_runs(metric="cost")
    with pytest.raises(UnknownNameError, match="no way of measuring is called 'guessed'"):
        published_runs(measured="guessed")
    with pytest.raises(UnknownNameError):
        published_runs(model="Llama9")


@pytest.mark.parametrize(
    ("folder", "old", "new", "words"),
    [
        ("power", "batch_size", "batch", "1: the columns must be id, series, model, device,"),
        ("power", "Llama3_8B", "Llama3_9B", "2: no model is called 'Llama3_9B'."),
        ("power", "Llama3_8B", "llama3-8b", "2: model must be the key 'Llama3_8B', not 'llama3-8"),
        ("power", "Cloud.B200", "B200", "2: device must be the key 'Cloud.B200', not 'B200'."),
        ("power", "B200,1,1,", "B200,one,1,", "2: devices must be a whole number from 1 up, not"),
        ("power", "bf16/bf16/bf16", "bf16/bf17", "2: no precision is called 'bf17'."),
        ("power", "J/token", "W", "2: the unit of energy_per_output_token is J/token, not 'W'."),
        ("power", ",0.3905,", ",0,", "2: value must be a positive number, not '0'."),
        ("power", ",DEC-151,", ",DEC-999,", "2: serving_id 'DEC-999' is no row of serving_measure"),
        ("power", "NRG-019-W", "NRG-019", "3: two rows have the same id, 'NRG-019'."),
        ("runs", ",Time of all GPUs together,", ",,", "2: boundary is empty: fill it in"),
        ("runs", ",metered,", ",guessed,", "2: measured must be one of metered, arithmetic, esti"),
        ("runs", ",device_hours,", ",hours,", "2: no metric is called 'hours'."),
        ("runs", ",184320,h,", ",184320,s,", "2: the unit of device_hours is h, not 's'."),
        ("runs", ",2e12,", ",many,", "2: tokens must be a positive number, not 'many'."),
        ("runs", ",2e12,", ",2e12,2e12,", "2: this row has not as many cells as there are columns"),
        (
            "runs",
            "metered,,,2023",
            "metered,,0.9,2023",
            "2: pue must be 1 or more, not 0.9: a data",
        ),
        ("runs", "meta2025llamacards", "nobody", "2: source 'nobody' is not in references.bib."),
    ],
)
def test_a_fault_in_a_row_is_named(
    tmp_path: Path, folder: str, old: str, new: str, words: str
) -> None:
    source = {"power": POWER_FOLDER, "runs": RUNS_FOLDER}[folder] / f"{folder}.csv"
    content = source.read_text(encoding="utf-8")
    assert old in content
    path = tmp_path / "rows.csv"
    path.write_text(content.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataFileError) as e:
        (load if folder == "power" else load_runs)(path)
    assert str(e.value).startswith(f"{path}:{words}")


def test_a_boundary_is_asked_for(tmp_path: Path) -> None:
    content = (POWER_FOLDER / "power.csv").read_text(encoding="utf-8")
    boundary = BY_ID["NRG-019"].boundary
    path = tmp_path / "rows.csv"
    path.write_text(content.replace(f'"{boundary}"', "", 1), encoding="utf-8")
    with pytest.raises(DataFileError, match="2: boundary is empty: say what the value covers"):
        load(path)
