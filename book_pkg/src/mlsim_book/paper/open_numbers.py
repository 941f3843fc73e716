"""Numbers that open, on paper: what they open to stands at the end of their chapter.

The number links to its entry, which says in a line or two what it is and the formula it
comes from. Numbers in tables stay plain: hundreds of notes would bury the table.
"""

from __future__ import annotations

import html as htmllib
import re
from collections.abc import Sequence

from mlsim_book.render.opens import Opened

_SKIPPED = re.compile(r"<table\b.*?</table>|<a\b.*?</a>|<h[1-6]\b.*?</h[1-6]>", re.DOTALL)
_NUMBER = re.compile(r'<span class="opens" data-opens="([^"]+)">([^<]*)</span>')
_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_FORMULA = re.compile(r'<span class="math display">.*?</span>', re.DOTALL)
_TITLE = "Where the numbers come from"


def with_numbers(body: str, opened: Sequence[Opened]) -> str:
    """Return a page's body with its numbers linked to entries at its end.

    >>> cards = [Opened("o1", "5 s", "<p><strong>time = 5 s</strong></p>")]
    >>> print(with_numbers('<p><span class="opens" data-opens="o1">5 s</span></p>', cards))
    <p><a href="#o1-source">5 s</a></p>
    <section class="paper-numbers"><p><strong>Where the numbers come from</strong></p>
    <div class="paper-number" id="o1-source"><p>5 s: <strong>time = 5 s</strong></p></div>
    </section>
    """
    cards = {each.id: each for each in opened}
    used: dict[str, Opened] = {}

    def link(match: re.Match[str]) -> str:
        card = cards.get(match[1])
        if card is None or not _entry(card):
            return match[0]
        used[card.id] = card
        return f'<a href="#{card.id}-source">{match[2]}</a>'

    parts = _SKIPPED.split(body)
    kept = [*_SKIPPED.findall(body), ""]
    body = "".join(
        _NUMBER.sub(link, part) + skipped for part, skipped in zip(parts, kept, strict=True)
    )
    if not used:
        return body
    entries = "\n".join(
        f'<div class="paper-number" id="{each.id}-source">{_entry(each)}</div>'
        for each in used.values()
    )
    return (
        f'{body}\n<section class="paper-numbers"><p><strong>{_TITLE}</strong></p>\n'
        f"{entries}\n</section>"
    )


def _entry(card: Opened) -> str:
    """Return what a card says first, and its first formula."""
    first = _PARAGRAPH.search(card.html)
    if first is None:
        return ""
    formula = _FORMULA.search(card.html)
    text = first[1].strip()
    shown = formula[0] if formula and formula[0] not in text else ""
    inline = shown.replace('class="math display"', 'class="math inline"')
    return f"<p>{htmllib.escape(card.text)}: {text}{' ' if inline else ''}{inline}</p>"
