"""What a page's numbers open to, as a script that is loaded when a reader comes near.

What a page's numbers open to may weigh several times the page itself. So it is a
file of its own, a plain script: that loads from disk, too, and a strict policy allows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote

from mlsim_book.caches import content_hash
from mlsim_book.render.opens import Opened
from mlsim_book.site.shared_files import LIBS

_PLACE = re.compile(r'\n<template id="opens-cards" data-from="([^"?]*)\?[^"]*"></template>')


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
