"""Figures of training: where the time goes, what fills the memory, a pipeline's schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, check_whole
from mlsim.plots.drawing import attach, axes_for, legend_above
from mlsim.solvers.training.training import Training
from mlsim.units import factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mlsim.solvers.serving.serving import Serving

# Parts of a step, and of a device's memory, from below, and what to call them.
STEP = {
    "forward": "forward",
    "backward": "backward",
    "recompute": "recomputation",
    "exchange": "sending within a stage",
    "bubble": "pipeline bubble",
    "pipeline": "sending between stages",
    "gradients": "gradients and weights",
    "optimizer": "update",
}
MEMORY = {
    "weight_memory": "weights",
    "gradient_memory": "gradients",
    "optimizer_memory": "optimizer state",
    "cache_memory": "KV cache",
    "activation_memory": "activations",
}
# A color for each part, distinct with any color vision; every second part is hatched.
_FILLS = ("#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#DDDDDD", "#F0E442", "#009E73", "#CC79A7")
_LONG = {"F": 1, "B": 2}  # a pass, forward or backward


def plot_breakdown(runs: Mapping[str, Training], *, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw where the time of a step goes, in percent: a bar for each run, by its label.

    Raises
    ------
    InvalidValueError
        If there is no run.
    DoesNotFitError
        If a run does not fit, unless it was asked with check_memory=False.

    >>> from mlsim import Engine
    >>> run = Engine.train(model="BERT_Large", hardware="A100", global_batch=8, recompute="none")
    >>> plot_breakdown({"one A100": run})[1].get_ylabel()
    'Share of the step (%)'
    """
    heights = {name: [100 * float(run.shares[name]) for run in runs.values()] for name in STEP}
    ax = _stacked(runs, heights, STEP, ax)
    ax.set(ylabel="Share of the step (%)", ylim=(0, 100))
    shares = {f"{STEP[name]} (%)": each for name, each in heights.items()}
    return attach(ax, _numbers(runs, shares))


def plot_memory(
    runs: Mapping[str, Training | Serving], *, unit: str = "GB", ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draw what fills the memory of each device, in a unit, and what may be used.

    Raises
    ------
    InvalidValueError
        If there is no run.

    >>> from mlsim import Engine
    >>> run = Engine.train(model="BERT_Large", hardware="A100", global_batch=8)
    >>> plot_memory({"one A100": run})[1].get_ylabel()
    'GB on each device'
    """
    names = [name for name in MEMORY if all(name in run.names for run in runs.values())]
    size = factor(unit, "B")
    heights = {name: [run.value(name) / size for run in runs.values()] for name in names}
    ax = _stacked(runs, heights, MEMORY, ax)
    usable = [run.value("usable_memory") / size for run in runs.values()]
    lefts, rights = ([at + side for at in range(len(usable))] for side in (-0.45, 0.45))
    ax.hlines(usable, lefts, rights, color="black", label="may be used")
    legend_above(ax)
    ax.set_ylabel(f"{unit} on each device")
    columns = {f"{MEMORY[name]} ({unit})": each for name, each in heights.items()}
    return attach(ax, _numbers(runs, {**columns, f"may be used ({unit})": usable}))


def plot_pipeline(stages: int, micro_batches: int, *, ax: Any = None) -> tuple[Figure, Axes]:
    """Draw who works when in a pipeline; a backward pass takes as long as two forward.

    Raises
    ------
    InvalidValueError
        If a number is none from 1 up.

    >>> len(plot_pipeline(4, 8)[1].patches)
    64
    """
    for name, value in {"stages": stages, "micro_batches": micro_batches}.items():
        check_whole(name, value)
    ax = axes_for(ax, 5.2, 0.6 + 0.4 * stages)
    passes = schedule(stages, micro_batches)
    for (stage, which, index), start in passes.items():
        fill, ink = (_FILLS[0], "white") if which == "F" else (_FILLS[1], "black")
        # a little shorter than it is: the next box may begin where this one ends
        box = ax.barh(stage, _LONG[which] - 0.08, 0.85, left=start + 0.04, color=fill)
        label = ax.bar_label(box, [f"{index + 1}"], label_type="center", color=ink)
        for each in (*box, *label):  # a number is read on its own box, in whatever look
            each.set_gid(f"keep-colours-{stage}-{which}-{index}-{type(each).__name__}")
    ax.grid(visible=False)
    ax.set(xlabel="Time, in forward passes of a stage")
    ax.set_yticks(range(stages), [f"stage {stage + 1}" for stage in range(stages)])
    ax.invert_yaxis()
    words = {"F": "forward", "B": "backward"}
    return attach(
        ax,
        [
            {
                "Stage": stage + 1,
                "Pass": words[which],
                "Micro-batch": index + 1,
                "Start": start,
                "End": start + _LONG[which],
            }
            for (stage, which, index), start in sorted(passes.items(), key=lambda item: item[1])
        ],
    )


def schedule(stages: int, count: int) -> dict[tuple[int, str, int], int]:
    """Return when each pass starts, one forward and one backward in turn.

    >>> schedule(2, 1)
    {(0, 'F', 0): 0, (1, 'F', 0): 1, (1, 'B', 0): 2, (0, 'B', 0): 4}
    """
    started: dict[tuple[int, str, int], int] = {}
    free, queues = [0] * stages, []
    for stage in range(stages):
        # A stage takes in one micro-batch for each stage after it, and then turns about.
        late = {"F": 0.0, "B": stages - stage - 0.5}
        order = [(index + late[which], which, index) for which in "FB" for index in range(count)]
        queues.append([(which, index) for _, which, index in sorted(order)])
    while any(queues):
        for stage, queue in enumerate(queues):
            while queue:
                which, index = queue[0]
                before = (stage + (1 if which == "B" else -1), which, index)
                if 0 <= before[0] < stages and before not in started:
                    break
                ready = started[before] + _LONG[which] if before in started else 0
                started[stage, which, index] = max(free[stage], ready)
                free[stage] = started[stage, which, index] + _LONG[which]
                queue.pop(0)
    return started


def _numbers(runs: Mapping[str, Any], columns: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    """Return a row for each run."""
    return [
        {"Run": label, **{name: values[at] for name, values in columns.items()}}
        for at, label in enumerate(runs)
    ]


def _stacked(runs: Mapping[str, Any], heights: Any, words: Mapping[str, str], ax: Any) -> Any:
    """Draw stacked bars; a part below a thousandth of every bar is left out."""
    if not runs:
        raise InvalidValueError('give at least one training run, such as {"8 GPUs": training}.')
    ax = axes_for(ax, 5.2, 3.8)
    whole = [sum(values) for values in zip(*heights.values(), strict=True)]
    below = [0.0] * len(whole)
    for index, (name, values) in enumerate(heights.items()):
        if all(value <= 1e-3 * total for value, total in zip(values, whole, strict=True)):
            continue
        ax.bar(range(len(whole)), values, bottom=below, color=_FILLS[index], label=words[name],
               hatch="//" if index % 2 else None, edgecolor="white", linewidth=0.5)  # fmt: skip
        below = [under + value for under, value in zip(below, values, strict=True)]
    ax.set_xticks(range(len(whole)), list(runs))
    legend_above(ax)
    ax.grid(visible=False, axis="x")
    return ax
