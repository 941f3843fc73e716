"""The command `mlsim`: solve, serve, train, footprint, zoo and more, as text or JSON."""

from __future__ import annotations

import argparse
import sys
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from mlsim import __version__
from mlsim.errors import DoesNotFitError, MlsimError, nearest


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, as `mlsim --help` lists them."""
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    options.code = 0
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warn
        try:
            print(options.module.run(options))
        except MlsimError as error:
            from mlsim.cli.flags import DOES_NOT_FIT, REFUSED, in_flags

            print(f"mlsim: {in_flags(str(error), options.rows)}", file=sys.stderr)
            return DOES_NOT_FIT if isinstance(error, DoesNotFitError) else REFUSED
        except BrokenPipeError:
            return 1
    return int(options.code)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"mlsim: {message}", file=sys.stderr)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the arguments; refuse a command or a flag that isn't there with the nearest one."""
    file = Path(__file__).parents[1] / "data" / "commands.toml"
    known = tomllib.loads(file.read_text(encoding="utf-8"))
    name, epilog = arguments[0] if arguments else "", known.pop("epilog")
    if name not in known:
        parser = _overview(known, epilog)
        if name and not name.startswith("-"):
            parser.error(f"there is no command {name!r}.{nearest(name, known)}")
        parser.parse_args(arguments)  # prints the help or the version, or says what is missing
    about = known[name]
    module = import_module(f"mlsim.cli.{about['module']}")
    command = argparse.ArgumentParser(
        prog=f"mlsim {name}",
        description=about.get("description", about["about"]),
        usage=about.get("usage"),
    )
    rows = module.rows_of(name) if hasattr(module, "rows_of") else ()
    if rows:
        from mlsim.cli.flags import add_flags

        add_flags(command, rows, name.replace("-", "_"), about.get("positional", "").split())
    for flag, how in about.get("flags", {}).items():
        kind = {"type": {"int": int, "float": float}[how["type"]]} if "type" in how else {}
        command.add_argument(flag, **how | kind)
    if name != "profile-command":
        command.add_argument("--json", action="store_true", help="print JSON, values with units")
    options, rest = command.parse_known_args(arguments[1:])
    if rest:
        flags = [flag for each in command._actions for flag in each.option_strings]
        wrong = next((each for each in rest if each.startswith("-")), rest[0])
        hint = nearest(wrong.partition("=")[0], flags) or f" See {command.prog} --help."
        words = f"unrecognized arguments: {' '.join(rest)}.{hint}"
        command.exit(2, f"{command.prog}: error: {words}\n")
    options.name, options.module, options.rows = name, module, rows
    return options


def _overview(known: Mapping[str, Any], epilog: str) -> argparse.ArgumentParser:
    """Return what `mlsim --help` prints: the commands, each in a line."""
    parser = argparse.ArgumentParser(
        prog="mlsim",
        description="Predict what a model does on a device, before running it.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mlsim {__version__}")
    listed = parser.add_subparsers(required=True, metavar="command")
    for name, about in known.items():
        listed.add_parser(name, help=about["about"])
    return parser
