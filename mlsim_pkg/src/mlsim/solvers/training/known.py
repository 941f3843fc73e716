"""What is known of a training run before any equation is used, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.solvers.formats import WIDE
from mlsim.solvers.training.job import Job
from mlsim.systems import Placement
from mlsim.workloads.kernels import Kernel
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD
from mlsim.workloads.operators import OperatorTable
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.passes import Recipe

# Bytes of optimizer state for each parameter: Adam keeps two means in 32 bits,
# and beside 16-bit weights a copy of them in 32 bits.
_MEANS, _COPY = 8.0, 4.0


def known(job: Job, table: OperatorTable[Kernel]) -> dict[str, Any]:
    """Return everything known of a run but its kernels' columns, in base units."""
    return {
        **_sizes(job),
        **_machine(job, table),
        **_rates(job),
        **_state(job),
        **_whole(job),
        **job.given,
    }


def _sizes(job: Job) -> dict[str, Any]:
    model, parallelism, tokens = job.model, job.parallelism, int(job.sequence_tokens)
    # A program that skips what is masked is not asked for it; standard attention
    # works on the whole square, window or not.
    causal = "causal" in job.variant
    if job.recipe.standard and model.attention.window:
        model = replace(model, attention=replace(model.attention, window=0))
    flops = model.flop_count(tokens, causal=causal, all_logits=True)
    return {
        "global_batch": job.global_batch,
        "micro_batch": job.micro_batch,
        "sequence_tokens": job.sequence_tokens,
        "new_tokens": job.sequence_tokens,
        "cached_tokens": 0.0,
        "data_parallel": float(parallelism.data),
        "context_parallel": float(parallelism.context),
        "pipeline_parallel": float(parallelism.pipeline),
        "interleaved": float(parallelism.interleaved),
        "devices": float(parallelism.devices),
        "flops_per_multiply_add": FLOPS_PER_MULTIPLY_ADD,
        "sequence_flops": float(flops),
        "recomputed_flops": recomputed_flops(model, job.recipe, tokens, float(flops)),
        "exchange_overlap": job.overlap.exchange,
        "pipeline_overlap": job.overlap.pipeline,
        "gradient_overlap": job.overlap.gradient,
    }


def _machine(job: Job, table: OperatorTable[Kernel]) -> dict[str, Any]:
    device, parallelism, group = job.device, job.parallelism, job.group
    stride = parallelism.tensor * parallelism.context * parallelism.data
    wide = max(job.precision.bytes, WIDE / 8)
    found: dict[str, Any] = {
        "memory_bandwidth": device.bandwidth_si,
        "memory_capacity": device.capacity_si,
        "reserve_share": job.reserve_share,
        "peak_rate": job.given.get("peak_flops", device.compute.figure(job.precision).si),
        "bytes_per_element": wide,
        "shard_group": float(parallelism.copies),
        "node_members": float(group.members),
        "node_groups": float(group.groups),
        "tree_depth": float((parallelism.copies - 1).bit_length()),
        "node_bandwidth": _node_bandwidth(job, group),
        "fabric_bandwidth": job.bandwidth(parallelism.copies, parallelism.tensor),
        "pipeline_elements": _sent_between_stages(job),
        # A pipeline through several nodes goes at the rate of its slowest link.
        "stage_bandwidth": min(
            job.bandwidth(size, stride) for size in {2, max(2, parallelism.pipeline)}
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
        "hop_latency": 0.0,
    }
    if links:
        # What was measured is an all-reduce: round the ring twice, but for two hops.
        found["hop_latency"] = links.link_latency / (2 * (links.rows[0].devices - 1))
    if device:
        found["tile_size"] = float(device.tile)
        if device.cores is None:
            found["filled_share"] = 1.0
        else:
            found["cores"] = float(device.cores)
    return found


def _node_bandwidth(job: Job, group: Placement) -> float:
    return job.node.link_bandwidth(max(2, group.members)) if job.node else 0.0


def _sent_between_stages(job: Job) -> float:
    """Elements of a micro-batch that a device hands to the next stage.

    The devices of a stage hold copies, so each sends its part only.
    """
    tokens = job.micro_batch * job.sequence_tokens / job.parallelism.context
    return tokens * job.model.hidden / job.parallelism.tensor


def _state(job: Job) -> dict[str, Any]:
    parallelism, shard = job.parallelism, job.parallelism.shard
    wide = max(job.precision.bytes, WIDE / 8)
    dense, expert = parameters_on_device(job.model, parallelism)
    shards = _shards(dense, expert, parallelism)
    micro_batches = job.global_batch / (parallelism.data * job.micro_batch)
    everywhere = shard == "zero3"
    alone = parallelism.copies == 1
    return {
        "dense_parameters": dense,
        "expert_parameters": expert,
        "expert_owners": _owners(parallelism),
        "bytes_per_parameter": wide,
        "bytes_per_gradient": job.gradients.bytes,
        "state_bytes": _MEANS + (_COPY if wide < 4 else 0.0),
        "state_shards": 1.0 if shard == "none" else shards,
        "gradient_shards": shards if shard in ("zero2", "zero3") else 1.0,
        "weight_shards": shards if everywhere else 1.0,
        # Plain copies gather gradients, of which all then update all weights.
        "gathered_bytes": job.gradients.bytes if shard == "none" else wide,
        "weight_gathers": 0.0 if alone else 2.0 * micro_batches if everywhere else 1.0,
        # Who keeps only a part of the gradients must add up after each micro-batch.
        "gradient_scatters": (
            0.0 if alone else micro_batches if shard in ("zero2", "zero3") else 1.0
        ),
        "gathered_parameters": (
            2.0 * (dense + expert) / (job.model.layers / parallelism.pipeline)
            if everywhere and not alone
            else 0.0
        ),
    }


def _whole(job: Job) -> dict[str, Any]:
    """Return what is found of the whole run, as far as it is asked for."""
    found: dict[str, Any] = {
        "model_parameters": float(job.model.active_parameter_count),
        "flops_per_parameter_token": 6.0,
    }
    if job.tokens is not None:
        found["training_tokens"] = job.tokens
    if job.price is not None:
        found["device_price"] = job.price
    wide = max(job.precision.bytes, WIDE / 8)
    each = wide + _MEANS + (_COPY if wide < 4 else 0.0)
    found["checkpoint_bytes"] = job.model.parameter_count * each
    for name in ("mean_time_to_failure", "checkpoint_bandwidth", "restart_time"):
        value = getattr(job.reliability, name)
        if value is not None:
            found[name] = value
    if job.reliability.mean_time_to_failure is None:
        found["goodput"] = 1.0
    return found


def parameters_on_device(model: Transformer, parallelism: Parallelism) -> tuple[float, float]:
    """Return parameters on one device of the fullest stage: dense ones, and of experts."""
    dense = expert = 0.0
    for operator in model.operators(parallelism.of_weights):
        count = operator.parameters * operator.resident_repeats
        if operator.kind == "experts":
            expert += count
        else:
            dense += count
    return dense, expert


def _shards(dense: float, expert: float, parallelism: Parallelism) -> float:
    """Return among how many devices state is divided, over all of a device's parameters.

    Experts that are spread over several copies have fewer copies of their own.
    """
    return (dense + expert) / (dense / parallelism.copies + expert / _owners(parallelism))


def _owners(parallelism: Parallelism) -> float:
    """Return how many devices hold the same experts."""
    return max(1.0, parallelism.copies / max(1, parallelism.expert // parallelism.tensor))


def recomputed_flops(model: Transformer, recipe: Recipe, tokens: int, flops: float) -> float:
    """Return FLOP of the forward pass of a sequence that are done again."""
    output = pairs = 0.0
    for operator in model.operators():
        if operator.kind == "output":
            output += operator.token_multiply_adds * tokens
        seen = min(tokens, operator.attention_window)
        pairs += operator.pair_multiply_adds * operator.repeats * tokens * seen
    if recipe.recompute == "full":
        return flops - FLOPS_PER_MULTIPLY_ADD * output
    again = recipe.recompute == "selective" and recipe.standard
    return FLOPS_PER_MULTIPLY_ADD * pairs * again
