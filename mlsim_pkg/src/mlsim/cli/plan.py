"""The command `mlsim plan`: which machines serve so many requests in time."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.flags import flags_of, in_flags
from mlsim.cli.options import (
    SOFTWARE,
    add_flags,
    add_json,
    argument,
    as_json,
    given,
    number,
    numbers,
)
from mlsim.cli.pools import imbalance
from mlsim.cli.switches import add_switches, switches
from mlsim.engine import Engine

_FLAGS = (
    ("rate", "R", "requests per second that must be served"),
    ("users", "N", "in place of it: users who wait for an answer before they ask again"),
    ("think-time", "S", "seconds between a user's answer and next request, on average (0)"),
    ("first-token", "TIME", "most that a user waits (1 s)"),
    ("per-token", "TIME", "for each further token (50 ms)"),
    ("prompt", "N", "tokens of each prompt (512)"),
    ("output", "N", "new tokens of each request (128)"),
    ("hardware", "NAMES", "devices or systems, with commas (all rented)"),
    ("precision", "FORMATS", "formats to try, with commas (as released)"),
    ("objective", "NAME", "cost, energy or devices (cost)"),
    ("provider", "NAME", "whose prices (the lowest on record)"),
    ("terms", "WORDS", '"on demand" or "spot" (on demand)'),
    ("price", "PRICE", 'of one device, such as "2.5 USD/h"'),
    ("running-limit", "N", "most requests at once on a copy (the engine's own on the device)"),
    ("estimate", "NAME", "roofline, bound or calibrated (the last)"),
    ("scheduler", "NAME", "vllm, sglang or tensorrt_llm (vllm)"),
    ("software", "NAME", f"{SOFTWARE}; of the scheduler if none is named"),
    ("context-parallel", "N", "devices that share each sequence; several with commas (1)"),
    ("pipeline-parallel", "N", "stages that share the layers; several with commas (1)"),
    (
        "expert-imbalance",
        "X",
        'tokens of the busiest device with experts over the mean, or "uniform" (1)',
    ),
    ("pools", "WORD", "one, two (some devices only read prompts) or either (one)"),
    ("prefill-hardware", "NAMES", "what only reads prompts, if that is other hardware"),
)
_LISTS = ("hardware", "precision", "prefill_hardware")


def add(commands: Any) -> None:
    """Add `mlsim plan` to the commands."""
    text = "which machines, how many and how laid out, serve so many requests in time"
    command = commands.add_parser("plan", help=text, description=text)
    command.add_argument("model", help="name, .toml file, or a config.json or its folder")
    for flag in _FLAGS:
        add_flags(command, [flag])
    link = 'what a device sends to the other pool, such as "400 Gb/s": pools of any size'
    command.add_argument("--prefill-link", dest="prefill_link_bandwidth", metavar="RATE", help=link)
    command.add_argument(
        "--prefill-overlap",
        action="store_true",
        default=None,
        help="send the cache layer by layer during prefill",
    )
    add_switches(command, link=False)
    add_json(command)
    command.set_defaults(run=_plan)


def _plan(options: argparse.Namespace) -> str:
    flags = flags_of(options.parser)
    names = (*(argument(flag) for flag, *_ in _FLAGS), "prefill_link_bandwidth", "prefill_overlap")
    asked = given(options, names)
    for name in _LISTS:
        if name in asked:
            asked[name] = asked[name].split(",") if asked[name] else None
    for name in ("rate", "users", "think_time", "prompt_tokens", "output_tokens", "running_limit"):
        if name in asked:
            asked[name] = number(asked[name], flags[name])
    for name in ("context_parallel", "pipeline_parallel"):
        if name in asked:
            asked[name] = numbers(asked[name], flags[name])
    if "expert_imbalance" in asked:
        asked["expert_imbalance"] = imbalance(asked["expert_imbalance"], flags)
    found = Engine.plan(model=options.model, **asked, **switches(options))
    told = {name: flags[name] for name in ("price", "prefill_link_bandwidth")}
    return as_json(found.to_dict()) if options.json else in_flags(str(found), told)
