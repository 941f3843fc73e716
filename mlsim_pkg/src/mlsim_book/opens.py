"""Numbers that open to what is behind them.

An inline expression may give Markdown such as

    [55.5 µs]{.opens opens="PERCENT-ENCODED MARKDOWN"}

(`urllib.parse.quote` of paragraphs, formulas, tables, lists, links). On the site
the number opens a card with that content; `lua/opens.lua` reads it and
`theme/opens.js` shows it. Quarto, a notebook and a page without scripts show the
plain number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mlsim_book.keep import Keep

_CITED = re.compile(r'(<x-cite data-index=")(\d+)')
_SPAN = re.compile(r'\[([^\[\]]*)\]\{\.opens\s+opens="[^"]*"\}')


@dataclass(frozen=True)
class Opened:
    """What one number, or several, of a page opens to."""

    id: str
    text: str  # the number, as it was first met
    html: str


def plain_numbers(markdown: str) -> str:
    """Return Markdown with plain numbers in the place of those that open.

    >>> plain_numbers('Up to [3 s]{.opens opens="%24t%24"} long')
    'Up to 3 s long'
    """
    return _SPAN.sub(r"\1", markdown)


def keep_opened(facts: Mapping[str, Any], keep: Keep, name: str) -> None:
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


def templates(opened: Iterable[Opened]) -> str:
    """Return the elements that hold a page's contents until they are asked for."""
    return "".join(
        f'\n<template id="{each.id}">\n{each.html.strip()}\n</template>' for each in opened
    )
