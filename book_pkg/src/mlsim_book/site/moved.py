"""Old addresses: where a page has moved, a small page sends its readers on.

The front matter of the page that is there now names the old address from the book's root, as
Quarto has it. A page that took over only some sections names one of them:

    aliases: [/old.html]
    aliases: ["/old.html#sec-part"]

A reader who asks for a section comes to the page that has it now.
"""

from __future__ import annotations

import html as htmllib
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_ID = re.compile(r'\sid="([^"]+)"')


@dataclass(frozen=True)
class Place:
    """A page that took over an old address, or a part of it."""

    href: str
    title: str
    body: str
    aliases: Sequence[str]


def moved(pages: Iterable[Place], script: str, *, lang: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of a page for each old address.

    `script` is the path of the script in the site. Of an address that several pages took over,
    the first that names it without a section has what no other page has.

    >>> pots = Place("pots.html", "Pots", '<h2 id="clay">', ["/old.html"])
    >>> beds = Place("beds.html", "Beds", '<h2 id="depth">', ["/old.html#depth"])
    >>> [(path, text)] = moved([beds, pots], "libs/moved.js", lang="en")
    >>> path, '{"page": "pots.html", "parts": {"depth": "beds.html"}}' in text
    ('old.html', True)
    """
    old: dict[str, list[Place]] = {}
    for page in pages:
        for name in dict.fromkeys(each.partition("#")[0].lstrip("/") for each in page.aliases):
            old.setdefault(name, []).append(page)
    for name, found in old.items():
        whole = next((each for each in found if f"/{name}" in each.aliases), found[0])
        kept = set(_ID.findall(whole.body))
        parts = {
            section: _link(name, each.href)
            for each in found
            if each is not whole
            for section in _ID.findall(each.body)
            if section not in kept
        }
        places = {"page": _link(name, whole.href), "parts": parts}
        yield name, _page(name, [whole, *(each for each in found if each is not whole)], places,
                          _link(name, script), lang)  # fmt: skip


def _link(old: str, href: str) -> str:
    return posixpath.relpath(href, posixpath.dirname(old) or ".")


def _page(
    name: str, pages: Sequence[Place], places: Mapping[str, object], script: str, lang: str
) -> str:
    links = "\n".join(
        f'<li><a href="{_link(name, each.href)}">{htmllib.escape(each.title)}</a></li>'
        for each in pages
    )
    data = json.dumps(places, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!DOCTYPE html>
<html lang="{htmllib.escape(lang)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{htmllib.escape(pages[0].title)}</title>
<link rel="canonical" href="{places["page"]}">
<script type="application/json" id="places">{data}</script>
<script src="{script}"></script>
</head>
<body>
<main id="quarto-document-content">
<h1>This page has moved</h1>
<ul>
{links}
</ul>
</main>
</body>
</html>
"""
