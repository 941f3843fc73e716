"""Numbers that open to what is behind them.

An inline expression may give Markdown such as

    [55.5 µs]{.opens opens="PERCENT-ENCODED MARKDOWN"}

(`urllib.parse.quote` of paragraphs, formulas, tables, lists, links). On the site
the number opens a card with that content; `lua/opens.lua` reads it and
`theme/opens.js` shows it. Quarto, a notebook and a page without scripts show the
plain number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

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


def templates(opened: Iterable[Opened]) -> str:
    """Return the elements that hold a page's contents until they are asked for."""
    return "".join(
        f'\n<template id="{each.id}">\n{each.html.strip()}\n</template>' for each in opened
    )
