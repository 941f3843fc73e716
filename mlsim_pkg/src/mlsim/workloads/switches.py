"""What a service may switch on: speculative decoding, and memory of the host."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mlsim.errors import InvalidValueError, WrongKindError, check_whole

# More drafted tokens than anybody checks at once.
_MOST_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding: a draft guesses tokens, and the model checks them in one step.

    Parameters
    ----------
    tokens
        Tokens that are drafted before each check.
    acceptance
        Chance that a drafted token is accepted, given that those before it are: from 0 to 1.
        It belongs to the two models and to the text, and has to be measured.
    draft
        The model that drafts: a record of the zoo, or its name. It reads the prompts, too, and
        keeps a cache of its own.
    cost
        In place of a draft: time of one of its steps over that of a step of the model, such as
        0.05 for a small head, or 0 for looking tokens up. Its memory is not counted.
    precision
        Number format of the draft; by default what it was released in.

    Raises
    ------
    InvalidValueError
        If a number can't be.
    WrongKindError
        If neither or both of draft and cost are given.

    >>> Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7).tokens
    4
    """

    tokens: int = 4
    acceptance: float
    draft: Any = None
    cost: float | None = None
    precision: Any = None

    def __post_init__(self) -> None:
        check_whole("tokens of a draft", self.tokens, most=_MOST_TOKENS)
        _check_share("acceptance", self.acceptance)
        if (self.draft is None) == (self.cost is None):
            have = "neither" if self.draft is None else "both"
            raise WrongKindError(
                f"speculation has a draft, such as draft='Llama3_8B', or what a step of it costs, "
                f"such as cost=0.05; given is {have}."
            )
        if self.cost is not None and not (_is_number(self.cost) and 0 <= self.cost < 1):
            raise InvalidValueError(
                "cost of a draft must be a share of a step of the model, from 0 to below 1, not "
                f"{self.cost!r}: a draft that takes as long can't save time."
            )
        if self.precision is not None and self.draft is None:
            raise WrongKindError("precision is that of a draft; with a cost alone leave it out.")

    @property
    def checked(self) -> int:
        """Tokens that a check works on: those drafted, and the one before them."""
        return self.tokens + 1

    def __str__(self) -> str:
        what = f"cost {self.cost:g}" if self.draft is None else _name(self.draft)
        return f"{self.tokens} tokens from {what}, acceptance {self.acceptance:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """What lies in the host's memory, and comes over the host's link in each step.

    Parameters
    ----------
    cache, weights
        Shares of the KV cache and of the weights, from 0 to 1.
    overlap
        How far an operator's reading from the host overlaps with its reading of device memory:
        1 for all (the longer counts), 0 for none (their sum).

    Raises
    ------
    InvalidValueError
        If one is no share.

    >>> print(Offload(cache=0.3))
    30% of the cache and 0% of the weights on the host
    """

    cache: float = 0.0
    weights: float = 0.0
    overlap: float = 1.0

    def __post_init__(self) -> None:
        for name in ("cache", "weights", "overlap"):
            _check_share(f"{name} of an offload", getattr(self, name))

    def __str__(self) -> str:
        return f"{self.cache:.0%} of the cache and {self.weights:.0%} of the weights on the host"


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def _check_share(name: str, value: Any) -> None:
    if not (_is_number(value) and 0 <= value <= 1):
        raise InvalidValueError(f"{name} must be a share from 0 to 1, such as 0.7, not {value!r}.")


def _name(model: Any) -> str:
    return str(getattr(model, "name", model))
