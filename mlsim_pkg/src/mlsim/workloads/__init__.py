"""Layer 1: models, and their lowering to operators. A name is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing

if TYPE_CHECKING:
    from mlsim.workloads.adapters import LoRA, QLoRA
    from mlsim.workloads.announced_models import announced
    from mlsim.workloads.blocks import (
        Attention,
        DeltaRule,
        Experts,
        FeedForward,
        Indexer,
        LatentAttention,
        Recurrent,
        StateSpace,
    )
    from mlsim.workloads.huggingface import load_config
    from mlsim.workloads.language import Transformer
    from mlsim.workloads.model import (
        FLOPS_PER_MULTIPLY_ADD,
        Model,
        Network,
        NetworkOperators,
        Operator,
        OperatorTable,
        Released,
    )
    from mlsim.workloads.model_files import load_model
    from mlsim.workloads.requests import Offload, Speculation
    from mlsim.workloads.steps import Parallelism, StepOperator

__all__ = [
    "FLOPS_PER_MULTIPLY_ADD",
    "Attention",
    "DeltaRule",
    "Experts",
    "FeedForward",
    "Indexer",
    "LatentAttention",
    "LoRA",
    "Model",
    "Network",
    "NetworkOperators",
    "Offload",
    "Operator",
    "OperatorTable",
    "Parallelism",
    "QLoRA",
    "Recurrent",
    "Released",
    "Speculation",
    "StateSpace",
    "StepOperator",
    "Transformer",
    "announced",
    "load_config",
    "load_model",
]

_HOMES = {
    **dict.fromkeys(("LoRA", "QLoRA"), "adapters"),
    "announced": "announced_models",
    **dict.fromkeys(("Attention", "Experts", "FeedForward", "LatentAttention"), "blocks"),
    **dict.fromkeys(("DeltaRule", "Indexer", "Recurrent", "StateSpace"), "blocks"),
    "load_config": "huggingface",
    "Transformer": "language",
    **dict.fromkeys(("FLOPS_PER_MULTIPLY_ADD", "Model", "Network", "Released"), "model"),
    **dict.fromkeys(("NetworkOperators", "Operator", "OperatorTable"), "model"),
    "load_model": "model_files",
    **dict.fromkeys(("Offload", "Speculation"), "requests"),
    **dict.fromkeys(("Parallelism", "StepOperator"), "steps"),
}


__getattr__ = importing(__name__, _HOMES)
