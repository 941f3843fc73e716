"""The command `mlsim load`: a service to which requests come."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.flags import flags_of, in_flags
from mlsim.cli.options import add_command, add_layout, as_json
from mlsim.cli.pools import add_spread, spread_of
from mlsim.cli.switches import add_switches, switches
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError

_WHOLE = ("users", "burst", "requests", "running_limit", "tokens_per_step", "seed", "prefix_blocks")
_NUMBERS = ("rate", "burstiness", "think_time")
_TEXTS = (
    *("trace", "prompt_tokens", "output_tokens", "scheduler", "precision"),
    *("weights", "activations", "kv_cache", "estimate", "software"),
)
_LAYOUT = ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel", "reserve")


def add(commands: Any) -> None:
    """Add `mlsim load` to the commands."""
    text = "requests that keep coming: first token, tokens per second, queue, saturation"
    command = add_command(commands, "load", _load, text)
    for name, argument, kind, what in (
        ("rate", "rate", "R", "requests per second that arrive at random"),
        ("users", "users", "N", "users who each wait for an answer before they ask again"),
        ("burst", "burst", "N", "requests that are all there at the start"),
        ("trace", "trace", "FILE", "CSV of requests: arrived, prompt_tokens, output_tokens"),
        ("prompt", "prompt_tokens", "N", 'tokens of each prompt: 512, "lognormal 512 0.8" (512)'),
        ("output", "output_tokens", "N", "new tokens of each: a number or a distribution (128)"),
        ("requests", "requests", "N", "how many to follow (2000; of users ten for each)"),
        ("burstiness", "burstiness", "X", "1 at random, 0 evenly spaced, more in bursts (1)"),
        ("think-time", "think_time", "S", "seconds between a user's answer and next request (0)"),
        ("scheduler", "scheduler", "NAME", "vllm, sglang or tensorrt_llm (vllm)"),
        ("running-limit", "running_limit", "N", "most requests that run at one time"),
        ("tokens-per-step", "tokens_per_step", "N", "most tokens that a step works on"),
        ("seed", "seed", "N", "of the random lengths and arrivals (0)"),
        ("precision", "precision", "FORMAT", "number format: bf16, fp8, w4a16, ... (16 bits)"),
        ("weights", "weights", "FORMAT", "format of the weights alone"),
        ("activations", "activations", "FORMAT", "format of the activations alone"),
        ("kv-cache", "kv_cache", "FORMAT", "format of the KV cache alone"),
        ("estimate", "estimate", "NAME", "roofline, bound or calibrated (roofline)"),
        ("software", "software", "NAME", "class of program of a calibrated estimate"),
    ):
        command.add_argument(f"--{name}", dest=argument, metavar=kind, help=what)
    add_layout(command, tensor=1, data=True)
    add_switches(command)
    command.add_argument(
        "--prefix-blocks", metavar="N", help="blocks of a cache with --prefix-share trace (all)"
    )
    add_spread(command)
    command.add_argument(
        "--explain",
        metavar="QUANTITY",
        help="show how a closed form is computed: steady_first_token, saturation_rate, ...",
    )


def _load(options: argparse.Namespace) -> str:
    flags = flags_of(options.parser)
    given: dict[str, Any] = {name: getattr(options, name) for name in (*_TEXTS, *_LAYOUT)}
    for name in _WHOLE:
        given[name] = _number(getattr(options, name), flags[name], int)
    for name in _NUMBERS:
        given[name] = _number(getattr(options, name), flags[name], float)
    given |= switches(options)
    loaded = Engine.load(
        model=options.model,
        hardware=options.hardware,
        **{name: value for name, value in given.items() if value is not None},
        **spread_of(options),
    )
    if options.explain:
        answer = loaded.steady if loaded.steady and options.explain in loaded.steady.names else None
        explanation = (answer or loaded).explain(options.explain)
        return str(explanation.to_json() if options.json else explanation)
    return as_json(loaded.to_dict()) if options.json else in_flags(str(loaded), {})


def _number(text: str | None, flag: str, kind: type) -> Any:
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise InvalidValueError(f"{flag} must be {what}, not {text!r}.") from None
