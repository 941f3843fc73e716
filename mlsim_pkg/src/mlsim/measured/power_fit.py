"""What a device draws under a load: constants computed from data, never typed by hand.

Two weights say how far the use of arithmetic and of memory take a device from idle to
full power. They are fitted: least squares on services whose power and throughput were
measured. The counts of work and bytes of each service are those of `Engine.serve`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import median
from typing import Any

from mlsim.equations import energy
from mlsim.errors import DataFileError, InvalidValueError, MlsimError
from mlsim.hardware import Device
from mlsim.precision import precision
from mlsim.records import DATA
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
    """Fit the weights of compute and memory to all measured rows.

    >>> found = weights()
    >>> found.compute > found.memory > 0
    True
    """
    found = rows()
    compute, memory = fit(found)
    return Weights(
        compute=compute,
        memory=memory,
        error=median(abs(ratio - 1) for _, ratio in left_out(found)),
        rows=len(found),
        sources=tuple(sorted({row.source for row in found})),
    )


def fit(found: Sequence[PowerRow]) -> tuple[float, float]:
    """Return the two weights that fit rows best, by least squares of the load.

    The measured power gives the share of the way to full power, and that the load;
    the load is linear in the two weights.

    Raises
    ------
    InvalidValueError
        If the rows can't separate the two weights.
    """
    cc = cm = mm = cy = my = 0.0
    for row in found:
        load = row.load
        idle, full = (each.low for each in limits(load.device))
        share = min(max((row.power - idle) / (full - idle), 0.0), 1.0)
        # power_share = load * (2 - load), solved for the load.
        y = 1 - math.sqrt(1 - share)
        c, m = load.compute_utilisation or 0.0, load.memory_utilisation or 0.0
        cc, cm, mm, cy, my = cc + c * c, cm + c * m, mm + m * m, cy + c * y, my + m * y
    determinant = cc * mm - cm * cm
    if len(found) < 2 or determinant <= 1e-12 * cc * mm:
        raise InvalidValueError(
            "these rows can't separate the weights of compute and memory: "
            "add rows in which their use differs."
        )
    return (cy * mm - my * cm) / determinant, (my * cc - cy * cm) / determinant


def left_out(found: Sequence[PowerRow]) -> list[tuple[PowerRow, float]]:
    """Return each row with predicted over measured power, fitted without its series."""
    pairs = []
    for series in dict.fromkeys(row.series for row in found):
        others = fit([row for row in found if row.series != series])
        own = [row for row in found if row.series == series]
        pairs += [(row, predict(row.load, others) / row.power) for row in own]
    return pairs


def predict(load: Load, fitted: tuple[float, float]) -> float:
    """Return the power of one device of a load, in W."""
    idle, full = (each.low for each in limits(load.device))
    compute, memory = load.compute_utilisation or 0.0, load.memory_utilisation or 0.0
    reached = energy.power_load(fitted[0], compute, fitted[1], memory)
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
