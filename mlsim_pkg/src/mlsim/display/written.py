"""Values written for pages and notebooks, where each opens to a note or a card."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING
from urllib.parse import quote

from mlsim.display.number_notes import opening, plain_lines

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


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
