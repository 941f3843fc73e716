"""What a network is made of: each layer's shapes, operations, bytes, and time on a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.equations.roofline import memory_free
from mlsim.errors import InvalidValueError, Suggesting, WrongKindError, unknown_name
from mlsim.precision import Precision
from mlsim.quantities import term
from mlsim.solvers.anatomy.layers import (
    LAYER,
    MOVED,
    TRAINED,
    Figures,
    Layer,
    Layers,
    Part,
    Peak,
    View,
    add_times,
    add_training,
    figure,
    kernel_rows,
    layer_rows,
)
from mlsim.solvers.calibrated import software_of
from mlsim.solvers.forward import profile as forward
from mlsim.units import held, text
from mlsim.values import Origin
from mlsim.workloads.graph import COUNTS, FLOP, check_count, operations
from mlsim.workloads.graph.fuse import Traffic, fused
from mlsim.workloads.graph.training import TrainingStep, network_of, training_network

if TYPE_CHECKING:
    import pandas

    from mlsim.hardware import Device
    from mlsim.values.kinds import Quantity
    from mlsim.workloads.graph import Graph
    from mlsim.workloads.model import Model, Network

# Numbers that each optimizer keeps of a parameter.
OPTIMIZERS = {"sgd": 0, "momentum": 1, "adam": 2}
# More layers than this are not printed unless somebody asks for all.
_MOST = 40
_PARTS = ("inputs", "weights", "outputs")
_COLUMNS = ("bytes_in", "bytes_weights", "bytes_out")


class Anatomy(Figures, Suggesting):
    """The layers of a network, for one batch; its figures are those of all layers together.

    Parameters
    ----------
    graph
        The network's computation graph.
    model
        What it was made of.
    batch_size, precision
        Samples, and the number format of weights and activations.
    count
        How operations are counted, one of `COUNTS`.
    training, optimizer
        Whether training is asked about, and what keeps states of the weights.
    device, estimate, software
        Where it runs, if that is asked, what kind of answer its times are, and what program runs
        it: one that trains runs the step that its training is.

    >>> from mlsim import Models, anatomy
    >>> lenet = anatomy(Models.LeNet5_Variant)
    >>> lenet.total("operations"), lenet.total("parameters")
    (557040, 41282)
    >>> lenet.working_set.show(",.0f", "B"), lenet["conv1"].working_set.show(",.0f", "B")
    (251,904 B, 17,584 B)
    >>> lenet["conv1"]["shape_out"]
    (6, 24, 24)
    """

    def __init__(
        self,
        graph: Graph,
        model: Model,
        *,
        batch_size: int,
        precision: Precision,
        count: str = FLOP,
        training: bool = False,
        optimizer: str = "momentum",
        device: Device | None = None,
        estimate: str = "roofline",
        software: str | None = None,
    ) -> None:
        if not isinstance(optimizer, str) or optimizer not in OPTIMIZERS:
            raise unknown_name("optimizer", optimizer, OPTIMIZERS)
        self.graph, self.model, self.batch_size = graph, model, batch_size
        self.precision, self.count, self.training = precision, check_count(count), training
        self.optimizer, self.device, self.estimate = optimizer, device, estimate
        self.software = software_of(software, estimate, "train_network" if training else "solve")
        self.kernels = fused(graph)
        self.traffic = Traffic(graph, batch_size, precision.bytes)

    @property
    def about(self) -> str:
        """What this is the anatomy of, in words."""
        where = f" on {self.device.name}" if self.device else ""
        use = f"training with {self.optimizer}" if self.training else "inference"
        return f"{self.model.name}{where}, batch {self.batch_size}, {self.precision.name}, {use}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be counted exactly, in words."""
        return self.graph.notes

    # Rows.

    @cached_property
    def layers(self) -> View:
        """A row for each layer, as a framework runs it.

        Of layers that run in one kernel, the first has its time, and the others none.
        """
        found = layer_rows(self.graph, self.traffic, self.count, self.kernels)
        if self.training:
            found = add_training(found, self.graph, self.traffic, OPTIMIZERS[self.optimizer])
        return self._view("layers", found)

    @cached_property
    def operators(self) -> View:
        """A row for each kernel; times add up to the latency that `Engine.solve` gives."""
        found = kernel_rows(self.graph, self.traffic, self.count, self.kernels)
        return self._view("kernels", found)

    def _view(self, what: str, found: Iterator[dict[str, Any]]) -> View:
        columns = [*LAYER, *MOVED]
        if self.training and what == "layers":
            columns += TRAINED
        columns.append("runs_in")
        if self.device:
            found = add_times(found, self.profile.operators)
            columns += ("time", "bound")
        rows = [Layer(row, self) for row in found]
        return View(f"{self.about}, by {what}", tuple(columns), rows, self.notes)

    def __getitem__(self, layer: str) -> Layer:
        """Return the row of a layer: plain numbers by name, values as attributes.

        Raises
        ------
        UnknownNameError
            If there is none of that name.
        """
        row: Layer
        for row in self.layers:
            if row["layer"] == layer:
                return row
        raise unknown_name("layer", layer, [row["layer"] for row in self.layers.rows])

    def __len__(self) -> int:
        return len(self.layers)

    def part(self, *, inside: str = "", kind: str = "") -> Layers:
        """Return layers of one block, of one kind, or both: each, and their figures together.

        Parameters
        ----------
        inside
            The beginning of their names up to a dot, such as "encoder.1"; all, if empty.
        kind
            Such as "linear" or "convolution"; all, if empty.

        Raises
        ------
        UnknownNameError
            If no layer lies in the block, or none of it is of the kind.

        >>> from mlsim import anatomy
        >>> lenet = anatomy("LeNet5_Variant")
        >>> lenet.part(kind="linear").parameters / lenet.parameters > 0.9
        True
        """
        names = {node.name for node in Part(inside).of(self.graph)}
        rows = [row for row in self.layers if row["layer"] in names]
        found = [row for row in rows if not kind or row["kind"] == kind]
        if not found:
            raise unknown_name("kind of layer", kind, {row["kind"] for row in rows})
        what = f"{len(found)} {kind} layers" if kind else inside
        return Layers(found, f"{what} of {inside}" if kind and inside else what, self)

    def quantity(self, name: str) -> Quantity:
        """Return a figure of all layers together by its name, as its attribute does.

        Their time is that of a forward pass, or with training=True of one step.
        """
        if name == "time":
            return self.run.latency
        return figure(name, self.layers.rows, self.model.name, self)

    @property
    def frame(self) -> pandas.DataFrame:
        """The rows of all layers as a pandas table."""
        return self.layers.frame

    def to_csv(self, path: Any = None) -> str:
        """Return the rows of all layers as CSV; with a path, also write them there."""
        return self.layers.to_csv(path)

    def total(self, column: str) -> Any:
        """Return the sum of a column of numbers over all layers.

        Raises
        ------
        UnknownNameError, WrongKindError
            If there is no such column, or it holds no numbers that add up.
        """
        values = self.layers[column]
        if column == "intensity" or any(isinstance(each, (str, tuple)) for each in values):
            raise WrongKindError(f"{column} of several layers doesn't add up; see .layers.")
        return sum(values)

    @property
    def totals(self) -> dict[str, Any]:
        """The sums of all columns that add up."""
        summed = [
            name
            for name in self.layers.columns
            if name != "intensity" and all(isinstance(v, (int, float)) for v in self.layers[name])
        ]
        return {name: self.total(name) for name in summed}

    # Time.

    @cached_property
    def profile(self) -> forward.Profile:
        """One forward pass on the device, kernel by kernel.

        Raises
        ------
        InvalidValueError
            If no hardware was given.
        """
        network = network_of(self.graph, like=self.model, samples=self.batch_size)
        return self._pass(network)

    @cached_property
    def training_profile(self) -> forward.Profile:
        """One step of training on the device: forward, the way back, the update."""
        states = OPTIMIZERS[self.optimizer]
        return self._pass(training_network(self.graph, states, like=self.model))

    def _pass(self, network: Network) -> forward.Profile:
        return forward.solve(
            network,
            self._device("time"),
            batch_size=self.batch_size,
            precision=self.precision,
            estimate=self.estimate,
            software=self.software,
            check_memory=False,
        )

    def _device(self, what: str) -> Device:
        if self.device is None:
            raise InvalidValueError(f"{what} needs a device: give hardware=, such as 'A100'.")
        return self.device

    @property
    def run(self) -> forward.Profile:
        """One forward pass on the device, or with training=True one step of training."""
        return self.training_profile if self.training else self.profile

    # Memory.

    @property
    def memory_required(self) -> Quantity:
        """Bytes at the worst moment: of a forward pass, or with training=True of a step."""
        return self._in_memory("memory_required", self.required_bytes)

    @property
    def memory_free(self) -> Quantity:
        """Bytes that are left on the device; negative if it does not fit.

        Raises
        ------
        InvalidValueError
            If no hardware was given.
        """
        return self._in_memory("memory_free", self.free_bytes)

    @property
    def required_bytes(self) -> float:
        """`memory_required` as a number."""
        if self.training:
            return self.step.peak.total
        live = max(each.operator.activations_live for each in self.kernels)
        return self.traffic.inference_memory(live)

    @property
    def free_bytes(self) -> float:
        """`memory_free` as a number."""
        return float(memory_free(self._device("memory").capacity_si, self.required_bytes))

    def _in_memory(self, name: str, value: float) -> Quantity:
        what = "the peak of a step" if self.training else "weights, and the activations alive"

        def origin(value: Quantity) -> Origin:
            words = name.replace("_", " ")
            brief = f"{words} = {value.in_full} ({self.about})"
            return Origin(words, brief, f"{brief}\n\nBy {what} at the worst moment.")

        return term(name).scaled(value, origin)

    @cached_property
    def step(self) -> TrainingStep:
        """One step of training, moment by moment.

        Raises
        ------
        InvalidValueError
            If training was not asked about, or the network was not described closely
            enough for that.
        """
        if not self.training:
            raise InvalidValueError(
                "moments and peak are those of a step of training: give training=True."
            )
        if self.notes:
            raise InvalidValueError(f"what training holds is not known: {' '.join(self.notes)}")
        return TrainingStep(
            self.graph,
            batch_size=self.batch_size,
            element_bytes=self.precision.bytes,
            states=OPTIMIZERS[self.optimizer],
        )

    @property
    def moments(self) -> View:
        """What lies in memory at each moment of a training step, in bytes."""
        rows = [
            {"phase": each.phase, "layer": each.layer, **each.held, "total": each.total}
            for each in self.step.moments
        ]
        peak = self.step.peak
        note = f"peak: {held(peak.total)}, {peak.phase} {peak.layer}".rstrip()
        columns = ("phase", "layer", *peak.held, "total")
        return View(f"Memory of {self.about}, bytes", columns, rows, (note,))

    @property
    def peak(self) -> Peak:
        """The moment of a training step at which most is held."""
        return Peak(self.step.peak, self)

    # Views, named as in the lecture that they come from.

    def profile_ops(self, count: str = "", *, inside: str = "", depth: int = 0) -> View:
        """Operations of each layer, and their sum.

        As in the three views below, `inside` keeps the layers of one block, by the beginning of
        their names, and `depth` makes one row of layers that share so many names.

        >>> from mlsim import anatomy
        >>> anatomy("ResNet18").profile_ops(inside="conv2", depth=1)["layer"]
        ['1', '2', 'total']
        """
        count, part = check_count(count or self.count), Part(inside, depth)
        scaled = self.traffic.scaled
        rows: list[dict[str, Any]] = part.folded(
            {"layer": node.name, "kind": node.kind, "operations": scaled(operations(node, count))}
            for node in part.of(self.graph)
        )
        total = sum(row["operations"] for row in rows)
        rows.append({"layer": "total", "kind": "", "operations": total})
        way = "FLOP" if count == FLOP else f"count={count!r}"
        title = f"Operations of {self._named(part)}, {way}"
        return View(title, ("layer", "kind", "operations"), rows)

    def profile_layer_mem(self, *, inside: str = "", depth: int = 0) -> View:
        """The working set of each layer: what it reads, its weights, what it writes."""
        part = Part(inside, depth)
        rows = part.folded(
            {
                "layer": row["layer"],
                **{name: row[column] for name, column in zip(_PARTS, _COLUMNS, strict=True)},
                "working_set": row["working_set"],
            }
            for row in self._rows_of(part)
        )
        largest = max(self._rows_of(part), key=lambda row: float(row["working_set"]))
        title = f"Working set of each layer of {self._named(part)}, bytes"
        if part.depth:
            title = f"Working sets of layers of {self._named(part)}, added up by block, bytes"
        note = f"largest: {largest['layer']}, {held(float(largest['working_set']))}"
        return View(title, ("layer", *_PARTS, "working_set"), rows, (note,))

    def profile_mem(self, *, inside: str = "") -> View:
        """What inputs, weights and outputs take of all working sets together."""
        part = Part(inside)
        found = self._rows_of(part)
        pairs = zip(_PARTS, _COLUMNS, strict=True)
        values = {name: sum(row[column] for row in found) for name, column in pairs}
        whole = sum(values.values())
        rows = [
            {"part": name, "bytes": value, "share": value / whole if whole else 0.0}
            for name, value in values.items()
        ]
        title = f"Working sets of {part.about}{self.model.name} together, batch {self.batch_size}"
        return View(title, ("part", "bytes", "share"), rows)

    def summary(self, *, inside: str = "", depth: int = 0) -> View:
        """Layers with their output shapes and parameters, and sizes in MB of 2**20 bytes."""
        part = Part(inside, depth)
        nodes = [node for node in part.of(self.graph) if not node.functional]
        rows = part.folded(
            {
                "layer": node.name,
                "type": f"{node.function} {node.kind}-{number}".lstrip(),
                "output_shape": (-1, *node.shape),
                "parameters": node.parameters,
            }
            for number, node in enumerate(nodes, start=1)
        )
        traffic = self.traffic
        outputs = sum(traffic.output(node) for node in nodes)
        parameters = sum(node.parameters for node in nodes)
        sizes = traffic.summary_sizes(self._entering(part), outputs, parameters)
        notes = (
            f"Total params: {parameters:,}",
            *(f"{name} (MB): {size:.2f}" for name, size in sizes.items()),
        )
        title = f"Summary of {self._named(part)}"
        return View(title, ("layer", "type", "output_shape", "parameters"), rows, notes)

    def counts(self, layer: str = "") -> View:
        """What each way of counting makes of a layer, or of the whole network.

        Raises
        ------
        UnknownNameError
            If there is no such layer.
        """
        nodes = (self.graph[layer],) if layer else self.graph.nodes
        rows = []
        for name, meaning in COUNTS.items():
            try:
                one = sum(operations(node, name) for node in nodes)
            except InvalidValueError:
                continue
            work = self.traffic.scaled(one)
            rows.append({"count": name, "operations": work, "what": meaning})
        title = f"{layer or self.model.name}, batch {self.batch_size}, by ways of counting"
        return View(title, ("count", "operations", "what"), rows)

    def _rows_of(self, part: Part) -> list[Mapping[str, Any]]:
        names = {node.name for node in part.of(self.graph)}
        return [row for row in self.layers.rows if row["layer"] in names]

    def _named(self, part: Part) -> str:
        return f"{part.about}{self.model.name}, batch {self.batch_size}"

    def _entering(self, part: Part) -> float:
        """Return the bytes that come into a part from outside, each array once."""
        own = {node.name for node in part.of(self.graph)}
        read = {name for node in part.of(self.graph) for name in node.inputs} - own
        return sum(self.traffic.output(self.graph[name]) for name in sorted(read))

    # Written out.

    def to_dict(self) -> dict[str, Any]:
        """Return the anatomy for JSON: bytes, seconds and counts as plain numbers."""
        layers = self.layers
        found: dict[str, Any] = {
            "model": self.model.name,
            "hardware": self.device.name if self.device else None,
            "batch_size": self.batch_size,
            "precision": self.precision.name,
            "count": self.count,
            "training": self.training,
            "totals": self.totals,
            "layers": [{name: row.get(name) for name in layers.columns} for row in layers.rows],
            "notes": list(self.notes),
            **(self.profile.notes_for_json() if self.device else {}),
        }
        if self.training:
            peak = self.step.peak
            found["peak"] = {
                "phase": peak.phase,
                "layer": peak.layer,
                "total": peak.total,
                **peak.held,
            }
        return found

    def overview(self, most: int = 40) -> View:
        """Layers with what fits on a line, and totals; of more than `most`, the ends (0: all)."""
        columns = ["layer", "kind", "shape_out", "parameters", "operations", "working_set"]
        columns += ["intensity", *(("time", "bound") if self.device else ())]
        total = self.totals
        sizes = f"{total['parameters']:,} parameters, {held(total['bytes_weights'])} of weights"
        unit = "FLOP" if self.count == FLOP else f"operations ({self.count})"
        notes = [f"{sizes}, {total['operations']:,.0f} {unit}"]
        if self.training:
            peak = self.step.peak
            notes.append(f"peak of a step {held(peak.total)}, {peak.phase} {peak.layer}".rstrip())
        if self.device:
            notes.append(f"{text(self.run.value('latency'), 's')} a step, {self.profile.estimate}")
            notes += [f"{name}: {words}" for name, words in self.profile.noted()]
        rows = self.layers.rows
        if most and len(rows) > most:
            notes.append(f"{len(rows)} layers, of which the ends are shown; .layers has all")
        return View(self.about, tuple(columns), rows, (*notes, *self.notes), most=most)

    def __str__(self) -> str:
        return str(self.overview())

    def _repr_markdown_(self) -> str:
        return self.overview()._repr_markdown_()

    def __repr__(self) -> str:
        size = text(float(self.total("parameters")), "parameter")
        return f"<Anatomy {self.about}: {len(self.layers)} layers, {size}>"
