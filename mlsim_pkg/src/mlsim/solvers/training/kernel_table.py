"""The kernels of a training run, each at the peak, the rate and the link that it uses."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from mlsim.equations import links
from mlsim.solvers.calibrated import in_program, start_of
from mlsim.solvers.training.job import Job
from mlsim.systems import placement
from mlsim.workloads.kernels import KERNEL_COLUMNS, Kernel
from mlsim.workloads.model import OperatorTable
from mlsim.workloads.steps import Parallelism
from mlsim.workloads.training_lowering import kernels

# Columns that a given quantity takes the place of.
_REPLACEABLE = ("peak_flops", "link_bandwidth", "kernel_overhead", "compute_fraction")
_TABLES: dict[Any, OperatorTable[Kernel]] = {}


def kernel_table(job: Job) -> OperatorTable[Kernel]:
    """Return the kernels of a micro-batch with peaks, rates and links of their own.

    Made once for all batches and sequences, and for all ways to hold the state and to order
    the stages: a search tries many with the same kernels.
    """
    replaced = tuple(name for name in _REPLACEABLE if name in job.given)
    spread = _spread(job.parallelism)
    key = (
        job.model,
        job.hardware,
        spread,
        job.recipe,
        job.precision,
        job.estimate,
        job.software,
        replaced,
    )
    found = _TABLES.get(key)
    if found is None:
        if len(_TABLES) >= 4096:
            _TABLES.clear()
        found = _TABLES[key] = _new_table(job, spread)
    return found


@lru_cache(maxsize=4096)
def _spread(parallelism: Parallelism) -> Parallelism:
    """Return a layout without what no kernel hangs on."""
    return replace(parallelism, shard="none", interleaved=1)


def _new_table(job: Job, spread: Parallelism) -> OperatorTable[Kernel]:
    rows = tuple(_placed(job, row) for row in kernels(job.model, spread, job.recipe))
    extra: dict[str, tuple[float, ...]] = {}
    if "peak_flops" not in job.given:
        extra["peak_flops"] = tuple(
            job.device.compute.figure(job.computes_in(row.kind, row.name)).si for row in rows
        )
    if job.calibrated:
        extra |= _calibrated_columns(job, rows)
    sending = next((row for row in rows if row.link_span), None)
    if sending and "link_bandwidth" not in job.given:
        extra["link_bandwidth"] = tuple(
            _exchange_bandwidth(job, row if row.link_span else sending) for row in rows
        )
    return OperatorTable(rows, KERNEL_COLUMNS, extra)


def _placed(job: Job, row: Kernel) -> Kernel:
    """Return a kernel with the messages of two levels, if its group is in several nodes."""
    lies = placement(row.link_span or 1, row.link_stride, job.node_devices)
    if not row.collective or lies.groups == 1:
        return row
    hops = links.two_level_hops(row.link_hops, row.link_span, lies.members, lies.groups)
    return replace(row, link_hops=int(hops))


def _exchange_bandwidth(job: Job, row: Kernel) -> float:
    """Rate at which a device of a stage sends; of two levels, that of one ring as fast."""
    one = job.bandwidth(row.link_span, row.link_stride)
    lies = placement(row.link_span, row.link_stride, job.node_devices)
    if not row.collective or lies.groups == 1 or job.node is None:
        return one
    inside = job.node.link_bandwidth(max(2, lies.members))
    return float(links.two_level_bandwidth(lies.members, lies.groups, inside, one))


def _calibrated_columns(job: Job, rows: tuple[Kernel, ...]) -> dict[str, tuple[float, ...]]:
    """Return columns of what was measured, where it is not the same for all kernels."""
    found, wide = job.achieved, job.attention_achieved
    made_by = job.software
    if found is None or wide is None or made_by is None:
        return {}
    starts = tuple(
        0.0
        if row.kind in ("network", "kept")
        else start_of(found.kernel_overhead, made_by, row.kind)
        for row in rows
    )
    # Standard attention is two products; flash attention is a kernel of its own.
    own = not job.recipe.standard
    reached = tuple(
        in_program(
            wide.attention_fraction if own and row.kind == "attention" else found.compute_fraction,
            made_by,
            row.kind,
            job.device,
            job.computes_in(row.kind, row.name),
        )
        for row in rows
    )
    columns = {"kernel_overhead": starts, "compute_fraction": reached}
    return {name: values for name, values in columns.items() if name not in job.given}
