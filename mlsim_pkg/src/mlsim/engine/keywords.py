"""What doors are asked about a service by keyword, turned into a checked question.

`serve` and `load` hand on all that they are asked, as a copy of `locals()` has it by name; `plan`
asks for one layout after another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.solvers.formats import formats
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.switch_checks import Asked
from mlsim.solvers.serving.validate import service
from mlsim.workloads.requests import Requests, Speculation
from mlsim.workloads.steps import Parallelism
from mlsim.workloads.traces import cached_tokens
from mlsim.zoo import resolve

# In place of a share: what a trace says of each prompt.
TRACE = "trace"
# Keywords of what is switched on, sizes of the layout, formats, and what a service takes as it is.
SWITCHES = (
    "prefix_share",
    "prefix_count",
    "speculation",
    "offload",
    "adapters",
    "adapter_count",
)
_SIZES = ("tensor", "pipeline", "data", "context", "expert")
_FORMATS = ("precision", "weights", "activations", "kv_cache")
_AS_THEY_ARE = (
    "model",
    "hardware",
    "batch_size",
    "prompt_tokens",
    "output_tokens",
    "block_tokens",
    "chunk_tokens",
    "reserve",
    "estimate",
    "software",
    "expert_imbalance",
    "given",
)


def service_of(keywords: Mapping[str, Any]) -> tuple[Service, Asked]:
    """Return the service that a door is asked about, and what is switched on in it.

    Parameters
    ----------
    keywords
        By name, model and hardware as records. `parallelism`, in place of the sizes of a layout,
        is one that was made already.

    Raises
    ------
    MlsimError
        As `Engine.serve`.
    """
    hardware, model = keywords["hardware"], keywords["model"]
    device = hardware if isinstance(hardware, Device) else hardware.device
    chosen = formats(
        *(keywords.get(name) for name in _FORMATS),
        device=device,
        released=model.released,
        stated=model.stated_format,
    )
    on = _switched(device, **{name: keywords[name] for name in SWITCHES})
    layout = keywords.get("parallelism") or Parallelism(
        **{size: keywords[f"{size}_parallel"] for size in _SIZES}
    )
    known = {name: keywords[name] for name in _AS_THEY_ARE if name in keywords}
    return service(**known, formats=chosen, parallelism=layout, switches=on), on


def _switched(device: Device, *, speculation: Any, **others: Any) -> Asked:
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
        drafted = formats(speculation.precision, device=device, released=draft.released)
    return Asked(speculation=speculation, draft_formats=drafted, **others)


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
