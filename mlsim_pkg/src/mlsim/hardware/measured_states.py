"""What linear attention over a prompt was measured to take, as constants for one device.

Engines take a prompt through a layer with the gated delta rule in chunks. That reaches a few
hundredths of the peak, and a state waits for each chunk (`equations.state_kernels`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from statistics import median
from types import MappingProxyType

from mlsim.hardware.kernel_constants import ENGINES, SOURCE, all_series, kernel_series
from mlsim.hardware.relatives import Relatives, relatives

NAMES = ("compute_fraction", "scan_step_time")


@lru_cache(maxsize=64)
def state_constants(device: str, engine: str) -> tuple[Mapping[str, float], str, Relatives] | None:
    """Return the constants of a device's states, and whose they are; None if nobody's will do.

    They are those of its own kernels, else the middle of its siblings' or its family's. For
    a program that is none of the measured engines, the first of them stands in.

    >>> found, words, kin = state_constants("Cloud.B200", "vllm")
    >>> 0.05 < found["compute_fraction"] < 0.5, 1e-7 < found["scan_step_time"] < 1e-5
    (True, True)
    """
    known = ENGINES["state"]
    # A narrower class has its engine's name in front: vllm_async.
    own = engine.partition("_")[0]
    for each in (own, *known) if own in known else known:
        there = [key[0] for key in all_series() if key[1:] == ("state", "bf16", each)]
        kin = relatives(device, there)
        if kin is None or kin.level == "class":
            continue
        found = [kernel_series(key, "state", "bf16", each).values for key in kin.keys]
        values = {name: median(one[name] for one in found) for name in NAMES}
        words = f"fitted to states of {each}{kin.words}; {SOURCE}"
        return MappingProxyType(values), words, kin
    return None
