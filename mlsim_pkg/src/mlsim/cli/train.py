"""The command `mlsim train`: a training run, as text, as JSON, or explained."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli import footprint as cli_footprint
from mlsim.cli.options import add_json, as_json
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError

ABOUT = "the training of a language model: time, memory, cost; and where it runs, its footprint"

# Options with a number, the argument of `Engine.train`, and what it is.
_NUMBERS = (
    ("devices", "devices", "devices that train together (as many as the sizes below make)"),
    ("sequence", "sequence_tokens", "tokens of a sequence (4096, or the model's context)"),
    ("tokens", "tokens", "tokens of the whole run, such as 15.6e12"),
    ("cp", "context_parallel", "devices that share each sequence (1)"),
    ("ep", "expert_parallel", "groups over which experts are spread (1)"),
    ("reserve", "reserve", "share of memory kept for everything else (0.1)"),
)
# What `--search` chooses, so that it can't be given beside it.
_CHOSEN_NUMBERS = (
    ("micro-batch", "micro_batch", "sequences that a device takes through at one time (1)"),
    ("tp", "tensor_parallel", "devices that share each matrix (1)"),
    ("pp", "pipeline_parallel", "stages that share the layers (1)"),
    ("dp", "data_parallel", "copies that share the batch (what the devices leave)"),
    ("interleaved", "interleaved", "parts of the model on each stage (1)"),
)
_CHOSEN_WORDS = (
    ("shard", "shard", "what copies divide: none, zero1, zero2 or zero3 (none)"),
    ("recompute", "recompute", "none, selective or full (selective)"),
)
_WORDS = (
    ("precision", "precision", "bf16, fp16, fp8, ... (bf16)"),
    ("gradients", "gradients", "their format (as the weights)"),
    ("attention", "attention", "flash or standard (flash)"),
    ("collective", "collective", "auto, ring, hierarchical or tree (auto)"),
    ("price", "price", "of one device, such as '2 USD/h'"),
    ("mttf", "mean_time_to_failure", "mean time to failure of one device, such as '50000 h'"),
    ("checkpoint-bandwidth", "checkpoint_bandwidth", "of all together, such as '100 GB/s'"),
    ("restart-time", "restart_time", "until computing goes on, such as '10 min'"),
    ("estimate", "estimate", "roofline or calibrated (roofline)"),
)
_FLAGS = (
    ("dropout", "dropout", "numbers are dropped at random"),
    ("sequence-parallel", "sequence_parallel", "what lies between matrices is divided too"),
)


def add(commands: Any) -> None:
    """Add `mlsim train` to the commands."""
    command = commands.add_parser("train", help=ABOUT, description=ABOUT)
    command.add_argument("model", help="name, .toml file, or a config.json or its folder")
    command.add_argument("hardware", help="device, system or cluster: name or .toml file")
    command.add_argument(
        "--global-batch", required=True, metavar="N", help="sequences of a step, needed"
    )
    for name, _, what in (*_NUMBERS, *_CHOSEN_NUMBERS):
        command.add_argument(f"--{name}", metavar="N", help=what)
    for name, _, what in (*_WORDS, *_CHOSEN_WORDS):
        command.add_argument(f"--{name}", metavar="TEXT", help=what)
    for name, _, what in _FLAGS:
        command.add_argument(f"--{name}", action="store_true", help=what)
    command.add_argument(
        "--overlap",
        metavar="SHARE",
        help="part of sending that computing hides: 0.5, or exchange=0.5,pipeline=1,gradient=0.9",
    )
    command.add_argument(
        "--search",
        action="store_true",
        help="the fastest layout of the devices that fits, in place of one that is given",
    )
    command.add_argument(
        "--explain",
        metavar="QUANTITY",
        help="how a result came to be, such as step_time or activation_memory",
    )
    add_json(command)
    cli_footprint.add_place(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> str:
    """Predict the run that the options describe, and return what to print.

    Raises
    ------
    MlsimError
        As `Engine.train`; or if an option can't be.
    """
    training = Engine.train(
        model=options.model,
        hardware=options.hardware,
        global_batch=_number(options.global_batch, "global-batch"),
        search=options.search,
        **_given(options),
    )
    if options.explain:
        explanation = training.explain(options.explain)
        return explanation.to_json() if options.json else str(explanation)
    # Where it runs is asked for its footprint.
    place = cli_footprint.place_of(options)
    footprint = Engine.footprint(training, **place) if place else None
    if options.json:
        told = training.to_dict()
        if footprint:
            told["footprint"] = footprint.to_dict()
        return as_json(told)
    return f"{training}\n\n{footprint}" if footprint else str(training)


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `Engine.train` that the options give; it knows the others."""
    found: dict[str, Any] = {}
    for name, argument, _ in (*_NUMBERS, *_CHOSEN_NUMBERS):
        if (text := _option(options, name)) is not None:
            found[argument] = _number(text, name)
    for name, argument, _ in (*_WORDS, *_CHOSEN_WORDS):
        if (text := _option(options, name)) is not None:
            found[argument] = text
    for name, argument, _ in _FLAGS:
        if _option(options, name):
            found[argument] = True
    if options.overlap is not None:
        found["overlap"] = _overlap(options.overlap)
    if options.search:
        _check_search(found)
    return found


def _check_search(found: dict[str, Any]) -> None:
    """Refuse what a search would choose itself."""
    chosen = {argument: name for name, argument, _ in (*_CHOSEN_NUMBERS, *_CHOSEN_WORDS)}
    chosen["sequence_parallel"] = "sequence-parallel"
    both = [f"--{name}" for argument, name in chosen.items() if argument in found]
    if both:
        raise InvalidValueError(
            f"--search chooses {', '.join(both)} itself: leave that out, or leave out --search."
        )


def _option(options: argparse.Namespace, name: str) -> Any:
    return getattr(options, name.replace("-", "_"))


def _number(text: str, option: str) -> int | float:
    """Return the number that an option gives; a whole one, such as 15e12, as such."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        raise InvalidValueError(f"--{option} must be a number, not {text!r}.") from None
    return int(value) if value.is_integer() else value


def _overlap(text: str) -> float | dict[str, float]:
    """Return one share, or one for each name: "gradient=0.5,pipeline=1"."""
    if "=" not in text:
        return _number(text, "overlap")
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = (word.strip() for word in part.partition("="))
        if name in found:
            raise InvalidValueError(f"--overlap says {name} twice: {text!r}.")
        found[name] = _number(share, "overlap")
    return found
