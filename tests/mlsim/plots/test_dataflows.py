"""Figures of arrays and loaders show the numbers of the simulations."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

from mlsim.errors import InvalidValueError
from mlsim.hardware.systolic import multiply
from mlsim.plots import data_of, plot_loader, plot_systolic
from mlsim.systems.data_loading import load_and_compute

INPUTS, WEIGHTS = [[1, 2], [3, 4]], [[5, 6], [7, 8]]


@pytest.mark.parametrize(
    ("rest", "cycle", "first"),
    [
        ("weights", 3, ("w11", "x11", "")),
        ("inputs", 3, ("x11", "w11", "")),
        ("outputs", 1, ("y11", "x11", "w11")),
    ],
)
def test_cells_name_what_is_in_them(rest: str, cycle: int, first: tuple[str, ...]) -> None:
    run = multiply(INPUTS, WEIGHTS, rows=2, columns=2, rest=rest, trace=True)
    figure = plot_systolic(run, cycles=[cycle, run.cycles])
    row = data_of(figure)[0]
    expected = [word for word in first if word]
    assert row["Column 1"] == " ".join(expected)
    drawn = [text.get_text() for text in figure.axes[0].texts]
    assert drawn[: len(expected)] == expected


def test_a_busy_cell_is_blue() -> None:
    run = multiply(INPUTS, WEIGHTS, rows=2, columns=2, trace=True)
    boxes = plot_systolic(run, cycles=[3]).axes[0].patches
    fills = [to_hex(box.get_facecolor()) for box in boxes]
    assert fills.count("#56b4e9") == run.trace[2].busy == 1


def test_a_run_without_cycles_can_not_be_drawn() -> None:
    with pytest.raises(InvalidValueError, match="trace=True"):
        plot_systolic(multiply(INPUTS, WEIGHTS, rows=2, columns=2), cycles=[1])
    run = multiply(INPUTS, WEIGHTS, rows=2, columns=2, trace=True)
    with pytest.raises(InvalidValueError, match=r"cycle 7 is none of this run: .* 1 to 6"):
        plot_systolic(run, cycles=[7])


def test_a_loader_has_a_row_for_each_worker_and_the_device() -> None:
    run = load_and_compute(workers=2, prepare_time=2, compute_time=1, batches=6)
    figure, ax = plot_loader(run)
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "worker 1",
        "worker 2",
        "device",
    ]
    rows = data_of(figure)
    assert len(rows) == 12
    assert rows[-1] == {
        "Who": "device",
        "Does": "computes",
        "Batch": 6,
        "Start (s)": 7.0,
        "End (s)": 8.0,
    }


def test_without_workers_the_program_prepares() -> None:
    run = load_and_compute(workers=0, prepare_time=2, compute_time=1, batches=2)
    assert {row["Who"] for row in data_of(plot_loader(run)[0])} == {"program", "device"}
