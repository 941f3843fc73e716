"""The pages that a genuine Quarto made of the conformance books, as they are on record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def recorded(book: Path) -> Mapping[str, str]:
    """Return the pages of one of those books by name: the content, tidied, without a head."""
    text = (book / "expected.html").read_text("utf-8")
    parts = (part.partition(" -->") for part in text.split("<!-- page: ")[1:])
    return {name: html for name, _, html in parts}


def lay_out(book: Path, folder: Path) -> Path:
    """Write the recorded pages of a book as a site."""
    for name, html in recorded(book).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html, "utf-8")
    return folder
