"""One's own machine and one's own runs: a profile that was read, and what limits it.

A name is imported when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from mlsim.profiling.read import read_profile
    from mlsim.profiling.remedies import Remedy
    from mlsim.profiling.roofs import device_of
    from mlsim.profiling.samples import sample_profile, sample_profiles
    from mlsim.profiling.tasks import CriticalPath, Task, Trace, balance, critical_path, lanes

_HOMES = {
    **dict.fromkeys(
        (
            "LEVELS",
            "PATHS",
            "Activity",
            "Launches",
            "MeasuredKernel",
            "MeasuredProfile",
            "Transfer",
        ),
        "measured_profile",
    ),
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
}

__all__ = [
    "LEVELS",
    "PATHS",
    "REGIONS",
    "TOOLS",
    "Activity",
    "CriticalPath",
    "Diagnosis",
    "Finding",
    "Launches",
    "MeasuredKernel",
    "MeasuredProfile",
    "Remedy",
    "Task",
    "Trace",
    "Transfer",
    "balance",
    "combine",
    "critical_path",
    "device_of",
    "diagnose",
    "join",
    "lanes",
    "profile_command",
    "read_profile",
    "sample_profile",
    "sample_profiles",
]


def __getattr__(name: str) -> Any:
    """Import a name of this room when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
