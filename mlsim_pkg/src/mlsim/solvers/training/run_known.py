"""What is known of a training run before any equation is used, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.solvers.formats import WIDE
from mlsim.systems import Placement
from mlsim.workloads.kernels import Parallelism
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD
from mlsim.workloads.passes import Recipe
from mlsim.workloads.steps import Layout

if TYPE_CHECKING:
    from mlsim.solvers.training.run import Run

# Bytes of optimizer state for each parameter: Adam keeps two means in 32 bits,
# and beside 16-bit weights a copy of them in 32 bits.
_MEANS, _COPY = 8.0, 4.0


def known(run: Run) -> dict[str, Any]:
    """Return everything known of a run but its kernels' columns, in base units."""
    return {
        **_sizes(run),
        **_machine(run),
        **_rates(run),
        **_state(run),
        **_whole(run),
        **run.given,
    }


def _sizes(run: Run) -> dict[str, Any]:
    model, parallelism, tokens = run.model, run.parallelism, int(run.sequence_tokens)
    # A program that skips what is masked is not asked for it; standard attention
    # works on the whole square, window or not.
    causal = "causal" in run.variant
    if run.recipe.standard and model.attention.window:
        model = replace(model, attention=replace(model.attention, window=0))
    flops = model.flop_count(tokens, causal=causal, all_logits=True)
    return {
        "global_batch": run.global_batch,
        "micro_batch": run.micro_batch,
        "sequence_tokens": run.sequence_tokens,
        "new_tokens": run.sequence_tokens,
        "cached_tokens": 0.0,
        "data_parallel": float(parallelism.data),
        "context_parallel": float(parallelism.context),
        "pipeline_parallel": float(parallelism.pipeline),
        "interleaved": float(parallelism.interleaved),
        "devices": float(parallelism.devices),
        "flops_per_multiply_add": FLOPS_PER_MULTIPLY_ADD,
        "sequence_flops": float(flops),
        "recomputed_flops": recomputed(model, run.recipe, tokens, float(flops)),
        "exchange_overlap": run.overlap.exchange,
        "pipeline_overlap": run.overlap.pipeline,
        "gradient_overlap": run.overlap.gradient,
    }


def _machine(run: Run) -> dict[str, Any]:
    device, parallelism, group = run.device, run.parallelism, run.group
    stride = parallelism.tensor * parallelism.context * parallelism.data
    wide = max(run.precision.bytes, WIDE / 8)
    found: dict[str, Any] = {
        "memory_bandwidth": device.bandwidth_si,
        "memory_capacity": device.capacity_si,
        "reserve_share": run.reserve_share,
        "peak_rate": device.compute.figure(run.precision).si,
        "bytes_per_element": wide,
        "shard_group": float(parallelism.copies),
        "node_members": float(group.members),
        "node_groups": float(group.groups),
        "tree_depth": float((parallelism.copies - 1).bit_length()),
        "node_bandwidth": _node_bandwidth(run, group),
        "fabric_bandwidth": run.bandwidth(parallelism.copies, parallelism.tensor),
        "pipeline_elements": _sent_between_stages(run),
        # A pipeline through several nodes goes at the rate of its slowest link.
        "stage_bandwidth": min(
            run.bandwidth(size, stride) for size in {2, max(2, parallelism.pipeline)}
        ),
    }
    if group.groups > 1 and run.algorithm != "hierarchical":
        # One ring, or tree, through all nodes is as fast as its slowest link.
        found["node_bandwidth"] = min(found["node_bandwidth"], found["fabric_bandwidth"])
    if parallelism.pipeline == 1:
        found["pipeline_time"] = 0.0
    if parallelism.copies == 1:
        found["gradient_time"] = 0.0
    if not any(row.link_span for row in run.table.operators):
        found["exchange_time"] = 0.0
    return found


def _rates(run: Run) -> dict[str, Any]:
    """Return the parts of the data sheet's rates that are reached, and the time to start."""
    device, links = run.achieved, run.linked
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


def _node_bandwidth(run: Run, group: Placement) -> float:
    return run.node.link_bandwidth(max(2, group.members)) if run.node else 0.0


def _sent_between_stages(run: Run) -> float:
    """Elements of a micro-batch that a device hands to the next stage.

    The devices of a stage hold copies, so each sends its part only.
    """
    tokens = run.micro_batch * run.sequence_tokens / run.parallelism.context
    return tokens * run.model.hidden / run.parallelism.tensor


def _state(run: Run) -> dict[str, Any]:
    parallelism, shard = run.parallelism, run.parallelism.shard
    wide = max(run.precision.bytes, WIDE / 8)
    dense, expert = held(run.model, parallelism)
    shards = _shards(dense, expert, parallelism)
    micro_batches = run.global_batch / (parallelism.data * run.micro_batch)
    everywhere = shard == "zero3"
    alone = parallelism.copies == 1
    return {
        "dense_parameters": dense,
        "expert_parameters": expert,
        "expert_owners": _owners(parallelism),
        "bytes_per_parameter": wide,
        "bytes_per_gradient": run.gradients.bytes,
        "state_bytes": _MEANS + (_COPY if wide < 4 else 0.0),
        "state_shards": 1.0 if shard == "none" else shards,
        "gradient_shards": shards if shard in ("zero2", "zero3") else 1.0,
        "weight_shards": shards if everywhere else 1.0,
        # Plain copies gather gradients, of which all then update all weights.
        "gathered_bytes": run.gradients.bytes if shard == "none" else wide,
        "weight_gathers": 0.0 if alone else 2.0 * micro_batches if everywhere else 1.0,
        # Who keeps only a part of the gradients must add up after each micro-batch.
        "gradient_scatters": (
            0.0 if alone else micro_batches if shard in ("zero2", "zero3") else 1.0
        ),
        "gathered_parameters": (
            2.0 * (dense + expert) / (run.model.layers / parallelism.pipeline)
            if everywhere and not alone
            else 0.0
        ),
    }


def _whole(run: Run) -> dict[str, Any]:
    """Return what is found of the whole run, as far as it is asked for."""
    found: dict[str, Any] = {
        "model_parameters": float(run.model.active_parameter_count),
        "flops_per_parameter_token": 6.0,
    }
    if run.tokens is not None:
        found["training_tokens"] = run.tokens
    if run.price is not None:
        found["device_price"] = run.price
    wide = max(run.precision.bytes, WIDE / 8)
    each = wide + _MEANS + (_COPY if wide < 4 else 0.0)
    found["checkpoint_bytes"] = run.model.parameter_count * each
    for name in ("mean_time_to_failure", "checkpoint_bandwidth", "restart_time"):
        value = getattr(run.reliability, name)
        if value is not None:
            found[name] = value
    if run.reliability.mean_time_to_failure is None:
        found["goodput"] = 1.0
    return found


def held(model: Transformer, parallelism: Parallelism) -> tuple[float, float]:
    """Return parameters on one device of the fullest stage: dense ones, and of experts."""
    layout = Layout(
        tensor=parallelism.tensor,
        pipeline=parallelism.pipeline,
        data=parallelism.data,
        expert=parallelism.expert,
    )
    dense = expert = 0.0
    for operator in model.operators(layout):
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


def recomputed(model: Transformer, recipe: Recipe, tokens: int, flops: float) -> float:
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
