"""What others measured: published results, each with its source and its words.

Nothing here was measured by this project. A row names the very device of the
zoo on which it was taken, so a prediction can be made for that device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mlsim.errors import DataFileError
from mlsim.hardware import Device
from mlsim.precision import precision as find_precision, recorded
from mlsim.records import DATA
from mlsim.records.rows import Published
from mlsim.records.tables import read
from mlsim.values import literal
from mlsim.workloads.model import Model
from mlsim.zoo import resolve, spaces

FOLDER = DATA / "measurements"


@dataclass(frozen=True, slots=True)
class Measurement(Published):
    """One published result.

    `series` is the table that it stands in: one source, one machine; `value` is in samples
    per second; `quote` is the line of the source that it was read from, and `source` the key
    of that source.
    """

    id: str
    series: str
    model: str
    hardware: str
    batch_size: int
    precision: str
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
        words = (
            f"measured throughput of {self.model} on {self.device.name}, batch {self.batch_size}"
        )
        software = f"with {literal(self.software)} in {self.year}"
        return words, f"{words}, {self.precision}, {software}"

    @property
    def device(self) -> Device:
        """The device of the zoo on which it was measured."""
        found: Device = spaces.Hardware.get(self.hardware)
        return found


def measurements(
    *,
    model: Model | str | None = None,
    hardware: Device | str | None = None,
    precision: str | None = None,
    software: str | None = None,
) -> list[Measurement]:
    """Return published results, all or those of a model, device, precision, software.

    `software` matches from the left: "PyTorch" selects "PyTorch eager, ...".

    >>> rows = measurements(model="ResNet50", hardware="T4", precision="fp32")
    >>> [(row.batch_size, row.value) for row in rows][:2]
    [(1, 98.0), (4, 325.0)]
    """
    wanted_model = resolve.model(model).key if model is not None else None
    wanted_device = resolve.device(hardware).key if hardware is not None else None
    if precision is not None:
        precision = find_precision(precision).name
    return [
        row
        for path in sorted(FOLDER.glob("*.csv"))
        for row in load(path)
        if wanted_model in (None, row.model)
        and wanted_device in (None, row.hardware)
        and precision in (None, row.precision)
        and (software is None or row.software.startswith(software))
    ]


@cache
def load(path: Path) -> tuple[Measurement, ...]:
    """Read a file of measurements.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, a number can't be, or a name is not
        in the zoo or the bibliography; names file and line.
    """
    return read(path, tuple(Measurement.__dataclass_fields__), _row)


def _row(record: dict[str, str]) -> Measurement:
    value, batch = float(record["value"]), int(record["batch_size"])
    if not (math.isfinite(value) and value > 0 and batch > 0):
        raise DataFileError(f"value and batch_size must be positive, not {value} and {batch}.")
    spaces.Hardware.find(record["hardware"])
    spaces.Models.find(record["model"])
    recorded(record["precision"])
    return Measurement(
        **{**record, "value": value, "batch_size": batch, "year": int(record["year"])}  # type: ignore[arg-type]
    )
