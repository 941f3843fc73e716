"""Published powers, energies and whole runs: complete, as printed, and honest about meters."""

from __future__ import annotations

import re

import pytest

from mlsim import Models, power_measurements, published_runs

ROWS = power_measurements()
BY_ID = {row.id: row for row in ROWS}
RUNS = published_runs()
RUN_BY_ID = {row.id: row for row in RUNS}


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
