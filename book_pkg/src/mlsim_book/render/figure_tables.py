"""The table below a figure: its data, folded, and as a file of comma-separated values.

The file is stored beside the image, under its name and `.csv`; a reader who finds an image with
one (`place_tables`) puts the table below it. It is made of the file alone.
"""

from __future__ import annotations

import csv
import html as htmllib
import io
import posixpath
import re
from collections.abc import Mapping
from decimal import Decimal

from mlsim_book.run.figure_data import SUFFIX

MOST, SPREAD = 200, 50  # rows shown at most; of more, so many evenly spread

_IMAGE = re.compile(r'<img\b[^<>]*?\ssrc="([^"]+)"[^<>]*>')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NAME = re.compile(r"<figcaption[^>]*>\s*(?:<[^>]*>\s*)*([^<:]{1,40}):")


def place_tables(html: str, href: str, made: Mapping[str, bytes]) -> str:
    """Put the data of each figure of a page below it.

    Parameters
    ----------
    href
        The page, from the book's root.
    made
        The files drawn, by path from the root.
    """
    pieces, at = [], 0
    for image in _IMAGE.finditer(html):
        source = htmllib.unescape(image[1])
        name = posixpath.normpath(posixpath.join(posixpath.dirname(href), source))
        data = made.get(posixpath.splitext(name)[0] + SUFFIX)
        if data is None or image.start() < at:
            continue
        end = _end_of_figure(html, image)
        pieces += [html[at:end], _table(data.decode(), source, html[image.end() : end])]
        at = end
    return "".join(pieces) + html[at:]


def _end_of_figure(html: str, image: re.Match[str]) -> int:
    """Return where the figure around an image ends, or its paragraph, or the image."""
    before = html[: image.start()]
    for tag in ("figure", "p"):
        if len(re.findall(rf"<{tag}[\s>]", before)) > before.count(f"</{tag}>"):
            end = html.find(f"</{tag}>", image.end())
            if end >= 0:
                return end + len(f"</{tag}>")
    return image.end()


def _table(data: str, source: str, rest: str) -> str:
    """Return the fold; `rest` is what of the figure follows its image: the caption."""
    head, *rows = csv.reader(io.StringIO(data))
    numeric = [
        all(_NUMBER.fullmatch(row[n]) or not row[n] for row in rows) for n in range(len(head))
    ]
    shown = _spread(rows)
    named = _NAME.search(rest)
    name = f"Data of {named[1].strip()}" if named else "Data of this figure"
    said = f"{len(shown)} of {len(rows)} rows" if len(shown) < len(rows) else f"{len(rows)} rows"
    lines = ["<tr>" + "".join(map(_heading, head, numeric)) + "</tr>"]
    body = ["<tr>" + "".join(map(_cell, row, numeric, range(len(row)))) + "</tr>" for row in shown]
    link = posixpath.splitext(source)[0] + SUFFIX
    return (
        f'\n<details class="figure-data" data-search-ignore><summary>{name}</summary>\n'
        f'<table class="table table-sm"><caption>{name}, {said}</caption>'
        f"<thead>{''.join(lines)}</thead>\n<tbody>{chr(10).join(body)}</tbody></table>\n"
        f'<a class="figure-download" href="{htmllib.escape(link)}" download>Download as CSV</a>'
        "</details>\n"
    )


def _spread(rows: list[list[str]]) -> list[list[str]]:
    """Return so many rows as fit a page, the first and the last among them.

    >>> [len(_spread([["1"]] * count)) for count in (3, 200, 201, 400)]
    [3, 200, 50, 50]
    """
    if len(rows) <= MOST:
        return rows
    return [rows[round(n * (len(rows) - 1) / (SPREAD - 1))] for n in range(SPREAD)]


def _heading(text: str, numeric: bool) -> str:
    return f'<th scope="col"{_right(numeric)}>{htmllib.escape(text)}</th>'


def _cell(text: str, numeric: bool, column: int) -> str:
    shown = htmllib.escape(_short(text) if numeric else text)
    if column == 0 and text:
        return f'<th scope="row"{_right(numeric)}>{shown}</th>'
    return f"<td{_right(numeric)}>{shown}</td>"


def _short(number: str) -> str:
    """Return a number with four significant digits; the file has all.

    >>> _short("97.8291"), _short("1234.56"), _short("12345"), _short("0.000123456")
    ('97.83', '1235', '12345', '0.0001235')
    """
    return format(Decimal(f"{float(number):.4g}"), "f") if "." in number else number


def _right(numeric: bool) -> str:
    return ' class="number"' if numeric else ""
