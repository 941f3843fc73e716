"""Layouts of a training run as a board to play on, as a live figure.

A layout says how many GPUs share each matrix, how many stages there are and what is sharded. All of
them were asked beforehand; the figure shows what each keeps in memory and where its step goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError
from mlsim.live.figure import Figure, figure
from mlsim.live.handles import Choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from mlsim.solvers.training.training import Training

# GPUs for each matrix, stages, parts of each stage, what is sharded, what is recomputed.
Layout = tuple[int, int, int, str, str]
_LABELS = {"tensor": "GPUs for each matrix", "stages": "Stages", "parts": "Parts of each stage",
           "shard": "Sharded among copies", "recompute": "Recomputed"}  # fmt: skip
_WORDS = {
    "shard": {"none": "Nothing", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "ZeRO-3"},
    "recompute": {"none": "Nothing", "selective": "Scores", "full": "Layers"},
}
_MEMORY = ("weight_memory", "gradient_memory", "optimizer_memory", "activation_memory")
# Parts of a step that are shown as one.
_TIMES = (("forward", "backward"), ("recompute",), ("exchange",), ("bubble",),
          ("pipeline", "gradients", "optimizer"))  # fmt: skip


def board(runs: Mapping[Layout, Training], *, best: Training, node: int, still: Drawing) -> Figure:
    """Return a figure on which a reader looks for the fastest layout that fits.

    Parameters
    ----------
    runs
        The same training in many layouts: GPUs for each matrix, stages, parts of each stage, what
        is sharded and what is recomputed, each with two options or more. What is missing is
        refused, with the reason. The first is where it starts.
    best
        The fastest that a search found: what readers are measured by.
    node
        How many GPUs are in a node.
    still
        The figure that stands where no script runs.

    Raises
    ------
    InvalidValueError
        If there is no run, or one is not of the model, devices and batch of the best.

    >>> from matplotlib import pyplot
    >>> from mlsim import Engine
    >>> ask = {"model": "Llama3_8B", "hardware": "Selene", "devices": 32, "global_batch": 32,
    ...        "sequence_tokens": 2048, "check_memory": False}
    >>> runs = {(size, stages, 1, shard, again): Engine.train(
    ...             **ask, tensor_parallel=size, pipeline_parallel=stages, shard=shard,
    ...             recompute=again)
    ...         for size in (1, 2) for stages in (1, 2) for shard in ("none", "zero1")
    ...         for again in ("none", "full")}
    >>> runs[2, 2, 2, "zero1", "none"] = Engine.train(
    ...     **ask, tensor_parallel=2, pipeline_parallel=2, interleaved=2, shard="zero1")
    >>> board(runs, best=runs[2, 1, 1, "zero1", "none"], node=8, still=pyplot.figure())
    <live figure board: tensor, stages, parts, shard, recompute>
    """
    if not runs:
        raise InvalidValueError("a board needs runs in many layouts, not none.")
    for layout, run in runs.items():
        if _task(run) != _task(best):
            raise InvalidValueError(
                f"the run of layout {layout} is {_task(run)}, not {_task(best)} as the best is."
            )
    first = next(iter(runs))
    options = {
        name: list(dict.fromkeys(sorted((layout[at] for layout in runs), key=_rank)))
        for at, name in enumerate(_LABELS)
    }
    step, band = float(best.value("step_time")), best.band("step_time")
    return figure(
        "board",
        still=still,
        choices=[
            Choice(name, {str(key): _WORDS.get(name, {}).get(str(key), str(key)) for key in keys},
                   start=str(first[at]), label=_LABELS[name])
            for at, (name, keys) in enumerate(options.items())
        ],
        data={
            "layouts": {
                " ".join(map(str, layout)): _shown(runs[layout])  # type: ignore[index]
                if layout in runs
                else _why_not(layout, best)
                for layout in product(*options.values())
            },
            "best": step,
            "band": band and [band.low / step, band.high / step],
            "usable": float(best.value("usable_memory")),
            "devices": best.devices,
            "node": node,
        },
        label="The layout",
    )  # fmt: skip


def _task(run: Training) -> str:
    return f"{run.model.name} on {run.devices:,} devices with {run.step_tokens} tokens in a step"


def _rank(key: Any) -> Any:
    """Put options in order: numbers, and words as they are listed."""
    words = [*_WORDS["shard"], *_WORDS["recompute"]]
    return key if isinstance(key, int) else words.index(key)


def _shown(run: Training) -> dict[str, Any]:
    """Return the bytes that a GPU keeps, and the seconds of a step, to four digits."""
    parts = run.breakdown
    times = [sum(float(parts[name].si) for name in names) for names in _TIMES]
    memory = [float(run.value(name)) for name in _MEMORY]
    short = [[float(f"{each:.4g}") for each in numbers] for numbers in (memory, times)]
    return {"memory": short[0], "times": short[1], "micro": int(run.micro_batches.si)}


def _why_not(layout: tuple[Any, ...], best: Training) -> str:
    """Say why there is no such layout."""
    tensor, stages, parts, *_ = layout
    batch, layers = int(best.run.global_batch), best.model.layers
    copies, left = divmod(best.devices, tensor * stages)
    if left:
        return f"{best.devices:,} GPUs don't make whole copies of {tensor * stages:,}"
    if batch % copies:
        return f"{batch:,} sequences don't divide among {copies:,} copies"
    if stages == 1 and parts > 1:
        return "a single stage has one part"
    if layers % (stages * parts):
        return f"{layers} layers don't divide into {stages * parts} parts"
    return f"{batch // copies} micro-batches don't divide among {stages} stages"
