"""What is known of a training run before any equation is used, each with its origin."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mlsim.precision import PRECISIONS
from mlsim.solvers.calibrated import add_tiling
from mlsim.solvers.formats import WIDE, kept_bytes
from mlsim.solvers.question import Known, Origin, recorded
from mlsim.solvers.training.adapters_known import add_adapters
from mlsim.solvers.training.job import Job
from mlsim.systems import Cluster, Placement, System
from mlsim.workloads.kernels import Kernel
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, TRAINING_MULTIPLY_ADDS, OperatorTable
from mlsim.workloads.training_lowering import (
    output_multiply_adds,
    parameters_on_device,
    score_multiply_adds,
    stage_layers,
)

# What is given stands in place of what it would be computed from.
_LEADS_TO = {
    "state_bytes": ("moment_bytes", "master_bytes"),
    "hop_latency": ("link_latency", "measured_devices"),
    "flops_per_parameter_token": ("training_multiply_adds",),
    "bytes_per_quantized": (
        *("value_bytes", "constant_bytes", "block_parameters"),
        *("second_constant_bytes", "block_constants"),
    ),
}
_GIVEN = "given"


def known_of(job: Job, table: OperatorTable[Kernel]) -> Known:
    """Return everything known of a run but its kernels' columns, in base units."""
    known = Known()
    _add_sizes(known, job)
    _add_model(known, job)
    _addlayout(known, job)
    add_device(known, job)
    _add_links(known, job, table)
    add_rates(known, job)
    _add_state(known, job)
    add_run(known, job)
    if job.recipe.adapters:
        add_adapters(known, job)
    for name in job.given:
        for each in _LEADS_TO.get(name, ()):
            known.pop(each, None)
    return known.add(_GIVEN, **job.given)


def _add_sizes(known: Known, job: Job) -> None:
    known.add(
        _GIVEN,
        global_batch=job.global_batch,
        micro_batch=job.micro_batch,
        sequence_tokens=job.sequence_tokens,
        new_tokens=job.sequence_tokens,
        reserve_share=job.reserve_share,
    )
    known.add("definition: training has no cache", cached_tokens=0.0)
    known.add("definition", flops_per_multiply_add=FLOPS_PER_MULTIPLY_ADD)
    for name in ("exchange", "pipeline", "gradient"):
        share = getattr(job.overlap, name)
        words = _GIVEN if share else "stated: nothing hides behind computing"
        known.add(words, **{f"{name}_overlap": share})


def _add_model(known: Known, job: Job) -> None:
    model, tokens = job.model, int(job.sequence_tokens)
    words = f"{model.name}, from its architecture ({model.source})"
    dense, expert = parameters_on_device(model, job.parallelism)
    known.add(
        words,
        dense_parameters=dense,
        expert_parameters=expert,
        model_parameters=float(model.active_parameter_count),
        all_parameters=float(model.parameter_count),
        trained_parameters=float(model.parameter_count),
        layers=float(model.layers),
        hidden_size=float(model.hidden),
    )
    # A program that skips what is masked is not asked for it; standard attention
    # works on the whole square, window or not.
    if job.masked_worked and model.attention.window:
        model = replace(model, attention=replace(model.attention, window=0))
    causal = "causal" in job.variant
    known.add(words, sequence_flops=float(model.flop_count(tokens, causal=causal, all_logits=True)))
    if job.bound:
        known.add("the bound computes nothing again", recomputed_flops=0.0)
    elif job.recipe.recompute == "full":
        known.add(words, output_multiply_adds=output_multiply_adds(model, tokens))
    elif job.recipe.recompute == "selective" and job.recipe.standard:
        known.add(words, score_multiply_adds=score_multiply_adds(model, tokens))
    else:
        nothing = "nothing is computed again that the sequence's work counts"
        known.add(nothing, recomputed_flops=0.0)


def layout(job: Job) -> str:
    """Say how a run is spread, as an origin."""
    return f"layout: {job.parallelism}"


def _addlayout(known: Known, job: Job) -> None:
    parallelism, group = job.parallelism, job.group
    known.add(
        partial(layout, job),
        data_parallel=float(parallelism.data),
        tensor_parallel=float(parallelism.tensor),
        context_parallel=float(parallelism.context),
        pipeline_parallel=float(parallelism.pipeline),
        interleaved=float(parallelism.interleaved),
        devices=float(parallelism.devices),
        expert_replicas=float(parallelism.expert_replicas),
        stage_layers=float(stage_layers(job.model, parallelism.pipeline)),
        spared_layers=float("uneven" in job.variant),
        shard_group=float(parallelism.copies),
        node_members=float(group.members),
        node_groups=float(group.groups),
    )


def add_device(known: Known, job: Job) -> None:
    """Add the rates and the memory of each device."""
    device = job.device
    known.add_memory(device)
    peak = device.compute.figure(job.precision)
    known.columns(recorded(device, peak), "peak_flops")
    if "peak_flops" in job.given:
        known.add("given, as peak_flops", peak_rate=job.given["peak_flops"])
    else:
        known.add(recorded(device, peak), peak_rate=peak.si)


def add_group(known: Known, job: Job) -> None:
    """Add the rates at which copies of the weights send to one another."""
    parallelism, group = job.parallelism, job.group
    fabric = job.bandwidth(parallelism.copies, parallelism.tensor)
    within = _node_bandwidth(job, group)
    if group.groups > 1 and job.algorithm != "hierarchical":
        # One ring, or tree, through all nodes is as fast as its slowest link.
        within = min(within, fabric)
    inside, outside = _links(job)
    known.add(inside, node_bandwidth=within)
    known.add(outside, fabric_bandwidth=fabric)
    if parallelism.copies == 1:
        known.add("one copy of the weights: nothing to agree on", gradient_time=0.0)


def _add_links(known: Known, job: Job, table: OperatorTable[Kernel]) -> None:
    """Add the rates at which devices send to one another, and where they send nothing."""
    add_group(known, job)
    parallelism = job.parallelism
    # A pipeline through several nodes goes at the rate of its slowest link.
    stage = min(
        job.bandwidth(size, parallelism.stage_devices) for size in {2, max(2, parallelism.pipeline)}
    )
    inside, outside = _links(job)
    between = isinstance(job.hardware, Cluster) and stage == job.hardware.fabric_bandwidth
    known.add(outside if between else inside, stage_bandwidth=stage)
    known.columns(partial(_either, inside, outside), "link_bandwidth")
    if parallelism.pipeline == 1:
        known.add("one stage: nothing is sent between stages", pipeline_time=0.0)
    if not any(row.link_span for row in table.operators):
        known.add("one device a stage: nothing is sent within it", exchange_time=0.0)


def _node_bandwidth(job: Job, group: Placement) -> float:
    return job.node.link_bandwidth(max(2, group.members)) if job.node else 0.0


def _links(job: Job) -> tuple[Origin, Origin]:
    """Return the origins of the links within a node, and between nodes."""
    hardware = job.hardware
    if isinstance(hardware, Cluster):
        return recorded(hardware.node, hardware.node.figure), recorded(hardware, hardware.figure)
    if isinstance(hardware, System):
        return (recorded(hardware, hardware.figure),) * 2
    return ("one device: nothing is sent",) * 2


def _either(inside: Origin, outside: Origin) -> str:
    """Say where the rate of a kernel's link comes from, which may leave its node."""
    within, between = (each if isinstance(each, str) else each() for each in (inside, outside))
    return within if within == between else f"{within}; or between nodes {between}"


def add_rates(known: Known, job: Job) -> None:
    """Add the parts of the data sheet's rates that are reached, and the time to start."""
    device, links = job.achieved, job.linked
    if device is None:
        known.add("roofline: the full rate of the memory", memory_fraction=1.0)
        if job.calibrated:
            add_tiling(known, job.device)
    else:
        origins, fraction = device.origins, device.origins["compute_fraction"]
        own = "" if job.recipe.standard else f"; for attention {origins['attention_fraction']}"
        known.add(origins["memory_fraction"], memory_fraction=device.memory_fraction)
        known.columns(f"{fraction}{own}", "compute_fraction")
        known.columns(origins["kernel_overhead"], "kernel_overhead")
        known.add(origins.get("tile_size", ""), tile_size=float(device.tile))
        if device.cores is None:
            known.add(origins["cores"], filled_share=1.0)
        else:
            known.add(origins["cores"], cores=float(device.cores))
    if links is None:
        known.add("roofline: the full rate of the link", link_fraction=1.0)
        known.add("roofline: starting to send takes no time", hop_latency=0.0)
        return
    across = "; between nodes the same is assumed" if isinstance(job.hardware, Cluster) else ""
    known.add(f"{links.origins['link_fraction']}{across}", link_fraction=links.link_fraction)
    known.add(
        f"of an all-reduce: {links.origins['link_latency']}",
        link_latency=links.link_latency,
        measured_devices=float(links.devices),
    )


def _add_state(known: Known, job: Job) -> None:
    """Add what is held of weights, gradients and optimizer, and how often it is sent.

    What is not sharded has one shard and is sent once a step; equations give the rest.
    """
    parallelism, shard = job.parallelism, job.parallelism.shard
    chosen, wide, full = job.precision, kept_bytes(job.precision), PRECISIONS["fp32"].bytes
    kept = "" if chosen.bits >= WIDE else f", kept in {WIDE:g} bits"
    words = f"{job.why or chosen.name}{kept}: {max(chosen.bits, WIDE):g} bits"
    gradients = f"gradients in {job.gradients.name}: {job.gradients.bits:g} bits"
    known.add(words, bytes_per_element=wide, bytes_per_parameter=wide)
    known.add(gradients, bytes_per_gradient=job.gradients.bytes)
    known.add("Adam: each moment in 32 bits", moment_bytes=full)
    if wide < full:
        known.add("Adam: a copy of the weights in 32 bits", master_bytes=full)
    else:
        known.add("Adam: weights are in 32 bits", master_bytes=0.0)
    # Plain copies gather gradients, of which all then update all weights.
    if shard == "none":
        known.add(gradients, gathered_bytes=job.gradients.bytes)
    else:
        known.add(words, gathered_bytes=wide)
    words_of_layout = partial(layout, job)
    alone = parallelism.copies == 1
    once = 0.0 if alone else 1.0
    if shard == "none":
        known.add(words_of_layout, state_shards=1.0)
    if shard not in ("zero2", "zero3"):
        known.add(words_of_layout, gradient_shards=1.0)
    if shard != "zero3":
        known.add(words_of_layout, weight_shards=1.0)
    # Who keeps only a part of the gradients must add up after each micro-batch.
    if alone or shard not in ("zero2", "zero3"):
        known.add(words_of_layout, gradient_scatters=once)
    if alone or shard != "zero3":
        known.add(words_of_layout, weight_gathers=once, gathered_parameters=0.0)


def add_run(known: Known, job: Job) -> None:
    """Add what is asked of the whole run."""
    backward = "definition: one forward, and two backward"
    known.add(backward, training_multiply_adds=TRAINING_MULTIPLY_ADDS)
    reliability = job.reliability
    asked = {
        "training_tokens": job.tokens,
        "device_price": job.price,
        "mean_time_to_failure": reliability.mean_time_to_failure,
        "checkpoint_bandwidth": reliability.checkpoint_bandwidth,
        "restart_time": reliability.restart_time,
    }
    known.add(_GIVEN, **{name: value for name, value in asked.items() if value is not None})
    if reliability.mean_time_to_failure is None:
        known.add("no failures are counted: give mean_time_to_failure", goodput=1.0)
