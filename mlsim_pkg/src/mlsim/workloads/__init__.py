"""Layer 1: models, and their lowering to operators."""

from mlsim.workloads.announced import announced
from mlsim.workloads.blocks import Attention, Experts, FeedForward, LatentAttention
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, Model
from mlsim.workloads.model_files import load_model
from mlsim.workloads.network import Network
from mlsim.workloads.operators import Operator, OperatorTable
from mlsim.workloads.steps import Layout, StepOperator, StepTable

__all__ = [
    "FLOPS_PER_MULTIPLY_ADD",
    "Attention",
    "Experts",
    "FeedForward",
    "LatentAttention",
    "Layout",
    "Model",
    "Network",
    "Operator",
    "OperatorTable",
    "StepOperator",
    "StepTable",
    "Transformer",
    "announced",
    "load_model",
]
