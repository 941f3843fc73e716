"""Where the known quantities of a training run come from, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsim.solvers.training.job import Job
from mlsim.systems import Cluster, System

_ASKED = (
    "global_batch",
    "micro_batch",
    "sequence_tokens",
    "new_tokens",
    "training_tokens",
    "device_price",
    "mean_time_to_failure",
    "checkpoint_bandwidth",
    "restart_time",
    "reserve_share",
)
_OF_LAYOUT = (
    "tensor_parallel",
    "expert_replicas",
    "data_parallel",
    "context_parallel",
    "pipeline_parallel",
    "interleaved",
    "devices",
    "shard_group",
    "node_members",
    "node_groups",
    "state_shards",
    "gradient_shards",
    "weight_shards",
    "weight_gathers",
    "gradient_scatters",
    "gathered_parameters",
)
_OF_MODEL = (
    "sequence_flops",
    "output_multiply_adds",
    "score_multiply_adds",
    "dense_parameters",
    "expert_parameters",
    "model_parameters",
    "all_parameters",
    "layers",
    "hidden_size",
)
_MEASURED = {
    "memory_fraction": "roofline: the full rate of the memory",
    "link_fraction": "roofline: the full rate of the link",
    "hop_latency": "roofline: starting to send takes no time",
    "link_latency": "",
    "measured_devices": "",
    "compute_fraction": "",
    "kernel_overhead": "",
    "tile_size": "",
    "cores": "",
    "filled_share": "",
}
_LINKS = ("link_bandwidth", "node_bandwidth", "stage_bandwidth", "fabric_bandwidth")
_WORDS = {
    "pipeline_time": "one stage: nothing is sent between stages",
    "gradient_time": "one copy of the weights: nothing to agree on",
    "exchange_time": "one device a stage: nothing is sent within it",
    "goodput": "no failures are counted: give mean_time_to_failure",
    "recomputed_flops": "nothing is computed again that the sequence's work counts",
    "training_multiply_adds": "definition: one forward, and two backward",
    "cached_tokens": "definition: training has no cache",
}


def origin(job: Job, known: Mapping[str, Any], name: str) -> str:
    """Say where a known quantity of a run comes from."""
    device = job.device
    if name in job.given or name in _ASKED:
        return "given"
    if name == "peak_rate" and "peak_flops" in job.given:
        return "given, as peak_flops"
    if name in ("memory_bandwidth", "memory_capacity"):
        figure = device.figures[name.replace("_", ".", 1)]
        return f"{device.name}: {figure.origin()}"
    if name in ("peak_flops", "peak_rate"):
        return f"{device.name}: {device.compute.figure(job.precision).origin()}"
    if name in _LINKS:
        return _link(job, known, name)
    if name in _MEASURED:
        return _measured(job, name)
    if name in _OF_LAYOUT:
        return f"layout: {job.parallelism}"
    if name in _OF_MODEL:
        return f"{job.model.name}, from its architecture ({job.model.source})"
    if name.endswith("_overlap"):
        return "given" if known[name] else "stated: nothing hides behind computing"
    if name.startswith(("bytes_per", "moment_bytes", "master_bytes", "gathered_bytes")):
        return _bytes(job, known, name)
    return _WORDS.get(name, "definition")


def _measured(job: Job, name: str) -> str:
    """Say of which rows a calibrated rate is, or that the roofline takes the data sheet's."""
    device, links = job.achieved, job.linked
    if name == "link_fraction" and links:
        across = "; between nodes the same is assumed" if isinstance(job.hardware, Cluster) else ""
        return f"{links.origins[name]}{across}"
    if name in ("link_latency", "measured_devices") and links:
        return f"of an all-reduce: {links.origins['link_latency']}"
    if device and name == "filled_share":
        return device.origins["cores"]
    if device and name == "compute_fraction" and not job.recipe.standard:
        return f"{device.origins[name]}; for attention {device.origins['attention_fraction']}"
    if device and name in device.origins:
        return device.origins[name]
    return _MEASURED[name]


def _link(job: Job, known: Mapping[str, Any], name: str) -> str:
    hardware = job.hardware
    if isinstance(hardware, Cluster):
        outside = name == "fabric_bandwidth" or (
            name == "stage_bandwidth" and known[name] == hardware.fabric_bandwidth
        )
        within = f"{hardware.node.name}: {hardware.node.figure.origin()}"
        between = f"{hardware.name}: {hardware.figure.origin()}"
        if name == "link_bandwidth":
            return f"{within}; or between nodes {between}"
        return between if outside else within
    if isinstance(hardware, System):
        return f"{hardware.name}: {hardware.figure.origin()}"
    return "one device: nothing is sent"


def _bytes(job: Job, known: Mapping[str, Any], name: str) -> str:
    if name == "moment_bytes":
        return "Adam: each moment in 32 bits"
    if name == "master_bytes":
        copy = "a copy of the weights in 32 bits" if known[name] else "weights are in 32 bits"
        return f"Adam: {copy}"
    if name == "bytes_per_gradient":
        return f"gradients in {job.gradients.name}: {job.gradients.bits:g} bits"
    if name == "gathered_bytes" and job.parallelism.shard == "none":
        return f"gradients in {job.gradients.name}: {job.gradients.bits:g} bits"
    wide = max(job.precision.bits, 16)
    kept = "" if job.precision.bits >= 16 else f", kept in {wide:g} bits"
    return f"{job.precision.name}{kept}: {wide:g} bits"
