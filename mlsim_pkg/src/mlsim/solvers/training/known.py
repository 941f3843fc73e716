"""What is known of a training run before any equation is used, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.precision import PRECISIONS
from mlsim.solvers.formats import kept_bytes
from mlsim.solvers.training.job import Job
from mlsim.systems import Placement
from mlsim.workloads.kernels import Kernel
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, TRAINING_MULTIPLY_ADDS
from mlsim.workloads.operators import OperatorTable
from mlsim.workloads.training_lowering import (
    output_multiply_adds,
    parameters_on_device,
    score_multiply_adds,
)

# What is given stands in place of what it would be computed from.
_LEADS_TO = {
    "state_bytes": ("moment_bytes", "master_bytes"),
    "hop_latency": ("link_latency", "measured_devices"),
    "flops_per_parameter_token": ("training_multiply_adds",),
}


def known(job: Job, table: OperatorTable[Kernel]) -> dict[str, Any]:
    """Return everything known of a run but its kernels' columns, in base units."""
    found = {
        **_sizes(job),
        **_machine(job, table),
        **_rates(job),
        **_state(job),
        **_whole(job),
    }
    replaced = {each for name in job.given for each in _LEADS_TO.get(name, ())}
    return {name: value for name, value in found.items() if name not in replaced} | {**job.given}


def _sizes(job: Job) -> dict[str, Any]:
    model, parallelism, tokens = job.model, job.parallelism, int(job.sequence_tokens)
    # A program that skips what is masked is not asked for it; standard attention
    # works on the whole square, window or not.
    causal = "causal" in job.variant
    if job.recipe.standard and model.attention.window:
        model = replace(model, attention=replace(model.attention, window=0))
    found: dict[str, Any] = {
        "global_batch": job.global_batch,
        "micro_batch": job.micro_batch,
        "sequence_tokens": job.sequence_tokens,
        "new_tokens": job.sequence_tokens,
        "cached_tokens": 0.0,
        "data_parallel": float(parallelism.data),
        "tensor_parallel": float(parallelism.tensor),
        "context_parallel": float(parallelism.context),
        "pipeline_parallel": float(parallelism.pipeline),
        "interleaved": float(parallelism.interleaved),
        "devices": float(parallelism.devices),
        "flops_per_multiply_add": FLOPS_PER_MULTIPLY_ADD,
        "sequence_flops": float(model.flop_count(tokens, causal=causal, all_logits=True)),
        "exchange_overlap": job.overlap.exchange,
        "pipeline_overlap": job.overlap.pipeline,
        "gradient_overlap": job.overlap.gradient,
    }
    if job.recipe.recompute == "full":
        found["output_multiply_adds"] = output_multiply_adds(model, tokens)
    elif job.recipe.recompute == "selective" and job.recipe.standard:
        found["score_multiply_adds"] = score_multiply_adds(model, tokens)
    else:
        found["recomputed_flops"] = 0.0
    return found


def _machine(job: Job, table: OperatorTable[Kernel]) -> dict[str, Any]:
    device, parallelism, group = job.device, job.parallelism, job.group
    found: dict[str, Any] = {
        "memory_bandwidth": device.bandwidth_si,
        "memory_capacity": device.capacity_si,
        "reserve_share": job.reserve_share,
        "peak_rate": job.given.get("peak_flops", device.compute.figure(job.precision).si),
        "bytes_per_element": kept_bytes(job.precision),
        "shard_group": float(parallelism.copies),
        "node_members": float(group.members),
        "node_groups": float(group.groups),
        "node_bandwidth": _node_bandwidth(job, group),
        "fabric_bandwidth": job.bandwidth(parallelism.copies, parallelism.tensor),
        "hidden_size": float(job.model.hidden),
        # A pipeline through several nodes goes at the rate of its slowest link.
        "stage_bandwidth": min(
            job.bandwidth(size, parallelism.stage_devices)
            for size in {2, max(2, parallelism.pipeline)}
        ),
    }
    if group.groups > 1 and job.algorithm != "hierarchical":
        # One ring, or tree, through all nodes is as fast as its slowest link.
        found["node_bandwidth"] = min(found["node_bandwidth"], found["fabric_bandwidth"])
    if parallelism.pipeline == 1:
        found["pipeline_time"] = 0.0
    if parallelism.copies == 1:
        found["gradient_time"] = 0.0
    if not any(row.link_span for row in table.operators):
        found["exchange_time"] = 0.0
    return found


def _rates(job: Job) -> dict[str, Any]:
    """Return the parts of the data sheet's rates that are reached, and the time to start."""
    device, links = job.achieved, job.linked
    found: dict[str, Any] = {
        "memory_fraction": device.memory_fraction if device else 1.0,
        "link_fraction": links.link_fraction if links else 1.0,
    }
    if links:
        found["link_latency"] = links.link_latency
        found["measured_devices"] = float(links.rows[0].devices)
    else:
        found["hop_latency"] = 0.0
    if device:
        found["tile_size"] = float(device.tile)
        if device.cores is None:
            found["filled_share"] = 1.0
        else:
            found["cores"] = float(device.cores)
    return found


def _node_bandwidth(job: Job, group: Placement) -> float:
    return job.node.link_bandwidth(max(2, group.members)) if job.node else 0.0


def _state(job: Job) -> dict[str, Any]:
    """Return what is held of weights, gradients and optimizer, and how often it is sent.

    What is not sharded has one shard and is sent once a step; equations give the rest.
    """
    parallelism, shard = job.parallelism, job.parallelism.shard
    wide = kept_bytes(job.precision)
    dense, expert = parameters_on_device(job.model, parallelism)
    full = PRECISIONS["fp32"].bytes
    found: dict[str, Any] = {
        "dense_parameters": dense,
        "expert_parameters": expert,
        "expert_replicas": float(parallelism.expert_replicas),
        "layers": float(job.model.layers),
        "bytes_per_parameter": wide,
        "bytes_per_gradient": job.gradients.bytes,
        "moment_bytes": full,
        "master_bytes": full if wide < full else 0.0,
        # Plain copies gather gradients, of which all then update all weights.
        "gathered_bytes": job.gradients.bytes if shard == "none" else wide,
    }
    alone = parallelism.copies == 1
    once = 0.0 if alone else 1.0
    if shard == "none":
        found["state_shards"] = 1.0
    if shard not in ("zero2", "zero3"):
        found["gradient_shards"] = 1.0
    if shard != "zero3":
        found["weight_shards"] = 1.0
    # Who keeps only a part of the gradients must add up after each micro-batch.
    if alone or shard not in ("zero2", "zero3"):
        found["gradient_scatters"] = once
    if alone or shard != "zero3":
        found |= {"weight_gathers": once, "gathered_parameters": 0.0}
    return found


def _whole(job: Job) -> dict[str, Any]:
    """Return what is found of the whole run, as far as it is asked for."""
    found: dict[str, Any] = {
        "model_parameters": float(job.model.active_parameter_count),
        "all_parameters": float(job.model.parameter_count),
        "training_multiply_adds": TRAINING_MULTIPLY_ADDS,
    }
    if job.tokens is not None:
        found["training_tokens"] = job.tokens
    if job.price is not None:
        found["device_price"] = job.price
    for name in ("mean_time_to_failure", "checkpoint_bandwidth", "restart_time"):
        value = getattr(job.reliability, name)
        if value is not None:
            found[name] = value
    if job.reliability.mean_time_to_failure is None:
        found["goodput"] = 1.0
    return found
