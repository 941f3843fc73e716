"""A processor measured from the first kernel to the last figure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mlsim.hardware.this_machine import Machine, this_machine
from mlsim.profiling.measuring.cpu import Processor, Team, default_disk_folder
from mlsim.profiling.measuring.found_levels import level_figures, level_words
from mlsim.profiling.measuring.measurement import (
    TIME_UP,
    VIRTUAL_DRIFT,
    MeasuredFigure,
    Measurement,
)
from mlsim.profiling.measuring.other_kernels import Kernels, find_kernels
from mlsim.profiling.measuring.products import ProductWorker
from mlsim.profiling.measuring.rounds import (
    CLOCK_STEP,
    Rounds,
    best_curves,
    judged,
    middle_curve,
    more_time,
    run_rounds,
)
from mlsim.profiling.measuring.samples import Clock
from mlsim.profiling.measuring.waiting import Waits, thread_waits

NOT_BEGUN = f"{TIME_UP} before it was measured"


def measure_cpu(
    numpy: Any,
    *,
    kernels: str | Kernels,
    deadline: float,
    disk: bool,
    disk_folder: Path | None,
    say: Callable[[str], None],
    today: datetime.date,
    clock: Clock,
    machine: Machine | None = None,
    worker: Callable[[str, int], ProductWorker] = ProductWorker,
    waits: Waits = thread_waits,
    load: float = 0.0,
    accept_noisy: bool = False,
) -> Measurement:
    """Measure the processor; see `mlsim.profiling.measure` for the arguments.

    `kernels`, `machine`, `worker`, `clock` and `waits` may be others than this machine's;
    `deadline` is on the clock.

    Raises
    ------
    MlsimError
        As `mlsim.profiling.measure`.
    """
    began = clock()
    machine = machine or this_machine()
    say("compiling the kernels")
    found = find_kernels(numpy, kernels) if isinstance(kernels, str) else kernels
    folder = (disk_folder or default_disk_folder()) if disk else None
    ready = Processor(
        numpy, machine, found, clock=clock, disk_folder=folder, say=say, worker=worker,
        waits=waits, accept_noisy=accept_noisy, deadline=deadline,
    )  # fmt: skip
    with ready as processor:
        rounds = run_rounds(processor.parts(), clock, deadline, say, accept_noisy=accept_noisy)
        figures, refused = judged_cpu(processor, rounds, accept_noisy=accept_noisy)
    return Measurement(
        machine=machine,
        kind="cpu",
        name=machine.processor,
        date=today,
        figures=figures,
        refused=refused,
        curves={team.words: (team.sizes, middle_curve(team.curves)) for team in processor.teams},
        versions={"Python and system": machine.system, **processor.versions},
        rounds=rounds.count,
        seconds=clock() - began,
        capacity=machine.memory,
        load=load,
    )


def judged_cpu(
    processor: Processor, rounds: Rounds, *, accept_noisy: bool = False
) -> tuple[dict[str, MeasuredFigure], dict[str, str]]:
    """Return the figures that are ceilings, and what is none, with the reason."""
    values, disturbed = rounds.stretches(), rounds.disturbed
    hows = {name: processor.how(name) for name in values}
    if accept_noisy:
        _no_slower_together(values, hows)
    refused = dict(processor.lost)
    for team in processor.teams:
        reported = reported_sizes(processor.machine, team)
        found, lost = level_figures(team.table, team.sizes, best_curves(team.curves), reported)
        refused |= lost if team.curves else dict.fromkeys(lost, NOT_BEGUN)
        values |= found
        disturbed |= dict.fromkeys(found, team.curves.count(None))
        hows |= {name: level_words(name, team.words, reported) for name in found}
    figures, noisy = judged(
        values,
        hows.__getitem__,
        rounds.count,
        disturbed,
        VIRTUAL_DRIFT if processor.machine.virtual else CLOCK_STEP / 2,
        wanted=rounds.wanted,
        accept_noisy=accept_noisy,
    )
    rest = {"the rest": f"{NOT_BEGUN}: {more_time(rounds.wanted)}"}
    return figures, refused | noisy | (rest if not rounds.count else {})


def _no_slower_together(values: dict[str, list[float]], hows: dict[str, str]) -> None:
    """Let one core count where all together were slower: others had taken some of them."""
    for name in [name for name in values if name.startswith("compute.")]:
        alone = name.replace("compute.", "one_core.")
        if max(values.get(alone, ()), default=0.0) > max(values[name], default=0.0):
            values[name] = values[alone]
            hows[name] = f"{hows[alone]} All cores together were slower, since others used them."


def reported_sizes(machine: Machine, team: Team) -> Mapping[int, int]:
    """Return the caches that a team has, in B by level: of one core, or of all."""
    alone = team.table == "one_core"
    return {each.level: each.size if alone else each.total for each in machine.caches}
