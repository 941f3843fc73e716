"""Figures of training: where the time goes, what fills the memory, a pipeline's schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, need
from mlsim.plots import COLOURS
from mlsim.solvers import Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Parts of a step and of a device's memory, and what to call them. Each has a colour
# of its own that people with any colour vision tell apart; every second one is hatched.
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
    "activation_memory": "activations",
}
_FILLS = ("#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#DDDDDD", "#F0E442", "#009E73", "#CC79A7")


def plot_breakdown(
    trainings: Mapping[str, Training], *, ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draw where the time of a step goes, a bar for each run, in per cent.

    Parameters
    ----------
    trainings
        Answers of `Engine.train`, by what to call them.
    ax
        Axes to draw on; a new figure otherwise.

    Raises
    ------
    InvalidValueError
        If there is no run.
    DoesNotFitError
        If a run does not fit, unless it was asked with check_memory=False.

    >>> from mlsim import Engine
    >>> run = Engine.train(model="BERT_Large", system="A100", global_batch=8, recompute="none")
    >>> _, ax = plot_breakdown({"one A100": run})
    >>> ax.get_ylabel()
    'Share of the step (%)'
    """
    heights = {name: [100 * run.shares[name] for run in trainings.values()] for name in STEP}
    figure, ax = _stacked(list(trainings), heights, STEP, ax)
    ax.set(ylabel="Share of the step (%)", ylim=(0, 100))
    return figure, ax


def plot_memory(
    trainings: Mapping[str, Training], *, ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draw what fills the memory of a device, a bar for each run, in GB, and how much may be used.

    Parameters
    ----------
    trainings, ax
        As for `plot_breakdown`; runs that don't fit are drawn too.

    Raises
    ------
    InvalidValueError
        If there is no run.

    >>> from mlsim import Engine
    >>> run = Engine.train(model="BERT_Large", system="A100", global_batch=8)
    >>> _, ax = plot_memory({"one A100": run})
    >>> ax.get_ylabel()
    'GB on each device'
    """
    heights = {name: [run.value(name) / 1e9 for run in trainings.values()] for name in MEMORY}
    figure, ax = _stacked(list(trainings), heights, MEMORY, ax)
    for place, run in enumerate(trainings.values()):
        usable = run.value("usable_memory") / 1e9
        ax.plot([place - 0.45, place + 0.45], [usable] * 2, color="black", linewidth=1.5)
    ax.plot([], [], color="black", linewidth=1.5, label="usable memory")
    ax.set_ylabel("GB on each device")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, reverse=True)
    return figure, ax


def plot_pipeline(
    stages: int, micro_batches: int, *, ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draw who works when in a pipeline: one forward and one backward in turn.

    A backward pass takes twice as long as a forward one; sending takes no time.

    Parameters
    ----------
    stages, micro_batches
        How many of each, from 1 up.
    ax
        Axes to draw on; a new figure otherwise.

    Raises
    ------
    InvalidValueError
        If a number is none from 1 up.

    >>> _, ax = plot_pipeline(4, 8)
    >>> len(ax.patches)
    64
    """
    pyplot = need("matplotlib.pyplot", "a figure", "plots")
    for name, value in (("stages", stages), ("micro_batches", micro_batches)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidValueError(f"{name} must be a whole number from 1 up, not {value!r}.")
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 0.5 + 0.45 * stages), layout="constrained")
    for (stage, which, index), start in schedule(stages, micro_batches).items():
        wide, fill = (1, COLOURS[0]) if which == "F" else (2, COLOURS[4])
        ax.barh(stage, wide, 0.85, left=start, color=fill, edgecolor="white")
        ink = "white" if which == "F" else "black"
        ax.text(start + wide / 2, stage, f"{index + 1}", ha="center", va="center", color=ink)
    ax.set(xlabel="Time, in forward passes of a stage", yticks=range(stages))
    ax.set_yticklabels([f"stage {stage + 1}" for stage in range(stages)])
    ax.invert_yaxis()
    return ax.figure, ax  # type: ignore[return-value]


def schedule(stages: int, micro_batches: int) -> dict[tuple[int, str, int], int]:
    """Return when each pass starts: (stage, "F" or "B", micro-batch) to a time.

    >>> schedule(2, 1)
    {(0, 'F', 0): 0, (1, 'F', 0): 1, (1, 'B', 0): 2, (0, 'B', 0): 4}
    """
    queues = []
    for stage in range(stages):
        ahead = min(stages - 1 - stage, micro_batches)
        turns = [(w, i) for i in range(micro_batches - ahead) for w in "FB"]
        first = [("F", index) for index in range(ahead)]
        turns = [(w, i + ahead if w == "F" else i) for w, i in turns]
        last = [("B", index) for index in range(micro_batches - ahead, micro_batches)]
        queues.append([*first, *turns, *last])
    started: dict[tuple[int, str, int], int] = {}
    free = [0] * stages
    while any(queues):
        for stage, queue in enumerate(queues):
            while queue:
                which, index = queue[0]
                before = (stage - 1, "F", index) if which == "F" else (stage + 1, "B", index)
                outside = not 0 <= before[0] < stages
                if not outside and before not in started:
                    break
                ready = 0 if outside else started[before] + (1 if which == "F" else 2)
                started[stage, which, index] = max(free[stage], ready)
                free[stage] = started[stage, which, index] + (1 if which == "F" else 2)
                queue.pop(0)
    return started


def _stacked(
    labels: Sequence[str], heights: Mapping[str, list[float]], words: Mapping[str, str], ax: Any
) -> tuple[Any, Any]:
    """Draw stacked bars; a part that is nowhere is left out."""
    pyplot = need("matplotlib.pyplot", "a figure", "plots")
    if not labels:
        raise InvalidValueError('give at least one training run, such as {"8 GPUs": training}.')
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 4), layout="constrained")
    below = [0.0] * len(labels)
    for index, (name, values) in enumerate(heights.items()):
        if not any(value > 1e-3 * sum(each) for value, *each in zip(values, *heights.values())):
            continue
        hatch = "//" if index % 2 else None
        ax.bar(
            range(len(labels)),
            values,
            bottom=below,
            color=_FILLS[index],
            hatch=hatch,
            edgecolor="white",
            linewidth=0.5,
            label=words[name],
        )
        below = [under + value for under, value in zip(below, values, strict=True)]
    ax.set_xticks(range(len(labels)), labels)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, reverse=True)
    return ax.figure, ax
