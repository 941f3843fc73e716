"""What callers switch on in a service, as the doors take it: names of drafts are looked up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.hardware import Device
from mlsim.solvers.formats import formats
from mlsim.solvers.serving.switch_checks import Asked
from mlsim.workloads.switches import Speculation
from mlsim.zoo import resolve


def switched(
    device: Device,
    *,
    prefix_share: Any = 0.0,
    prefix_count: Any = None,
    speculation: Any = None,
    offload: Any = None,
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
    )
