"""The commands that grading adds to `mlsim-book`; what they need is imported when one runs."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim_book.cli import add_from_table
from mlsim_grading.walls.supervise import Limits

if TYPE_CHECKING:
    from mlsim_book.doctor import Finding

_RUNS = {"assign": "handouts.assign", "grade": "finish.run", "sheet": "decisions.sheet"}


def add_commands(commands: Any) -> None:
    """Add the commands to those of `mlsim-book`."""
    table = Path(__file__).with_name("data") / "commands.toml"
    add_from_table(commands, table, dict.fromkeys(_RUNS, _run))
    commands.choices["grade"].set_defaults(
        cell_seconds=Limits.cell_seconds, seconds=Limits.seconds, memory=Limits.memory // 2**20,
        home=Limits.home // 2**20, processes=Limits.processes,
    )  # fmt: skip


def _run(options: argparse.Namespace) -> int:
    module, name = _RUNS[options.command].split(".")
    return int(getattr(import_module(f"mlsim_grading.{module}"), name)(options))


def findings() -> list[Finding]:
    """Return what `mlsim-book doctor` says of walls."""
    from mlsim_grading.walls.choose import findings

    return findings()
