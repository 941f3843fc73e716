"""The commands of one's own machine: its ceilings, the times of programs, and their profiles."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from mlsim.cli.flags import as_json
from mlsim.errors import InvalidValueError

if TYPE_CHECKING:
    from mlsim.profiling import MeasuredProfile


def run(options: argparse.Namespace) -> str:
    """Return what a command finds, as text or JSON.

    Raises
    ------
    MlsimError
        If a file can't be read, a device is not known or a tool does not profile it, or what was
        measured is no roof.
    """
    return {"measure": _measure, "time": _time, "profile": _profile}.get(
        options.name, _profile_command
    )(options)


def _measure(options: argparse.Namespace) -> str:
    """Return what was measured, and save it."""
    from mlsim.profiling.measuring import measure

    found = measure(
        options.device,
        seconds=options.seconds,
        kernels=options.kernels,
        disk=not options.no_disk,
        disk_folder=options.disk_folder,
        progress=_say,
        accept_noisy=options.accept_noisy or None,
    )
    shown = as_json(found.to_dict()) if options.json else str(found)
    if options.no_save:
        return shown
    try:
        path = found.save(options.out)
    except Exception:
        # A minute of work is shown, even if it is no device.
        print(shown)
        raise
    name = options.out or ("local" if options.device == "cpu" else "local-gpu")
    print(f"mlsim: saved as {path}; now: mlsim solve ResNet50 {name}", file=sys.stderr)
    return shown


def _say(what: str) -> None:
    """Tell a person who waits, and nobody else."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


def _time(options: argparse.Namespace) -> str:
    from mlsim.profiling.stopwatch import time_command

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    found = time_command(
        command, repeat=options.repeat, warm_up=options.warm_up, quiet=options.quiet
    )
    return as_json(found.to_dict()) if options.json else str(found)


def _profile(options: argparse.Namespace) -> str:
    """Return what a file says, and what limits it where the device is known."""
    from mlsim.profiling import diagnose, read_profile
    from mlsim.profiling.read.printed import as_words, read_log

    log = read_log(options.files[0]) if len(options.files) == 1 else None
    if log is not None:
        return as_json([asdict(each) for each in log]) if options.json else as_words(log)
    read = [read_profile(path, decimal=options.decimal) for path in options.files]
    profile = _joined(read)
    try:
        diagnosis = diagnose(profile, hardware=options.hardware)
    except InvalidValueError as error:
        if options.hardware:
            raise
        if options.report:
            from mlsim.plots.profiles import write_report

            return f"wrote {write_report(profile, options.report)}, without a roof: {error}"
        if options.json:
            return as_json(profile.to_dict())
        notes = "".join(f"\n{each}" for each in profile.notes)
        return f"{profile}{notes}\n\nFor what limits it: {error}"
    if options.report:
        from mlsim.plots.profiles import write_report

        written = write_report(diagnosis, options.report, levels=options.levels.split(","))
        return f"wrote {written}"
    if options.json:
        return as_json(diagnosis.to_dict())
    return f"{profile}\n\n{diagnosis.words(options.most)}"


def _joined(read: list[MeasuredProfile]) -> MeasuredProfile:
    """Join files: counters of all that have some, and the times of the one that has none."""
    from mlsim.profiling import combine, join

    if len(read) == 1:
        return read[0]
    counts = [one for one in read if any(each.operations or each.traffic for each in one.kernels)]
    times = [one for one in read if not any(one is each for each in counts)]
    if len(times) > 1 or not counts:
        raise InvalidValueError(
            f"{len(times)} of these files have times alone. Give one of them, and files with "
            "counters."
        )
    counted = combine(counts)
    return join(counted, times[0]) if times else counted


def _profile_command(options: argparse.Namespace) -> str:
    from mlsim.profiling import profile_command

    script = options.script[0] if len(options.script) == 1 else options.script
    return profile_command(script, tool=options.tool, hardware=options.hardware).rstrip()
