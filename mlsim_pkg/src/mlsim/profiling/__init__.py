"""One's own machine and one's own runs: its ceilings, a stopwatch, a profile, and what limits it.

A name is imported when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing

if TYPE_CHECKING:
    from mlsim.profiling.commands import TOOLS, profile_command
    from mlsim.profiling.diagnosis import REGIONS, Diagnosis, Finding, diagnose
    from mlsim.profiling.joining import combine, join
    from mlsim.profiling.measured_profile import (
        LEVELS,
        PATHS,
        Activity,
        Launches,
        MeasuredKernel,
        MeasuredProfile,
        Transfer,
    )
    from mlsim.profiling.measuring import measure
    from mlsim.profiling.measuring.measurement import MeasuredFigure, Measurement
    from mlsim.profiling.measuring.rounds import FoundLevel, find_levels
    from mlsim.profiling.read import read_profile, sample_profile, sample_profiles
    from mlsim.profiling.read.perf_stat import Counter, PerfStat, read_perf_stat
    from mlsim.profiling.read.printed import CommandTime, GpuReading, read_nvidia_smi, read_time
    from mlsim.profiling.roofs import Remedy, device_of
    from mlsim.profiling.stopwatch import (
        CriticalPath,
        Spread,
        Stopwatch,
        Task,
        Timing,
        Trace,
        balance,
        critical_path,
        lanes,
        time_command,
        time_function,
        timed,
    )

_HOMES = {
    **dict.fromkeys(
        (
            "Activity",
            "LEVELS",
            "Launches",
            "MeasuredKernel",
            "MeasuredProfile",
            "PATHS",
            "Transfer",
        ),
        "measured_profile",
    ),
    **dict.fromkeys(("REGIONS", "Diagnosis", "Finding", "diagnose"), "diagnosis"),
    **dict.fromkeys(("TOOLS", "profile_command"), "commands"),
    **dict.fromkeys(("Remedy", "device_of"), "roofs"),
    **dict.fromkeys(("combine", "join"), "joining"),
    **dict.fromkeys(("read_profile", "sample_profile", "sample_profiles"), "read"),
    **dict.fromkeys(
        ("CriticalPath", "Spread", "Stopwatch", "Task", "Timing", "Trace"), "stopwatch"
    ),
    **dict.fromkeys(("balance", "critical_path", "lanes"), "stopwatch"),
    **dict.fromkeys(("time_command", "time_function", "timed"), "stopwatch"),
    **dict.fromkeys(("FoundLevel", "find_levels"), "measuring.rounds"),
    **dict.fromkeys(("MeasuredFigure", "Measurement"), "measuring.measurement"),
    **dict.fromkeys(("CommandTime", "GpuReading", "read_nvidia_smi", "read_time"), "read.printed"),
    **dict.fromkeys(("Counter", "PerfStat", "read_perf_stat"), "read.perf_stat"),
    "measure": "measuring",
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

__getattr__ = importing(__name__, _HOMES)
