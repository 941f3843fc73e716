"""Figures of machines: they show what is on record, and carry it."""

from __future__ import annotations

import pytest

from mlsim import plots
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.hardware import memory_levels
from mlsim.hardware.processor_trends import trend


def test_moore_shows_each_year_and_its_line_goes_through_them() -> None:
    figure, ax = plots.plot_moore()
    drawn, line = (each.get_ydata() for each in ax.lines)
    assert list(drawn) == [row.most for row in trend("transistors")]
    assert 0.1 < min(drawn / line) < 1 < max(drawn / line) < 10
    assert "2.0 years" in ax.get_legend().get_texts()[0].get_text()
    assert plots.data_of(figure)[0] == {"Year": "1971", "Transistors": 2310.0}


def test_dennard_draws_what_is_asked() -> None:
    figure, ax = plots.plot_dennard(["frequency", "power"])
    assert [len(line.get_ydata()) for line in ax.lines] == [
        len(trend(name)) for name in ("frequency", "power")
    ]
    # A row for each year, with what is known of it.
    first = plots.data_of(figure)[0]
    assert first == {
        "Year": "1971",
        "clock (MHz)": 0.704,
        "power (W)": pytest.approx(0.445, abs=0.001),
    }
    with pytest.raises(UnknownNameError, match="frequency"):
        plots.plot_dennard(["frequncy"])


def test_amdahl_flattens_at_its_limit() -> None:
    figure, ax = plots.plot_amdahl([0.9, 1.0], most=1024)
    limited, free = (line.get_ydata()[-1] for line in ax.lines)
    assert limited == pytest.approx(9.91, abs=0.01)
    assert free == 1024
    last = {"Processors": "1024", "90 % parallel": pytest.approx(limited), "100 % parallel": 1024}
    assert plots.data_of(figure)[-1] == last
    with pytest.raises(InvalidValueError, match=r"from 0 to 1, not 90"):
        plots.plot_amdahl([90])


def test_latencies_and_energies_carry_every_entry() -> None:
    latencies = plots.data_of(plots.plot_latencies()[0])
    known = [each for each in memory_levels.levels() if "latency" in each]
    assert len(latencies) == len(known)
    assert latencies[-1]["Latency (ns)"] == pytest.approx(1.5)
    energies = plots.data_of(plots.plot_energies()[0])
    assert energies[-1] == {"What": "8-bit integer addition", "Energy (pJ)": 0.03}


def test_capacities_are_of_the_whole_chip() -> None:
    machines = ["AMD Ryzen 9 5950X", "NVIDIA GeForce RTX 3090"]
    rows = plots.data_of(plots.plot_capacities(machines)[0])
    sizes = {(row["Machine"], row["Level"]): row["Capacity (MiB)"] for row in rows}
    assert sizes[machines[1], "registers"] == pytest.approx(20.5)
    assert sizes[machines[0], "L3 cache"] == 64
    with pytest.raises(UnknownNameError, match="machine with levels"):
        plots.plot_capacities(["Ryzen"])


def test_a_sweep_marks_the_caches_that_it_crosses() -> None:
    sizes = [2**n for n in range(12, 20)]
    caches = {"L1": 32 * 1024, "L9": 2**40}
    figure, ax = plots.plot_sweep(sizes, {"in order": [1.0] * 8, "shuffled": [2.0] * 8}, caches)
    assert [text.get_text() for text in ax.texts] == ["L1"]
    last = {"Working set": "512 KiB", "in order (ns)": 1.0, "shuffled (ns)": 2.0}
    assert plots.data_of(figure)[-1] == last
    assert [label.get_text() for label in ax.get_xticklabels()] == ["4 KiB", "64 KiB"]
    with pytest.raises(InvalidValueError, match="'in order' has 2 times for 8 sizes"):
        plots.plot_sweep(sizes, {"in order": [1.0, 2.0]}, {})


def test_tiles_show_reads_for_results() -> None:
    _, axes = plots.plot_tiles(8, 4)
    assert [row[0].get_ylabel() for row in axes] == ["16 reads\nfor 1", "64 reads\nfor 16"]
    # The row of A and the column of B that one number needs.
    heights = [axes[0][n].patches[0].get_height() for n in range(3)]
    assert heights == [1, 8, 1]
    with pytest.raises(InvalidValueError, match="a tile of 3 does not divide a matrix of 8"):
        plots.plot_tiles(8, 3)
