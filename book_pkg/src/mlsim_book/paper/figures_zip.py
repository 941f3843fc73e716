"""All figures of a book in one zip: for slides, each with its caption and a link back.

A folder for each chapter holds the figures as the site shows them, named by their
labels; `figures.html` lists them with captions and alternative texts.
"""

from __future__ import annotations

import html as htmllib
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from mlsim_book.paper.site_zip import Time, pack

_STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
img { max-width: 100%; height: auto; background: #fff; } figure { margin: 2rem 0; }
""".strip()


@dataclass(frozen=True)
class Picture:
    """A figure of a page: its file, and what is said of it."""

    path: str  # in the site
    name: str  # in the zip
    caption: str
    alt: str
    link: str  # page and place


def pictures(href: str, page: str) -> Iterator[Picture]:
    """Yield the labelled figures of a page, several where a figure has parts."""
    folder = posixpath.dirname(href)
    stem = posixpath.splitext(posixpath.basename(href))[0]
    for figure in LexborHTMLParser(page, is_fragment=True).css(
        "div.quarto-float-fig, div.quarto-float, figure"
    ):
        label = figure.attributes.get("id") or ""
        if not label.startswith("fig-"):
            continue
        said = figure.css_first("figcaption")
        caption = " ".join((said.text() if said else "").split())
        images = [
            image
            for image in figure.css("img")
            if "dark-content" not in (image.attributes.get("class") or "")
        ]
        for number, image in enumerate(images, start=1):
            source = image.attributes.get("src") or ""
            if re.match(r"[a-z]+:|//", source):
                continue
            path = posixpath.normpath(posixpath.join(folder, source))
            part = f"-{number}" if len(images) > 1 else ""
            name = f"{stem}/{label}{part}{posixpath.splitext(path)[1]}"
            yield Picture(path, name, caption, image.attributes.get("alt") or "", f"{href}#{label}")


def write_figures(
    site: Path, name: str, title: str, pages: Iterable[tuple[str, str]], *,
    address: str | None, time: Time,
) -> int:  # fmt: skip
    """Write the zip of a site's figures into the site; return how many there are.

    Parameters
    ----------
    pages
        The pages' bodies with their addresses, in order.
    address
        Where the site is published, for the links back.
    time
        The timestamp of every file.
    """
    found = {each.name: each for href, page in pages for each in pictures(href, page)}
    there = [each for each in found.values() if (site / each.path).is_file()]
    listed = ("figures.html", _list(title, there, address).encode())
    drawn = ((each.name, (site / each.path).read_bytes()) for each in there)
    pack(site / name, [listed, *drawn], time)
    return len(there)


def _list(title: str, figures: Iterable[Picture], address: str | None) -> str:
    """Return the page that lists the figures."""
    parts = []
    for each in figures:
        name, alt, caption = (htmllib.escape(text) for text in (each.name, each.alt, each.caption))
        if address:
            link = htmllib.escape(f"{address.rstrip('/')}/{each.link}")
            caption += f' <a href="{link}">In the book</a>'
        picture = f'<img src="{name}" alt="{alt}">'
        parts.append(f"<figure>{picture}<figcaption>{caption}</figcaption></figure>")
    shown = htmllib.escape(title)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{shown}: figures</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{shown}: figures</h1>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )
