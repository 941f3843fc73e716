"""How often long runs failed, and what devices were rented for: published, each with its words.

Nothing here was measured by this project.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import DataFileError
from mlsim.hardware import Device
from mlsim.measured import cells
from mlsim.measured.networks import FOLDER
from mlsim.records.tables import read
from mlsim.units import quantity, to_base
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from pint import Quantity

FAILURES = FOLDER / "reliability"
PRICES = FOLDER.parent / "prices.csv"
TERMS = ("on demand", "spot")


@dataclass(frozen=True)
class Failures:
    """A run, how long it was watched, and how often it failed.

    Attributes
    ----------
    id, run
        A name of its own; what was trained.
    device, devices
        Key of the zoo, and how many there were.
    days, failures
        How long, and how often it stopped without being asked to.
    source, quote, year, note
        In which document, in which words, when; anything else worth knowing.
    """

    id: str
    run: str
    device: str
    devices: int
    days: float
    failures: float
    source: str
    quote: str
    year: int
    note: str

    @property
    def mean_time_to_failure(self) -> Quantity[Any]:
        """Time between failures of one device: all their time together, by the failures.

        >>> row = failures()[0]
        >>> row.run, f"{row.mean_time_to_failure:,.0f}"
        ('Llama 3 405B pre-training', '50,677 h')
        """
        return quantity(self.devices * self.days * 24 / self.failures, "h")


@dataclass(frozen=True)
class Price:
    """What a provider asked for devices.

    Attributes
    ----------
    id, provider, product
        A name of its own; who, and for what.
    device, devices
        Key of the zoo; for how many the price is.
    value, most, unit, terms, date
        As printed; the upper end where a source gives several (else None); on which terms: "on
        demand", or "spot" (what was left at that moment, to be taken back at any); and when.
    source, quote, where, note
        In which document, in which words, at which place; anything else worth knowing.
    """

    id: str
    provider: str
    product: str
    device: str
    devices: int
    value: float
    most: float | None
    unit: str
    terms: str
    date: datetime.date
    source: str
    quote: str
    where: str
    note: str

    @property
    def per_device(self) -> Quantity[Any]:
        """Price of one device; of a range, its lower end.

        >>> print(prices(device="A100", provider="Lambda")[0].per_device)
        2.79 USD/h
        """
        return quantity(self.value / self.devices, self.unit)


def failures() -> tuple[Failures, ...]:
    """Return the runs whose failures were published.

    >>> [row.devices for row in failures()][:2]
    [16384, 992]
    """
    return tuple(row for path in sorted(FAILURES.glob("*.csv")) for row in load_failures(path))


def prices(*, device: Device | str | None = None, provider: str | None = None) -> list[Price]:
    """Return what was asked for devices, all or of one device or provider.

    Raises
    ------
    UnknownNameError
        If there is no such device.

    >>> {row.provider for row in prices(device="H100")} >= {"Lambda", "AWS"}
    True
    """
    key = resolve.device(device).key if device is not None else None
    return [
        row
        for row in load_prices(PRICES)
        if key in (None, row.device) and provider in (None, row.provider)
    ]


@cache
def load_failures(path: Path) -> tuple[Failures, ...]:
    """Read a file of failures.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, or a cell can't be; names file and line.
    """
    return read(path, tuple(Failures.__dataclass_fields__), _failures)


@cache
def load_prices(path: Path) -> tuple[Price, ...]:
    """Read a file of prices.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, or a cell can't be; names file and line.
    """
    return read(path, tuple(Price.__dataclass_fields__), _price)


def _failures(record: dict[str, str]) -> Failures:
    found: dict[str, Any] = {
        **record,
        "device": cells.device(record),
        **{name: cells.count(record, name) for name in ("devices", "year")},
        **{name: cells.positive(record, name) for name in ("days", "failures")},
    }
    return Failures(**found)


def _price(record: dict[str, str]) -> Price:
    found: dict[str, Any] = {
        **record,
        "device": cells.device(record),
        "devices": cells.count(record, "devices"),
        "value": cells.positive(record, "value"),
        "most": cells.stated(record, "most", cells.positive),
        "terms": cells.choice(record, "terms", TERMS),
        "date": datetime.date.fromisoformat(record["date"]),
    }
    to_base(f"1 {record['unit']}", "USD/s", "unit")  # refuses what is no price of time
    if found["most"] is not None and found["most"] <= found["value"]:
        raise DataFileError(
            f"most is {found['most']:g}, and value {found['value']:g}: the upper end of a range "
            "is above its lower end. Leave it empty where there is one price."
        )
    return Price(**found)
