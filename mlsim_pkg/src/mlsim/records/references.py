"""The bibliography: where every equation and figure comes from.

The entries lie in `data/references.bib`, which is also the bibliography of the
book; here they are read without a BibTeX library, for titles and addresses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mlsim.errors import unknown_name

PATH = Path(__file__).parents[1] / "data" / "references.bib"

_ENTRY = re.compile(r"^@(\w+)\{([^,\s]+),\s*$(.*?)^\}\s*$", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*?)\},?\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reference:
    """A document: key, kind of entry, and its fields as BibTeX has them."""

    key: str
    kind: str
    fields: dict[str, str]

    @property
    def title(self) -> str:
        """The title, without BibTeX's braces."""
        return self.fields.get("title", self.key).replace("{", "").replace("}", "")

    @property
    def url(self) -> str:
        """Where to find it; empty if nowhere on the web."""
        doi = self.fields.get("doi")
        return self.fields.get("url") or (f"https://doi.org/{doi}" if doi else "")

    @property
    def author(self) -> str:
        """Who wrote or published it."""
        name = self.fields.get("author") or self.fields.get("publisher") or ""
        return name.replace("{", "").replace("}", "")

    @property
    def year(self) -> str:
        """The year of publication; empty if the document has none.

        BibLaTeX takes numbers only, so an undated entry of the file has no `year`.
        """
        return self.fields.get("year", "")

    @property
    def accessed(self) -> str:
        """The day on which it was read, as in 2026-11-21; empty if the entry has none."""
        return self.fields.get("urldate", "")

    def text(self) -> str:
        """One line: author, title, year, address.

        A document without a date may change, so the label includes the day on which it was read.

        >>> fields = {"author": "A Seller", "title": "Cards", "urldate": "2026-11-21"}
        >>> Reference("seller", "misc", fields).text()
        'A Seller, “Cards”, n.d., accessed 2026-11-21'
        """
        parts = [self.author, f"“{self.title}”", self.year or "n.d.", self.url]
        if not self.year and self.accessed:
            parts.append(f"accessed {self.accessed}")
        return ", ".join(part for part in parts if part)


@cache
def references() -> dict[str, Reference]:
    """Return all references by key.

    >>> references()["williams2009roofline"].year
    '2009'
    """
    content = PATH.read_text(encoding="utf-8")
    found = {}
    for kind, key, body in _ENTRY.findall(content):
        found[key] = Reference(key, kind.lower(), dict(_FIELD.findall(body)))
    return found


def reference(key: str) -> Reference:
    """Return one reference.

    Raises
    ------
    UnknownNameError
        If there is none of that key.
    """
    try:
        return references()[key]
    except KeyError:
        raise unknown_name("reference", key, references()) from None


def label(key: str) -> str:
    """Return a document as a sentence names it: who and when; an unknown key as it is.

    >>> label("williams2009roofline"), label("of nobody")
    ('Williams et al. 2009', 'of nobody')
    """
    found = references().get(key)
    if found is None:
        return key
    names = found.author.split(" and ")
    first = names[0].split(",")[0] or key
    return f"{first}{' et al.' if len(names) > 1 else ''} {found.year or 'n.d.'}"
