"""The whole site as one zip that opens from disk: no server, no request, search included.

A browser runs neither module scripts nor `fetch` on a page from disk, so Pagefind
can't search there. The zip brings a plain script with all passages of the book
inside, which the search dialog loads instead.
"""

from __future__ import annotations

import html as htmllib
import json
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from mlsim_book.theme import FOLDER, LIBS

SEARCH = f"{LIBS}/search-from-disk.js"
_SECTION = re.compile(r'<h[1-6]\b[^>]*?\sid="([^"]+)"[^>]*>(.*?)</h[1-6]>', re.DOTALL)
_TITLE = re.compile(r'<p data-pagefind-meta="title"[^>]*>(.*?)</p>', re.DOTALL)
# A page from disk may neither preload a font nor rely on a policy that names its "self".
_ONLINE = re.compile(
    r'<link rel="(?:preload|canonical)"[^>]*>\n?'
    r'|<meta http-equiv="Content-Security-Policy"[^>]*>\n?'
    r'|<nav class="downloads".*?</nav>\n?',
    re.DOTALL,
)


def write_zip(
    site: Path, name: str, variants: Mapping[str, str], *, without: Collection[str],
    time: tuple[int, int, int, int, int, int],
) -> None:  # fmt: skip
    """Write the zip of a site into the site.

    Parameters
    ----------
    name
        The zip's own name; the folder inside bears it, too.
    variants
        The pages as they are indexed, by their address (see `search.search_page`).
    without
        Files that don't go in, the book in other formats for one.
    time
        The time that every file bears.
    """
    folder = name.removesuffix(".zip")
    left_out = {name, *without}
    files = {
        path.relative_to(site).as_posix(): path
        for path in site.rglob("*")
        if path.is_file() and path.relative_to(site).as_posix() not in left_out
    }
    with zipfile.ZipFile(site / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for each in sorted({*files, SEARCH}):
            if each == SEARCH:
                data = search_script(variants).encode()
            elif each in variants:
                data = from_disk(files[each].read_text(encoding="utf-8")).encode()
            else:
                data = files[each].read_bytes()
            entry = zipfile.ZipInfo(f"{folder}/{each}", time)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, data)


def from_disk(page: str) -> str:
    """Return a page as it is read from disk.

    >>> from_disk('<link rel="preload" href="a" as="font"><p>Hi')
    '<p>Hi'
    """
    return _ONLINE.sub("", page)


def search_script(variants: Mapping[str, str]) -> str:
    """Return the script with all passages of the book and what looks for words in them."""
    found = [each for href, html in variants.items() for each in passages(href, html)]
    # "</script>" can't stand in the data, wherever the script may be put
    data = json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    own = (FOLDER / "search-from-disk.js").read_text(encoding="utf-8")
    return f"window.bookPassages = {data};\n{own}"


def passages(href: str, html: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield address, page, section and text of each section of a page."""
    found = _TITLE.search(html)
    page = _text(found[1]) if found else href
    body = html[found.end() :] if found else html
    url, title, start = href, page, 0
    for match in _SECTION.finditer(body):
        if text := _text(body[start : match.start()]):
            yield url, page, title, text
        url, title, start = f"{href}#{match[1]}", _text(match[2]), match.end()
    yield url, page, title, _text(body[start:])


def _text(html: str) -> str:
    return " ".join(htmllib.unescape(re.sub(r"<[^>]*>", " ", html)).split())
