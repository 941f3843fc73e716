"""One's own machine and one's own runs: its ceilings, a stopwatch, a profile, and what limits it.

A name is imported when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsim.profiling.activity import Activity, Launches, Transfer
    from mlsim.profiling.commands import TOOLS, profile_command
    from mlsim.profiling.diagnosis import REGIONS, Diagnosis, Finding, diagnose
    from mlsim.profiling.joining import combine, join
    from mlsim.profiling.measured_profile import LEVELS, PATHS, MeasuredKernel, MeasuredProfile
    from mlsim.profiling.measuring import measure
    from mlsim.profiling.measuring.levels import FoundLevel, find_levels
    from mlsim.profiling.measuring.measurement import MeasuredFigure, Measurement
    from mlsim.profiling.nvidia_smi import GpuReading, read_nvidia_smi
    from mlsim.profiling.perf_stat import Counter, PerfStat
    from mlsim.profiling.read import read_profile
    from mlsim.profiling.read.perf_text import read_perf_stat
    from mlsim.profiling.remedies import Remedy
    from mlsim.profiling.roofs import device_of
    from mlsim.profiling.samples import sample_profile, sample_profiles
    from mlsim.profiling.spread import Spread
    from mlsim.profiling.stopwatch import (
        Stopwatch,
        Timing,
        time_command,
        time_function,
        timed,
    )
    from mlsim.profiling.tasks import CriticalPath, Task, Trace, balance, critical_path, lanes
    from mlsim.profiling.time_text import CommandTime, read_time

_HOMES = {
    **dict.fromkeys(("Activity", "Launches", "Transfer"), "activity"),
    **dict.fromkeys(("LEVELS", "PATHS", "MeasuredKernel", "MeasuredProfile"), "measured_profile"),
    **dict.fromkeys(("REGIONS", "Diagnosis", "Finding", "diagnose"), "diagnosis"),
    **dict.fromkeys(("TOOLS", "profile_command"), "commands"),
    "Remedy": "remedies",
    "device_of": "roofs",
    **dict.fromkeys(("combine", "join"), "joining"),
    "read_profile": "read",
    **dict.fromkeys(("sample_profile", "sample_profiles"), "samples"),
    **dict.fromkeys(
        ("CriticalPath", "Task", "Trace", "balance", "critical_path", "lanes"), "tasks"
    ),
    **dict.fromkeys(("FoundLevel", "find_levels"), "measuring.levels"),
    **dict.fromkeys(("MeasuredFigure", "Measurement"), "measuring.measurement"),
    **dict.fromkeys(("GpuReading", "read_nvidia_smi"), "nvidia_smi"),
    **dict.fromkeys(("Counter", "PerfStat"), "perf_stat"),
    "read_perf_stat": "read.perf_text",
    "measure": "measuring",
    "Spread": "spread",
    **dict.fromkeys(("CommandTime", "read_time"), "time_text"),
    **dict.fromkeys(("Stopwatch", "Timing", "time_command", "time_function", "timed"), "stopwatch"),
}

__all__ = [
    "LEVELS",
    "PATHS",
    "REGIONS",
    "TOOLS",
    "Activity",
    "CommandTime",
    "Counter",
    "CriticalPath",
    "Diagnosis",
    "Finding",
    "FoundLevel",
    "GpuReading",
    "Launches",
    "MeasuredFigure",
    "MeasuredKernel",
    "MeasuredProfile",
    "Measurement",
    "PerfStat",
    "Remedy",
    "Spread",
    "Stopwatch",
    "Task",
    "Timing",
    "Trace",
    "Transfer",
    "balance",
    "combine",
    "critical_path",
    "device_of",
    "diagnose",
    "find_levels",
    "join",
    "lanes",
    "measure",
    "profile_command",
    "read_nvidia_smi",
    "read_perf_stat",
    "read_profile",
    "read_time",
    "sample_profile",
    "sample_profiles",
    "time_command",
    "time_function",
    "timed",
]


def __getattr__(name: str) -> Any:
    """Import a name of this room when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
