"""What a network is made of: each layer's shapes, operations, bytes, and time on a device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.errors import Suggesting, WrongKindError, unknown_name
from mlsim.precision import Precision
from mlsim.solvers.anatomy import rows as made, runs, views
from mlsim.solvers.anatomy.figures import Figures, Layer, Layers, Peak, figure
from mlsim.solvers.anatomy.parts import Part
from mlsim.solvers.anatomy.runs import OPTIMIZERS
from mlsim.solvers.anatomy.view import View
from mlsim.solvers.calibrated import made_by
from mlsim.solvers.forward import profile as forward
from mlsim.units import text
from mlsim.workloads.graph import FLOP, check_count
from mlsim.workloads.graph.fuse import Traffic, fused
from mlsim.workloads.graph.training import TrainingStep

if TYPE_CHECKING:
    import pandas

    from mlsim.hardware import Device
    from mlsim.values.kinds import Quantity
    from mlsim.workloads.graph import Graph
    from mlsim.workloads.model import Model


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
        self.software = made_by(software, estimate, "train_network" if training else "solve")
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
        found: Iterator[dict[str, Any]] = made.layer_rows(
            self.graph, self.traffic, self.count, self.kernels
        )
        if self.training:
            found = made.add_training(found, self.graph, self.traffic, OPTIMIZERS[self.optimizer])
        return self._view("layers", found)

    @cached_property
    def operators(self) -> View:
        """A row for each kernel; times add up to the latency that `Engine.solve` gives."""
        found = made.kernel_rows(self.graph, self.traffic, self.count, self.kernels)
        return self._view("kernels", found)

    def _view(self, what: str, found: Iterator[dict[str, Any]]) -> View:
        columns = [*made.LAYER, *made.MOVED]
        if self.training and what == "layers":
            columns += made.TRAINED
        columns.append("runs_in")
        if self.device:
            found = made.add_times(found, self.profile.operators)
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
        return runs.forward_pass(self)

    @cached_property
    def training_profile(self) -> forward.Profile:
        """One step of training on the device: forward, the way back, the update."""
        return runs.training_pass(self)

    @property
    def run(self) -> forward.Profile:
        """One forward pass on the device, or with training=True one step of training."""
        return self.training_profile if self.training else self.profile

    # Memory.

    @property
    def memory_required(self) -> Quantity:
        """Bytes at the worst moment: of a forward pass, or with training=True of a step."""
        return runs.in_memory(self, "memory_required", runs.required(self))

    @property
    def memory_free(self) -> Quantity:
        """Bytes that are left on the device; negative if it does not fit.

        Raises
        ------
        InvalidValueError
            If no hardware was given.
        """
        return runs.in_memory(self, "memory_free", runs.free(self))

    @cached_property
    def step(self) -> TrainingStep:
        """One step of training, moment by moment.

        Raises
        ------
        InvalidValueError
            If training was not asked about, or the network was not described closely
            enough for that.
        """
        return runs.training_step(self)

    @property
    def moments(self) -> View:
        """What lies in memory at each moment of a training step, in bytes."""
        return views.moments(self)

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
        return views.profile_ops(self, check_count(count or self.count), Part(inside, depth))

    def profile_layer_mem(self, *, inside: str = "", depth: int = 0) -> View:
        """The working set of each layer: what it reads, its weights, what it writes."""
        return views.profile_layer_mem(self, Part(inside, depth))

    def profile_mem(self, *, inside: str = "") -> View:
        """What inputs, weights and outputs take of all working sets together."""
        return views.profile_mem(self, Part(inside))

    def summary(self, *, inside: str = "", depth: int = 0) -> View:
        """Layers with their output shapes and parameters, and sizes in MB of 2**20 bytes."""
        return views.summary(self, Part(inside, depth))

    def counts(self, layer: str = "") -> View:
        """What each way of counting makes of a layer, or of the whole network.

        Raises
        ------
        UnknownNameError
            If there is no such layer.
        """
        return views.counts(self, layer)

    # Written out.

    def to_dict(self) -> dict[str, Any]:
        """Return the anatomy for JSON: bytes, seconds and counts as plain numbers."""
        return views.as_dict(self)

    def overview(self, most: int = 40) -> View:
        """Layers with what fits on a line, and totals; of more than `most`, the ends (0: all)."""
        return views.overview(self, most)

    def __str__(self) -> str:
        return str(self.overview())

    def _repr_markdown_(self) -> str:
        return self.overview()._repr_markdown_()

    def __repr__(self) -> str:
        return f"<Anatomy {self.about}: {len(self.layers)} layers, {self._size()}>"

    def _size(self) -> str:
        return f"{text(float(self.total('parameters')), 'parameter')}"
