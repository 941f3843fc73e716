"""The commands `mlsim measure` and `mlsim time`: one's own machine, and one's own programs."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mlsim.cli.options import add_json, as_json


def add(commands: Any) -> None:
    """Add `mlsim measure` and `mlsim time` to the commands."""
    text = "the ceilings of this machine: bandwidths by level, products, starts, disk (a minute)"
    command = commands.add_parser(
        "measure",
        help=text,
        description=f"Measure {text}. The result is saved as the device `local`, so that every "
        "other command takes it. What is too noisy is left out and said.",
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
        help="what goes through memory: c, numba, numpy, or the first that there is (auto)",
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
    add_json(command)
    command.set_defaults(run=run)
    text = "wall, user, system and waiting time of a program"
    timer = commands.add_parser(
        "time", help=text, description=text, usage="mlsim time [-h] [OPTION ...] -- COMMAND ..."
    )
    timer.add_argument("--repeat", type=int, default=1, metavar="N", help="runs that count (1)")
    timer.add_argument(
        "--warm-up", type=int, default=0, metavar="N", help="runs before, which don't count (0)"
    )
    timer.add_argument("--quiet", action="store_true", help="throw away what the program prints")
    timer.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="what to run")
    add_json(timer)
    timer.set_defaults(run=run_time)


def run(options: argparse.Namespace) -> str:
    """Return what was measured as text or JSON, and save it.

    Raises
    ------
    MlsimError
        As `mlsim.profiling.measure`; also where what was found is no roof, after showing it.
    """
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


def run_time(options: argparse.Namespace) -> str:
    """Return the times of a program as text or JSON.

    Raises
    ------
    MlsimError
        As `mlsim.profiling.time_command`.
    """
    from mlsim.profiling.stopwatch import time_command

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    found = time_command(
        command, repeat=options.repeat, warm_up=options.warm_up, quiet=options.quiet
    )
    return as_json(found.to_dict()) if options.json else str(found)
