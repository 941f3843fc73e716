"""Time of linear attention over a prompt, as kernels: a state that goes through chunks.

Their constants are fitted to measured kernels, in `benchmarks/atlas`, with these functions.
"""

from __future__ import annotations

from mlsim.equations.functions import maximum
from mlsim.equations.registry import equation

QUESTION = "How long does a measured state take?"


@equation(source="yang2024gated")
def scan_time(scan_step_time, new_tokens, scan_chunk):
    """Time to take a state through the chunks of one sequence, each of which waits for the last.

    Sequences and heads go side by side.

    Valid for prompts; a single token is no chunk, and takes next to nothing.

    >>> scan_time(2e-6, 8192, 64)
    0.000256
    """
    return scan_step_time * new_tokens / scan_chunk


@equation(source="nvidia2026aiconfigurator")
def state_time(kernel_overhead, compute_time, scan_time):
    """Time of a layer's states: starts, then arithmetic, or waiting for chunk after chunk.

    Few heads wait, many compute.

    Valid for linear attention that takes a prompt in chunks.

    >>> state_time(1.0, 3.0, 4.0)
    5.0
    """
    return kernel_overhead + maximum(compute_time, scan_time)


@equation(source="nvidia2026aiconfigurator", yields="memory_time")
def scanned_memory_time(bytes_moved, memory_bandwidth, memory_fraction, scan_time):
    """Time to move the bytes, or to wait for the chunks of a state, whichever is longer.

    Valid for the calibrated estimate; only layers with a state have chunks.

    >>> scanned_memory_time(2e9, 2e12, 0.5, 0.003)
    0.003
    >>> scanned_memory_time(8e9, 2e12, 0.5, 0.003)
    0.008
    """
    return maximum(bytes_moved / (memory_bandwidth * memory_fraction), scan_time)
