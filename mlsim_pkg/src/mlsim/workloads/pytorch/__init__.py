"""Networks read from PyTorch modules, without running them; imports PyTorch when it is used."""

from mlsim.workloads.pytorch.doors import ModuleNetwork, is_module, load_module, read_module

__all__ = ["ModuleNetwork", "is_module", "load_module", "read_module"]
