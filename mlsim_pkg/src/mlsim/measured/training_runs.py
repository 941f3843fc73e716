"""Published reports of whole training runs: their hours, energy and emissions.

Nothing here was measured by this project. Many such figures are no measurements
at all: an energy may be the GPU-hours times a constant. `measured` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, unknown_name
from mlsim.measured import cells
from mlsim.measured.networks import FOLDER
from mlsim.records.rows import Published
from mlsim.records.tables import read
from mlsim.values import literal
from mlsim.workloads.model import Model
from mlsim.zoo import resolve

RUNS_FOLDER = FOLDER / "runs"

# What is reported of a run, and its unit.
METRICS: Mapping[str, str] = {
    "duration": "d",
    "device_hours": "h",
    "energy": "MWh",
    "emissions": "tCO2e",
    "power_per_device": "W",
}
# How a value came about: read off a meter or a clock; hours times a constant
# such as the TDP; or with assumptions of whoever reports it.
MEASURED = ("metered", "arithmetic", "estimated")


@dataclass(frozen=True)
class PublishedRun(Published):
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

    id: str
    run: str
    model: str | None
    tokens: float | None
    device: str | None
    devices: int | None
    metric: str
    value: float
    unit: str
    boundary: str
    measured: str
    grid: str
    pue: float | None
    year: int
    source: str
    quote: str
    note: str

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
    wanted = resolve.model(model).key if model is not None else None
    if metric is not None and metric not in METRICS:
        raise unknown_name("metric", metric, METRICS)
    if measured is not None and measured not in MEASURED:
        raise unknown_name("way of measuring", measured, MEASURED)
    return [
        row
        for path in sorted(RUNS_FOLDER.glob("*.csv"))
        for row in load(path)
        if wanted in (None, row.model)
        and (run is None or row.run.startswith(run))
        and metric in (None, row.metric)
        and measured in (None, row.measured)
    ]


@cache
def load(path: Path) -> tuple[PublishedRun, ...]:
    """Read a file of runs.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, a number can't be, or a name is not
        in the zoo or the bibliography; names file and line.
    """
    return read(path, tuple(PublishedRun.__dataclass_fields__), _row)


def _row(record: dict[str, str]) -> PublishedRun:
    cells.metric(record, METRICS)
    for name in ("run", "boundary"):
        if not record[name]:
            raise DataFileError(f"{name} is empty: fill it in.")
    pue = cells.stated(record, "pue", cells.positive)
    if pue is not None and pue < 1:
        raise DataFileError(
            f"pue must be 1 or more, not {pue:g}: a data center includes its machines."
        )
    parsed: dict[str, Any] = {
        **record,
        "model": cells.model(record) if record["model"] else None,
        "device": cells.device(record) if record["device"] else None,
        "tokens": cells.stated(record, "tokens", cells.positive),
        "devices": cells.stated(record, "devices", cells.count),
        "measured": cells.choice(record, "measured", MEASURED),
        "value": cells.positive(record, "value"),
        "pue": pue,
        "year": cells.count(record, "year"),
    }
    return PublishedRun(**parsed)
