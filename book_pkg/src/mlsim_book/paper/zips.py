"""The whole site as one zip that opens from disk: no server, no request, search included.

All figures of a book in one zip: for slides, each with its caption and a link back. A folder for
each chapter holds the figures as the site shows them, named by their labels; `figures.html` lists
them with captions and alternative texts.

Numbers that open, on paper: what they open to stands at the end of their chapter. The number links
to its entry, which says in a line or two what it is and the formula it comes from. Numbers in
tables stay plain: hundreds of notes would bury the table.
"""

from __future__ import annotations

import html as htmllib
import posixpath
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from mlsim_book.render.postprocess import Opened

Time = tuple[int, int, int, int, int, int]
# A page from disk may neither preload a font nor rely on a policy that names its "self".
_ONLINE = re.compile(
    r'<link rel="(?:preload|canonical)"[^>]*>\n?'
    r'|<meta http-equiv="Content-Security-Policy"[^>]*>\n?'
    r'|<nav class="downloads".*?</nav>\n?',
    re.DOTALL,
)
# The zip of a site has each notebook and the wheel, and so no zips of both.
_ZIPPED = re.compile(r'(<a class="notebook-link" href="[^"]*)\.zip(".*?)Download notebook[^<]*<')


def write_zip(
    site: Path, name: str, pages: Collection[str], *, without: Collection[str],
    time: Time,
) -> None:  # fmt: skip
    """Write the zip of a site into the site.

    Parameters
    ----------
    name
        The zip's own name, and that of the folder inside.
    pages
        The files that are pages of the book.
    without
        Files that don't go in, the book in other formats for one.
    time
        The timestamp of every file.
    """
    left_out = {name, *without}
    files = {
        path.relative_to(site).as_posix(): path
        for path in site.rglob("*")
        if path.is_file() and path.relative_to(site).as_posix() not in left_out
    }
    read = (
        from_disk(files[each].read_text(encoding="utf-8")).encode()
        if each in pages
        else files[each].read_bytes()
        for each in sorted(files)
    )
    pack(site / name, zip(sorted(files), read, strict=True), time)


def pack(
    path: Path, files: Iterable[tuple[str, bytes]], time: Time, *, compress: bool = True
) -> None:
    """Write files into a zip, in a folder of its name; the same files make the same zip.

    A wheel is stored as it is: it is a zip itself.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files:
            entry = zipfile.ZipInfo(f"{path.stem}/{name}", time)
            squeeze = compress and not name.endswith(".whl")
            entry.compress_type = zipfile.ZIP_DEFLATED if squeeze else zipfile.ZIP_STORED
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, data)


def from_disk(page: str) -> str:
    r"""Return a page as it is read from disk.

    >>> from_disk('<link rel="preload" href="a" as="font"><p>Hi')
    '<p>Hi'
    >>> from_disk('<nav class="downloads"\n></nav>\n<p>Hi')
    '<p>Hi'
    >>> from_disk('<a class="notebook-link" href="a.zip" x><b>Download notebook (zip)</b></a>')
    '<a class="notebook-link" href="a.ipynb" x><b>Open notebook</b></a>'
    """
    return _ZIPPED.sub(r"\1.ipynb\2Open notebook<", _ONLINE.sub("", page))


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
    """Yield the labeled figures of a page, several where a figure has parts."""
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
