"""Numbers that open to what is behind them.

An inline expression may give Markdown such as

    [55.5 µs]{.opens opens="PERCENT-ENCODED MARKDOWN"}

(`urllib.parse.quote` of paragraphs, formulas, tables, lists, links). On the site
the number opens a card with that content; `lua/opens.lua` reads it and
`site/theme/opens.js` shows it. What raw HTML stands in the brackets is for Quarto, which
shows it as it is, such as a button that opens a note; here it is left out. A page
without scripts shows the plain number.

What a page's numbers open to goes into a file of its own (`site.cards`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlsim_book.caches import TextCache

_CITED = re.compile(r'(<x-cite data-index=")(\d+)')


@dataclass(frozen=True)
class Opened:
    """What one number, or several, of a page opens to."""

    id: str
    text: str  # the number, as it was first met
    html: str


def keep_opened(facts: Mapping[str, Any], keep: TextCache, name: str) -> None:
    """Keep what a page's numbers open to, for its next rendering, under a name.

    There may be hundreds, each a document to pandoc, and an edit of prose changes
    none. Each is kept with what it cites, counted from itself, and refers to.
    """
    if facts.get("notes"):
        return
    known = {}
    for each in facts.get("opens") or ():
        first, last, start, end = each["span"]
        parts = _CITED.split(each["html"])  # text, the tag's beginning, its number, text, ...
        parts[2::3] = [str(int(number) - first) for number in parts[2::3]]
        cites = facts["cites"][first:last] if last > first else []
        refs = facts["refs"][start:end] if end > start else []
        known[each["id"]] = {"html": "".join(parts), "cites": cites, "refs": refs}
    if known:
        keep.store(name, json.dumps(known))
