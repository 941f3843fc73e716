"""Peaks of memory in a step of training: what PyTorch's tensors took, beside what is counted.

Measured by this project on a processor, with `benchmarks/training_memory.py`, which writes the
table: every tensor that is alive is added up, so that nothing depends on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from mlsim.errors import DataFileError
from mlsim.measured.cells import choice, count, model, positive
from mlsim.records import DATA
from mlsim.records.tables import read

FILE = DATA / "measurements" / "memory" / "training_steps.csv"
_OPTIMIZERS = ("sgd", "momentum", "adam")


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


_COLUMNS = tuple(TrainingMemory.__dataclass_fields__)


def _row(record: dict[str, str]) -> TrainingMemory:
    if record["unit"] != "B":
        raise DataFileError(f"unit must be B, not {record['unit']!r}.")
    read_cells: dict[str, Any] = {
        "model": model(record) if record["model"] else None,
        "optimizer": choice(record, "optimizer", _OPTIMIZERS),
        "batch_size": count(record, "batch_size"),
        "measured": positive(record, "measured"),
        "counted": positive(record, "counted"),
    }
    return TrainingMemory(**{**record, **read_cells})


@cache
def training_memory() -> tuple[TrainingMemory, ...]:
    """Return all measured peaks.

    >>> peak = training_memory()[0]
    >>> peak.network, abs(peak.counted / peak.measured - 1) < 0.01
    ('LeNet', True)
    """
    return read(FILE, _COLUMNS, _row)
