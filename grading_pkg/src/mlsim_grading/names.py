"""How names of people are compared: exactly, after what spelling leaves open is set aside.

Set aside are capitals, composed or decomposed accents, what stands between the words, and which
word comes first. Nothing else: "Joerg" is "Jörg" only if the class list says so.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_LONGEST = 12  # words of a name
_APOSTROPHES = str.maketrans("", "", "'’ʼ`")


@dataclass(frozen=True)
class Word:
    """A word of a text, and what stands right before and after it."""

    text: str
    before: str
    after: str


def words(text: str) -> tuple[Word, ...]:
    r"""Return the words of a text, caseless and composed.

    >>> [each.text for each in words("Mu\u0308ller, J\u00f6rg_12")]
    ['müller', 'jörg', '12']
    """
    folded = fold(text)
    found = []
    start = None
    for place, char in enumerate(folded + " "):
        inside = unicodedata.category(char)[0] in "LMN"
        if inside and start is None:
            start = place
        elif not inside and start is not None:
            before = folded[start - 1] if start else ""
            found.append(Word(folded[start:place], before, char))
            start = None
    return tuple(found)


def fold(text: str) -> str:
    """Return a text without differences of case and composition."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def plain(text: str) -> str:
    """Return a text without its accents.

    >>> plain("josé")
    'jose'
    """
    parts = unicodedata.normalize("NFKD", text)
    return "".join(char for char in parts if unicodedata.category(char) != "Mn")


def forms(name: str) -> set[tuple[str, ...]]:
    """Return the words of a name in the orders in which it is written: each surname may be first.

    Platforms leave apostrophes out.

    >>> sorted(forms("Ada Lovelace"))
    [('ada', 'lovelace'), ('lovelace', 'ada')]
    >>> sorted(forms("O'Brien"))
    [('brien', 'o'), ('o', 'brien'), ('obrien',)]
    """
    found: set[tuple[str, ...]] = set()
    for text in (name, name.translate(_APOSTROPHES)):
        parts = tuple(each.text for each in words(text))
        turns = len(parts) if len(parts) <= _LONGEST else 1
        found |= {parts[place:] + parts[:place] for place in range(turns)}
    return found


def file_name(student: str) -> str:
    """Return a student's name as the name of a file.

    >>> file_name("Ada Lovelace/1815")
    'Ada_Lovelace_1815'
    """
    composed = unicodedata.normalize("NFC", student)
    return re.sub(r"[^\w@.+-]+", "_", composed).strip("._") or "student"
