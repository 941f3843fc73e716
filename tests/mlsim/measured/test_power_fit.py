"""Power of a device, the load of a service, and the constants that are fitted."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_chips import chip
from refusals import answered

from mlsim import Engine, Hardware, Load, Systems
from mlsim.errors import DataFileError, InvalidValueError, UnitError
from mlsim.measured import power
from mlsim.measured.power import idle_share, kernels, limits, predict, rows, weights

H100, LLAMA = Hardware.Cloud.H100, "Llama3_8B"


def test_the_load_of_a_service_by_hand() -> None:
    """A batch of 1: decode reads all weights once a token, and hardly computes."""
    serving = Engine.serve(LLAMA, "H100", batch_size=1, prompt_tokens=1, output_tokens=1001)
    load = serving.load()
    steps = [serving.decode_at(context).value("total_memory_time") for context in (1, 501, 1000)]
    mean = (steps[0] + 4 * steps[1] + steps[2]) / 6
    busy = serving.prefill.value("total_memory_time") + 1000 * mean
    assert load.memory_utilisation == pytest.approx(busy / load.time, rel=1e-3)
    assert load.time == pytest.approx(serving.latency.to("s").magnitude)
    assert (load.device, load.devices, load.tokens) == (H100, 1, 1001)
    assert load.load() is load
    slower = load.within(f"{2 * load.time} s")
    assert slower.compute_utilisation == pytest.approx(load.compute_utilisation / 2)
    assert slower.memory_utilisation == pytest.approx(load.memory_utilisation / 2)
    assert slower.tokens == load.tokens
    with pytest.raises(InvalidValueError, match="no more work is done than peak rate"):
        load.within(f"{load.time / 10} s")
    with pytest.raises(UnitError, match="needs a unit"):
        load.within(3.0)
    # A pipeline of two does the same work on twice the devices.
    alone, staged = (
        Engine.serve(LLAMA, "HGX_H100", batch_size=8, pipeline_parallel=each).load()
        for each in (1, 2)
    )
    work = [each.compute_utilisation * each.time * each.devices for each in (alone, staged)]
    assert work[1] == pytest.approx(work[0], rel=1e-6)


def test_loads_of_other_answers_and_those_that_can_not_be() -> None:
    assert Engine.serve("BERT_Base", "A100", batch_size=8, prompt_tokens=128).load().tokens == 1024
    assert 0.9 < Engine.serve(LLAMA, "H100", estimate="bound").load().memory_utilisation <= 1
    many = Engine.serve(LLAMA, "H100", batch_size=[1, 2])
    with pytest.raises(InvalidValueError, match=r"pick one, such as serving\[0\].load\(\)"):
        many.load()
    assert many[1].load().tokens == 256
    hours = Load.of(hardware=H100, device_hours=100, devices=4, compute_utilisation=0.4)
    assert (hours.devices, hours.time, hours.compute_utilisation) == (4, 90000.0, 0.4)
    days = Load.of(hardware=Systems.HGX_H100, device_hours="2 d")
    assert (days.time, days.system) == (2 * 86400, Systems.HGX_H100)
    hour = {"hardware": H100, "device_hours": 1}
    assert answered(lambda **change: Load.of(**{**hour, **change}), "loads") == []


def test_limits_are_on_record_estimated_or_refused() -> None:
    idle, full = limits(H100)
    assert (idle.low, full.low) == (H100.figures["power.idle"].si, H100.figures["power.tdp"].si)
    assert H100.figures["power.idle"].source in idle.origin
    share, count = idle_share()
    assert count >= 10
    assert 0.02 < share < 0.3
    device = next(
        each
        for each in Hardware
        if "power.tdp" in each.figures and "power.idle" not in each.figures
    )
    idle, full = limits(device)
    assert idle.low == pytest.approx(share * full.low)
    assert idle.origin.startswith("estimate: the median of")
    mine = chip("My chip", fp16="100 TFLOP/s")
    assert limits(mine, "10 W", "50 W")[1].low == 50.0
    for given, words in (
        ((), "power of My chip is not on record: give max_power"),
        (("60 W", "50 W"), "idle_power 60 W is above max_power 50 W"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            limits(mine, *given)


def test_power_of_products_is_told_within_a_tenth() -> None:
    """In the median of shapes left out; one decode step of attention draws far less than told."""
    by_kind = {each.kind: each for each in kernels()}
    assert by_kind["products"].median <= 0.10
    assert by_kind["attention, prefill"].median <= 0.12
    assert by_kind["attention, decode"].high < 1.1
    assert all(each.low < 1 < each.high for each in kernels())
    assert sum(each.weights is not None for each in kernels()) == 1


def test_weights_are_fitted_to_kernels_and_the_band_holds_eight_services_in_ten() -> None:
    """No service sets a constant: those of the file do, and services test them."""
    found = weights()
    fitted = (found.running, found.compute, found.memory)
    assert found.rows == len(rows())
    assert 0 < found.running < found.memory < found.compute
    assert "fitted by least squares" in found.origin
    assert f"{found.rows} services, to which nothing is fitted" in found.origin
    assert fitted == kernels()[0].weights
    assert kernels()[0].rows == found.kernels > 10_000
    ratios = [row.power / predict(row.load, fitted) for row in rows()]
    assert sum(found.low <= each <= found.high for each in ratios) / len(ratios) >= 0.75
    assert sorted(abs(1 / each - 1) for each in ratios)[len(ratios) // 2] <= 0.15
    # Within 15 % in the median, and nearer than by the power of the data sheet.
    full = sorted(limits(row.load.device)[1].low / row.power - 1 for row in rows())
    assert found.services <= 0.15 < full[len(full) // 2]


def test_a_row_is_a_service_in_the_time_that_was_measured() -> None:
    """Power of all devices over the energy of a token are tokens a second."""
    for row in rows():
        load, whole = row.load, row.power * row.load.devices
        assert load.time == pytest.approx(load.tokens * row.energy_per_token / whole), row.id
    (eight,) = (row for row in rows() if row.id == "NRG-043")
    assert eight.power == pytest.approx(3853.8 / 8)
    assert eight.load.devices == 8
    asked = eight.serving.service
    for estimate in ("bound", "calibrated"):
        other = eight.served(estimate)
        assert other.service.estimate == estimate
        assert other.service.batch_size == asked.batch_size


def test_power_of_a_load_by_hand() -> None:
    """A tenth for running, 1.5 x 0.2 for computing and 0.5 x 0.4 for moving are 0.6 of the load."""
    load = Load.of(hardware=H100, device_hours=1, compute_utilisation=0.2, memory_utilisation=0.4)
    idle, full = (each.low for each in limits(H100))
    wanted = idle + (full - idle) * 0.6 * (2 - 0.6)
    assert predict(load, (0.1, 1.5, 0.5)) == pytest.approx(wanted)
    still = Load.of(hardware=H100, device_hours=1, compute_utilisation=0, memory_utilisation=0)
    assert predict(still, (0.1, 1.5, 0.5)) == idle
    # However much is asked of it, it draws no more than it may.
    assert predict(load, (0.1, 9.0, 9.0)) == pytest.approx(full)
    asked = {"hardware": "H100", "device_hours": 10, "host": False, "pue": 1, "embodied": False}
    asked |= {"carbon_intensity": "1 gCO2e/kWh", "compute_utilisation": 0}
    place = Engine.footprint(**asked, memory_utilisation=0.0)
    assert place.value("device_power") == idle
    busy = Engine.footprint(**asked, memory_utilisation=1e-6).value("device_power")
    running = weights().running
    assert busy == pytest.approx(idle + (full - idle) * running * (2 - running), rel=1e-3)
    assert power._quantile([1.0, 2.0, 4.0], 0.75) == 3.0
    assert power._quantile([1.0, 2.0, 4.0], 1) == 4.0


def test_a_kernel_that_can_not_be_names_its_file_and_line(tmp_path: Path) -> None:
    products = power.KERNELS.place.read_text("utf-8").replace(",15629,", ",none,")
    path = tmp_path / "kernels.csv"
    path.write_text(products, "utf-8")
    with pytest.raises(DataFileError, match=r"kernels\.csv:2"):
        power.KERNELS.load(path)
