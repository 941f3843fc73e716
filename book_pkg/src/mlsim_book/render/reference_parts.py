"""The list of references in parts: literature apart from sources of data, say.

    mlsim-book:
      references-in-parts:
        - title: Papers and books
          types: [article, book, inproceedings]
          fields: [eprint, doi]
        - title: Data sources

An entry stands in the first part that names its type, or a field that it has. The last
part names neither and takes the rest. A part without entries is left out.
"""

from __future__ import annotations

import html as htmllib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.model import Project
from mlsim_book.read.yamlfile import book_settings

KEY = "references-in-parts"
_HINT = (
    "Write a list of parts, each with a `title`, and all but the last with `types` or `fields`, "
    "for example `types: [article, book]` and `fields: [doi]`."
)
_ENTRY = re.compile(r"^\s*@(\w+)\s*[{(]\s*([^,\s]+)\s*,(.*?)(?=^\s*@|\Z)", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"(?:^|[,\s])(\w+)\s*=\s*[{\"\d]")


@dataclass(frozen=True)
class Part:
    """A part of the list: its heading, and the types and fields of its entries."""

    title: str
    types: frozenset[str]
    fields: frozenset[str]

    def takes(self, kind: str, fields: frozenset[str]) -> bool:
        """Whether an entry belongs here; without types and fields, every entry does."""
        return not (self.types or self.fields) or kind in self.types or bool(self.fields & fields)


def parts_of(metadata: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return the parts that a book asks for; none if it wants one list.

    Raises
    ------
    SourceError
        The setting is no list of parts, or its last part doesn't take the rest.

    >>> wanted = [{"title": "Papers", "types": ["article"]}, {"title": "Data"}]
    >>> [each.title for each in parts_of({"mlsim-book": {"references-in-parts": wanted}})]
    ['Papers', 'Data']
    """
    given = book_settings(metadata).get(KEY)
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) < 2:
        raise _refused(given, "a list of two parts or more")
    parts = tuple(_part(each) for each in given)
    *first, last = parts
    if last.types or last.fields:
        raise _refused(given, "a list whose last part has neither `types` nor `fields`")
    if not all(each.types or each.fields for each in first):
        raise _refused(given, "a list in which only the last part has no `types` or `fields`")
    return parts


def _part(given: object) -> Part:
    if not isinstance(given, Mapping) or set(given) - {"title", "types", "fields"}:
        raise _refused(given, "parts with `title`, `types` and `fields`")
    title, *lists = (given.get(name) for name in ("title", "types", "fields"))
    if not isinstance(title, str) or not title:
        raise _refused(given, "parts with a title")
    named = []
    for each in lists:
        if each is not None and not (
            isinstance(each, list) and each and all(isinstance(name, str) for name in each)
        ):
            raise _refused(given, "parts with lists of words")
        named.append(frozenset(name.lower() for name in each or ()))
    return Part(title, *named)


def _refused(given: object, wanted: str) -> SourceError:
    return SourceError(
        f"`mlsim-book: {KEY}:` is {given!r}, which must be {wanted}",
        file="_quarto.yml",
        hint=_HINT,
    )


def in_parts(project: Project, opening: str, entries: Sequence[tuple[str, str]]) -> str:
    """Return the list of references under the headings that the book asks for; "" if none.

    `entries` are keys and what was made of them, in the order of the list, and
    `opening` is the tag that the list begins with.
    """
    parts = parts_of(project.metadata)
    if not parts or not entries:
        return ""
    known = _known(project)
    groups: dict[str, list[str]] = {each.title: [] for each in parts}
    for key, html in entries:
        kind, fields = known.get(key, ("", frozenset()))
        groups[next(each for each in parts if each.takes(kind, fields)).title].append(html)
    # A list holds its entries alone, so each part is one.
    pieces = [opening.replace(' role="list"', "")]
    for title, found in groups.items():
        if found:
            name = re.sub(r"\W+", "-", title.lower()).strip("-")
            pieces.append(f'<section id="{name}" class="level2 unnumbered">')
            pieces += [f"<h2>{htmllib.escape(title)}</h2>", '<div role="list">', *found]
            pieces.append("</div></section>")
    return "\n".join([*pieces, "</div>"])


def _known(project: Project) -> dict[str, tuple[str, frozenset[str]]]:
    """Return type and fields of the entries of the .bib files, by key."""
    known = {}
    for name in project.bibliography:
        text = (project.root / name).read_text(encoding="utf-8", errors="replace")
        for kind, key, body in _ENTRY.findall(text):
            known[key] = (kind.lower(), frozenset(each.lower() for each in _FIELD.findall(body)))
    return known
