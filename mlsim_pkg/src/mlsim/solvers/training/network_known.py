"""What is known of a training run of a network before any equation is used, with origins."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mlsim.equations.training import training_micro_batches
from mlsim.precision import PRECISIONS
from mlsim.solvers.formats import kept_bytes
from mlsim.solvers.question import Known, recorded
from mlsim.solvers.training.known import add_device, add_group, add_rates, add_run, layout
from mlsim.workloads.graph.training import held, read_parameters, statistics_bytes
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD

if TYPE_CHECKING:
    from mlsim.solvers.training.network_run import NetworkRun

# What is given stands in place of what it would be computed from.
_LEADS_TO = {
    "state_bytes": ("optimizer_moments", "moment_bytes", "master_bytes"),
    "hop_latency": ("link_latency", "measured_devices"),
}
_GIVEN = "given"
_WHOLE = "one stage and one device a sample: nothing is sent within the network"


def known_of(job: NetworkRun) -> Known:
    """Return everything known of a run but its kernels' columns, in base units."""
    known = Known()
    known.add(
        _GIVEN,
        global_batch=job.global_batch,
        micro_batch=job.micro_batch,
        reserve_share=job.reserve_share,
    )
    known.add("definition", flops_per_multiply_add=FLOPS_PER_MULTIPLY_ADD)
    _add_network(known, job)
    _add_whole(known, job)
    add_device(known, job)
    peak = job.device.compute.figure(job.precision)
    known.add(recorded(job.device, peak), peak_flops=peak.si)
    add_group(known, job)
    add_rates(known, job)
    if job.achieved is not None:
        known.update(kernel_overhead=job.achieved.kernel_overhead)
    _add_state(known, job)
    add_run(known, job)
    if job.samples is not None:
        known.add(_GIVEN, training_samples=job.samples)
    for name in job.given:
        for each in _LEADS_TO.get(name, ()):
            known.pop(each, None)
    return known.add(_GIVEN, **job.given)


def _add_network(known: Known, job: NetworkRun) -> None:
    graph = job.graph
    words = f"{job.model.name}, from its layers ({job.model.source})"
    count = float(graph.parameters)
    known.add(
        words,
        device_parameters=count,
        all_parameters=count,
        exchanged_parameters=count,
        # Of tables a step may read and change a few rows only.
        model_parameters=read_parameters(job.network),
    )
    known.add(f"{words}: running statistics in 32 bits", running_statistics=statistics_bytes(graph))
    share = job.overlap.gradient
    known.add(_GIVEN if share else "stated: nothing hides behind computing", gradient_overlap=share)


def _add_whole(known: Known, job: NetworkRun) -> None:
    """Add what a network does not share among devices, and does not compute again."""
    words = partial(layout, job)
    known.add(
        words,
        data_parallel=float(job.parallelism.data),
        devices=float(job.parallelism.devices),
        shard_group=float(job.parallelism.copies),
        node_members=float(job.group.members),
        node_groups=float(job.group.groups),
    )
    known.add(_WHOLE, tensor_parallel=1.0, pipeline_parallel=1.0, interleaved=1.0)
    known.add(_WHOLE, output_time=0.0, exchange_time=0.0, exchange_overlap=0.0)
    known.add(_WHOLE, pipeline_time=0.0, pipeline_overlap=0.0)
    known.add("nothing is computed again", recompute_time=0.0, recomputed_flops=0.0)


def _add_state(known: Known, job: NetworkRun) -> None:
    """Add what is held of weights, gradients, the optimizer and activations."""
    chosen, full = job.precision, PRECISIONS["fp32"].bytes
    wide = kept_bytes(chosen)
    words = f"{job.why or chosen.name}: {wide:g} bytes"
    gradients = f"gradients in {job.gradients.name}: {job.gradients.bits:g} bits"
    known.add(words, bytes_per_element=wide, bytes_per_parameter=wide)
    known.add(gradients, bytes_per_gradient=job.gradients.bytes)
    known.add(f"optimizer: {job.optimizer}", optimizer_moments=float(job.moments))
    known.add("each moment in 32 bits", moment_bytes=full)
    if "copied" in job.variant:
        known.add("a copy of the weights in 32 bits", master_bytes=full)
    else:
        known.add("weights are in 32 bits", master_bytes=0.0)
    alone = job.parallelism.copies == 1
    known.add(partial(layout, job), gradient_scatters=0.0 if alone else 1.0)
    known.add(partial(layout, job), weight_gathers=0.0 if alone else 1.0)
    if job.parallelism.shard == "none":
        # All gather the gradients, of which each then updates all weights.
        known.add(gradients, gathered_bytes=job.gradients.bytes)
        known.add(partial(layout, job), state_shards=1.0)
    else:
        known.add(words, gathered_bytes=wide)
        known.add(partial(layout, job), state_shards=float(job.parallelism.copies))
    if job.graph.notes:
        return  # what it keeps for the way back is not known
    batches = training_micro_batches(job.global_batch, job.parallelism.data, job.micro_batch)
    found = held(
        job.graph,
        int(job.micro_batch),
        wide,
        job.gradients.bytes,
        whole=not alone or batches > 1,
    )
    walk = "the peak of a walk through the step, layer by layer, forward and back"
    known.add(walk, gradient_memory=found.gradients, activation_memory=found.activations)
