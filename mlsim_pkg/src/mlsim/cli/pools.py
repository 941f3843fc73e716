"""Options of services on many devices: shared sequences, uneven experts, a pool for prefill."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.flags import flags_of
from mlsim.cli.options import add_flags, given
from mlsim.errors import InvalidValueError

_SIZES = (
    ("copies", "copies of the model that only read prompts"),
    ("batch-size", "prompts that one of them reads together"),
    ("tensor-parallel", "devices that share each matrix there"),
    ("pipeline-parallel", "stages there"),
    ("data-parallel", "copies that share a batch there"),
    ("expert-parallel", "groups that share the experts there"),
    ("context-parallel", "devices that share each prompt there"),
)


def add_spread(command: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    shared = ("context-parallel", "N", "devices that share each sequence (1)")
    add_flags(command, [shared], type=int, default=1)
    uneven = 'tokens of the busiest device with experts over the mean, or "uniform" (1)'
    add_flags(command, [("expert-imbalance", "X", uneven)], default="1")
    own = "devices of their own for prefill; without a name those of --prefill-copies share"
    add_flags(command, [("prefill-hardware", "NAME", own)])
    sizes = ((f"prefill-{name}", "N", f"{what} (1)") for name, what in _SIZES)
    add_flags(command, sizes, type=int)
    command.add_argument(
        "--prefill-link",
        dest="prefill_link_bandwidth",
        metavar="RATE",
        help='what a device sends to the other pool, such as "400 Gb/s" (the cluster\'s)',
    )
    command.add_argument(
        "--prefill-overlap",
        action="store_true",
        help="send the cache layer by layer during prefill",
    )


def spread_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `Engine.serve` and `Engine.load` that the options give.

    Raises
    ------
    InvalidValueError
        If a number is none.
    """
    names = ("hardware", "link_bandwidth", *(name.replace("-", "_") for name, _ in _SIZES))
    found = given(options, (f"prefill_{name}" for name in names))
    pool = {name.removeprefix("prefill_"): value for name, value in found.items()}
    if options.prefill_overlap:
        pool["overlap"] = True
    found = {
        "context_parallel": options.context_parallel,
        "expert_imbalance": imbalance(options.expert_imbalance, flags_of(options.parser)),
    }
    if pool:
        from mlsim.systems import PrefillPool

        found["prefill"] = PrefillPool(**pool)
    return found


def imbalance(text: str, flags: dict[str, str]) -> float | str:
    """Return what was said of uneven experts: a number, or "uniform".

    Raises
    ------
    InvalidValueError
        If it is neither.
    """
    if text == "uniform":
        return text
    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(
            f'{flags["expert_imbalance"]} must be a number from 1 up, or "uniform", not {text!r}.'
        ) from None
