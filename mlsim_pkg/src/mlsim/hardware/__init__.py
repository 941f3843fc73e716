"""Layer 2: devices, with peaks, memories, links and power."""

from mlsim.hardware.device import DEFAULT_PRECISION, Compute, Device, Memory

__all__ = ["DEFAULT_PRECISION", "Compute", "Device", "Memory"]
