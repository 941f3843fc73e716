"""The commands `mlsim solve` and `explain`: networks on devices."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mlsim.cli.options import (
    add_command,
    add_flags,
    add_ignore_memory,
    as_json,
    given,
    note_fit,
    numbers,
)
from mlsim.engine import Engine

if TYPE_CHECKING:
    from mlsim.solvers.forward.profile import Profile


def add(commands: Any) -> None:
    """Add `mlsim solve` and `mlsim explain` to the commands."""
    for name, run, text in (
        ("solve", _solve, "run one network on one device"),
        ("explain", _explain, "how a number is computed: equations, values, sources"),
    ):
        command = add_command(
            commands, name, run, text, model="name or .toml file", hardware="name or .toml file"
        )
        batches = "" if name == "explain" else ", several with commas"
        add_flags(command, [("batch", "N", f"samples per step{batches} (1)")], default="1")
        command.add_argument("--precision", help="number format (fp16)")
        command.add_argument("--estimate", default="roofline", help="roofline, bound or calibrated")
        command.add_argument("--software", help="class of program of a calibrated estimate")
        kept = "memory, or on-chip: the last cache keeps those that fit (memory)"
        command.add_argument("--activations", default="memory", metavar="WHERE", help=kept)
        add_ignore_memory(command)
        if name == "explain":
            command.add_argument("--quantity", default="latency", help="what to explain (latency)")


def _solve(options: argparse.Namespace) -> str:
    profile = _profile(options)
    return as_json(profile.to_dict()) if options.json else str(profile)


def _explain(options: argparse.Namespace) -> str:
    explanation = _profile(options).explain(options.quantity)
    return explanation.to_json() if options.json else str(explanation)


def _profile(options: argparse.Namespace) -> Profile:
    profile = Engine.solve(
        model=options.model,
        hardware=options.hardware,
        batch_size=_batches(options.batch_size),
        check_memory=options.check_memory,
        **given(options, ("precision", "estimate", "software", "activations")),
    )
    note_fit(options, profile.feasible)
    return profile


def _batches(text: str) -> Any:
    entries = numbers(text, "--batch")
    return entries if len(entries) > 1 else entries[0]
