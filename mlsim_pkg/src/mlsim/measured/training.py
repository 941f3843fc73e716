"""What others measured of training: steps, whole runs, and peaks of memory, each with its words.

Nothing here was measured by this project but the peaks of memory. A row of a step contains the
arguments of `Engine.train` with which the same step is predicted, as far as its source states
them. Many figures of whole runs are no measurements at all: an energy may be the GPU-hours times a
constant. `measured` says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.hardware import Device
from mlsim.measured.tables import (
    FILLED,
    FOLDER,
    LANGUAGE_MODEL,
    Measured,
    Table,
    one_of,
)
from mlsim.solvers.training.checks import Asked, scenario
from mlsim.solvers.training.choices import search
from mlsim.solvers.training.network import OPTIMIZERS, NetworkTraining, network_scenario
from mlsim.solvers.training.training import Training
from mlsim.systems import Cluster, System
from mlsim.values import literal
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.zoo import resolve, spaces

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
# What decides the time of a step. Where a source leaves it out, it must be given.
LAYOUT = (
    *("tensor_parallel", "pipeline_parallel", "interleaved", "data_parallel", "sequence_parallel"),
    *("context_parallel", "shard", "micro_batch", "recompute", "attention"),
)
# Arguments of `Engine.train` that say how to answer, and not what is asked.
_OF_ANSWER = ("check_memory", "search")


@dataclass(frozen=True, kw_only=True)
class TrainingMeasurement(Measured):
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
    attention_counted: str | None

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
        return (
            search(asked) if find_layout else Training(scenario(asked), check_memory=check_memory)
        )


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
    return STEPS.find(model=model, device=device, software=software, metric=metric, series=series)


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


STEPS = Table(
    TrainingMeasurement,
    FOLDER / "training",
    {
        "model": LANGUAGE_MODEL,
        "shard": one_of(("none", "zero1", "zero2", "zero3")),
        "recompute": one_of(("none", "selective", "full")),
        "attention": one_of(("standard", "flash")),
        "attention_counted": one_of(("full", "causal")),
    },
    METRICS,
    _check,
)
NETWORK_METRICS: Mapping[str, str] = {"throughput": "sample/s"}


@dataclass(frozen=True, kw_only=True)
class NetworkStep(Measured):
    """One published rate of training, of all devices together.

    Attributes
    ----------
    id, series
        A name of its own; the table that it stands in: one source, one piece of software.
    model, device, system
        Keys of the zoo; `system` is the machine, empty for a device on its own.
    devices, global_batch, precision, optimizer
        As for `Engine.train`.
    software
        What ran the training.
    metric, value, unit
        "throughput" in sample/s, as printed.
    year, source, quote, note
        When, in which document, in which words; anything else worth knowing.
    """

    series: str
    model: str
    device: str
    system: str
    devices: int
    global_batch: int
    precision: str
    optimizer: str
    software: str

    def said(self) -> tuple[str, str]:
        """Return what was measured, in words: as a name, and in one line of Markdown."""
        name = f"measured {self.metric} of training {self.model}"
        devices = f"{self.devices:,} x {self.device}"
        asked = f"batch {self.global_batch:,}, {self.precision}, {literal(self.software)}"
        return name, f"{name} on {devices}, {asked}"

    @property
    def machine(self) -> Device | System | Cluster:
        """The device, or the system that it is in."""
        return resolve.cluster(self.system or self.device)

    def train(self, estimate: str = "roofline", **more: Any) -> NetworkTraining:
        """Predict the step that was measured, whether or not it fits.

        Raises
        ------
        MlsimError
            As `Engine.train`.

        >>> row = network_steps()[0]
        >>> row.value < row.train().throughput
        True
        """
        names = ("devices", "global_batch", "precision", "optimizer")
        asked = {name: getattr(self, name) for name in names}
        model = spaces.Models.get(self.model)
        asked |= {"model": model, "hardware": self.machine, "estimate": estimate, **more}
        return NetworkTraining(network_scenario(Asked.of(**asked)), check_memory=False)


def network_steps() -> tuple[NetworkStep, ...]:
    """Return all published rates of training networks.

    Raises
    ------
    DataFileError
        If a table has a mistake; names file and line.

    >>> sorted({row.model for row in network_steps()})
    ['ResNet50']
    """
    return NETWORK_STEPS.rows()


def _check_network(row: NetworkStep) -> None:
    machine = row.machine
    there = 1 if isinstance(machine, Device) else machine.devices
    inside = machine if isinstance(machine, Device) else machine.device
    if inside.key != row.device or row.devices > there:
        raise DataFileError(
            f"{machine.name} is {there:,} x {inside.key}, not {row.devices:,} x {row.device}."
        )
    if row.global_batch % row.devices:
        raise DataFileError(
            f"global_batch {row.global_batch:,} does not divide among {row.devices:,} devices."
        )


NETWORK_STEPS = Table(
    NetworkStep,
    FOLDER / "network_training",
    {"optimizer": one_of(tuple(OPTIMIZERS))},
    NETWORK_METRICS,
    _check_network,
)


# What is reported of a run, and its unit.
RUN_METRICS: Mapping[str, str] = {
    "duration": "d",
    "device_hours": "h",
    "energy": "MWh",
    "emissions": "tCO2e",
    "power_per_device": "W",
}
# How a value came about: read off a meter or a clock; hours times a constant
# such as the TDP; or with assumptions of whoever reports it.
MEASURED = ("metered", "arithmetic", "estimated")


@dataclass(frozen=True, kw_only=True)
class PublishedRun(Measured):
    """One figure of one training run. None is what the source does not state.

    Attributes
    ----------
    id, run
        A name of its own; what was trained.
    model, device
        Keys of the zoo; None for what it does not have.
    tokens, devices
        Tokens of the whole run; how many devices there were.
    metric, value, unit
        "duration" in d, "device_hours" in h, "energy" in MWh, "emissions" in
        tCO2e, or "power_per_device" in W.
    boundary
        What the value covers, in words.
    measured
        "metered", "arithmetic" (hours times a constant), or "estimated".
    grid, pue
        Intensity of the electricity, as printed, and power usage
        effectiveness, where the publication states them.
    year, source, quote, note
        When, in which document, in which words; anything else worth knowing.
    """

    run: str
    model: str | None
    tokens: float | None
    device: str | None
    devices: int | None
    boundary: str
    measured: str
    grid: str
    pue: float | None

    def said(self) -> tuple[str, str]:
        """Return what was published, in words: as a name, and in one line of Markdown."""
        metric = self.metric.replace("_", " ")
        words = f"published {metric} of {self.run} ({self.measured}); {self.boundary}"
        return f"published {metric}", literal(words)


def published_runs(
    *,
    model: Model | str | None = None,
    run: str | None = None,
    metric: str | None = None,
    measured: str | None = None,
) -> list[PublishedRun]:
    """Return what was published of training runs, all or what is asked for.

    `run` matches from the left: "Llama 3" selects Llama 3, 3.1 and 3.2.

    Raises
    ------
    UnknownNameError
        If there is no such model or metric, or `measured` is no such word.

    >>> rows = published_runs(model="BLOOM_176B", metric="emissions")
    >>> [(row.value, row.measured) for row in rows]
    [(24.7, 'arithmetic'), (11.2, 'estimated'), (50.5, 'estimated')]
    """
    return RUNS.find(model=model, run=run, metric=metric, measured=measured)


def _check_run(row: PublishedRun) -> None:
    if row.pue is not None and row.pue < 1:
        raise DataFileError(
            f"pue must be 1 or more, not {row.pue:g}: a data center includes its machines."
        )


RUNS = Table(
    PublishedRun,
    FOLDER / "runs",
    {
        "measured": one_of(MEASURED, "way of measuring"),
        **dict.fromkeys(("run", "boundary"), FILLED),
    },
    RUN_METRICS,
    _check_run,
)


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """The peak of one step in FP32, in bytes: measured, and counted from the module.

    `model` is the network of the zoo that it is, or None.
    """

    id: str
    network: str
    model: str | None
    optimizer: str
    batch_size: int
    measured: float
    counted: float
    unit: str
    software: str
    source: str


def training_memory() -> tuple[TrainingMemory, ...]:
    """Return all measured peaks.

    They are of a processor; `benchmarks/training_memory.py` writes the table. Every tensor that is
    alive is added up, so that nothing depends on the machine.

    >>> peak = training_memory()[0]
    >>> peak.network, abs(peak.counted / peak.measured - 1) < 0.01
    ('LeNet', True)
    """
    return PEAKS.rows()


PEAKS = Table(
    TrainingMemory,
    FOLDER / "memory" / "training_steps.csv",
    {"optimizer": one_of(("sgd", "momentum", "adam")), "unit": one_of(("B",))},
)
