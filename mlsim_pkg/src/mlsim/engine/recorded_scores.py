"""Scores on tables that are not shipped, as scripts of `benchmarks` wrote them."""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from mlsim.errors import unknown_name
from mlsim.software import FOLDER
from mlsim.values import Origin, of_base

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

# Of rows of all kinds together.
ALL = "all"


@dataclass(frozen=True, slots=True)
class FittedScore:
    """How well open cases of a kind are predicted (`benchmarks/fit_software.py`).

    `fitted_` is with terms of software that were fitted to these very rows, `left_out_` with
    terms that were fitted without the series of each row. Errors are medians, as a share of
    what was measured; `close` is the share of rows within a quarter.
    """

    kind: str
    cases: int
    answered: int
    fitted_error: float
    fitted_close: float
    left_out_error: float
    left_out_close: float


@dataclass(frozen=True, slots=True)
class ServiceScore:
    """How well services are predicted to which nothing is fitted.

    `benchmarks/silicon_services.py` makes them. `ratio` is the median of
    predicted over measured time per token.
    """

    group: str
    rows: int
    error: float
    close: float
    ratio: float


@dataclass(frozen=True, slots=True)
class RivalScore:
    """How well another program answers open cases, and mlsim on exactly these rows.

    `benchmarks/rivals` makes them. Errors are medians, as a share of what was measured; `close`
    is the share of rows within a quarter. Those of mlsim are with terms of software fitted
    without the series of each row.
    """

    rival: str
    version: str
    settings: str
    kind: str
    rows: int
    error: float
    close: float
    our_error: float
    our_close: float

    def by_name(self, name: str = "error") -> Quantity:
        """Return an error, or a share of close rows, as a value.

        Raises
        ------
        UnknownNameError
            If it is none of the four.
        """
        who = f"{self.rival}, {self.kind}"
        words = {
            "error": f"error of {who}",
            "close": f"rows within a quarter of {who}",
            "our_error": f"our error on the rows of {who}",
            "our_close": f"our rows within a quarter on those of {who}",
        }
        if name not in words:
            raise unknown_name("score", name, words)
        value = getattr(self, name)
        brief = (
            f"{words[name]}: {value:.1%}, over {self.rows:,} rows of benchmarks/rivals/answers.csv"
        )
        return of_base(value, "1", Origin(words[name], brief), share=True)


@dataclass(frozen=True, slots=True)
class BorrowedScore:
    """How well rows of the shelf are predicted with constants of other devices.

    `benchmarks/borrowed.py` makes them. `what` was left out: constants of the "device" or of
    its "links"; `level` is how near the lenders are, and `kind` one of the shelf, or "all".
    `own_error` is the median of the same rows with their own constants; between `least` and
    `most`, measured over predicted speed, lies the part of the rows that a band holds.
    """

    what: str
    level: str
    kind: str
    rows: int
    series: int
    error: float
    own_error: float
    close: float
    ratio: float
    least: float
    most: float


Score = TypeVar("Score", FittedScore, ServiceScore, RivalScore, BorrowedScore)


@cache
def fitted_scores() -> tuple[FittedScore, ...]:
    """Return the scores of open cases by kind, and of all.

    >>> every = fitted_scores()[-1]
    >>> every.kind, every.left_out_error >= every.fitted_error
    ('all', True)
    """
    return _read("scores.csv", FittedScore)


@cache
def service_scores() -> tuple[ServiceScore, ...]:
    """Return the scores of services, of all and by group.

    >>> service_scores()[0].group
    'all'
    """
    return _read("services.csv", ServiceScore)


@cache
def rival_scores() -> tuple[RivalScore, ...]:
    """Return the scores of other programs by kind, and of all rows that each could answer.

    >>> sorted({each.rival for each in rival_scores() if each.kind == "all"})[0]
    'aiconfigurator'
    """
    return _read("rivals.csv", RivalScore)


@cache
def borrowed_scores() -> tuple[BorrowedScore, ...]:
    """Return the scores of rows with borrowed constants, by what was lent, level and kind.

    >>> {each.level for each in borrowed_scores()} == {"sibling", "family", "class", "roofline"}
    True
    """
    return _read("borrowed.csv", BorrowedScore)


def _read(name: str, kind: type[Score]) -> tuple[Score, ...]:
    """Return the rows of a table as scores, each cell as the field of its name has it."""
    read_as = {"str": str, "int": int, "float": float}
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return tuple(
            kind(**{each.name: read_as[str(each.type)](row[each.name]) for each in fields(kind)})
            for row in csv.DictReader(file)
        )
