"""The commands `mlsim profile`, which reads a profile, and `mlsim profile-command`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mlsim.cli.options import add_json, as_json
from mlsim.errors import InvalidValueError

if TYPE_CHECKING:
    from mlsim.profiling import MeasuredProfile


def add(commands: Any) -> None:
    """Add both to the commands."""
    text = "what a profiler's file says, what limits it, and what to try first"
    command = commands.add_parser("profile", help=text, description=text)
    command.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="of Nsight Compute, Nsight Systems, PyTorch, rocprof, perf stat or nvidia-smi; two "
        "are joined: "
        "counters of one, times of the other; several passes with counters are put together",
    )
    command.add_argument("--hardware", help="the device (the one that the file names)")
    command.add_argument("--report", metavar="FILE", help="write a report, an HTML page")
    command.add_argument(
        "--levels", default="dram", help="of the report's points: dram,l2,l1,shared (dram)"
    )
    command.add_argument("--decimal", help='what parts a fraction, "." or "," (found out)')
    command.add_argument("--most", type=int, default=8, metavar="N", help="kernels to list (8)")
    add_json(command)
    command.set_defaults(run=run)

    text = "print the commands that profile a script"
    command = commands.add_parser("profile-command", help=text, description=text)
    command.add_argument("script", nargs="+", help="such as train.py; arguments behind --")
    command.add_argument("--hardware", help="the device, such as A100")
    command.add_argument("--tool", required=True, help="ncu, nsys, torch, rocprof or perf")
    command.set_defaults(run=run_command)


def run(options: argparse.Namespace) -> str:
    """Return what a file says, and what limits it where the device is known.

    Raises
    ------
    MlsimError
        If a file can't be read, or the device that was given is not known.
    """
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
            from mlsim.plots.profile_report import write_report

            return f"wrote {write_report(profile, options.report)}, without a roof: {error}"
        if options.json:
            return as_json(profile.to_dict())
        notes = "".join(f"\n{each}" for each in profile.notes)
        return f"{profile}{notes}\n\nFor what limits it: {error}"
    if options.report:
        from mlsim.plots.profile_report import write_report

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


def run_command(options: argparse.Namespace) -> str:
    """Return the commands that profile a script.

    Raises
    ------
    MlsimError
        If the tool does not profile that device.
    """
    from mlsim.profiling import profile_command

    script = options.script[0] if len(options.script) == 1 else options.script
    return profile_command(script, tool=options.tool, hardware=options.hardware).rstrip()
