"""The command `mlsim gemm`: one linear layer, or matrix product, in a number format."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.options import add_ignore_memory, add_json, as_json, given, note_fit, numbers
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError
from mlsim.units import text

# Arguments of one product, and of many in all formats.
_COMPARED = ("training", "fused", "estimate", "constants", "backend")


def add(commands: Any) -> None:
    """Add `mlsim gemm` to the commands."""
    what = "one matrix product or linear layer, and whether low precision pays"
    command: argparse.ArgumentParser = commands.add_parser("gemm", help=what, description=what)
    for side, what in (("M", "rows: tokens"), ("N", "outputs"), ("K", "inputs")):
        command.add_argument(side, help=f"{what}; several with commas")
    command.add_argument("hardware", help="device: name or .toml file")
    command.add_argument("--precision", help="format of both operands (bf16)")
    command.add_argument("--recipe", help="in its place, a recipe: its name or .toml file")
    command.add_argument("--training", action="store_true", help="both gradients too")
    command.add_argument("--fused", action="store_true", help="passes fused where they can be")
    command.add_argument("--batch", default="1", metavar="N", help="products of one shape (1)")
    command.add_argument("--estimate", default="roofline", help="roofline, bound or calibrated")
    command.add_argument(
        "--constants", default="", metavar="NAME", help="named ones, such as torchao-0.18.0"
    )
    command.add_argument("--backend", default="fastest", help="of measured kernels (fastest)")
    command.add_argument(
        "--formats", action="store_true", help="compare all formats that the device can run"
    )
    command.add_argument("--explain", metavar="QUANTITY", help="how a number is computed")
    command.add_argument(
        "--find",
        metavar="SIDE",
        help="from which M, N, K or size on the format is faster than 16 bits",
    )
    add_ignore_memory(command)
    add_json(command)
    command.set_defaults(run=_gemm)


def _gemm(options: argparse.Namespace) -> str:
    sides = [_sides(getattr(options, name), name) for name in ("M", "N", "K")]
    if options.formats:
        return _formats(options, sides)
    gemm = Engine.gemm(
        *sides,
        hardware=options.hardware,
        batch=_sides(options.batch, "--batch"),
        check_memory=options.check_memory,
        **given(options, ("precision", "recipe", *_COMPARED)),
    )
    if options.explain:
        explanation = gemm.explain(options.explain)
        return explanation.to_json() if options.json else str(explanation)
    if options.find:
        size = gemm.find(options.find)
        return as_json({options.find: size}) if options.json else f"{options.find} = {size:,}"
    note_fit(options, gemm.feasible)
    return as_json(gemm.to_dict()) if options.json else str(gemm)


def _formats(options: argparse.Namespace, sides: list[Any]) -> str:
    if options.precision or options.recipe:
        raise InvalidValueError("--formats compares all: leave out --precision and --recipe.")
    compared = Engine.compare_formats(
        *sides,
        hardware=options.hardware,
        **given(options, _COMPARED),
    )
    rows = compared.table().to_dict(orient="records")
    if options.json:
        return as_json({"formats": rows, "left_out": compared.left_out})
    lines = [f"  {'format':<24}{'time':>10}{'passes':>10}{'speed-up':>10}"]
    for row in rows:
        times = (text(row[name], "s") for name in ("latency", "casts_time"))
        cells = "".join(f"{each:>10}" for each in (*times, f"{row['format_speedup']:.2f}"))
        lines.append(f"  {row['format']:<24}{cells}")
    return "\n".join(lines)


def _sides(given: str, name: str) -> Any:
    entries = numbers(given, name)
    return entries if len(entries) > 1 else entries[0]
