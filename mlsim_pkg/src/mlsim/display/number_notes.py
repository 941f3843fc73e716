"""What a number opens to where no page of this book shows a card: a note, in plain words.

A note is HTML that may stand within a sentence: a button, and beside it an element that
the browser shows when the button is pressed, without any script. It contains no block, no
line break, no backtick and no bar, so neither a paragraph nor a row of a table breaks
on it.
"""

from __future__ import annotations

import hashlib
import html
import itertools
import re

from mlsim.records.references import label

_COUNT = itertools.count(1)  # two notes of a page never share an id
_BUTTON = "all:unset;cursor:pointer;text-decoration:underline dotted;outline:revert;font:inherit"
_NOTE = (
    "max-width:min(44em,90vw);max-height:80vh;overflow:auto;padding:1em;text-align:left;"
    "font-size:.9rem;line-height:1.6;font-weight:normal;white-space:normal"
)
_CITED = re.compile(r"\[-?@([\w:.-]+)\]")
_FORMULA = re.compile(r"^\$\$.*\$\$\n*", re.MULTILINE)
_ROW = re.compile(r"^\|.*\n?", re.MULTILINE)
_SYMBOL = re.compile(r"(?<!\\)\s*\$[^$\n]+(?<!\\)\$")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|$@<>~^])")
_BOLD = re.compile(r"(?<!\\)\*\*(.+?)(?<!\\)\*\*")


def opening(shown: str, lines: list[str]) -> tuple[str, str]:
    """Return the HTML before and after a number's text that makes it open to a note.

    >>> before, after = opening("5 s", ["t = 5 s"])
    >>> before.startswith("<button") and after.endswith("><b>t = 5 s</b></span>")
    True
    """
    first, *rest = (_safe(line) for line in lines)
    text = "<br>".join([f"<b>{first}</b>", *rest])
    digest = hashlib.sha1(f"{shown}{text}".encode(), usedforsecurity=False).hexdigest()
    name = f"note-{digest[:8]}-{next(_COUNT)}"
    before = f'<button type="button" popovertarget="{name}" style="{_BUTTON}">'
    return before, f'</button><span popover id="{name}" style="{_NOTE}">{text}</span>'


def plain_lines(markdown: str) -> list[str]:
    r"""Return a derivation in Markdown as lines of plain text: without formulas and tables.

    >>> plain_lines("**t = 5 s** [@williams2009roofline]\n\n$$t$$\n\n- work $F$ = 5")
    ['t = 5 s [Williams et al. 2009]', '- work = 5']
    """
    text = _SYMBOL.sub("", _ROW.sub("", _FORMULA.sub("", markdown)))
    text = _CITED.sub(lambda match: f"[{label(match[1])}]", _BOLD.sub(r"\1", text))
    return [_ESCAPE.sub(r"\1", line).strip() for line in text.splitlines() if line.strip()]


def _safe(text: str) -> str:
    """Escape text for HTML that stands in Markdown, in a row of a table, too."""
    return html.escape(text).replace("`", "&#96;").replace("|", "&#124;")
