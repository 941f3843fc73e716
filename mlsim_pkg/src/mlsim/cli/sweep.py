"""The command `mlsim sweep`: every combination of what is given, through any door."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mlsim.cli.options import add_command, add_flags, as_json, given, note_fit, number, numbers
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError

if TYPE_CHECKING:
    import pandas

_SEVERAL = " (several, with commas)"
# Options that are arguments of a door, passed on where they are given.
_ARGUMENTS = ("precision", "estimate", "software", "activations")


def add(commands: Any) -> None:
    """Add `mlsim sweep` to the commands."""
    command = add_command(
        commands,
        "sweep",
        _sweep,
        "ask every combination of models, devices and other arguments, as a table or a folder",
        model=f"name or file of a network or a language model{_SEVERAL}",
        hardware=f"device, system or cluster: name or .toml file{_SEVERAL}",
    )
    add_flags(command, [("batch", "N", f"samples or sequences{_SEVERAL} (1)")])
    command.add_argument("--precision", help=f"number format{_SEVERAL}")
    command.add_argument("--estimate", help="roofline, bound or calibrated (roofline)")
    command.add_argument("--software", help="class of program of a calibrated estimate")
    command.add_argument(
        "--activations",
        metavar="WHERE",
        help="of a network, memory, or on-chip: the last cache keeps those that fit (memory)",
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="any other argument or quantity, such as prompt_tokens=512,2048 or "
        'memory_bandwidth="2 TB/s,3 TB/s"; as often as you like',
    )
    command.add_argument(
        "--door", help="solve, serve, train, load or gemm (the one that the arguments belong to)"
    )
    command.add_argument("--results", help="columns of the answer, with commas")
    command.add_argument(
        "--out", metavar="FOLDER", help="write Parquet files there; asked again, it goes on"
    )
    command.add_argument("--block-rows", type=int, metavar="N", help="rows of each file")


def _sweep(options: argparse.Namespace) -> str:
    found = Engine.sweep(
        model=options.model.split(","),
        hardware=options.hardware.split(","),
        door=options.door,
        results=options.results.split(",") if options.results else None,
        out=options.out,
        progress=bool(options.out),
        block_rows=options.block_rows,
        **_arguments(options),
    )
    if options.out:
        return as_json(found.to_dict()) if options.json else str(found)
    from mlsim.engine.sweep import sweep_rows, sweep_text

    _note_fit(options, found)
    return as_json(sweep_rows(found)) if options.json else sweep_text(found)


def _note_fit(options: argparse.Namespace, table: pandas.DataFrame) -> None:
    """Note if nothing fits in memory; a precision that a device lacks is no lack of memory."""
    from mlsim.engine.sweeps.rows import TOO_LARGE

    note_fit(options, table.feasible.any() or not (table.reason == TOO_LARGE).any())


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that are given, each as a list."""
    found: dict[str, Any] = {
        name: text.split(",") for name, text in given(options, _ARGUMENTS).items()
    }
    if options.batch_size is not None:
        found["batch_size"] = numbers(options.batch_size, "--batch")
    for each in options.set:
        name, equals, values = each.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values:
            raise InvalidValueError(f"--set takes NAME=VALUES, not {each!r}.")
        if name in found:
            raise InvalidValueError(f"{name} is given twice.")
        found[name] = [_value(part.strip()) for part in values.split(",")]
    return found


def _value(text: str) -> Any:
    """Return a number where it is one, True or False, else the text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return number(text, "--set")
    except InvalidValueError:
        return text
