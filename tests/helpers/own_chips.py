"""Devices of which nothing is on record but what a test says."""

from __future__ import annotations

from typing import Any

from mlsim import Device


def chip(
    name: str = "My chip", bandwidth: Any = "1 TB/s", capacity: str = "1 TB", **peaks: Any
) -> Device:
    """Return a device with these peaks, such as fp16="1 TFLOP/s", and without a number of cores."""
    return Device(name, peak_flops=peaks, memory_bandwidth=bandwidth, memory_capacity=capacity)
