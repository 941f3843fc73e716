"""The command `mlsim`: solve, sweep, zoo and explain, as text or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import mlsim
from mlsim.errors import InvalidValueError, MlsimError

EPILOG = """examples:
  mlsim solve ResNet50 A100 --batch 1,32,256
  mlsim sweep ResNet50 V100,A100,H100 --batch 1,256 --precision fp16,int8 --json
  mlsim zoo A100
  mlsim explain ResNet50 A100 --quantity memory_required
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code (0, or 1 after an error)."""
    options = _parser().parse_args(arguments)
    try:
        print(options.run(options))
    except MlsimError as error:
        print(f"mlsim: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mlsim",
        description="Predict what a model does on a device, before running it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mlsim {mlsim.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, run, text in (
        ("solve", _solve, "one model on one device"),
        ("sweep", _sweep, "every combination, as a table"),
        ("explain", _explain, "how a number came to be"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        several = " (several, with commas)" if name == "sweep" else ""
        command.add_argument("model", help=f"name or .toml file{several}")
        command.add_argument("hardware", help=f"name or .toml file{several}")
        batches = "" if name == "explain" else ", several with commas"
        command.add_argument("--batch", default="1", help=f"samples per step{batches} (1)")
        command.add_argument("--precision", default="fp16", help=f"number format{several} (fp16)")
        command.add_argument("--estimate", default="roofline", help="roofline or bound")
        _add_json(command)
        command.set_defaults(run=run)
        if name == "explain":
            command.add_argument("--quantity", default="latency", help="what to explain (latency)")
    command = commands.add_parser("zoo", help="models and devices, each figure with its source")
    command.add_argument("name", nargs="?", help="a model or a device; all of them if left out")
    _add_json(command)
    command.set_defaults(run=_zoo)
    return parser


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON, values with units")


def _number(text: str) -> Any:
    """Turn one entry of --batch into a number; what is none is refused later."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(f"--batch must be whole numbers, not {text!r}.") from None


def _batches(text: str) -> Any:
    entries = [_number(part) for part in text.split(",")]
    return entries if len(entries) > 1 else entries[0]


def _profile(options: argparse.Namespace) -> mlsim.Profile:
    return mlsim.Engine.solve(
        model=options.model,
        hardware=options.hardware,
        batch_size=_batches(options.batch),
        precision=options.precision,
        estimate=options.estimate,
    )


def _solve(options: argparse.Namespace) -> str:
    profile = _profile(options)
    return _json(profile.to_dict()) if options.json else str(profile)


def _explain(options: argparse.Namespace) -> str:
    explanation = _profile(options).explain(options.quantity)
    return explanation.to_json() if options.json else str(explanation)


def _sweep(options: argparse.Namespace) -> str:
    table = mlsim.Engine.sweep(
        model=options.model.split(","),
        hardware=options.hardware.split(","),
        batch_size=_batches(options.batch),
        precision=options.precision.split(","),
        estimate=options.estimate,
    )
    from mlsim.solvers.report import sweep_rows, sweep_text

    return _json(sweep_rows(table)) if options.json else sweep_text(table)


def _zoo(options: argparse.Namespace) -> str:
    from mlsim import catalogue

    if options.name is None:
        return _json(catalogue.all_as_dict()) if options.json else catalogue.all_as_text()
    record = catalogue.find(options.name)
    return _json(catalogue.as_dict(record)) if options.json else catalogue.as_text(record)


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
