"""What others measured of power and energy while models were served.

Nothing here was measured by this project. `boundary` says what a value covers:
GPUs alone, or a whole machine at the wall. Values of different boundaries are
not to be compared.
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
from mlsim.measured.services import ServingMeasurement, serving_measurements
from mlsim.precision import recorded
from mlsim.records.rows import Published
from mlsim.records.tables import read
from mlsim.values import literal
from mlsim.workloads.model import Model
from mlsim.zoo import resolve

POWER_FOLDER = FOLDER / "power"

# What can be measured, and its unit.
METRICS: Mapping[str, str] = {
    "device_power": "W",
    "server_power": "W",
    "energy_per_output_token": "J/token",
    "energy_per_sample": "J/sample",
}


@dataclass(frozen=True)
class PowerMeasurement(Published):
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

    id: str
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
    metric: str
    value: float
    unit: str
    boundary: str
    serving_id: str | None
    year: int
    source: str
    quote: str
    note: str

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
        rows = {row.id: row for row in serving_measurements()} if self.serving_id else {}
        return rows.get(self.serving_id or "")


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
    wanted_model = resolve.model(model).key if model is not None else None
    wanted_device = resolve.device(device).key if device is not None else None
    rows = (row for path in sorted(POWER_FOLDER.glob("*.csv")) for row in load(path))
    return [
        row
        for row in cells.chosen(rows, METRICS, metric, series)
        if wanted_model in (None, row.model) and wanted_device in (None, row.device)
    ]


@cache
def load(path: Path) -> tuple[PowerMeasurement, ...]:
    """Read a file of measurements.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, a number can't be, or a name is not
        in the zoo, the bibliography or the rows of serving; names file and line.
    """
    return read(path, tuple(PowerMeasurement.__dataclass_fields__), _row)


_STATED = (
    "tensor_parallel",
    "expert_parallel",
    "data_parallel",
    "batch_size",
    "prompt_tokens",
    "output_tokens",
)


def _row(record: dict[str, str]) -> PowerMeasurement:
    cells.metric(record, METRICS)
    for name in record["formats"].split("/") if record["formats"] else ():
        recorded(name)
    if not record["boundary"]:
        raise DataFileError(
            "boundary is empty: say what the value covers, such as one device or a whole server."
        )
    served = record["serving_id"]
    if served and served not in {row.id for row in serving_measurements()}:
        raise DataFileError(f"serving_id {served!r} is no row of serving_measurements().")
    parsed: dict[str, Any] = {
        **record,
        "model": cells.model(record) if record["model"] else None,
        "device": cells.device(record) if record["device"] else None,
        "devices": cells.count(record, "devices"),
        **{name: cells.stated(record, name, cells.count) for name in _STATED},
        "value": cells.positive(record, "value"),
        "serving_id": served or None,
        "year": cells.count(record, "year"),
    }
    return PowerMeasurement(**parsed)
