"""A processor measured from the first kernel to the last figure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from mlsim.hardware.this_machine import Machine, this_machine
from mlsim.profiling.measuring.cpu import Processor, Team, default_disk_folder
from mlsim.profiling.measuring.found_levels import SIZE_LIMIT, level_figures, level_words
from mlsim.profiling.measuring.measurement import MeasuredFigure, Measurement
from mlsim.profiling.measuring.other_kernels import Kernels, find_kernels
from mlsim.profiling.measuring.products import ProductWorker
from mlsim.profiling.measuring.rounds import (
    FEWEST_ROUNDS,
    NOISE_LIMIT,
    Rounds,
    run_rounds,
    too_noisy,
)
from mlsim.profiling.measuring.samples import Clock
from mlsim.profiling.spread import Spread

_BASES = {"compute": "FLOP/s", "ceilings": "FLOP/s", "starts": "s", "disk": "B/s", "links": "B/s"}


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
) -> Measurement:
    """Measure the processor; see `mlsim.profiling.measure` for the arguments.

    `kernels`, `machine`, `worker` and `clock` may be others than this machine's; `deadline`
    is on the clock.

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
        numpy, machine, found, clock=clock, disk_folder=folder, say=say, worker=worker
    )
    with ready as processor:
        rounds = run_rounds(processor.parts(), clock, deadline, say)
        figures, refused = judged(processor, rounds)
    return Measurement(
        machine=machine,
        kind="cpu",
        name=machine.processor,
        date=today,
        figures=figures,
        refused=refused,
        curves={
            team.words: (team.sizes, [median(each) for each in zip(*team.curves, strict=True)])
            for team in processor.teams
        },
        versions={"Python and system": machine.system, **processor.versions},
        rounds=rounds.count,
        seconds=clock() - began,
        capacity=machine.memory,
    )


def judged(
    processor: Processor, rounds: Rounds
) -> tuple[dict[str, MeasuredFigure], dict[str, str]]:
    """Return the figures that are ceilings, and what is none, with the reason."""
    figures: dict[str, MeasuredFigure] = {}
    refused = dict(processor.lost)

    def judge(name: str, values: list[float], how: str, limit: float = NOISE_LIMIT) -> None:
        if len(values) < FEWEST_ROUNDS:
            refused[name] = f"measured in {len(values)} of {rounds.count} rounds only"
            return
        spread = Spread.of(values)
        reason = too_noisy(spread, limit)
        if reason:
            refused[name] = reason
        else:
            figures[name] = MeasuredFigure(name, base_of(name), spread, how)

    for name, values in rounds.values.items():
        judge(name, values, processor.how(name, rounds))
    for team in processor.teams:
        reported = reported_sizes(processor.machine, team)
        values_of, lost = level_figures(team.table, team.sizes, team.curves, reported)
        refused |= lost
        for name, values in values_of.items():
            limit = NOISE_LIMIT if name.endswith("bandwidth") else SIZE_LIMIT
            judge(name, values, level_words(name, team.words, reported), limit)
    return figures, refused


def reported_sizes(machine: Machine, team: Team) -> Mapping[int, int]:
    """Return the caches that a team has, in B by level: of one core, or of all."""
    alone = team.table == "one_core"
    return {each.level: each.size if alone else each.total for each in machine.caches}


def base_of(name: str) -> str:
    """Return the unit of a figure.

    >>> base_of("memory.l1"), base_of("memory.l1_bandwidth"), base_of("one_core.fp32")
    ('B', 'B/s', 'FLOP/s')
    """
    table, _, short = name.partition(".")
    if short.endswith("bandwidth"):
        return "B/s"
    if table == "memory" or (short[:1] == "l" and short[1:2].isdigit()):
        return "B"
    return _BASES.get(table, "FLOP/s")
