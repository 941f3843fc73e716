"""The command `mlsim plan`: which machines serve so many requests in time."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.options import add_json, as_json, number
from mlsim.cli.switches import add_switches, switches
from mlsim.engine import Engine

# As the field abbreviates them.
_SHORT = {"first-token": ("--ttft",), "per-token": ("--tpot",)}


def add(commands: Any) -> None:
    """Add `mlsim plan` to the commands."""
    text = "which machines, how many and how laid out, serve so many requests in time"
    command = commands.add_parser("plan", help=text, description=text)
    command.add_argument("model", help="name, .toml file, or a config.json or its folder")
    for name, argument, kind, default, what in (
        ("rate", "rate", "R", None, "requests per second that must be served"),
        ("first-token", "time_to_first_token", "TIME", "1 s", "most that a user waits (1 s)"),
        ("per-token", "time_per_output_token", "TIME", "50 ms", "for each further token (50 ms)"),
        ("prompt", "prompt_tokens", "N", "512", "tokens of each prompt (512)"),
        ("output", "output_tokens", "N", "128", "new tokens of each request (128)"),
        ("hardware", "hardware", "NAMES", None, "devices or systems, with commas (all rented)"),
        ("precision", "precision", "FORMATS", None, "formats to try, with commas (as released)"),
        ("objective", "objective", "NAME", "cost", "cost, energy or devices (cost)"),
        ("provider", "provider", "NAME", None, "whose prices (the lowest on record)"),
        ("terms", "terms", "WORDS", "on demand", '"on demand" or "spot" (on demand)'),
        ("price", "price", "PRICE", None, 'of one device, such as "2.5 USD/h"'),
        ("running-limit", "running_limit", "N", None, "most requests at once on a copy (256)"),
        (
            "estimate",
            "estimate",
            "NAME",
            "calibrated",
            "roofline, bound or calibrated (the last)",
        ),
        ("scheduler", "scheduler", "NAME", "vllm", "vllm, sglang or tensorrt_llm (vllm)"),
        ("software", "software", "NAME", None, "class of program of a calibrated estimate"),
    ):
        command.add_argument(
            f"--{name}",
            *_SHORT.get(name, ()),
            dest=argument,
            metavar=kind,
            default=default,
            required=name == "rate",
            help=what,
        )
    add_switches(command, link=False)
    add_json(command)
    command.set_defaults(run=_plan)


def _plan(options: argparse.Namespace) -> str:
    counts: dict[str, Any] = {
        name: number(getattr(options, name), flag)
        for name, flag in (
            ("rate", "--rate"),
            ("prompt_tokens", "--prompt"),
            ("output_tokens", "--output"),
            ("running_limit", "--running-limit"),
        )
        if getattr(options, name) is not None
    }
    lists: dict[str, Any] = {
        name: getattr(options, name).split(",") if getattr(options, name) else None
        for name in ("hardware", "precision")
    }
    found = Engine.plan(
        model=options.model,
        time_to_first_token=options.time_to_first_token,
        time_per_output_token=options.time_per_output_token,
        objective=options.objective,
        provider=options.provider,
        terms=options.terms,
        price=options.price,
        estimate=options.estimate,
        scheduler=options.scheduler,
        software=options.software,
        **counts,
        **lists,
        **switches(options),
    )
    return as_json(found.to_dict()) if options.json else str(found)
