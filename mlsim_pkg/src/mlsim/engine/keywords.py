"""What doors are asked about a service by keyword, turned into a checked question.

`serve` and `load` hand on all that they are asked, as a copy of `locals()` has it by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.solvers.formats import formats
from mlsim.solvers.serving.checks import configured, requested
from mlsim.solvers.serving.service import Service
from mlsim.workloads.requests import Requests, Speculation
from mlsim.workloads.steps import SIZES, Parallelism
from mlsim.workloads.traces import cached_tokens
from mlsim.zoo import resolve

# In place of a share: what a trace says of each prompt.
TRACE = "trace"
# Keywords of what is switched on, and of what no request changes.
SWITCHES = (
    *("prefix_share", "prefix_count", "speculation", "offload", "adapters", "adapter_count"),
)
_CONFIGURATION = itemgetter(
    *("model", "hardware", "precision", "weights", "activations", "kv_cache", "estimate"),
    *("software", "expert_imbalance", *(f"{size}_parallel" for size in SIZES)),
)


def service_of(keywords: Mapping[str, Any]) -> Service:
    """Return the service that a door is asked about, by keyword; model and hardware are records.

    Raises
    ------
    MlsimError
        As `Engine.serve`.
    """
    of = _CONFIGURATION(keywords)
    try:
        configuration = _configured(*of)
    except TypeError:
        # What can't be hashed is refused in words, or asked of once.
        configuration = _configured.__wrapped__(*of)
    share, *others = switches = [keywords[name] for name in SWITCHES]
    switched = {}
    if type(share) is not float or share or any(each is not None for each in others):
        switched = dict(zip(SWITCHES, switches, strict=True))
        switched["speculation"] = with_draft(switched["speculation"])
    return requested(
        configuration,
        batch_size=keywords["batch_size"],
        prompt_tokens=keywords["prompt_tokens"],
        output_tokens=keywords["output_tokens"],
        block_tokens=keywords["block_tokens"],
        chunk_tokens=keywords["chunk_tokens"],
        reserve=keywords["reserve"],
        given=keywords["given"],
        **switched,
    )


@lru_cache(maxsize=256, typed=True)
def _configured(*asked: Any) -> Service:
    """Return what all requests of a configuration share, checked once."""
    model, hardware, *kinds, estimate, software, imbalance = asked[: -len(SIZES)]
    chosen = formats(
        *kinds,
        device=hardware if isinstance(hardware, Device) else hardware.device,
        released=model.released,
        stated=model.stated_format,
    )
    return configured(
        model=model,
        hardware=hardware,
        formats=chosen,
        parallelism=Parallelism(**dict(zip(SIZES, asked[-len(SIZES) :], strict=True))),
        estimate=estimate,
        software=software,
        expert_imbalance=imbalance,
    )


def with_draft(speculation: Any) -> Any:
    """Return speculation with the record of its draft."""
    if isinstance(speculation, Speculation) and speculation.draft is not None:
        return replace(speculation, draft=resolve.transformer(speculation.draft))
    return speculation


def with_prefixes(
    coming: Requests, share: Any, blocks: int | None, trace: Path | str | None
) -> tuple[Requests, Any]:
    """Return requests that know which part of each prompt is cached, and the share of all.

    Raises
    ------
    InvalidValueError
        If the share is none, or a trace says nothing of prefixes.
    """
    if isinstance(share, str) and share == TRACE:
        if trace is None:
            raise InvalidValueError("prefix_share='trace' needs a trace, which is not given.")
        found = replace(coming, prefix_tokens=cached_tokens(trace, len(coming), blocks))
        return found, found.prefix_share
    if blocks is not None:
        raise InvalidValueError(
            "prefix_blocks counts only with prefix_share='trace': of a share that is given, the "
            "cache has what it has."
        )
    one = isinstance(share, (int, float)) and not isinstance(share, bool)
    if not one or not 0 <= share <= 1:
        raise InvalidValueError(
            f"prefix_share must be a share from 0 to 1, or {TRACE!r}, not {share!r}."
        )
    return (coming.with_prefix(share) if share else coming), share
