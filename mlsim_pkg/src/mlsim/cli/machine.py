"""The commands of one's own machine: its ceilings, the times of programs, and their profiles."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from mlsim.cli.flags import as_json
from mlsim.errors import InvalidValueError

if TYPE_CHECKING:
    from mlsim.parameters import Parameter
    from mlsim.profiling import MeasuredProfile


def rows_of(name: str) -> tuple[Parameter, ...]:  # as other commands have it
    """Return no parameters of doors: these commands ask none."""
    return ()


def add(name: str, command: argparse.ArgumentParser) -> None:
    """Add to a command what it takes."""
    {"measure": _add_measure, "time": _add_time, "profile": _add_profile}.get(
        name, _add_profile_command
    )(command)


def _add_measure(command: argparse.ArgumentParser) -> None:
    command.description = (
        f"Measure {command.description}. The result is saved as the device `local`, so that every "
        "other command takes it. What is too noisy is left out and said."
    )
    command.add_argument(
        "--device",
        choices=("cpu", "gpu"),
        default="cpu",
        help="the processor, or what PyTorch finds: CUDA, ROCm, MPS (cpu)",
    )
    command.add_argument(
        "--seconds", type=float, default=55.0, metavar="N", help="about how long it may take (55)"
    )
    command.add_argument(
        "--kernels",
        default="auto",
        metavar="KIND",
        help="what goes through memory: c, numpy, or the first that there is (auto)",
    )
    command.add_argument(
        "--accept-noisy",
        action="store_true",
        help="keep noisy figures with their wide intervals, as on Colab; answers say so",
    )
    command.add_argument("--out", metavar="FILE.toml", help="where the device's file goes")
    command.add_argument("--no-save", action="store_true", help="only show what was found")
    command.add_argument("--no-disk", action="store_true", help="leave the disk out")
    command.add_argument(
        "--disk-folder", metavar="DIR", help="where a file of 128 MiB is written and removed"
    )


def _add_time(command: argparse.ArgumentParser) -> None:
    command.usage = "mlsim time [-h] [OPTION ...] -- COMMAND ..."
    command.add_argument("--repeat", type=int, default=1, metavar="N", help="runs that count (1)")
    command.add_argument(
        "--warm-up", type=int, default=0, metavar="N", help="runs before, which don't count (0)"
    )
    command.add_argument("--quiet", action="store_true", help="throw away what the program prints")
    command.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="what to run")


def _add_profile(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="of Nsight Compute, Nsight Systems, PyTorch, rocprof, perf stat or nvidia-smi; two "
        "are joined: counters of one, times of the other; several passes with counters are put "
        "together",
    )
    command.add_argument("--hardware", help="the device (the one that the file names)")
    command.add_argument("--report", metavar="FILE", help="write a report, an HTML page")
    command.add_argument(
        "--levels", default="dram", help="of the report's points: dram,l2,l1,shared (dram)"
    )
    command.add_argument("--decimal", help='what parts a fraction, "." or "," (found out)')
    command.add_argument("--most", type=int, default=8, metavar="N", help="kernels to list (8)")


def _add_profile_command(command: argparse.ArgumentParser) -> None:
    command.add_argument("script", nargs="+", help="such as train.py; arguments behind --")
    command.add_argument("--hardware", help="the device, such as A100")
    command.add_argument("--tool", required=True, help="ncu, nsys, torch, rocprof or perf")


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
        accept_noisy=options.accept_noisy,
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
