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
from typing import TYPE_CHECKING
from urllib.parse import quote

from mlsim.records.references import label

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

_COUNT = itertools.count(1)  # two notes of a page never share an id
_BUTTON = "all:unset;cursor:pointer;text-decoration:underline dotted;outline:revert;font:inherit"
# Colors are those of the page: of Quarto's look, light or dark, or JupyterLab's. The note
# stands below its number, or above it, where a browser can do that; else in the middle.
_NOTE = (
    "color:var(--bs-body-color,var(--jp-ui-font-color1,CanvasText));"
    "background:var(--bs-body-bg,var(--jp-layout-color1,Canvas));"
    "border:1px solid color-mix(in srgb,currentcolor 35%,transparent);border-radius:6px;"
    "position-area:bottom span-all;position-try-fallbacks:flip-block;"
    "box-sizing:border-box;max-width:min(34em,94vw);max-height:80vh;overflow:auto;padding:.8em 1em;"
    "text-align:left;font-size:.9rem;line-height:1.5;font-weight:normal;white-space:normal"
)
_CITED = re.compile(r"(?<!\\)\[((?:[^\[\]]*[\s;])?-?@\w[^\[\]]*)\]")
_KEY = re.compile(r"-?@([\w:.-]*\w)")
_FORMULA = re.compile(r"^\$\$.*\$\$\n*", re.MULTILINE)
_ROW = re.compile(r"^\|.*\n?", re.MULTILINE)
_SYMBOL = re.compile(r"(?<!\\)\s*\$[^$\n]+(?<!\\)\$")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|$@<>~^])")
_BOLD = re.compile(r"(?<!\\)\*\*(.+?)(?<!\\)\*\*")


def opening(shown: str, lines: list[str]) -> tuple[str, str]:
    """Return the HTML before and after a number's text that makes it open to a note.

    The lines are text in which only citations are marked, such as "[@key, page 2]". A note
    names the document; a page that knows how it cites finds in `data-cite` what to resolve.
    What is in several lines has a title, the first.

    >>> before, after = opening("5 s", ["t = 5 s"])
    >>> before.startswith("<button") and after.endswith(">t = 5 s</span>")
    True
    """
    first, *rest = (_as_html(line) for line in lines)
    text = "<br>".join([f"<b>{first}</b>", *rest]) if rest else first
    digest = hashlib.sha1(f"{shown}{text}".encode(), usedforsecurity=False).hexdigest()
    name = f"note-{digest[:8]}-{next(_COUNT)}"
    before = f'<button type="button" popovertarget="{name}" style="{_BUTTON}">'
    return before, f'</button><span popover id="{name}" style="{_NOTE}">{text}</span>'


def plain_lines(markdown: str) -> list[str]:
    r"""Return a derivation in Markdown as lines of text: without formulas and tables.

    >>> plain_lines("**t = 5 s** [@williams2009roofline]\n\n$$t$$\n\n- work $F$ = 5")
    ['t = 5 s [@williams2009roofline]', '- work = 5']
    """
    text = _BOLD.sub(r"\1", _SYMBOL.sub("", _ROW.sub("", _FORMULA.sub("", markdown))))
    return [line.strip() for line in text.splitlines() if line.strip()]


def name_documents(text: str, shape: str = "{}") -> str:
    """Put names of documents in the place of citations, as a sentence names them.

    >>> name_documents("as printed [@nvidia2022a100, page 2; @williams2009roofline]", "({})")
    'as printed (NVIDIA 2022, page 2; Williams et al. 2009)'
    """
    return _CITED.sub(lambda match: shape.format(_documents(match[1])), text)


def _documents(citation: str) -> str:
    return _KEY.sub(lambda match: label(match[1]), citation)


def _as_html(line: str) -> str:
    """Write a line as HTML, what it cites marked."""
    parts = [_ESCAPE.sub(r"\1", part) for part in _CITED.split(line)]  # text, citation, text, ...
    for at, part in enumerate(parts):
        cited = f'<span data-cite="{_safe(part)}">[{_safe(_documents(part))}]</span>'
        parts[at] = cited if at % 2 else _safe(part)
    return "".join(parts)


def _safe(text: str) -> str:
    """Escape text for HTML that stands in Markdown, in a row of a table, too."""
    return html.escape(text).replace("`", "&#96;").replace("|", "&#124;")


def markdown(value: Quantity) -> str:
    """Return a value for a page: a span that opens, and carries its derivation."""
    before, after = (f"`{part}`{{=html}}" if part else "" for part in _opening(value))
    return f'[{before}{_shown(value)}{after}]{{.opens opens="{quote(value.origin.how)}"}}'


def as_html(value: Quantity) -> str:
    """Return a value for a notebook: a button that opens its note."""
    before, after = _opening(value)
    return f"<span>{before}{html.escape(_shown(value))}{after}</span>"


def _shown(value: Quantity) -> str:
    return value.text.replace(" ", "\u00a0")  # a number and its unit stay on one line


def _opening(value: Quantity) -> tuple[str, str]:
    """Return the HTML around the number that lets it open."""
    origin = value.origin
    lines = list(origin.note) or plain_lines(origin.how)
    return opening(_shown(value), lines) if lines else ("", "")
