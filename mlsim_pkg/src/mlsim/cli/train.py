"""The command `mlsim train`: a training run, as text, as JSON, or explained."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli import footprint as cli_footprint
from mlsim.cli.options import (
    add_flags,
    add_ignore_memory,
    add_json,
    argument,
    as_json,
    given,
    note_fit,
)
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError
from mlsim.workloads import LoRA, QLoRA

ABOUT = "train a model: time, memory and cost; and, given a place, its footprint"

# Flags with a number.
_NUMBERS = (
    ("devices", "N", "devices that train together (as many as the sizes below make)"),
    ("sequence", "N", "tokens of a sequence (4096, or the model's context)"),
    ("tokens", "N", "tokens of the whole run, such as 15.6e12"),
    ("samples", "N", "samples of the whole run, of a network such as ResNet50"),
    ("context-parallel", "N", "devices that share each sequence (1)"),
    ("expert-parallel", "N", "groups that share the experts (1)"),
    ("reserve", "N", "share of memory to keep free for everything else (0.1)"),
)
# Those of adapters, which are one argument of `Engine.train`.
_ADAPTERS = (
    ("lora-rank", "N", "fine-tune with adapters of this rank; all else is frozen"),
    ("lora-targets", "NAMES", "matrices with adapters, such as q_proj,v_proj (all-linear)"),
)
# What `--search` chooses, so that it can't be given beside it.
_CHOSEN_NUMBERS = (
    (
        "micro-batch",
        "N",
        "sequences that a device processes at one time (1; of a network, all its samples)",
    ),
    ("tensor-parallel", "N", "devices that share each matrix (1)"),
    ("pipeline-parallel", "N", "stages that share the layers (1)"),
    ("data-parallel", "N", "copies of the model (what --devices leaves)"),
    ("interleaved", "N", "parts of the model on each stage (1)"),
)
_CHOSEN_WORDS = (
    ("shard", "TEXT", "what the copies shard: none, zero1, zero2 or zero3 (none)"),
    ("recompute", "TEXT", "none, selective or full (selective)"),
)
_WORDS = (
    ("precision", "TEXT", "bf16, fp16, fp8, ... (bf16)"),
    ("gradients", "TEXT", "their format (as the weights)"),
    ("optimizer", "TEXT", "of a network: sgd, momentum or adam (momentum)"),
    ("attention", "TEXT", "flash or standard (flash)"),
    ("collective", "TEXT", "auto, ring, hierarchical or tree (auto)"),
    ("price", "TEXT", "of one device, such as '2 USD/h'"),
    ("mean-time-to-failure", "TEXT", "of one device, such as '50000 h'"),
    ("checkpoint-bandwidth", "TEXT", "of all devices, such as '100 GB/s'"),
    ("restart-time", "TEXT", "until training goes on, such as '10 min'"),
    ("estimate", "TEXT", "roofline, calibrated or bound (roofline)"),
    ("software", "TEXT", "class of program of a calibrated estimate (framework)"),
)
# What is either given or not.
_FLAGS = {
    "dropout": "train with dropout",
    "sequence-parallel": "also shard what lies between the matrices",
}


def add(commands: Any) -> None:
    """Add `mlsim train` to the commands."""
    command = commands.add_parser("train", help=ABOUT, description=ABOUT)
    command.add_argument("model", help="name, .toml file, or a config.json or its folder")
    command.add_argument("hardware", help="device, system or cluster: name or .toml file")
    command.add_argument(
        "--global-batch",
        required=True,
        metavar="N",
        help="sequences, or samples of a network, in a step; required",
    )
    add_flags(command, (*_NUMBERS, *_CHOSEN_NUMBERS, *_WORDS, *_CHOSEN_WORDS, *_ADAPTERS))
    command.add_argument(
        "--qlora", action="store_true", help="keep the frozen model in 4 bits (NF4)"
    )
    for name, what in _FLAGS.items():
        command.add_argument(f"--{name}", action="store_true", help=what)
    command.add_argument(
        "--overlap",
        metavar="SHARE",
        help="share of communication that overlaps with computing: 0.5, or "
        "exchange=0.5,pipeline=1,gradient=0.9",
    )
    command.add_argument(
        "--search",
        action="store_true",
        help="find the fastest layout that fits, instead of giving one",
    )
    command.add_argument(
        "--explain",
        metavar="QUANTITY",
        help="show how a result is computed: step_time, activation_memory, ...",
    )
    add_ignore_memory(command)
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
        check_memory=options.check_memory,
        **_given(options),
    )
    note_fit(options, training.feasible)
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
    flags = (*_NUMBERS, *_CHOSEN_NUMBERS, *_WORDS, *_CHOSEN_WORDS)
    found = given(options, (argument(name) for name, *_ in flags))
    for name, *_ in (*_NUMBERS, *_CHOSEN_NUMBERS):
        if argument(name) in found:
            found[argument(name)] = _number(found[argument(name)], name)
    for name in map(argument, _FLAGS):
        if getattr(options, name):
            found[name] = True
    adapters = _adapters(options)
    if adapters:
        found["adapters"] = adapters
    if options.overlap is not None:
        found["overlap"] = _overlap(options.overlap)
    if options.search:
        _check_search(found)
    return found


def _adapters(options: argparse.Namespace) -> LoRA | None:
    """Return the adapters that the options describe; None where they describe none."""
    rank, targets = options.lora_rank, options.lora_targets
    if rank is None:
        if options.qlora or targets is not None:
            flag = "--qlora" if options.qlora else "--lora-targets"
            raise InvalidValueError(f"{flag} needs the rank of the adapters: --lora-rank 16.")
        return None
    kind = QLoRA if options.qlora else LoRA
    number: Any = _number(rank, "lora-rank")
    if targets is None:
        return kind(rank=number)
    return kind(rank=number, targets=tuple(each.strip() for each in targets.split(",")))


def _check_search(found: dict[str, Any]) -> None:
    """Refuse what a search would choose itself."""
    chosen = (*(name for name, *_ in (*_CHOSEN_NUMBERS, *_CHOSEN_WORDS)), "sequence-parallel")
    both = [f"--{name}" for name in chosen if argument(name) in found]
    if both:
        raise InvalidValueError(
            f"--search chooses {', '.join(both)} itself: leave that out, or leave out --search."
        )


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
