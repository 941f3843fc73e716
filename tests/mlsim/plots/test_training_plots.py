"""Figures of training: bars that add up, and a schedule that keeps its order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from matplotlib import pyplot

from mlsim import Engine
from mlsim.equations import EQUATIONS
from mlsim.errors import DoesNotFitError, InvalidValueError
from mlsim.plots import plot_breakdown, plot_memory, plot_pipeline
from mlsim.plots.training_plots import schedule

LONG = {"F": 1, "B": 2}


def run(**changes):
    asked = {
        "model": "GPT2_XL",
        "hardware": "HGX_A100",
        "global_batch": 8,
        "sequence_tokens": 1024,
        "pipeline_parallel": 4,
        "recompute": "none",
    }
    return Engine.train(**{**asked, **changes})


def test_shares_of_a_step_add_up() -> None:
    runs = {"four": run(), "two": run(pipeline_parallel=2)}
    _, ax = plot_breakdown(runs)
    for place, training in enumerate(runs.values()):
        bars = [bar for bar in ax.patches if round(bar.get_x() + 0.4) == place]
        assert sum(bar.get_height() for bar in bars) == pytest.approx(100, abs=0.5)
        ends = [0, *(bar.get_y() + bar.get_height() for bar in bars)]
        assert [bar.get_y() for bar in bars] == pytest.approx(ends[:-1])
        heights = [round(bar.get_height(), 6) for bar in bars]
        assert round(100 * training.shares["bubble"], 6) in heights
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    # Nothing was recomputed, so the legend is silent about it.
    assert "pipeline bubble" in words
    assert "recomputation" not in words
    assert [text.get_text() for text in ax.get_xticklabels()] == ["four", "two"]


def test_memory_adds_up_to_what_is_required() -> None:
    small = run()
    _, ax = plot_memory({"small": small})
    total = sum(bar.get_height() for bar in ax.patches)
    assert total == pytest.approx(small.value("memory_required") / 1e9, rel=1e-3)
    (line,) = ax.collections
    usable = 0.9 * 81920 * 2**20 / 1e9
    assert line.get_segments()[0].ravel() == pytest.approx([-0.45, usable, 0.45, usable])


def test_what_does_not_fit_has_memory_but_no_times() -> None:
    large = Engine.train(model="Llama3_8B", hardware="A100", global_batch=1)
    assert max(bar.get_height() for bar in plot_memory({"large": large})[1].patches) > 90
    with pytest.raises(DoesNotFitError):
        plot_breakdown({"large": large})


def test_without_runs_there_is_no_figure() -> None:
    for plot in (plot_breakdown, plot_memory):
        with pytest.raises(InvalidValueError, match="at least one training run"):
            plot({})


def test_figures_draw_on_axes_that_are_given() -> None:
    for plot, what in ((plot_breakdown, {"a": run()}), (plot_memory, {"a": run()})):
        figure, ax = pyplot.subplots()
        assert plot(what, ax=ax) == (figure, ax)
    figure, ax = pyplot.subplots()
    assert plot_pipeline(2, 3, ax=ax) == (figure, ax)
    # A box for each pass, a little shorter than it is, with the number of its micro-batch.
    boxes = [(p.get_y() + 0.425, p.get_x() - 0.04, p.get_width() + 0.08) for p in ax.patches]
    starts = schedule(2, 3).items()
    assert boxes == [pytest.approx((stage, at, LONG[way])) for (stage, way, _), at in starts]
    assert [text.get_text() for text in ax.texts] == [str(n + 1) for (_, _, n), _ in starts]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["stage 1", "stage 2"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


@pytest.mark.parametrize("stages", [1, 2, 4, 7])
@pytest.mark.parametrize("count", [1, 3, 8])
def test_the_schedule_has_the_bubble_of_the_equation(stages: int, count: int) -> None:
    starts = schedule(stages, count)
    end = max(start + LONG[which] for (_, which, _), start in starts.items())
    stage_time = sum(LONG.values())
    bubble = EQUATIONS["bubble_time"](stages, stage_time, 0, 1)
    assert end == count * stage_time + bubble


@pytest.mark.parametrize("stages", [1, 2, 4, 7])
@pytest.mark.parametrize("count", [1, 3, 8])
def test_the_schedule_keeps_its_order(stages: int, count: int) -> None:
    starts = schedule(stages, count)
    assert len(starts) == 2 * stages * count
    for (stage, which, index), start in starts.items():
        before = (stage - 1, "F", index) if which == "F" else (stage + 1, "B", index)
        if before in starts:
            assert start >= starts[before] + LONG[which]
        if which == "B":
            assert start >= starts[stage, "F", index] + LONG["F"]
    for stage in range(stages):
        own = [(start, LONG[w]) for (s, w, _), start in starts.items() if s == stage]
        own.sort()
        assert all(a + long <= b for (a, long), (b, _) in pairwise(own))
        assert _in_flight(starts, stage) == min(count, stages - stage)


def _in_flight(starts, stage: int) -> int:
    changes = [
        (start + (LONG["B"] if which == "B" else 0), 1 if which == "F" else -1)
        for (s, which, _), start in starts.items()
        if s == stage
    ]
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True])
def test_a_pipeline_needs_whole_numbers(wrong) -> None:
    with pytest.raises(InvalidValueError, match="stages must be a whole number"):
        plot_pipeline(wrong, 2)
    with pytest.raises(InvalidValueError, match="micro_batches must be a whole number"):
        plot_pipeline(2, wrong)
