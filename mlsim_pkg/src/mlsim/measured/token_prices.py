"""What providers ask for a million tokens of a model behind an API: published, each dated.

Nothing here was measured by this project.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.measured import cells
from mlsim.records import DATA
from mlsim.records.tables import read
from mlsim.values import Origin, literal, of_base
from mlsim.workloads.model import Model
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

API_PRICES = DATA / "api_prices.csv"
MILLION = 1e6


@dataclass(frozen=True)
class ApiPrice:
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

    id: str
    provider: str
    model: str
    product: str
    input_price: float
    output_price: float
    date: datetime.date
    source: str
    quote: str
    where: str
    note: str

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
    key = resolve.transformer(model).key if model is not None else None
    return [
        row
        for row in load_api_prices(API_PRICES)
        if key in (None, row.model) and provider in (None, row.provider)
    ]


@cache
def load_api_prices(path: Path) -> tuple[ApiPrice, ...]:
    """Read a file of such prices.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, or a cell can't be; names file and line.
    """
    return read(path, tuple(ApiPrice.__dataclass_fields__), _price)


def _price(record: dict[str, str]) -> ApiPrice:
    found: dict[str, Any] = {
        **record,
        "model": cells.model(record),
        **{name: cells.positive(record, name) for name in ("input_price", "output_price")},
        "date": datetime.date.fromisoformat(record["date"]),
    }
    return ApiPrice(**found)
