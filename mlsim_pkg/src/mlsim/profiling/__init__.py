"""One's own machine and one's own runs: its ceilings, a stopwatch, a profile, and what limits it.

A name is imported when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing

if TYPE_CHECKING:
    from mlsim.profiling.commands import profile_command
    from mlsim.profiling.diagnosis import REGIONS, Diagnosis, Finding, Remedy, diagnose
    from mlsim.profiling.joining import combine, join
    from mlsim.profiling.measured_profile import (
        Activity,
        Launches,
        MeasuredKernel,
        MeasuredProfile,
        Transfer,
    )
    from mlsim.profiling.measuring import measure
    from mlsim.profiling.measuring.measurement import MeasuredFigure, Measurement
    from mlsim.profiling.networks import (
        LayerTime,
        NetworkRun,
        one_core,
        sample_machine,
        sample_run,
        time_network,
    )
    from mlsim.profiling.read import read_profile, sample_profile, sample_profiles
    from mlsim.profiling.read.perf_stat import read_perf_stat
    from mlsim.profiling.read.printed import read_nvidia_smi
    from mlsim.profiling.stopwatch import (
        Spread,
        Stopwatch,
        Task,
        Trace,
        balance,
        critical_path,
        lanes,
        time_command,
        time_function,
    )

_NAMES = {
    "commands": ("profile_command",),
    "diagnosis": ("REGIONS", "Diagnosis", "Finding", "Remedy", "diagnose"),
    "joining": ("combine", "join"),
    "measured_profile": ("Activity", "Launches", "MeasuredKernel", "MeasuredProfile", "Transfer"),
    "measuring": ("measure",),
    "measuring.measurement": ("MeasuredFigure", "Measurement"),
    "networks": (
        *("LayerTime", "NetworkRun", "one_core", "sample_machine", "sample_run", "time_network"),
    ),
    "read": ("read_profile", "sample_profile", "sample_profiles"),
    "read.perf_stat": ("read_perf_stat",),
    "read.printed": ("read_nvidia_smi",),
    "stopwatch": (
        *("Spread", "Stopwatch", "Task", "Trace", "balance", "critical_path", "lanes"),
        *("time_command", "time_function"),
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [
    "REGIONS",
    "Activity",
    "Diagnosis",
    "Finding",
    "Launches",
    "LayerTime",
    "MeasuredFigure",
    "MeasuredKernel",
    "MeasuredProfile",
    "Measurement",
    "NetworkRun",
    "Remedy",
    "Spread",
    "Stopwatch",
    "Task",
    "Trace",
    "Transfer",
    "balance",
    "combine",
    "critical_path",
    "diagnose",
    "join",
    "lanes",
    "measure",
    "one_core",
    "profile_command",
    "read_nvidia_smi",
    "read_perf_stat",
    "read_profile",
    "sample_machine",
    "sample_profile",
    "sample_profiles",
    "sample_run",
    "time_command",
    "time_function",
    "time_network",
]

__getattr__ = importing(__name__, _HOMES)
