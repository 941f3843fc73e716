"""What experts of a mixture were measured to take, as constants for one device.

Kernels of experts have a form of their own (`equations.expert_kernels`): each expert fills
tiles with its own tokens, and tokens are sorted by expert before and brought back after.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from statistics import median
from types import MappingProxyType

from mlsim.hardware.kernel_constants import (
    ENGINES,
    SOURCE,
    all_series,
    kernel_series,
    whole_only,
)
from mlsim.hardware.relatives import Relatives, relatives

_WIDE = ("bf16", "fp16")
# Data paths by the formats of weights and activations, the first that was measured. Mixtures
# that are released in 8 bits have scales for blocks of their weights. MXFP4 beside 16 bits has
# none: which kernels a service takes differs, so a class of software may name its path.
_PATHS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(product(_WIDE, _WIDE), ("bf16",)),
        **{("int4", wide): ("int4_weights",) for wide in _WIDE},
        ("fp8", "fp8"): ("fp8_block", "fp8"),
        ("fp4", "fp4"): ("fp4",),
        ("nvfp4", "fp4"): ("fp4",),
        ("mxfp4", "fp8"): ("mxfp4_fp8",),
    }
)
NAMES = (
    *("compute_fraction", "memory_fraction", "kernel_overhead"),
    *("imbalance", "spread", "data_passes", "half_width"),
    *("expert_tile", "elsewhere_share"),
)


def paths(weights: str, activations: str) -> tuple[str, ...]:
    """Return the data paths of experts in these formats; none where nobody measured them.

    >>> paths("fp8", "fp8"), paths("bf16", "bf16"), paths("int8", "int8")
    (('fp8_block', 'fp8'), ('bf16',), ())
    """
    return _PATHS.get((weights, activations), ())


@lru_cache(maxsize=256)
def expert_constants(
    device: str,
    engine: str,
    weights: str,
    activations: str,
    own_path: str = "",
    *,
    sliced: bool = False,
) -> tuple[Mapping[str, float], str, Relatives] | None:
    """Return the constants of a device's experts, and whose they are; None if nobody's will do.

    They are those of its own kernels, else the middle of its siblings' or its family's. For
    a program that is none of the measured engines, the first of them stands in.

    Parameters
    ----------
    device, engine
        Keys, such as "Cloud.H100" and "vllm".
    weights, activations
        Formats of the experts, such as "fp8".
    own_path
        The data path that the program takes, where it is not that of the formats.
    sliced
        Whether a device holds slices of experts. A kernel that was timed on whole ones only may
        not run on them, so that of another engine comes first.

    >>> found, words, kin = expert_constants("Cloud.H100", "vllm", "bf16", "bf16")
    >>> 0 < found["compute_fraction"] < 1, found["data_passes"] > 1
    (True, True)
    """
    for path in (own_path,) if own_path else paths(weights, activations):
        several = [(each, kin) for each in _engines(engine) if (kin := _kin(device, path, each))]
        cut = [(each, kin) for each, kin in several if not _whole_only(kin, path, each)]
        for each, kin in (cut if sliced and cut else several)[:1]:
            found = [kernel_series(key, "experts", path, each).values for key in kin.keys]
            values = {name: median(one[name] for one in found) for name in NAMES}
            words = f"fitted to experts in {path} of {each}{kin.words}; {SOURCE}"
            return MappingProxyType(values), words, kin
    return None


def _kin(device: str, path: str, engine: str) -> Relatives | None:
    """Return whose kernels of an engine stand for a device's; None if nobody's will do."""
    there = [key[0] for key in all_series() if key[1:] == ("experts", path, engine)]
    kin = relatives(device, there)
    return None if kin is None or kin.level == "class" else kin


def _whole_only(kin: Relatives, path: str, engine: str) -> bool:
    return any((key, "experts", path, engine) in whole_only() for key in kin.keys)


def _engines(engine: str) -> tuple[str, ...]:
    """Return in which order engines are asked for."""
    known = ENGINES["experts"]
    return (engine, *(each for each in known if each != engine)) if engine in known else known
