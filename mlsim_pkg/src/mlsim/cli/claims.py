"""The command `mlsim check-claim`: whether a claimed speed can be true."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.flags import flags_of, in_flags
from mlsim.cli.options import add_command, add_flags, argument, as_json, given, number
from mlsim.engine import Engine

# The exit status of a claim that can't be true.
IMPOSSIBLE = 4

_FIGURES = (
    ("tokens-per-second", "N", "tokens per second, all users together"),
    ("tokens-per-second-per-user", "N", "tokens per second for each user"),
    ("time-per-output-token", "TIME", 'such as "12 ms"'),
    ("time-to-first-token", "TIME", 'such as "0.3 s"'),
    ("samples-per-second", "N", "images, or texts that an encoder reads"),
    ("mfu", "SHARE", 'model FLOPs utilization of training, such as 0.45 or "45%%"'),
)
_ASKED = (
    ("devices", "N", "how many work together (one, or all of a system)"),
    ("batch", "N", "sequences that run at the same time (the best for the claim)"),
    ("prompt", "N", "tokens in each prompt (the shortest)"),
    ("output", "N", "new tokens for each (the shortest)"),
    ("precision", "FORMAT", "bf16, fp8, w4a16, ..."),
    ("weights", "FORMAT", "the format of these alone"),
    ("activations", "FORMAT", "the format of these alone"),
    ("kv-cache", "FORMAT", "the format of these alone"),
)
_NUMBERS = (
    *("devices", "batch_size", "prompt_tokens", "output_tokens", "tolerance"),
    *("tokens_per_second", "tokens_per_second_per_user", "samples_per_second"),
)


def add(commands: Any) -> None:
    """Add `mlsim check-claim` to the commands."""
    text = "whether a claimed speed can be true, and what would make it true"
    command = add_command(commands, "check-claim", _check, text)
    claimed = command.add_argument_group("what is claimed, one figure or more")
    add_flags(claimed, _FIGURES)
    add_flags(command, _ASKED)
    command.add_argument(
        "--tolerance",
        metavar="SHARE",
        default="0.25",
        help="by how much a plausible claim may pass the estimate (0.25)",
    )
    command.add_argument(
        "--explain", action="store_true", help="show how the deciding limit is computed"
    )


def _check(options: argparse.Namespace) -> str:
    asked = given(options, (argument(flag) for flag, *_ in (*_FIGURES, *_ASKED)))
    asked["tolerance"] = options.tolerance
    flags = flags_of(options.parser)
    for name, text in asked.items():
        if name in _NUMBERS or (name == "mfu" and not text.endswith("%")):
            asked[name] = number(text, flags[name])
    checked = Engine.check_claim(model=options.model, hardware=options.hardware, **asked)
    if checked.impossible:
        options.code = IMPOSSIBLE
    if options.json:
        return as_json(checked.to_dict())
    shown = in_flags(str(checked), {})
    return f"{shown}\n\n{checked.explain()}" if options.explain else shown
