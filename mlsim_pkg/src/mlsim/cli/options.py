"""Options that several commands have, and how their values are read."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from mlsim.errors import InvalidValueError


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], str],
    text: str,
    *,
    model: str = "name, .toml file, or a config.json or its folder",
    hardware: str = "device or system: name or .toml file",
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
    most = "all of a system" if tensor is None else "1"
    parts = [("tp", tensor, f"devices that share each matrix ({most})")]
    parts += [("pp", 1, "stages that share the layers (1)")]
    parts += [("dp", 1, "copies that share the batch (1)")] if data else []
    parts += [("ep", 1, "groups over which experts are spread (1)")]
    for name, default, what in parts:
        command.add_argument(f"--{name}", type=int, default=default, metavar="N", help=what)
    command.add_argument(
        "--reserve",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of memory kept for everything else (0.1)",
    )


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
        raise InvalidValueError(f"--{option} must be whole numbers, not {text!r}.") from None


def numbers(text: str, option: str) -> list[Any]:
    """Turn an option with commas into numbers."""
    return [number(part, option) for part in text.split(",")]


def as_json(data: Any) -> str:
    """Return plain data as JSON text."""
    return json.dumps(data, indent=2, ensure_ascii=False)
