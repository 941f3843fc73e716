"""Points of a measured roofline: each kernel at each level of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlsim.equations import roofline
from mlsim.errors import NotMeasuredError, unknown_name
from mlsim.profiling.diagnosis import Diagnosis, Finding
from mlsim.profiling.measured_profile import LEVELS


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel at one level: FLOP/B across, FLOP/s up, and its part of the time."""

    finding: Finding
    level: str
    intensity: float
    rate: float
    time_share: float


def points_of(diagnosis: Diagnosis, levels: Sequence[str] = ("dram",)) -> list[Point]:
    """Return the points that a profile gives, the longest kernels first.

    A kernel without work, bytes or time has no place; `unplaced` names those.

    Raises
    ------
    UnknownNameError
        If there is no such level.
    NotMeasuredError
        If no kernel has a place; says what is missing.
    """
    for level in levels:
        if level not in LEVELS:
            raise unknown_name("level of memory", level, LEVELS)
    found = []
    for each in diagnosis.findings:
        if each.rate is None or not each.rate:
            continue
        for level in levels:
            moved = each.kernel.traffic.get(level)
            if moved:
                work = each.kernel.flop_count
                intensity = float(roofline.arithmetic_intensity(work, moved))
                found.append(Point(each, level, intensity, each.rate, each.time_share or 0.0))
    if not found:
        why = next((each.limit for each in diagnosis.findings), "the profile has no kernels.")
        raise NotMeasuredError(f"no kernel of the profile has a place under a roof. {why}")
    return found


def unplaced(diagnosis: Diagnosis, points: Sequence[Point]) -> list[Finding]:
    """Return the kernels that have no point."""
    placed = {id(each.finding) for each in points}
    return [each for each in diagnosis.findings if id(each) not in placed]
