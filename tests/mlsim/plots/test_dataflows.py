"""Figures of arrays and loaders show the numbers of the simulations."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

from mlsim.errors import InvalidValueError
from mlsim.hardware.systolic import multiply
from mlsim.plots import data_of, plot_loader, plot_systolic
from mlsim.systems.in_steps import load_and_compute

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
    ax = plot_systolic(run, cycles=[3]).axes[0]
    boxes = ax.patches
    middles = [(round(p.get_x() + 0.46, 9), round(p.get_y() + 0.46, 9)) for p in boxes]
    assert middles == [(0, 0), (1, 0), (0, -1), (1, -1)]
    assert {(p.get_width(), p.get_height()) for p in boxes} == {(0.92, 0.92)}
    assert (*ax.get_xlim(), *ax.get_ylim()) == pytest.approx((-0.55, 1.55, -1.55, 0.55))
    for text in ax.texts:  # each word lies in its cell, what rests first and bold
        cell, part = text.get_gid().split("-text-")
        row, column = map(int, cell.split("-")[-2:])
        assert (text.get_position()[0], round(text.get_position()[1])) == (column, -row)
        assert (text.get_weight() == "bold") == (part == "0" and text.get_text()[0] == "w")
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
    places = {"worker 1": 0, "worker 2": 1, "device": 2}
    bars = [(p.get_y() + 0.4, p.get_x(), p.get_x() + p.get_width()) for p in ax.patches]
    assert bars == [(places[r["Who"]], r["Start (s)"], r["End (s)"]) for r in rows]
    assert [text.get_text() for text in ax.texts] == [str(row["Batch"]) for row in rows]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
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
