"""The vocabulary: every quantity of the book has one name, symbol and unit.

Equations take their arguments by these names, data files use them as keys, and
the glossary page is drawn from them, so this table decides the spelling.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlsim.errors import unknown_name
from mlsim.units import MEMORY, text
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
        """Whether it is a part of something, which people count in per cent."""
        return self.printed == "1" and self.name.endswith(_SHARES)

    def scaled(
        self, value: float, origin: Origin | Callable[[Any], Origin] | None = None
    ) -> Quantity:
        """Return a number as a value, in the unit that a person would choose.

        >>> print(term("memory_free").scaled(3 * 2**29), term("memory_bound_share").scaled(0.84))
        1.50 GiB 84 %
        """
        return of_base(value, self.printed, origin, share=self.share)


# In this order; a topic is loaded when a name is not found in those before it.
_TOPICS = (
    *("operators", "serving", "training", "calibration", "software", "kernels"),
    *("footprint", "machines", "inside", "counters", "timing", "arrivals", "gemm"),
    *("adapters", "switches", "nodes"),
)
_TERMS: dict[str, Term] = {}
_loaded: list[str] = []
_ALL = "mlsim.quantities.VOCABULARY has all, and the glossary."

VOCABULARY: dict[str, Term]


_PERCENTILES = ("p50", "p90", "p99")


def __getattr__(name: str) -> Any:
    """Load all topics when the whole vocabulary is asked for."""
    if name != "VOCABULARY":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    while _load_next():
        pass
    globals()[name] = _TERMS
    return _TERMS


def _load_next() -> bool:
    """Load the next topic; return False if there is none left."""
    if len(_loaded) == len(_TOPICS):
        return False
    topic = _TOPICS[len(_loaded)]
    _loaded.append(topic)
    entries = import_module(f"{__name__}.{topic}").ENTRIES
    _TERMS.update({entry[0]: Term(*entry) for entry in entries})
    return True


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
    while name not in _TERMS:
        if not _load_next():
            raise unknown_name("quantity", name, _TERMS, see=_ALL)
    return _TERMS[name]
