"""`Engine.footprint`: energy, carbon and water, hand-worked and at their limits."""

from __future__ import annotations

from typing import Any

import pytest
from footprints import A100, KWH, PLACE, hours

from mlsim import Engine, Grids, Interval, Serving, show
from mlsim.errors import InvalidValueError
from mlsim.solvers.footprint.footprint import RESULTS
from mlsim.solvers.load import Load


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


def test_bloom_by_its_own_figures() -> None:
    """1,082,990 GPU-hours at 400 W are 433,196 kWh; at 57 g/kWh 24.7 t (Luccioni and others)."""
    load = {"hardware": "A100", "device_hours": 1_082_990, "device_power": "400 W"}
    found = Engine.footprint(**load, host=False, pue=1, carbon_intensity="57 gCO2e/kWh")
    assert found.facility_energy.to("kWh").magnitude == pytest.approx(433_196)
    assert found.operational_carbon.to("tCO2e").magnitude == pytest.approx(24.7, abs=0.05)


def test_per_token() -> None:
    found = hours(tokens=1e9, embodied=False)
    assert found.per_token("energy").to("J/token").magnitude == pytest.approx(360 * KWH / 1e9)
    assert found.per_token("device_energy").magnitude == pytest.approx(300 * KWH / 1e9)
    assert found.per_token("carbon").to("gCO2e/token").magnitude == pytest.approx(36e3 / 1e9)
    assert found.per_token("water").to("L/token").magnitude == pytest.approx(870 / 1e9)


def test_a_service(serving: Serving) -> None:
    found = Engine.footprint(serving, host="100 W", **PLACE)
    seconds = serving.latency.to("s").magnitude
    energy = found.device_power.to("W").magnitude * seconds
    assert found.device_energy.to("J").magnitude == pytest.approx(energy)
    assert found.host_energy.to("J").magnitude == pytest.approx(100 * seconds)
    assert found.per_token().magnitude == pytest.approx(
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
    load = training.load()
    assert found.value("device_energy") == pytest.approx(
        found.value("device_power") * 8 * load.time
    )
    assert found.value("energy_per_token") == pytest.approx(found.value("facility_energy") / 1e9)
    assert "hosts at most" in str(found)
    assert str(found).startswith("training of Llama 3.1 8B")


def test_parts_hold_what_is_known_and_counted() -> None:
    parts = hours(host="80 W", embodied=False).parts
    energy, water = {"device_energy", "host_energy"}, {"site_water", "source_water"}
    assert set(parts) == energy | water | {"operational_carbon"}


# Limits.


def test_energy_lies_between_idle_and_full_power() -> None:
    idle, full = (A100.figures[f"power.{each}"].si for each in ("idle", "tdp"))
    powers = [
        hours(compute_utilisation=use, memory_utilisation=use).value("device_power")
        for use in (0.0, 0.01, 0.3, 1.0)
    ]
    assert powers[0] == pytest.approx(idle)
    assert powers == sorted(powers)
    assert powers[-1] <= full * (1 + 1e-12)
    # Arithmetic draws more than memory, which draws more than nothing.
    memory, compute = (
        hours(compute_utilisation=c, memory_utilisation=m).value("device_power")
        for c, m in ((0.0, 0.3), (0.3, 0.0))
    )
    assert idle < memory < compute < full


def test_a_cleaner_grid_changes_carbon_by_the_ratio_and_nothing_else() -> None:
    dirty, clean = (
        hours(grid=each, carbon_intensity=None, embodied=False) for each in ("Poland", "France")
    )
    ratio = Grids.France.figure("carbon_intensity").si / Grids.Poland.figure("carbon_intensity").si
    carbon = clean.value("operational_carbon") / dirty.value("operational_carbon")
    assert carbon == pytest.approx(ratio)
    for name in RESULTS:
        if "carbon" not in name and dirty.has(name):
            assert clean.value(name) == dirty.value(name), name


def test_pue_one_is_the_floor() -> None:
    assert hours(pue=1).facility_energy == hours(pue=1).it_energy
    # WUE counts the energy of the machines alone.
    assert hours(pue=1.1).site_water == hours(pue=2.0).site_water
    assert hours(pue=1.0).source_water < hours(pue=2.0).source_water


# Ranges.


def test_a_range_gives_a_range() -> None:
    found = hours(pue=(1.1, 1.3))
    assert isinstance(found.facility_energy, Interval)
    assert found.low.facility_energy.to("kWh").magnitude == pytest.approx(330)
    assert found.high.facility_energy.to("kWh").magnitude == pytest.approx(390)
    assert found.facility_energy.to("kWh").low.magnitude == pytest.approx(330)
    assert found.value("facility_energy") == Interval(
        found.low.value("facility_energy"), found.high.value("facility_energy")
    )
    assert not isinstance(found.device_energy, Interval)
    assert str(found.facility_energy) == "330 to 390 kWh"
    assert found.low.low is found.low
    # Two ranges span their corners; a longer life is the low end.
    found = hours(pue=(1.0, 2.0), carbon_intensity=("50 gCO2e/kWh", "200 gCO2e/kWh"))
    ends = (found.low, found.high)
    assert [each.operational_carbon.to("kgCO2e").magnitude for each in ends] == pytest.approx(
        [15, 120]
    )
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
    assert found.value("compute_utilisation") == 1.0
    assert found.value("memory_utilisation") == 1.0
