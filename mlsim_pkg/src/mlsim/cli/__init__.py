"""The command `mlsim`: a module for each group of its subcommands."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, as `mlsim --help` lists them."""
    from mlsim.cli import command

    return command.main(arguments)
