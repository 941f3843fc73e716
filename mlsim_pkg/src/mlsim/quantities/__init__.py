"""The vocabulary: every quantity of the book has one name, symbol and unit.

Equations take their arguments by these names, data files use them as keys, and
the glossary page is drawn from them, so this table decides the spelling.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlsim.errors import unknown_name
from mlsim.quantities import calibration, footprint, operators, serving, training


@dataclass(frozen=True, slots=True)
class Term:
    """One entry of the vocabulary.

    `unit` is the base unit in which equations reckon ("1" for a plain count or
    ratio); `symbol` is TeX; `definition` is one sentence.
    """

    name: str
    symbol: str
    unit: str
    definition: str


_PARTS = (operators, serving, training, calibration, footprint)

VOCABULARY: dict[str, Term] = {entry[0]: Term(*entry) for part in _PARTS for entry in part.ENTRIES}


def term(name: str) -> Term:
    """Return the vocabulary's entry for a name.

    >>> term("memory_bandwidth").unit
    'B/s'

    Raises
    ------
    UnknownNameError
        If the vocabulary has no such name; suggests the nearest.
    """
    try:
        return VOCABULARY[name]
    except KeyError:
        raise unknown_name("quantity", name, VOCABULARY) from None
