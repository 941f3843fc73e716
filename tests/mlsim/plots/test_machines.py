"""Figures of machines: they show what is on record, and carry it."""

from __future__ import annotations

import numpy as np
import pytest

from mlsim import plots
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.hardware import memory_levels
from mlsim.hardware.processor_trends import trend


def test_moore_shows_each_year_and_its_line_goes_through_them() -> None:
    figure, ax = plots.plot_moore()
    drawn, line = (each.get_ydata() for each in ax.lines)
    years = [row.year for row in trend("transistors")]
    assert list(drawn) == [row.most for row in trend("transistors")]
    assert [list(each.get_xdata()) for each in ax.lines] == [years, years]
    # What is left of a fit has no slope and no height.
    assert np.polyfit(years, np.log(drawn / line), 1) == pytest.approx([0, 0], abs=1e-6)
    assert "2.0 years" in ax.get_legend().get_texts()[0].get_text()
    assert plots.data_of(figure)[0] == {"Year": "1971", "Transistors": 2310.0}


def test_dennard_draws_what_is_asked() -> None:
    figure, ax = plots.plot_dennard(["frequency", "power"])
    assert [list(zip(*line.get_data(), strict=True)) for line in ax.lines] == [
        [(row.year, row.median) for row in trend(name)] for name in ("frequency", "power")
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
    figure, ax = plots.plot_amdahl([0.0, 0.8], most=15)
    assert [line.get_xdata().tolist() for line in ax.lines] == [[1, 2, 4, 8]] * 2
    # A fifth in turn, and the rest at once: 1 / (1/5 + 4/5 / 8) = 10/3.
    assert [line.get_ydata()[-1] for line in ax.lines] == pytest.approx([1, 10 / 3])
    figure, ax = plots.plot_amdahl([0.9, 1.0], most=1024)
    limited, free = (line.get_ydata()[-1] for line in ax.lines)
    assert limited == pytest.approx(9.91, abs=0.01)
    assert free == 1024
    last = {"Processors": "1024", "90 % parallel": pytest.approx(limited), "100 % parallel": 1024}
    assert plots.data_of(figure)[-1] == last
    with pytest.raises(InvalidValueError, match=r"from 0 to 1, not 90"):
        plots.plot_amdahl([90])


def test_latencies_carry_every_entry() -> None:
    figure, ax = plots.plot_latencies()
    rows = plots.data_of(figure)
    known = [each for each in memory_levels.levels() if "latency" in each]
    assert len(rows) == len(known)
    assert rows[-1]["Latency (ns)"] == pytest.approx(1.5)
    numbers = [float([*row.values()][1]) for row in rows]
    marks = [tuple(float(x[0]) for x in line.get_data()) for line in ax.lines]
    assert marks == list(zip(numbers, range(len(numbers)), strict=True))
    assert [each.xy for each in ax.texts] == marks
    assert ax.get_xlim()[0] < min(numbers) < max(numbers) < ax.get_xlim()[1]
    squares = {line.get_label(): line.get_marker() == "s" for line in ax.lines}
    assert (len(squares), squares["H100"], sum(squares.values())) == (2, True, 1)
    assert len(ax.get_legend().get_texts()) == 2


def test_a_sweep_marks_the_caches_that_it_crosses() -> None:
    sizes = [2**n for n in range(12, 20)]
    caches = {"L0": 4095, "L1": 4096, "L2": 3 * 2**18, "L9": 3 * 2**18 + 1}
    figure, ax = plots.plot_sweep(sizes, {"in order": [1.0] * 8, "shuffled": [2.0] * 8}, caches)
    assert [(text.get_text(), text.xy[0]) for text in ax.texts] == [("L1", 4096), ("L2", 3 * 2**18)]
    assert [line.get_xdata()[0] for line in ax.lines] == [4096, 4096, 4096, 3 * 2**18]
    assert [list(line.get_ydata()) for line in ax.lines[:2]] == [[1.0] * 8, [2.0] * 8]
    assert ax.get_ylim()[0] == 0
    last = {"Working set": "512 KiB", "in order (ns)": 1.0, "shuffled (ns)": 2.0}
    assert plots.data_of(figure)[-1] == last
    assert [label.get_text() for label in ax.get_xticklabels()] == ["4 KiB", "64 KiB"]
    with pytest.raises(InvalidValueError, match="'in order' has 2 times for 8 sizes"):
        plots.plot_sweep(sizes, {"in order": [1.0, 2.0]}, {})
