"""The command `mlsim check-claim`: whether a claimed speed can be true."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.flags import flags_of, in_flags
from mlsim.cli.options import add_command, as_json, number
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
_NUMBERS = ("tokens_per_second", "tokens_per_second_per_user", "samples_per_second")


def add(commands: Any) -> None:
    """Add `mlsim check-claim` to the commands."""
    text = "whether a claimed speed can be true, and what would make it true"
    command = add_command(commands, "check-claim", _check, text)
    claimed = command.add_argument_group("what is claimed, one figure or more")
    for name, metavar, what in _FIGURES:
        claimed.add_argument(f"--{name}", metavar=metavar, help=what)
    for name, argument, what in (
        ("devices", "devices", "how many work together (one, or all of a system)"),
        ("batch", "batch_size", "sequences that run at the same time (the best for the claim)"),
        ("prompt", "prompt_tokens", "tokens in each prompt (the shortest)"),
        ("output", "output_tokens", "new tokens for each (the shortest)"),
    ):
        command.add_argument(f"--{name}", dest=argument, metavar="N", help=what)
    command.add_argument("--precision", metavar="FORMAT", help="bf16, fp8, w4a16, ...")
    for name in ("weights", "activations", "kv-cache"):
        command.add_argument(f"--{name}", metavar="FORMAT", help="the format of these alone")
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
    asked: dict[str, Any] = {
        name: getattr(options, name)
        for name in (
            *("precision", "weights", "activations", "kv_cache"),
            *("time_per_output_token", "time_to_first_token"),
        )
    }
    flags = flags_of(options.parser)
    counts = ("devices", "batch_size", "prompt_tokens", "output_tokens", "tolerance")
    for name in (*counts, *_NUMBERS):
        given = getattr(options, name)
        asked[name] = None if given is None else number(given, flags[name])
    mfu = options.mfu
    asked["mfu"] = mfu if mfu is None or mfu.endswith("%") else number(mfu, flags["mfu"])
    checked = Engine.check_claim(model=options.model, hardware=options.hardware, **asked)
    if checked.impossible:
        options.code = IMPOSSIBLE
    if options.json:
        return as_json(checked.to_dict())
    shown = in_flags(str(checked), {})
    return f"{shown}\n\n{checked.explain()}" if options.explain else shown
