"""The command `mlsim load`: a service to which requests come."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.flags import flags_of, in_flags
from mlsim.cli.options import (
    LAYOUT,
    SOFTWARE,
    add_command,
    add_flags,
    add_layout,
    argument,
    as_json,
    given,
)
from mlsim.cli.pools import add_spread, spread_of
from mlsim.cli.switches import add_switches, switches
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError

_FLAGS = (
    ("rate", "R", "requests per second that arrive at random"),
    ("users", "N", "users who each wait for an answer before they ask again"),
    ("burst", "N", "requests that are all there at the start"),
    ("trace", "FILE", "CSV of requests: arrived, prompt_tokens, output_tokens"),
    ("prompt", "N", 'tokens of each prompt: 512, "lognormal 512 0.8" (512)'),
    ("output", "N", "new tokens of each: a number or a distribution (128)"),
    ("requests", "N", "how many to follow (2000; of users ten for each)"),
    ("burstiness", "X", "1 at random, 0 evenly spaced, more in bursts (1)"),
    ("think-time", "S", "seconds between a user's answer and next request, on average (0)"),
    ("scheduler", "NAME", "vllm, sglang or tensorrt_llm (vllm)"),
    ("running-limit", "N", "most requests that run at one time (the engine's own on the device)"),
    ("tokens-per-step", "N", "most tokens that a step works on (the engine's own on the device)"),
    ("seed", "N", "of the random lengths and arrivals (0)"),
    ("precision", "FORMAT", "number format: bf16, fp8, w4a16, ... (16 bits)"),
    ("weights", "FORMAT", "format of the weights alone"),
    ("activations", "FORMAT", "format of the activations alone"),
    ("kv-cache", "FORMAT", "format of the KV cache alone"),
    ("estimate", "NAME", "roofline, bound or calibrated (roofline)"),
    ("software", "NAME", f"{SOFTWARE}; of the scheduler if none is named"),
)
_WHOLE = ("users", "burst", "requests", "running_limit", "tokens_per_step", "seed", "prefix_blocks")
_NUMBERS = ("rate", "burstiness", "think_time")


def add(commands: Any) -> None:
    """Add `mlsim load` to the commands."""
    text = "requests that keep coming: first token, tokens per second, queue, saturation"
    command = add_command(commands, "load", _load, text)
    add_flags(command, _FLAGS)
    command.add_argument(
        "--constant",
        action="store_true",
        default=None,
        help="users whose pauses and lengths are all alike, as in a benchmark (spread)",
    )
    add_layout(command, tensor=1, data=True)
    add_switches(command)
    command.add_argument(
        "--prefix-blocks", metavar="N", help="blocks of a cache with --prefix-share trace (all)"
    )
    add_spread(command)
    results = "show how a closed form is computed: steady_first_token, saturation_rate, ..."
    command.add_argument("--explain", metavar="QUANTITY", help=results)


def _load(options: argparse.Namespace) -> str:
    flags = flags_of(options.parser)
    names = (argument(name) for name in (*(flag for flag, *_ in _FLAGS), *dict(LAYOUT), "reserve"))
    asked = given(options, (*names, "prefix_blocks", "constant"))
    for name in asked.keys() & {*_WHOLE, *_NUMBERS}:
        asked[name] = _number(asked[name], flags[name], int if name in _WHOLE else float)
    loaded = Engine.load(
        model=options.model,
        hardware=options.hardware,
        **asked,
        **switches(options),
        **spread_of(options),
    )
    if options.explain:
        steady = loaded.steady
        told = steady is not None and options.explain in (*steady.names, *steady.left_out)
        answer = steady if told else None
        explanation = (answer or loaded).explain(options.explain)
        return str(explanation.to_json() if options.json else explanation)
    return (
        as_json(loaded.to_dict())
        if options.json
        else in_flags(
            str(loaded), {name: flags[name] for name in ("running_limit", "tokens_per_step")}
        )
    )


def _number(text: str, flag: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise InvalidValueError(f"{flag} must be {what}, not {text!r}.") from None
