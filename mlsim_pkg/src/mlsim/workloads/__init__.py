"""Layer 1: models, and their lowering to operators."""

from mlsim.workloads.files import load_model
from mlsim.workloads.network import FLOPS_PER_MULTIPLY_ADD, Model
from mlsim.workloads.operators import Operator, OperatorTable

__all__ = ["FLOPS_PER_MULTIPLY_ADD", "Model", "Operator", "OperatorTable", "load_model"]
