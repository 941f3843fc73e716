"""How often runs failed, and what devices and tokens cost: published, each with its words.

Nothing here was measured by this project.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mlsim.errors import DataFileError, unknown_name
from mlsim.hardware import Device
from mlsim.measured.tables import FOLDER, LANGUAGE_MODEL, Quoted, Table, one_of
from mlsim.records import DATA
from mlsim.records.tables import Published
from mlsim.units import to_base
from mlsim.values import Origin, literal, of_base
from mlsim.workloads.model import Model

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


TERMS = ("on demand", "spot")


@dataclass(frozen=True, kw_only=True)
class Failures(Quoted):
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

    run: str
    device: str
    devices: int
    days: float
    failures: float
    year: int

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


@dataclass(frozen=True, kw_only=True)
class Price(Quoted, Published):
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

    provider: str
    product: str
    device: str
    devices: int
    value: float
    most: float | None
    unit: str
    terms: str
    date: datetime.date
    where: str

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
    return FAILURES.rows()


def prices(*, device: Device | str | None = None, provider: str | None = None) -> list[Price]:
    """Return what was asked for devices, all or of one device or provider.

    Raises
    ------
    UnknownNameError
        If there is no such device.

    >>> {row.provider for row in prices(device="H100")} >= {"Lambda", "AWS"}
    True
    """
    return PRICES.find(device=device, provider=provider)


def _check_price(row: Price) -> None:
    to_base(f"1 {row.unit}", "USD/s", "unit")  # refuses what is no price of time
    if row.most is not None and row.most <= row.value:
        raise DataFileError(
            f"most is {row.most:g}, and value {row.value:g}: the upper end of a range "
            "is above its lower end. Leave it empty where there is one price."
        )


FAILURES = Table(Failures, FOLDER / "reliability")
PRICES = Table(Price, DATA / "prices.csv", {"terms": one_of(TERMS)}, check=_check_price)
MILLION = 1e6


@dataclass(frozen=True, kw_only=True)
class ApiPrice(Quoted):
    """What a provider asks for a million tokens.

    Attributes
    ----------
    id, provider, product
        A name of its own; who, and for what.
    model
        Key of the zoo: the architecture.
    input_price, output_price
        USD for a million tokens of prompts, and of answers.
    date, source, quote, where, note
        When; in which document, in which words, at which place; anything else worth knowing.
    """

    provider: str
    model: str
    product: str
    input_price: float
    output_price: float
    date: datetime.date
    where: str

    def of_request(self, prompt_tokens: float, output_tokens: float) -> Quantity:
        """Return the price of one request.

        >>> row = api_prices(model="Llama3_70B", provider="Groq")[0]
        >>> print(f"{row.of_request(1000, 1000):.5f}")
        0.00138 USD
        """
        asked = prompt_tokens * self.input_price + output_tokens * self.output_price
        tokens = f"{prompt_tokens:,.0f} + {output_tokens:,.0f} tokens"
        return of_base(float(asked) / MILLION, "USD", partial(self._origin_of, tokens))

    def _origin_of(self, tokens: str, value: Quantity) -> Origin:
        words = f"price of a request of {tokens} from {self.provider}"
        each = f"{self.input_price:g} and {self.output_price:g} USD per million in and out"
        brief = f"{words} = {value.in_full}: {each}, as asked on {self.date} [@{self.source}]"
        how = f"{brief}, in these words: “{literal(self.quote)}”. {literal(self.note)}"
        return Origin(words, brief, how.strip())


def api_prices(*, model: Model | str | None = None, provider: str | None = None) -> list[ApiPrice]:
    """Return what was asked for tokens, all or of one model or provider.

    Raises
    ------
    UnknownNameError
        If there is no such model.

    >>> len({row.provider for row in api_prices(model="Llama3_70B")}) > 5
    True
    """
    return API_PRICES.find(model=model, provider=provider)


API_PRICES = Table(ApiPrice, DATA / "api_prices.csv", {"model": LANGUAGE_MODEL})
