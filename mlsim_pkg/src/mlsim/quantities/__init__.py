"""The vocabulary: every quantity of the book has one name, symbol and unit.

Equations take their arguments by these names, data files use them as keys, and the page
of quantities is drawn from them, so the files of `data/quantities/` decide the spelling: one
line of TOML for each quantity, read strictly.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import DataFileError, unknown_name
from mlsim.units import MEMORY, is_base, text
from mlsim.values import of_base

if TYPE_CHECKING:
    from collections.abc import Callable

    from mlsim.values import Origin
    from mlsim.values.kinds import Quantity


# How the name of a part of something ends.
_SHARES = ("_share", "_fraction", "_utilization", "_utilisation", "_use", "goodput")


@dataclass(frozen=True, slots=True)
class Term:
    """One entry of the vocabulary.

    `printed` is the base unit in which equations compute ("1" for a plain count or
    ratio), or "memory" for bytes that something holds: computed in B, and printed in GiB,
    as drivers do. Bytes that move are in B: divided by GB/s, they are seconds. `symbol` is
    TeX; `definition` is one sentence.
    """

    name: str
    symbol: str
    printed: str
    definition: str

    @property
    def unit(self) -> str:
        """The base unit."""
        return "B" if self.printed == MEMORY else self.printed

    def text(self, value: float, digits: int = 4) -> str:
        """Write a value with its unit, as people read it.

        >>> term("memory_capacity").text(80 * 2**30), term("bytes_moved").text(80e9)
        ('80 GiB', '80 GB')
        """
        return text(value, self.printed, digits)

    @property
    def share(self) -> bool:
        """Whether it is a part of something, which people count in percent."""
        return self.printed == "1" and self.name.endswith(_SHARES)

    def scaled(
        self, value: float, origin: Origin | Callable[[Any], Origin] | None = None
    ) -> Quantity:
        """Return a number as a value, in the unit that a person would choose.

        >>> print(term("memory_free").scaled(3 * 2**29), term("memory_bound_share").scaled(0.84))
        1.50 GiB 84 %
        """
        return of_base(value, self.printed, origin, share=self.share)


class Vocabulary(Mapping[str, Term]):
    """All terms by name. A topic is read when a name is not in those before it.

    A term stands on one line, and only lines that are asked for are parsed:
    reading TOML takes longer than a solve.
    """

    def __init__(self, folder: Path, topics: Iterable[str]) -> None:
        self._unread = [folder / f"{topic}.toml" for topic in topics]
        self._unread.reverse()
        self._lines: dict[str, tuple[Path, int, str]] = {}
        self._terms: dict[str, Term] = {}

    def __contains__(self, name: object) -> bool:
        while name not in self._lines and self._unread:
            self._read(self._unread.pop())
        return name in self._lines

    def __getitem__(self, name: str) -> Term:
        if name not in self._terms:
            if name not in self:
                raise KeyError(name)
            self._terms[name] = _parsed(name, *self._lines[name])
        return self._terms[name]

    def __iter__(self) -> Iterator[str]:
        while self._unread:
            self._read(self._unread.pop())
        return iter(self._lines)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _read(self, path: Path) -> None:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if not line or line[0] == "#":
                continue
            name, _, row = line.partition(" = ")
            if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name) or not row:
                raise DataFileError(
                    f"{path}:{number}: a term is one line, "
                    f"name = [symbol, unit, definition], not {line!r}."
                )
            if name in self._lines:
                first, at, _ = self._lines[name]
                raise DataFileError(f"{path}:{number}: {name} stands in {first}:{at}, too.")
            self._lines[name] = path, number, row


def _parsed(name: str, path: Path, number: int, row: str) -> Term:
    """Read the line of a term.

    Raises
    ------
    DataFileError
        If it is no TOML, no three texts, or in a unit that is no base unit.
    """
    try:
        found = tomllib.loads(f"row = {row}")["row"]
    except tomllib.TOMLDecodeError as error:
        raise DataFileError(f"{path}:{number}: {name}: {error}.") from None
    if not (type(found) is list and len(found) == 3 and all(type(each) is str for each in found)):
        raise DataFileError(
            f"{path}:{number}: {name} needs [symbol, unit, definition], three texts, not {row}."
        )
    symbol, printed, definition = found
    if printed != MEMORY and not is_base(printed):
        raise DataFileError(
            f"{path}:{number}: {name}: {printed!r} is no base unit; expected such as 's', 'B/s' "
            f"or '1', or {MEMORY!r}."
        )
    return Term(name, symbol, printed, definition)


# The topics that most questions need come first.
VOCABULARY = Vocabulary(
    Path(__file__).parents[1] / "data" / "quantities",
    (
        *("operators", "serving", "training", "calibration", "software", "kernels"),
        *("footprint", "machines", "inside", "counters", "timing", "arrivals", "gemm"),
        *("adapters", "switches", "nodes"),
    ),
)
_PERCENTILES = ("p50", "p90", "p99")


def term(name: str) -> Term:
    """Return the vocabulary's entry for a name; a percentile of a time has that of the time.

    >>> term("memory_bandwidth").unit, term("time_to_first_token_p99").unit
    ('B/s', 's')

    Raises
    ------
    UnknownNameError
        If the vocabulary has no such name; suggests the nearest.
    """
    whole, _, percentile = name.rpartition("_")
    if percentile in _PERCENTILES:
        name = whole
    try:
        return VOCABULARY[name]
    except KeyError:
        raise unknown_name(
            "quantity",
            name,
            VOCABULARY,
            see="mlsim.quantities.VOCABULARY has all, and the book's page of quantities.",
        ) from None
