"""The four views of the lectures that this came from, and what an anatomy prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.solvers.anatomy.view import View
from mlsim.units import text

if TYPE_CHECKING:
    from mlsim.solvers.anatomy.anatomy import Anatomy
    from mlsim.workloads.graph import Node


# More layers than this are not printed unless somebody asks for all.
_MOST = 40


def overview(anatomy: Anatomy, most: int = _MOST) -> View:
    """Return layers with what fits on a line, and totals below; of many, those at the ends."""
    columns = ["layer", "kind", "shape_out", "parameters", "operations", "working_set"]
    columns += ["intensity", *(("time", "bound") if anatomy.device else ())]
    total = anatomy.totals
    held = f"{total['parameters']:,} parameters, {text(total['bytes_weights'], 'B')} of weights"
    notes = [f"{held}, {total['operations']:,.0f} operations ({anatomy.count})"]
    if anatomy.training:
        peak = anatomy.peak
        notes.append(f"peak of a step {text(peak.total, 'B')}, {peak.phase} {peak.layer}".rstrip())
    if anatomy.device:
        notes.append(f"{text(anatomy.time, 's')} a step, {anatomy.profile.estimate}")
    rows = anatomy.layers.rows
    if most and len(rows) > most:
        notes.append(f"{len(rows)} layers, of which the ends are shown; .layers has all")
    return View(anatomy.about, tuple(columns), rows, (*notes, *anatomy.notes), most=most)


def profile_ops(anatomy: Anatomy, count: str) -> View:
    """Return the operations of each layer in a way of counting."""
    from mlsim.workloads.graph.counting import operations

    scaled = anatomy.traffic.scaled
    rows: list[dict[str, Any]] = [
        {"layer": node.name, "kind": node.kind, "operations": scaled(operations(node, count))}
        for node in anatomy.graph.layers
    ]
    total = sum(row["operations"] for row in rows)
    rows.append({"layer": "total", "kind": "", "operations": total})
    title = f"Operations of {anatomy.model.name}, batch {anatomy.batch_size}, count={count!r}"
    return View(title, ("layer", "kind", "operations"), rows)


_PARTS = ("inputs", "weights", "outputs")
_COLUMNS = ("bytes_in", "bytes_weights", "bytes_out")


def profile_layer_mem(anatomy: Anatomy) -> View:
    """Return the working set of each layer, in bytes."""
    rows = [
        {
            "layer": row["layer"],
            **{part: row[column] for part, column in zip(_PARTS, _COLUMNS, strict=True)},
            "working_set": row["working_set"],
        }
        for row in anatomy.layers.rows
    ]
    largest = max(rows, key=lambda row: float(row["working_set"]))
    title = f"Working set of each layer of {anatomy.model.name}, batch {anatomy.batch_size}, bytes"
    note = f"largest: {largest['layer']}, {text(float(largest['working_set']), 'B')}"
    return View(title, ("layer", *_PARTS, "working_set"), rows, (note,))


def profile_mem(anatomy: Anatomy) -> View:
    """Return what inputs, weights and outputs take, and their shares."""
    totals = anatomy.totals
    values = {part: totals[column] for part, column in zip(_PARTS, _COLUMNS, strict=True)}
    whole = sum(values.values())
    rows = [
        {"part": part, "bytes": value, "share": anatomy.traffic.share(value, whole)}
        for part, value in values.items()
    ]
    title = f"Working sets of {anatomy.model.name} together, batch {anatomy.batch_size}"
    return View(title, ("part", "bytes", "share"), rows)


def summary(anatomy: Anatomy) -> View:
    """Return the modules of a network, and sizes as a summary prints them."""
    nodes = [node for node in anatomy.graph.layers if not node.functional]
    numbered = enumerate(nodes, start=1)
    rows = [
        {
            "layer": node.name,
            "type": f"{_kind(node)}-{number}",
            "output_shape": (-1, *node.shape),
            "parameters": node.parameters,
        }
        for number, node in numbered
    ]
    traffic = anatomy.traffic
    outputs = sum(traffic.output(node) for node in nodes)
    inputs = sum(traffic.output(node) for node in anatomy.graph if node.kind == "input")
    parameters = sum(node.parameters for node in nodes)
    sizes = traffic.summary_sizes(inputs, outputs, parameters)
    notes = (
        f"Total params: {parameters:,}",
        *(f"{name} (MB): {size:.2f}" for name, size in sizes.items()),
    )
    title = f"Summary of {anatomy.model.name}, batch {anatomy.batch_size}"
    return View(title, ("layer", "type", "output_shape", "parameters"), rows, notes)


def _kind(node: Node) -> str:
    return f"{node.function} {node.kind}" if node.function else node.kind


def moments(anatomy: Anatomy) -> View:
    """Return what lies in memory at each moment of a training step."""
    rows = [
        {"phase": each.phase, "layer": each.layer, **each.held, "total": each.total}
        for each in anatomy.step.moments
    ]
    peak = anatomy.peak
    note = f"peak: {text(peak.total, 'B')}, {peak.phase} {peak.layer}".rstrip()
    columns = ("phase", "layer", *peak.held, "total")
    return View(f"Memory of {anatomy.about}, bytes", columns, rows, (note,))
