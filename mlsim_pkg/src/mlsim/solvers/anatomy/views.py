"""The four views of the lectures that this came from, and what an anatomy prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError
from mlsim.solvers.anatomy.parts import Part
from mlsim.solvers.anatomy.view import View
from mlsim.units import held, text
from mlsim.workloads.graph import COUNTS, FLOP, operations

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
    sizes = f"{total['parameters']:,} parameters, {held(total['bytes_weights'])} of weights"
    notes = [f"{sizes}, {total['operations']:,.0f} {_unit(anatomy.count)}"]
    if anatomy.training:
        peak = anatomy.step.peak
        notes.append(f"peak of a step {held(peak.total)}, {peak.phase} {peak.layer}".rstrip())
    if anatomy.device:
        notes.append(
            f"{text(anatomy.run.value('latency'), 's')} a step, {anatomy.profile.estimate}"
        )
        notes += [f"{name}: {words}" for name, words in anatomy.profile.noted()]
    rows = anatomy.layers.rows
    if most and len(rows) > most:
        notes.append(f"{len(rows)} layers, of which the ends are shown; .layers has all")
    return View(anatomy.about, tuple(columns), rows, (*notes, *anatomy.notes), most=most)


def profile_ops(anatomy: Anatomy, count: str, part: Part) -> View:
    """Return the operations of each layer in a way of counting."""
    scaled = anatomy.traffic.scaled
    rows: list[dict[str, Any]] = part.folded(
        {"layer": node.name, "kind": node.kind, "operations": scaled(operations(node, count))}
        for node in part.of(anatomy.graph)
    )
    total = sum(row["operations"] for row in rows)
    rows.append({"layer": "total", "kind": "", "operations": total})
    way = "FLOP" if count == FLOP else f"count={count!r}"
    title = f"Operations of {_named(anatomy, part)}, {way}"
    return View(title, ("layer", "kind", "operations"), rows)


def _unit(count: str) -> str:
    return "FLOP" if count == FLOP else f"operations ({count})"


def counts(anatomy: Anatomy, layer: str) -> View:
    """Return what each way of counting makes of a layer, or of the whole network."""
    nodes = (anatomy.graph[layer],) if layer else anatomy.graph.nodes
    rows = []
    for name, (meaning, _) in COUNTS.items():
        try:
            one = sum(operations(node, name) for node in nodes)
        except InvalidValueError:
            continue
        work = anatomy.traffic.scaled(one)
        rows.append({"count": name, "operations": work, "what": meaning})
    title = f"{layer or anatomy.model.name}, batch {anatomy.batch_size}, by ways of counting"
    return View(title, ("count", "operations", "what"), rows)


_PARTS = ("inputs", "weights", "outputs")
_COLUMNS = ("bytes_in", "bytes_weights", "bytes_out")


def profile_layer_mem(anatomy: Anatomy, part: Part) -> View:
    """Return the working set of each layer, in bytes; of a block, the sum of its layers'."""
    rows = part.folded(
        {
            "layer": row["layer"],
            **{name: row[column] for name, column in zip(_PARTS, _COLUMNS, strict=True)},
            "working_set": row["working_set"],
        }
        for row in _rows(anatomy, part)
    )
    largest = max(_rows(anatomy, part), key=lambda row: float(row["working_set"]))
    title = f"Working set of each layer of {_named(anatomy, part)}, bytes"
    if part.depth:
        title = f"Working sets of layers of {_named(anatomy, part)}, added up by block, bytes"
    note = f"largest: {largest['layer']}, {held(float(largest['working_set']))}"
    return View(title, ("layer", *_PARTS, "working_set"), rows, (note,))


def _rows(anatomy: Anatomy, part: Part) -> list[Mapping[str, Any]]:
    names = {node.name for node in part.of(anatomy.graph)}
    return [row for row in anatomy.layers.rows if row["layer"] in names]


def _named(anatomy: Anatomy, part: Part) -> str:
    return f"{part.about}{anatomy.model.name}, batch {anatomy.batch_size}"


def profile_mem(anatomy: Anatomy, part: Part) -> View:
    """Return what inputs, weights and outputs take, and their shares."""
    held = _rows(anatomy, part)
    pairs = zip(_PARTS, _COLUMNS, strict=True)
    values = {name: sum(row[column] for row in held) for name, column in pairs}
    whole = sum(values.values())
    rows = [
        {"part": name, "bytes": value, "share": anatomy.traffic.share(value, whole)}
        for name, value in values.items()
    ]
    title = f"Working sets of {part.about}{anatomy.model.name} together, batch {anatomy.batch_size}"
    return View(title, ("part", "bytes", "share"), rows)


def summary(anatomy: Anatomy, part: Part) -> View:
    """Return the modules of a network, and sizes as a summary prints them."""
    nodes = [node for node in part.of(anatomy.graph) if not node.functional]
    rows = part.folded(
        {
            "layer": node.name,
            "type": f"{_kind(node)}-{number}",
            "output_shape": (-1, *node.shape),
            "parameters": node.parameters,
        }
        for number, node in enumerate(nodes, start=1)
    )
    traffic = anatomy.traffic
    outputs = sum(traffic.output(node) for node in nodes)
    parameters = sum(node.parameters for node in nodes)
    sizes = traffic.summary_sizes(_entering(anatomy, part), outputs, parameters)
    notes = (
        f"Total params: {parameters:,}",
        *(f"{name} (MB): {size:.2f}" for name, size in sizes.items()),
    )
    title = f"Summary of {_named(anatomy, part)}"
    return View(title, ("layer", "type", "output_shape", "parameters"), rows, notes)


def _entering(anatomy: Anatomy, part: Part) -> float:
    """Return the bytes that come into a part from outside, each array once."""
    graph = anatomy.graph
    own = {node.name for node in part.of(graph)}
    read = {name for node in part.of(graph) for name in node.inputs} - own
    return sum(anatomy.traffic.output(graph[name]) for name in sorted(read))


def _kind(node: Node) -> str:
    return f"{node.function} {node.kind}" if node.function else node.kind


def as_dict(anatomy: Anatomy) -> dict[str, Any]:
    """Return an anatomy for JSON: bytes, seconds and counts as plain numbers."""
    layers = anatomy.layers
    found: dict[str, Any] = {
        "model": anatomy.model.name,
        "hardware": anatomy.device.name if anatomy.device else None,
        "batch_size": anatomy.batch_size,
        "precision": anatomy.precision.name,
        "count": anatomy.count,
        "training": anatomy.training,
        "totals": anatomy.totals,
        "layers": [{name: row.get(name) for name in layers.columns} for row in layers.rows],
        "notes": list(anatomy.notes),
        **(anatomy.profile.notes_for_json() if anatomy.device else {}),
    }
    if anatomy.training:
        peak = anatomy.step.peak
        found["peak"] = {
            "phase": peak.phase,
            "layer": peak.layer,
            "total": peak.total,
            **peak.held,
        }
    return found


def moments(anatomy: Anatomy) -> View:
    """Return what lies in memory at each moment of a training step."""
    rows = [
        {"phase": each.phase, "layer": each.layer, **each.held, "total": each.total}
        for each in anatomy.step.moments
    ]
    peak = anatomy.step.peak
    note = f"peak: {held(peak.total)}, {peak.phase} {peak.layer}".rstrip()
    columns = ("phase", "layer", *peak.held, "total")
    return View(f"Memory of {anatomy.about}, bytes", columns, rows, (note,))
