"""Layer 2: devices, with peaks, memories, links and power."""

from mlsim.hardware.device import DEFAULT_PRECISION, Compute, Device, Memory
from mlsim.hardware.device_files import load_device

__all__ = ["DEFAULT_PRECISION", "Compute", "Device", "Memory", "load_device"]
