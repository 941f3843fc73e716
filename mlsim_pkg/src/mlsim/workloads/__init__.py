"""Layer 1: models, and their lowering to operators. A name is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing

if TYPE_CHECKING:
    from mlsim.workloads.adapters import LoRA, QLoRA
    from mlsim.workloads.announced_models import announced
    from mlsim.workloads.blocks import Attention, Experts, FeedForward
    from mlsim.workloads.huggingface import load_config
    from mlsim.workloads.indexer import Indexer
    from mlsim.workloads.language import Transformer
    from mlsim.workloads.latent import LatentAttention
    from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, Model, Network
    from mlsim.workloads.model_files import load_model
    from mlsim.workloads.operators import NetworkOperators, Operator, OperatorTable
    from mlsim.workloads.parallelism import Parallelism
    from mlsim.workloads.recurrent import DeltaRule, Recurrent, StateSpace
    from mlsim.workloads.released import Released
    from mlsim.workloads.steps import StepOperator
    from mlsim.workloads.switches import Offload, Speculation

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
    **dict.fromkeys(("Attention", "Experts", "FeedForward"), "blocks"),
    "load_config": "huggingface",
    "Indexer": "indexer",
    "LatentAttention": "latent",
    "Transformer": "language",
    **dict.fromkeys(("FLOPS_PER_MULTIPLY_ADD", "Model"), "model"),
    "load_model": "model_files",
    "Network": "model",
    **dict.fromkeys(("NetworkOperators", "Operator", "OperatorTable"), "operators"),
    "Parallelism": "parallelism",
    **dict.fromkeys(("DeltaRule", "Recurrent", "StateSpace"), "recurrent"),
    "Released": "released",
    "StepOperator": "steps",
    **dict.fromkeys(("Offload", "Speculation"), "switches"),
}


__getattr__ = importing(__name__, _HOMES)
