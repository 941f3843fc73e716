"""Numbers that open to what is behind them.

An inline expression may give Markdown such as

    [55.5 µs]{.opens opens="PERCENT-ENCODED MARKDOWN"}

(`urllib.parse.quote` of paragraphs, formulas, tables, lists, links). On the site
the number opens a card with that content; `lua/opens.lua` reads it and
`theme/opens.js` shows it. What raw HTML stands in the brackets is for Quarto, which
shows it as it is, such as a button that opens a note; here it is left out. A page
without scripts shows the plain number.

What a page's numbers open to may weigh several times the page itself. So it is a
file of its own, which is loaded when a reader comes near the first number. It is a
plain script: that loads from disk, too, and a strict policy allows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mlsim_book.keep import Keep, content_hash
from mlsim_book.theme import LIBS

_CITED = re.compile(r'(<x-cite data-index=")(\d+)')
_PLACE = re.compile(r'\n<template id="opens-cards" data-from="([^"?]*)\?[^"]*"></template>')
_RAW = r"`[^`]*`\{=html\}"
_SPAN = re.compile(rf'\[(?:{_RAW})?([^\[\]`]*)(?:{_RAW})?\]\{{\.opens\s+opens="[^"]*"\}}')


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


def cards_script(opened: Iterable[Opened]) -> str:
    """Return the script that holds what a page's numbers open to, by id.

    >>> cards_script([Opened("opens-1", "5 s", "A & B")]).strip()
    'bookCards = {"opens-1": "A & B"};'
    """
    cards = {each.id: each.html.strip() for each in opened}
    # "</script>" can't stand in it, wherever the script may be put
    return f"bookCards = {json.dumps(cards, ensure_ascii=False)};\n".replace("</", "<\\/")


def cards_place(href: str, script: str) -> tuple[str, str]:
    """Return where the script of a page goes, from the root, and the element that names it.

    The address holds a hash of the content: a browser may keep the file for long.

    >>> cards_place("part/a.html", "x")[0]
    'site_libs/cards/part/a.js'
    """
    path = f"{LIBS}/cards/{href.removesuffix('.html')}.js"
    base = "../" * href.count("/")
    address = quote(f"{base}{path}") + f"?v={content_hash(script)[:8]}"
    return path, f'\n<template id="opens-cards" data-from="{address}"></template>'


def with_cards(html: str, page: Path) -> str:
    """Return a page with what its numbers open to in templates, to be checked as a whole."""

    def fill(match: re.Match[str]) -> str:
        path = page.parent / unquote(match[1])
        if not path.is_file():
            return match[0]
        cards = json.loads(path.read_text("utf-8").removeprefix("bookCards = ").rstrip(";\n"))
        return "".join(
            f'\n<template id="{key}">\n{card}\n</template>' for key, card in cards.items()
        )

    return _PLACE.sub(fill, html)
