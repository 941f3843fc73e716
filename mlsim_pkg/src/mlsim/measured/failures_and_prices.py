"""How often long runs failed, and what devices were rented for: published, each with its words.

Nothing here was measured by this project.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import DataFileError, unknown_name
from mlsim.hardware import Device
from mlsim.measured import cells
from mlsim.measured.networks import FOLDER
from mlsim.records.rows import Published
from mlsim.records.tables import read
from mlsim.units import to_base
from mlsim.values import Origin, literal, of_base
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

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

    def by_name(self, name: str = "") -> Quantity:
        """Return "failures", "days", "devices" or "mean_time_to_failure" as a value.

        Raises
        ------
        UnknownNameError
            If it is none of these.
        """
        words = {
            "failures": f"unplanned stops of {self.run} in {self.days:g} days",
            "days": f"days that {self.run} was watched",
            "devices": f"devices of {self.run}",
            "mean_time_to_failure": f"time between failures of one device in {self.run}",
        }
        name = "mean_time_to_failure" if name in ("", "latency") else name
        if name not in words:
            raise unknown_name("figure of a run's failures", name, words)
        if name == "mean_time_to_failure":
            return self.mean_time_to_failure
        return of_base(getattr(self, name), "1", partial(self._origin_of, words[name]))

    def _origin_of(self, words: str, value: Quantity) -> Origin:
        brief = f"{words}: {value.in_full} [@{self.source}]"
        how = f"{brief}, in these words: “{literal(self.quote)}”. {literal(self.note)}"
        return Origin(words, brief, how.strip())

    @property
    def mean_time_to_failure(self) -> Quantity:
        """Time between failures of one device: all their time together, by the failures.

        >>> row = failures()[0]
        >>> row.run, f"{row.mean_time_to_failure:,.0f}"
        ('Llama 3 405B pre-training', '50,677 h')
        """
        words = f"time between failures of one device in {self.run}"
        seconds = self.devices * self.days * 86_400 / self.failures
        return of_base(seconds, "s", partial(self._origin_of, words), unit="h", form=",.0f")


@dataclass(frozen=True)
class Price(Published):
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

    def said(self) -> tuple[str, str]:
        """Return what was published, in words: as a name, and in one line of Markdown."""
        words = f"price of {self.product} from {self.provider} on {self.date}, {self.terms}"
        each = f", for {self.devices}" if self.devices > 1 else ""
        most = f", up to {self.most:g} {self.unit} in other places" if self.most else ""
        return "price", literal(words + each + most)

    @property
    def per_device(self) -> Quantity:
        """Price of one device; of a range, its lower end.

        >>> print(prices(device="A100", provider="Lambda")[0].per_device)
        2.79 USD/h
        """
        found: Quantity = self.published / self.devices if self.devices > 1 else self.published
        return found


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
