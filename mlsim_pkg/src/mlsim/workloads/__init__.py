"""Layer 1: models, and their lowering to operators. A name is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing

if TYPE_CHECKING:
    from mlsim.workloads.announced_models import announced
    from mlsim.workloads.blocks import (
        Attention,
        DeltaRule,
        Experts,
        FeedForward,
        Indexer,
        LatentAttention,
        Part,
        Recurrent,
        StateSpace,
    )
    from mlsim.workloads.language import Transformer
    from mlsim.workloads.model import Network, Released
    from mlsim.workloads.model_files import load_model
    from mlsim.workloads.steps import Offload, Speculation

__all__ = ["Attention", "DeltaRule", "Experts", "FeedForward", "Indexer", "LatentAttention"]
__all__ += ["Network", "Offload", "Part", "Recurrent", "Released", "Speculation", "StateSpace"]
__all__ += ["Transformer", "announced", "load_model"]

_HOMES = {
    **dict.fromkeys(("Attention", "Experts", "FeedForward", "LatentAttention"), "blocks"),
    **dict.fromkeys(("DeltaRule", "Indexer", "Part", "Recurrent", "StateSpace"), "blocks"),
    **dict.fromkeys(("Network", "Released"), "model"),
    **dict.fromkeys(("Offload", "Speculation"), "steps"),
    "Transformer": "language",
    "announced": "announced_models",
    "load_model": "model_files",
}

__getattr__ = importing(__name__, _HOMES)
