"""What others measured of training networks of layers: published rates, each with its words.

Nothing here was measured by this project, and no constant is fitted to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError
from mlsim.hardware import Device
from mlsim.measured import cells
from mlsim.measured.networks import FOLDER
from mlsim.precision import recorded
from mlsim.records.rows import Published
from mlsim.records.tables import read
from mlsim.solvers.training.network_run import OPTIMIZERS
from mlsim.solvers.training.network_training import NetworkTraining
from mlsim.solvers.training.network_validate import network_run
from mlsim.solvers.training.validate import Asked
from mlsim.systems import Cluster, System
from mlsim.values import literal
from mlsim.zoo import resolve, spaces

NETWORK_FOLDER = FOLDER / "network_training"
METRICS: Mapping[str, str] = {"throughput": "sample/s"}


@dataclass(frozen=True)
class NetworkStep(Published):
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

    id: str
    series: str
    model: str
    device: str
    system: str
    devices: int
    global_batch: int
    precision: str
    optimizer: str
    software: str
    metric: str
    value: float
    unit: str
    year: int
    source: str
    quote: str
    note: str

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
        asked = {
            "model": spaces.Models.get(self.model),
            "hardware": self.machine,
            "devices": self.devices,
            "global_batch": self.global_batch,
            "precision": self.precision,
            "optimizer": self.optimizer,
            "estimate": estimate,
            **more,
        }
        return NetworkTraining(network_run(Asked.of(**asked)), check_memory=False)


@cache
def network_steps() -> tuple[NetworkStep, ...]:
    """Return all published rates of training networks.

    Raises
    ------
    DataFileError
        If a table has a mistake; names file and line.

    >>> sorted({row.model for row in network_steps()})
    ['ResNet50']
    """
    return tuple(row for path in sorted(NETWORK_FOLDER.glob("*.csv")) for row in load(path))


def load(path: Path) -> tuple[NetworkStep, ...]:
    """Read a file of rates.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, a number can't be, sizes contradict each other, or
        names are not in the zoo or the bibliography; names file and line.
    """
    return read(path, tuple(NetworkStep.__dataclass_fields__), _row)


def _row(record: Mapping[str, str]) -> NetworkStep:
    recorded(record["precision"])
    cells.metric(record, METRICS)
    parsed: dict[str, Any] = {
        **record,
        "model": cells.model(record),
        "device": cells.device(record),
        "optimizer": cells.choice(record, "optimizer", tuple(OPTIMIZERS)),
        "value": cells.positive(record, "value"),
        **{name: cells.count(record, name) for name in ("devices", "global_batch", "year")},
    }
    row = NetworkStep(**parsed)
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
    return row
