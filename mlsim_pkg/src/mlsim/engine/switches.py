"""What callers switch on in a service, as the doors take it: names of drafts are looked up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.solvers.formats import formats
from mlsim.solvers.serving.switch_checks import Asked
from mlsim.workloads.prefixes import cached_tokens
from mlsim.workloads.requests import Requests
from mlsim.workloads.switches import Speculation
from mlsim.zoo import resolve

# In place of a share: what a trace says of each prompt.
TRACE = "trace"


def switched(
    device: Device,
    *,
    prefix_share: Any = 0.0,
    prefix_count: Any = None,
    speculation: Any = None,
    offload: Any = None,
    adapters: Any = None,
    adapter_count: Any = None,
) -> Asked:
    """Return what is switched on, with the draft's record and its formats.

    Raises
    ------
    MlsimError
        If there is no such draft, or the device can't compute in its format.
    """
    drafted = None
    if isinstance(speculation, Speculation) and speculation.draft is not None:
        draft = resolve.transformer(speculation.draft)
        speculation = replace(speculation, draft=draft)
        drafted = formats(
            speculation.precision, None, None, None, device=device, released=draft.released
        )
    return Asked(
        prefix_share=prefix_share,
        prefix_count=prefix_count,
        speculation=speculation,
        draft_formats=drafted,
        offload=offload,
        adapters=adapters,
        adapter_count=adapter_count,
    )


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
