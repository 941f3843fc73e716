"""Flags of what a service may switch on: prefixes, speculation, offload, adapters."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.options import add_flags, number
from mlsim.errors import InvalidValueError

_LINK = "host-link-bandwidth"
_FLAGS = (
    ("prefix-share", "SHARE", "share of each prompt's tokens that is cached (0)"),
    ("prefix-count", "N", "different prefixes, each cached once (each sequence its own)"),
    ("draft", "MODEL", "model that drafts tokens for speculative decoding"),
    ("draft-cost", "SHARE", "in place of it: time of a draft's step over the model's"),
    ("draft-tokens", "N", "tokens that are drafted before each check (4)"),
    ("acceptance", "SHARE", "chance that a drafted token is accepted"),
    ("offload-cache", "SHARE", "share of the KV cache in the host's memory (0)"),
    ("offload-weights", "SHARE", "share of the weights in the host's memory (0)"),
    (_LINK, "RATE", 'of the link to the host, one way: "64 GB/s"'),
    ("adapter-rank", "N", "rank of LoRA adapters that are served beside the model"),
    ("adapter-count", "N", "different adapters (1)"),
    ("adapter-targets", "NAMES", "attention, all-linear, or q_proj,v_proj,... (all-linear)"),
)
# Tokens that are drafted where nobody says how many.
_DRAFTED = 4


def add_switches(command: argparse.ArgumentParser, *, link: bool = True) -> None:
    """Add the flags to a command, that of the link's rate where there is one device."""
    group = command.add_argument_group("switches of the engine")
    add_flags(group, (each for each in _FLAGS if link or each[0] != _LINK))


def switches(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `Engine.serve` and `Engine.load` for what is switched on.

    Raises
    ------
    MlsimError
        If a number is none, or a flag misses the one that it belongs to.
    """
    flags = {each: f"--{each.replace('_', '-')}" for each in vars(options)}

    def of(name: str, usual: Any = None) -> Any:
        text = getattr(options, name)
        return usual if text is None else number(text, flags[name])

    found: dict[str, Any] = {
        "prefix_count": of("prefix_count"),
        "adapter_count": of("adapter_count"),
        "host_link_bandwidth": getattr(options, "host_link_bandwidth", None),
        "speculation": _speculation(options, of),
        "offload": _offload(of),
        "adapters": _adapters(options, of),
    }
    share = options.prefix_share
    found["prefix_share"] = share if share == "trace" else of("prefix_share")
    return {name: value for name, value in found.items() if value is not None}


def _speculation(options: argparse.Namespace, of: Any) -> Any:
    given = [options.draft, options.draft_cost, options.draft_tokens, options.acceptance]
    if not any(each is not None for each in given):
        return None
    if options.acceptance is None:
        raise InvalidValueError(
            "speculation needs --acceptance, the chance that a drafted token is accepted: it "
            "belongs to the two models and the text, and has to be measured."
        )
    from mlsim.workloads.switches import Speculation

    return Speculation(
        draft=options.draft,
        cost=of("draft_cost"),
        tokens=of("draft_tokens", _DRAFTED),
        acceptance=of("acceptance"),
    )


def _offload(of: Any) -> Any:
    cache, weights = of("offload_cache"), of("offload_weights")
    if cache is None and weights is None:
        return None
    from mlsim.workloads.switches import Offload

    return Offload(cache=cache or 0.0, weights=weights or 0.0)


def _adapters(options: argparse.Namespace, of: Any) -> Any:
    rank, targets = of("adapter_rank"), options.adapter_targets
    if rank is None:
        if targets is not None:
            raise InvalidValueError("--adapter-targets needs --adapter-rank.")
        return None
    from mlsim.workloads.adapters import LoRA

    return LoRA(rank=rank) if targets is None else LoRA(rank=rank, targets=_names(targets))


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(","))
