"""Power and energy that others measured, and what a device draws under a load, fitted to them.

Nothing here was measured by this project. `boundary` says what a value covers: GPUs alone, or a
whole machine at the wall. Values of different boundaries are not to be compared.

Three weights say how far running at all, the use of arithmetic and that of memory take a device
from idle to full power: computed from data, never typed by hand. They are fitted to single
kernels, matrix products of the atlas with a power reading. Services whose power and throughput were
measured test them. The counts of work and bytes of each service are those of `Engine.serve`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import median
from typing import TYPE_CHECKING, Any

from mlsim.equations import energy
from mlsim.hardware import Device
from mlsim.measured.tables import FILLED, FOLDER, Column, Measured, Table
from mlsim.precision import precision, recorded
from mlsim.solvers.footprint import surroundings
from mlsim.solvers.footprint.surroundings import Entry, Weights
from mlsim.solvers.formats import Formats
from mlsim.solvers.load import Load
from mlsim.solvers.serving.checks import service
from mlsim.solvers.serving.serving import Serving
from mlsim.values import literal
from mlsim.workloads.model import Model
from mlsim.workloads.steps import Parallelism
from mlsim.zoo import resolve
from mlsim.zoo.spaces import Hardware, Systems

if TYPE_CHECKING:
    from mlsim.measured.inference import ServingMeasurement

# What can be measured, and its unit.
METRICS: Mapping[str, str] = {
    "device_power": "W",
    "server_power": "W",
    "energy_per_output_token": "J/token",
    "energy_per_sample": "J/sample",
}


@dataclass(frozen=True, kw_only=True)
class PowerMeasurement(Measured):
    """One published result. None is what the source does not state.

    Attributes
    ----------
    id, series
        A name of its own; the table that it stands in. The power that belongs
        to an energy has the same id with "-W" behind it.
    model, device
        Keys of the zoo; None for what it does not have.
    devices, tensor_parallel, expert_parallel, data_parallel
        How many there were, and how they shared the work.
    batch_size, prompt_tokens, output_tokens
        Sequences served together and their lengths.
    formats
        Number formats of weights, activations and KV cache, with "/" between.
    software
        What ran the model.
    metric
        "device_power", of all devices together; "server_power", of the machine;
        "energy_per_output_token"; "energy_per_sample".
    value, unit
        As printed, but for those that a note derives.
    boundary
        What the value covers, in words.
    serving_id
        The row of `serving_measurements` that has the speed of the same service.
    year, source, quote, note
        When, in which document, in which words; anything else worth knowing.
    """

    series: str
    model: str | None
    device: str | None
    devices: int
    tensor_parallel: int | None
    expert_parallel: int | None
    data_parallel: int | None
    batch_size: int | None
    prompt_tokens: int | None
    output_tokens: int | None
    formats: str
    software: str
    boundary: str
    serving_id: str | None

    def said(self) -> tuple[str, str]:
        """Return what was published, in words: as a name, and in one line of Markdown."""
        metric = self.metric.replace("_", " ")
        words = f"measured {metric}, {self.series}, batch {self.batch_size}; {self.boundary}"
        return f"measured {metric}", literal(words)

    @property
    def per_device(self) -> float:
        """The value divided among the devices, for a power in W of each."""
        return self.value / self.devices

    @property
    def serving(self) -> ServingMeasurement | None:
        """The speed of the same service, if it was taken up.

        >>> row = power_measurements(series="mlenergy_Llama-3.1-8B-Instruct")[1]
        >>> row.value, row.serving.value
        (639.4, 1637.3)
        """
        from mlsim.measured.inference import SERVING

        found = SERVING.find(id=self.serving_id) if self.serving_id else [None]
        return found[0]


def power_measurements(
    *,
    model: Model | str | None = None,
    device: Device | str | None = None,
    metric: str | None = None,
    series: str | None = None,
) -> list[PowerMeasurement]:
    """Return published powers and energies, all or those that are asked for.

    Raises
    ------
    UnknownNameError
        If there is no such model, device, metric or series.

    >>> asked = {"model": "Llama3_8B", "metric": "energy_per_output_token"}
    >>> rows = power_measurements(device="H100", **asked)
    >>> [(row.batch_size, row.value) for row in rows]
    [(8, 0.4548), (64, 0.1186), (255, 0.0766), (511, 0.0702)]
    """
    return POWER.find(model=model, device=device, metric=metric, series=series)


def _formats(record: Mapping[str, str], name: str) -> str:
    for each in record[name].split("/") if record[name] else ():
        recorded(each)
    return record[name]


POWER = Table(
    PowerMeasurement,
    FOLDER / "power",
    {"formats": Column(_formats), "boundary": FILLED},
    METRICS,
)

# The kind of kernel to which weights are fitted, and the key of the document of all kernels.
FITTED, ATLAS = "products", "nvidia2026aiconfigurator"
# A band holds what is left: eight in ten.
_OUTSIDE = 0.1
# Rows of energy per token, and with "-W" behind the id the power of the same service.
_ENERGY, _POWER, _OF_POWER = "energy_per_output_token", "device_power", "-W"


@dataclass(frozen=True)
class PowerRow:
    """A service whose devices' power was measured, and its energy for each new token.

    `power` is that of one device in W; `energy_per_token` that of all in J.
    """

    id: str
    series: str
    source: str
    serving: Serving
    energy_per_token: float
    power: float

    @cached_property
    def load(self) -> Load:
        """The load, in the time that the measured throughput makes of it."""
        load = self.serving.load()
        throughput = self.power * load.devices / self.energy_per_token
        return load.within(f"{load.tokens / throughput!r} s")

    def served(self, estimate: str) -> Serving:
        """Return the service with another estimate of its time."""
        return Serving(replace(self.serving.service, estimate=estimate), check_memory=False)


@cache
def weights() -> Weights:
    """Return the weights of running, compute and memory, fitted to products of the atlas.

    They are a class's: readings are there of one device. Services test them.

    >>> found = weights()
    >>> found.compute > found.memory > found.running > 0
    True
    """
    fitted = next(each for each in kernels() if each.kind == FITTED)
    assert fitted.weights is not None
    found = rows()
    ratios = sorted(row.power / predict(row.load, fitted.weights) for row in found)
    running, compute, memory = fitted.weights
    return Weights(
        running=running,
        compute=compute,
        memory=memory,
        error=fitted.median,
        kernels=fitted.rows,
        device=Hardware.get(fitted.device).name,
        services=median(abs(1 / ratio - 1) for ratio in ratios),
        rows=len(found),
        low=_quantile(ratios, _OUTSIDE),
        high=_quantile(ratios, 1 - _OUTSIDE),
        sources=(ATLAS, *sorted({row.source for row in found})),
    )


@dataclass(frozen=True)
class KernelPower:
    """How well the weights tell the power of a kind of kernel.

    Attributes
    ----------
    id, source
        A name of its own; the key of the document.
    device, kind
        Key of the device; "products", to which the weights are fitted, or a kind that tests.
    running, compute, memory
        Weights; None where none are fitted.
    rows, median
        Kernels of more than 20 us, and the median of their errors, shapes left out.
    low, high
        Factors of the predicted power between which eight in ten were measured.
    """

    id: str
    device: str
    kind: str
    running: float | None
    compute: float | None
    memory: float | None
    rows: int
    median: float
    low: float
    high: float
    source: str

    @property
    def weights(self) -> tuple[float, float, float] | None:
        """Weights of running, compute and memory; None where none are fitted."""
        if self.running is None or self.compute is None or self.memory is None:
            return None
        return self.running, self.compute, self.memory


KERNELS = Table(KernelPower, FOLDER / "atlas" / "power.csv")


def kernels() -> tuple[KernelPower, ...]:
    """Return how well power is told by kind of kernel; `benchmarks/atlas/power.py` measures it.

    >>> [each.kind for each in kernels()][:2]
    ['products', 'products in bfloat16']
    """
    return KERNELS.rows()


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of ordered values lies, between two of them."""
    place = share * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 2)
    return ordered[below] + (ordered[below + 1] - ordered[below]) * (place - below)


def predict(load: Load, fitted: tuple[float, float, float]) -> float:
    """Return the power of one device of a load, in W."""
    idle, full = (each.low for each in limits(load.device))
    compute, memory = load.compute_utilisation or 0.0, load.memory_utilisation or 0.0
    running = fitted[0] if compute or memory else 0.0
    reached = energy.power_load(running, fitted[1], compute, fitted[2], memory)
    return float(energy.device_power(idle, full, energy.power_share(reached)))


@cache
def idle_share() -> tuple[float, int]:
    """Return the median of idle over full power, and of how many devices."""
    shares = [
        device.figures["power.idle"].si / device.figures["power.tdp"].si
        for device in Hardware
        if {"power.idle", "power.tdp"} <= set(device.figures)
    ]
    return median(shares), len(shares)


def limits(device: Device, idle: Any = None, full: Any = None) -> tuple[Entry, Entry]:
    """Return idle and full power of a device: as given, on record, or estimated."""
    return surroundings.limits(device, idle, full, idle_share)


@cache
def rows() -> tuple[PowerRow, ...]:
    """Return the services whose devices' power was measured, and their energy.

    Raises
    ------
    DataFileError
        If a file lacks a column, or a row can't be; names file and line.
    """
    measured = POWER.rows()
    energies = {each.id: each.value for each in measured if each.metric == _ENERGY}
    return tuple(
        PowerRow(key, each.series, each.source, _serving(each), energies[key], each.per_device)
        for each in measured
        if (key := each.id.removesuffix(_OF_POWER)) in energies and each.metric == _POWER
    )


def _serving(row: PowerMeasurement) -> Serving:
    """Return the service of a row, as `Engine.serve` would."""
    device = Hardware.get(row.device or "")
    weights_in, activations, kv_cache = map(precision, row.formats.split("/"))
    data = row.data_parallel or 1
    system = next(each for each in Systems if each.device is device) if row.devices > 1 else device
    return Serving(
        service(
            model=resolve.transformer(row.model or ""),
            hardware=system,
            batch_size=row.batch_size,
            prompt_tokens=row.prompt_tokens,
            output_tokens=row.output_tokens,
            formats=Formats(weights_in, activations, kv_cache),
            # Where experts alone are said to be spread, attention is taken to be divided.
            parallelism=Parallelism(
                tensor=row.devices // data, data=data, expert=row.expert_parallel or 1
            ),
        ),
        check_memory=False,
    )
