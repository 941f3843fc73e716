"""What others measured of training: published step times and rates, each with its words.

Nothing here was measured by this project. A row contains the arguments of
`Engine.train` with which the same step is predicted, as far as its source
states them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.hardware import Device
from mlsim.measured import cells
from mlsim.measured.networks import FOLDER
from mlsim.precision import recorded
from mlsim.records.rows import Published
from mlsim.records.tables import read
from mlsim.solvers.training.search import search
from mlsim.solvers.training.training import Training
from mlsim.solvers.training.validate import Asked, run
from mlsim.systems import Cluster, System
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.zoo import resolve, spaces

TRAINING_FOLDER = FOLDER / "training"

# What can be measured, and its unit; rates but that of sequences are of one device.
METRICS: Mapping[str, str] = {
    "step_time": "s",
    "mfu": "%",
    "model_flops_rate": "TFLOP/s",
    "tokens_per_device": "token/s",
    "sequence_throughput": "sample/s",
}
_BASE = {"%": 0.01, "TFLOP/s": 1e12}
LINK = "links.nvlink"
SHARDS = ("none", "zero1", "zero2", "zero3")
RECOMPUTE = ("none", "selective", "full")
ATTENTION = ("standard", "flash")
COUNTED = ("full", "causal")
# What decides the time of a step. Where a source leaves it out, it must be given.
LAYOUT = (
    "tensor_parallel",
    "pipeline_parallel",
    "interleaved",
    "data_parallel",
    "sequence_parallel",
    "context_parallel",
    "shard",
    "micro_batch",
    "recompute",
    "attention",
)
# Arguments of `Engine.train` that say how to answer, and not what is asked.
_OF_ANSWER = ("check_memory", "search")


@dataclass(frozen=True)
class TrainingMeasurement(Published):
    """One published result of training. None is what the source does not state.

    Attributes
    ----------
    id, series
        A name of its own; the table that it stands in: one source, one machine.
    model, device, system
        Keys of the zoo; `system` is the machine, or the one of the zoo that is
        most like it, and empty for a device on its own.
    devices, tensor_parallel, pipeline_parallel, interleaved, data_parallel,
    sequence_parallel, context_parallel, shard, micro_batch, global_batch,
    sequence_tokens, precision, recompute, attention, dropout
        As for `Engine.train`.
    software
        What ran the training.
    metric
        "step_time"; "mfu", model FLOPs utilization; "model_flops_rate" and
        "tokens_per_device", of one device; "sequence_throughput", of all.
    value, unit
        As printed.
    attention_counted
        Whether the model's operations, where they are counted, include those of a
        "full" square of attention, or of the half under its diagonal ("causal").
    year, source, quote, note
        When, in which document, in which words; anything else worth knowing.
    """

    id: str
    series: str
    model: str
    device: str
    system: str
    devices: int
    tensor_parallel: int | None
    pipeline_parallel: int | None
    interleaved: int | None
    data_parallel: int | None
    sequence_parallel: bool | None
    context_parallel: int | None
    shard: str | None
    micro_batch: int | None
    global_batch: int
    sequence_tokens: int
    precision: str
    recompute: str | None
    attention: str | None
    dropout: bool | None
    software: str
    metric: str
    value: float
    unit: str
    attention_counted: str | None
    year: int
    source: str
    quote: str
    note: str

    def said(self) -> tuple[str, str]:
        """Return what was published, in words: as a name, and in one line of Markdown."""
        devices = f"{self.devices:,} x {self.device}"
        name = f"measured {self.metric.replace('_', ' ')}"
        return name, f"{name} of training {self.model} on {devices}, {self.software}"

    @property
    def missing(self) -> tuple[str, ...]:
        """What the source does not state, and `train` must be given."""
        return tuple(name for name in LAYOUT if getattr(self, name) is None)

    @cached_property
    def transformer(self) -> Transformer:
        """The model as it was trained: its table of positions as long as the sequences."""
        model: Transformer = resolve.transformer(self.model)
        if not model.positions and self.sequence_tokens <= model.context:
            return model
        positions = model.positions and max(self.sequence_tokens, model.positions)
        context = max(self.sequence_tokens, model.context)
        return replace(model, context=context, positions=positions)

    @cached_property
    def machine(self) -> Device | System | Cluster:
        """The device, or the system, with the very device of the row in its nodes."""
        device: Device = spaces.Hardware.get(self.device)
        if not self.system:
            return device
        machine = resolve.cluster(self.system)
        if isinstance(machine, Cluster) and machine.device.key != device.key:
            return _with(device, machine)
        return machine

    @property
    def base_value(self) -> float:
        """The value in s, FLOP/s, token/s, sample/s, or as a fraction."""
        return self.value * _BASE.get(self.unit, 1.0)

    @property
    def step_time(self) -> float | None:
        """Seconds of a step where they follow from the value alone, else None.

        >>> rows = training_measurements(series="torchtitan_h100")
        >>> f"{rows[0].step_time:.2f} s"
        '2.84 s'
        """
        match self.metric:
            case "step_time":
                return self.value
            case "tokens_per_device":
                return self.global_batch * self.sequence_tokens / (self.value * self.devices)
            case "sequence_throughput":
                return self.global_batch / self.value
        return None

    def arguments(self, **more: Any) -> dict[str, Any]:
        """Return the arguments of `Engine.train` for the step that was measured.

        Parameters
        ----------
        **more
            Arguments in place of the row's, or that it leaves out.

        Raises
        ------
        InvalidValueError
            If the source does not state what decides the time, and nor does `more`.

        >>> row = training_measurements(series="megatron_tab5")[0]
        >>> given = row.arguments()
        >>> given["hardware"].name, given["micro_batch"], given["recompute"]
        ('NVIDIA Selene (DGX A100)', 4, 'full')
        """
        lacking = [name for name in self.missing if name not in more]
        if lacking:
            raise InvalidValueError(
                f"the source of {self.id} does not state {', '.join(lacking)}: give a value "
                f"of your own, such as row.train({lacking[0]}=...)."
            )
        names = (*LAYOUT, "devices", "global_batch", "sequence_tokens", "precision", "dropout")
        stated = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        whole = {"model": self.transformer, "hardware": self.machine, "check_memory": False}
        return {**whole, **stated, **more}

    def train(self, **more: Any) -> Training:
        """Predict the step that was measured, whether or not it fits.

        Raises
        ------
        InvalidValueError
            As for `arguments` and `Engine.train`.

        >>> row = training_measurements(series="megatron_tab5")[0]
        >>> row.value, round(row.train().value("step_time"), 1) < row.value
        (1.42, True)
        """
        arguments = self.arguments(**more)
        check_memory, find_layout = (arguments.pop(name, False) for name in _OF_ANSWER)
        arguments["model"] = resolve.transformer(arguments["model"])
        arguments["hardware"] = resolve.cluster(arguments["hardware"])
        asked = Asked.of(**arguments)
        return search(asked) if find_layout else Training(run(asked), check_memory=check_memory)


def training_measurements(
    *,
    model: Model | str | None = None,
    device: Device | str | None = None,
    software: str | None = None,
    metric: str | None = None,
    series: str | None = None,
) -> list[TrainingMeasurement]:
    """Return published results of training, all or those that are asked for.

    `software` matches from the left.

    Raises
    ------
    UnknownNameError
        If there is no such model, device, metric or series.

    >>> rows = training_measurements(model="Megatron_1T", metric="step_time")
    >>> [(row.recompute, row.value) for row in rows]
    [('full', 94.42), ('selective', 71.49)]
    """
    wanted_model = resolve.transformer(model).key if model is not None else None
    wanted_device = resolve.device(device).key if device is not None else None
    rows = (row for path in sorted(TRAINING_FOLDER.glob("*.csv")) for row in load(path))
    return [
        row
        for row in cells.chosen(rows, METRICS, metric, series)
        if wanted_model in (None, row.model)
        and wanted_device in (None, row.device)
        and (software is None or row.software.startswith(software))
    ]


@cache
def load(path: Path) -> tuple[TrainingMeasurement, ...]:
    """Read a file of measurements.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, a number can't be, sizes contradict
        each other, or names are not in the zoo or the bibliography; names file
        and line.
    """
    return read(path, tuple(TrainingMeasurement.__dataclass_fields__), _row)


def _row(record: dict[str, str]) -> TrainingMeasurement:
    recorded(record["precision"])
    cells.metric(record, METRICS)
    words = {"shard": SHARDS, "recompute": RECOMPUTE, "attention": ATTENTION}
    words["attention_counted"] = COUNTED
    parsed: dict[str, Any] = {
        **record,
        "model": cells.model(record, language=True),
        "device": cells.device(record),
        **{name: cells.count(record, name) for name in _COUNTS},
        **{name: cells.stated(record, name, cells.count) for name in _STATED_COUNTS},
        **{name: cells.stated(record, name, cells.flag) for name in _FLAGS},
        **{
            name: cells.choice(record, name, allowed) if record[name] else None
            for name, allowed in words.items()
        },
        "value": cells.positive(record, "value"),
    }
    row = TrainingMeasurement(**parsed)
    _check(row)
    return row


_COUNTS = ("devices", "global_batch", "sequence_tokens", "year")
_FLAGS = ("sequence_parallel", "dropout")
_STATED_COUNTS = (
    "tensor_parallel",
    "pipeline_parallel",
    "interleaved",
    "data_parallel",
    "context_parallel",
    "micro_batch",
)


def _check(row: TrainingMeasurement) -> None:
    """Refuse a machine or a layout that can't have been.

    Raises
    ------
    DataFileError
        If the machine has too few devices, or sizes don't make up the devices or the batch.
    UnknownNameError
        If the zoo has no such machine.
    """
    machine = row.machine
    there = 1 if isinstance(machine, Device) else machine.devices
    if row.devices > there:
        raise DataFileError(f"{machine.name} has {there:,} devices, fewer than {row.devices:,}.")
    inside = machine if isinstance(machine, Device) else machine.device
    if inside.key != row.device:
        raise DataFileError(f"{machine.name} is made of {inside.key}, not of {row.device}.")
    sizes = (row.tensor_parallel, row.pipeline_parallel, row.context_parallel, row.data_parallel)
    stated = [size for size in sizes if size is not None]
    if len(stated) == len(sizes) and math.prod(stated) != row.devices:
        raise DataFileError(
            f"parallel sizes {' x '.join(map(str, stated))} make {math.prod(stated):,} devices, "
            f"not {row.devices:,}."
        )
    if row.data_parallel and row.global_batch % (row.data_parallel * (row.micro_batch or 1)):
        raise DataFileError(
            f"global_batch {row.global_batch:,} is no whole number of micro-batches on "
            f"{row.data_parallel} copies."
        )


def _with(device: Device, cluster: Cluster) -> Cluster:
    """Return the cluster with another device in its nodes, joined by its own links."""
    figure = device.figures[LINK]
    node = System.of_figures(
        key=f"{cluster.node.devices} x {device.key}",
        name=f"{cluster.node.devices} x {device.name}",
        device=device,
        devices=cluster.node.devices,
        topology=cluster.node.topology,
        shape=cluster.node.shape,
        source=figure.source,
        figures={"link.bandwidth": figure},
    )
    return Cluster.of_figures(
        key=f"{cluster.key} with {device.key}",
        name=f"{cluster.name} with {device.name}",
        node=node,
        nodes=cluster.nodes,
        source=cluster.source,
        figures=cluster.figures,
    )
