"""Numbers of training runs, footprints and published rows show their work."""

from __future__ import annotations

import pytest

from mlsim import (
    Clusters,
    Engine,
    Training,
    failures,
    power_measurements,
    prices,
    published_runs,
    show,
    training_measurements,
)
from mlsim.errors import InvalidValueError, UnknownNameError


@pytest.fixture(scope="module")
def run() -> Training:
    return Engine.train(
        model="Llama3_8B",
        hardware="HGX_H100",
        devices=8,
        global_batch=64,
        shard="zero3",
        recompute="full",
        tokens=1e12,
    )


def test_a_run_shows_its_step(run: Training) -> None:
    number = show(run)
    assert number.si == run.value("step_time")
    assert "training Llama 3.1 8B on 8 x NVIDIA H100" in number.origin.brief
    assert "narayanan2021megatron" in number.origin.how
    days = show(run, "training_time", unit="day", form=".0f")
    assert str(days) == f"{run.value('training_time') / 86400:.0f} d"


def test_a_footprint_shows_its_energy(run: Training) -> None:
    found = Engine.footprint(run, grid="Germany", data_centre="Google", embodied=False)
    carbon = show(found, "operational_carbon", unit="tCO2e", form=".2f")
    assert str(carbon).endswith("tCO2e")
    assert show(found).si == pytest.approx(found.value("facility_energy"))
    assert "Germany" in show(found).origin.brief


def test_a_range_is_shown_by_its_ends(run: Training) -> None:
    found = Engine.footprint(run, grid="Germany", pue=(1.1, 1.3), embodied=False)
    with pytest.raises(InvalidValueError, match=r"show\(footprint\.high, 'facility_energy'\)"):
        show(found)
    assert show(found.high).si == pytest.approx(show(found.low).si * 1.3 / 1.1)


def test_published_rows_carry_their_words() -> None:
    hours = next(row for row in published_runs() if row.metric == "device_hours")
    number = show(hours)
    assert f"[@{hours.source}]" in number.origin.brief
    assert hours.quote[:10] in number.origin.how or "in these words" in number.origin.how
    step = training_measurements(series="megatron_tab5")[0]
    assert str(show(step)) == "1.42 s"
    power = next(row for row in power_measurements() if row.metric == "device_power")
    assert str(show(power)).endswith("W")
    assert str(show(prices(device="A100", provider="Lambda")[0])) == "2.79 USD/h"


def test_failures_and_clusters() -> None:
    row = failures()[0]
    assert str(show(row, "failures")) == "419"
    assert show(row).si == pytest.approx(row.mean_time_to_failure.to("s").magnitude)
    with pytest.raises(UnknownNameError, match="faults"):
        show(row, "faults")
    assert str(show(Clusters.Selene, "link.bandwidth")) == "200 Gb/s"
    assert str(show(Clusters.Selene, "devices")) == f"{Clusters.Selene.devices:,}"
    with pytest.raises(UnknownNameError, match=r"link\.bandwith"):
        show(Clusters.Selene, "link.bandwith")


def test_the_optimal_size_opens() -> None:
    size = Engine.optimal_size(training_flops="5.88e23 FLOP")
    assert float(show(size)) == pytest.approx(70e9)
    assert "hoffmann2022training" in show(size, "optimal_tokens").origin.how
