"""What a device draws under a load: constants computed from data, never typed by hand.

Three weights say how far running at all, the use of arithmetic and that of memory take a
device from idle to full power. They are fitted to single kernels: matrix products of the
atlas with a power reading. Services whose power and throughput were measured test them. The
counts of work and bytes of each service are those of `Engine.serve`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import median
from typing import Any

from mlsim.equations import energy
from mlsim.errors import DataFileError, MlsimError
from mlsim.hardware import Device
from mlsim.precision import precision
from mlsim.records import DATA
from mlsim.records.tables import count, positive, read
from mlsim.solvers.footprint import power
from mlsim.solvers.footprint.entries import Entry
from mlsim.solvers.footprint.power import Weights
from mlsim.solvers.formats import Formats
from mlsim.solvers.load import Load
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.validate import service
from mlsim.workloads.parallelism import Parallelism
from mlsim.zoo.resolve import transformer
from mlsim.zoo.spaces import Hardware, Systems

FOLDER = DATA / "measurements" / "power"
KERNELS = DATA / "measurements" / "atlas" / "power.csv"
# The kind of kernel to which weights are fitted, and the key of the document of all kernels.
FITTED, ATLAS = "products", "nvidia2026aiconfigurator"
_WEIGHTS = ("running", "compute", "memory")
_COLUMNS = ("id", "device", "kind", *_WEIGHTS, "rows", "median", "low", "high", "source")
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
        error=fitted.error,
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
    weights
        Of running, compute and memory; None where none are fitted.
    rows, error
        Kernels of more than 20 us, and the median of their errors, shapes left out.
    low, high
        Factors of the predicted power between which eight in ten were measured.
    """

    id: str
    device: str
    kind: str
    weights: tuple[float, float, float] | None
    rows: int
    error: float
    low: float
    high: float
    source: str


@cache
def kernels() -> tuple[KernelPower, ...]:
    """Return how well power is told by kind of kernel; `benchmarks/atlas/power.py` measures it.

    >>> [each.kind for each in kernels()][:2]
    ['products', 'products in bfloat16']
    """
    return read(KERNELS, _COLUMNS, _kernels)


def _kernels(record: Mapping[str, str]) -> KernelPower:
    Hardware.find(record["device"])
    given = tuple(float(record[name]) for name in _WEIGHTS if record[name])
    return KernelPower(
        id=record["id"],
        source=record["source"],
        device=record["device"],
        kind=record["kind"],
        weights=(given[0], given[1], given[2]) if given else None,
        rows=count(record, "rows"),
        error=positive(record, "median"),
        low=positive(record, "low"),
        high=positive(record, "high"),
    )


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
    return power.limits(device, idle, full, idle_share)


@cache
def rows() -> tuple[PowerRow, ...]:
    """Return the services whose devices' power was measured, by the data files.

    Raises
    ------
    DataFileError
        If a file lacks a column, or a row can't be; names file and line.
    """
    found: list[PowerRow] = []
    for path in sorted(FOLDER.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            records = list(csv.DictReader(file))
        energies = {each["id"]: each for each in records if each["metric"] == _ENERGY}
        for line, record in enumerate(records, start=2):
            energy_row = energies.get(record["id"].removesuffix(_OF_POWER))
            if record["metric"] != _POWER or energy_row is None:
                continue
            try:
                found.append(_row(record, float(energy_row["value"])))
            except (KeyError, MlsimError, StopIteration, ValueError) as error:
                raise DataFileError(f"{path}:{line}: this row can't be: {error!r}") from error
    return tuple(found)


def _row(record: Mapping[str, str], energy_per_token: float) -> PowerRow:
    return PowerRow(
        id=record["id"].removesuffix(_OF_POWER),
        series=record["series"],
        source=record["source"],
        serving=_serving(record),
        energy_per_token=energy_per_token,
        power=float(record["value"]) / int(record["devices"]),
    )


def _serving(record: Mapping[str, str]) -> Serving:
    """Return the service of a row, as `Engine.serve` would."""
    device = Hardware.get(record["device"])
    count, data = int(record["devices"]), int(record["data_parallel"])
    system = next(each for each in Systems if each.device is device) if count > 1 else device
    weights_in, activations, kv_cache = map(precision, record["formats"].split("/"))
    return Serving(
        service(
            model=transformer(record["model"]),
            hardware=system,
            batch_size=int(record["batch_size"]),
            prompt_tokens=int(record["prompt_tokens"]),
            output_tokens=int(record["output_tokens"]),
            formats=Formats(weights_in, activations, kv_cache),
            # Where experts alone are said to be spread, attention is taken to be divided.
            parallelism=Parallelism(
                tensor=count // data, data=data, expert=int(record["expert_parallel"])
            ),
        ),
        check_memory=False,
    )
