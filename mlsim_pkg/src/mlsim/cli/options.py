"""Options that several commands have, and how their values are read."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from mlsim.errors import InvalidValueError

# Exit statuses; 2 is argparse's own, after wrong usage.
REFUSED, DOES_NOT_FIT = 1, 3

# The sizes of a layout: the flag, a short one, and what it is.
LAYOUT = (
    ("tensor-parallel", "tp", "devices that share each matrix"),
    ("pipeline-parallel", "pp", "stages that share the layers"),
    ("data-parallel", "dp", "copies of the model that share the batch"),
    ("expert-parallel", "ep", "groups that share the experts"),
)


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], str],
    text: str,
    *,
    model: str = "name, .toml file, or a config.json or its folder",
    hardware: str = "device, system or cluster: name or .toml file",
) -> argparse.ArgumentParser:
    """Add a command that takes a model and hardware."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    command.add_argument("model", help=model)
    command.add_argument("hardware", help=hardware)
    add_json(command)
    command.set_defaults(run=run)
    return command


def add_layout(command: argparse.ArgumentParser, *, tensor: int | None, data: bool) -> None:
    """Add the sizes of a layout, and the memory that is reserved."""
    for name, short, what in LAYOUT:
        if name == "data-parallel" and not data:
            continue
        usual = tensor if name == "tensor-parallel" else 1
        shown = "all of a system" if usual is None else usual
        command.add_argument(
            f"--{name}",
            f"--{short}",
            type=int,
            default=usual,
            metavar="N",
            help=f"{what} ({shown})",
        )
    command.add_argument(
        "--reserve",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of memory to keep free for everything else (0.1)",
    )


def add_ignore_memory(command: argparse.ArgumentParser) -> None:
    """Add `--ignore-memory`."""
    command.add_argument(
        "--ignore-memory",
        dest="check_memory",
        action="store_false",
        help="give the times of what does not fit in memory, as if it did",
    )


def note_fit(options: argparse.Namespace, feasible: Any) -> None:
    """Let the command exit with its own status if nothing that was asked for fits."""
    if getattr(options, "check_memory", True) and not getattr(feasible, "any", lambda: feasible)():
        options.code = DOES_NOT_FIT


def add_json(command: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    command.add_argument("--json", action="store_true", help="print JSON, values with units")


def number(text: str, option: str) -> Any:
    """Turn one entry of an option into a number; what is none is refused later.

    Raises
    ------
    InvalidValueError
        If it is no number.
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(f"{option} must be whole numbers, not {text!r}.") from None


def numbers(text: str, option: str) -> list[Any]:
    """Turn an option with commas into numbers."""
    return [number(part, option) for part in text.split(",")]


def as_json(data: Any) -> str:
    """Return plain data as JSON text."""
    return json.dumps(data, indent=2, ensure_ascii=False)
