"""Machines as drawings: SVG made by code, every number in it from the package.

    from mlsim import draw

    draw.chip("A100")

A drawing shows itself on a page or in a notebook, says in words what it shows, and carries the
numbers that are written in it with their sources. A name is imported when it is used.
"""

# ruff: noqa: F401 - what is imported here is what the room offers

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing

if TYPE_CHECKING:
    from mlsim.draw.canvas import Canvas, Drawing
    from mlsim.draw.chips import chip
    from mlsim.draw.cores import cpu_and_gpu, sm
    from mlsim.draw.formats import bits, number_line
    from mlsim.draw.machines import cluster, ring, shards
    from mlsim.draw.memory import decoder_layer, kv_cache, tile
    from mlsim.draw.owners import carbon
    from mlsim.draw.requests import batching, prefill_and_decode, queue
    from mlsim.draw.threads import blocks, coalescing
    from mlsim.draw.timelines import latency_hiding, launches

# Public names by module, which is imported when one of them is first used.
_MODULES = {
    "canvas": "Canvas Drawing",
    "chips": "chip",
    "cores": "cpu_and_gpu sm",
    "formats": "bits number_line",
    "machines": "cluster ring shards",
    "memory": "decoder_layer kv_cache tile",
    "owners": "carbon",
    "requests": "batching prefill_and_decode queue",
    "threads": "blocks coalescing",
    "timelines": "latency_hiding launches",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = tuple(_HOMES)

__getattr__ = importing(__name__, _HOMES)
