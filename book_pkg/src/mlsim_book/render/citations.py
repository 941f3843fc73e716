"""Citations of the whole book, formatted in one run of citeproc.

One run, not one a page: two works of one author and year are then "2020a" and
"2020b" on every page and in the bibliography alike.
"""

from __future__ import annotations

import difflib
import html as htmllib
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlsim_book.caches import TextCache, content_hash
from mlsim_book.errors import SourceError
from mlsim_book.model import Project
from mlsim_book.read.labels import is_english
from mlsim_book.read.lines import Reporter, reference_patterns
from mlsim_book.read.yamlfile import TEXTS, book_settings
from mlsim_book.render.pandoc import run_pandoc
from mlsim_book.render.to_html import RenderedPage

_SEPARATOR = "<!--x-cite-end-->"
_MISSING = re.compile(r"citation (\S+) not found")
_ENTRY = re.compile(
    r'<div id="ref-([^"]+)" class="csl-entry".*?</div>(?=\s*(?:<div id="ref-|</div>))', re.DOTALL
)
_PLACEHOLDER = re.compile(r'<x-cite data-index="(\d+)"></x-cite>')
_LINK = re.compile(r'href="#(ref-[^"]+)"')


@dataclass(frozen=True)
class Citations:
    """Formatted citations by page and position, and the list of references."""

    by_page: dict[str, list[str]]
    keys: dict[str, list[str]]  # cited on each page
    bibliography: str
    home: str | None  # the page that holds the list
    parted: str = ""  # the list under headings, if the book asks for parts


def format_citations(
    project: Project, pages: Sequence[RenderedPage], reporter: Reporter, keep: TextCache
) -> Citations:
    """Format all citations; unknown keys are problems with file and line."""
    home = next((page.page.chapter.href for page in pages if page.has_bibliography), None)
    keys = {
        page.page.chapter.href: re.findall(r'"citationId":"([^"]+)"', "".join(page.citations))
        for page in pages
    }
    if not any(page.citations or page.nocite for page in pages) and not project.metadata.get(
        "nocite"
    ):
        return Citations({}, keys, "", home)
    if not project.bibliography:  # citations stay as they were written
        for name in dict.fromkeys(key for page in keys.values() for key in page):
            _note_missing(name, project, pages, keys, reporter)
        by_page = {
            page.page.chapter.href: [
                _plain(json.loads(text)["blocks"][0]["c"][0]["c"][1]) for text in page.citations
            ]
            for page in pages
        }
        return Citations(by_page, keys, "", None)
    document = _document(project, pages)
    arguments = ["--from=json", "--to=html5", "--wrap=none", "--citeproc"]
    if project.csl:
        arguments.append(f"--csl={project.csl}")
    arguments += [f"--bibliography={name}" for name in project.bibliography]
    names = [*project.bibliography, *([project.csl] if project.csl else [])]
    files = [(project.root / name).read_bytes() for name in names]
    key = content_hash("citations", *arguments, document, *files)
    kept = keep.load(key)
    if kept is None:
        html, warnings = run_pandoc(arguments, document, cwd=project.root)
        kept = json.dumps({"html": html, "missing": _MISSING.findall(warnings)})
        keep.store(key, kept)
    result = json.loads(kept)
    for name in result["missing"]:
        _note_missing(name, project, pages, keys, reporter)
    found = _split(result["html"], pages, keys, home)
    listed = [(match[1], match[0]) for match in _ENTRY.finditer(found.bibliography)]
    return replace(found, parted=in_parts(project, _opening(found), listed))


def _plain(inlines: Sequence[Any]) -> str:
    words = {"Space": " ", "SoftBreak": " "}
    text = "".join(
        str(each["c"]) if each["t"] == "Str" else words.get(each["t"], "") for each in inlines
    )
    return f'<span class="citation">{htmllib.escape(text)}</span>'


def _document(project: Project, pages: Sequence[RenderedPage]) -> str:
    """Return a pandoc document of all citations, each with a separator behind it."""
    blocks: list[Any] = []
    end = {"t": "RawInline", "c": ["html", _SEPARATOR]}
    version: list[int] = [1, 23, 1]
    nocite: list[Any] = []
    for page in pages:
        for text in page.citations:
            data = json.loads(text)
            version = data["pandoc-api-version"]
            blocks.append({"t": "Plain", "c": [*data["blocks"][0]["c"], end]})
        if page.nocite:
            data = json.loads(page.nocite)
            version = data["pandoc-api-version"]
            nocite += data["blocks"][0]["c"]
    if given := project.metadata.get("nocite"):
        data = json.loads(run_pandoc(["-f", "markdown", "-t", "json"], str(given))[0])
        version = data["pandoc-api-version"]
        nocite += data["blocks"][0]["c"]
    meta: dict[str, Any] = {"link-citations": {"t": "MetaBool", "c": True}}
    if not is_english(project.lang):  # "und" and "Hrsg.", not "and" and "ed."
        meta["lang"] = {"t": "MetaString", "c": project.lang}
    if nocite:
        meta["nocite"] = {"t": "MetaInlines", "c": nocite}
    blocks.append({"t": "Div", "c": [["refs", [], []], []]})
    return json.dumps({"pandoc-api-version": version, "meta": meta, "blocks": blocks})


def _split(
    html: str, pages: Sequence[RenderedPage], keys: dict[str, list[str]], home: str | None
) -> Citations:
    *cites, rest = html.split(_SEPARATOR)
    by_page, at = {}, 0
    for page in pages:
        count = len(page.citations)
        by_page[page.page.chapter.href] = [each.strip() for each in cites[at : at + count]]
        at += count
    start = rest.find('<div id="refs"')
    return Citations(by_page, keys, rest[start:].strip() if start >= 0 else "", home)


def place_citations(html: str, page: RenderedPage, citations: Citations) -> str:
    """Fill in the citations in any HTML that came from a page."""
    href = page.page.chapter.href
    formatted = citations.by_page.get(href, [])

    def fill(match: re.Match[str]) -> str:
        index = int(match.group(1))
        return formatted[index] if index < len(formatted) else ""

    html = _PLACEHOLDER.sub(fill, html)
    if citations.home is not None and citations.home != href:
        there = posixpath.relpath(citations.home, posixpath.dirname(href) or ".")
        html = _LINK.sub(rf'href="{there}#\1"', html)
    return html


def place_references(
    html: str, page: RenderedPage, citations: Citations, *, beside: bool = False
) -> str:
    """Put the list of references into a page's body: the book's list, or the page's own.

    A page whose references stand `beside` the text needs no list of its own.
    """
    href = page.page.chapter.href
    if page.has_bibliography:
        return html.replace("<x-refs></x-refs>", citations.parted or citations.bibliography)
    if citations.home is None and not beside and (own := _own_entries(href, citations)):
        heading = htmllib.escape(page.words.get("section-title-references", "References"))
        html += (
            f'\n<section id="bibliography" class="level2 unnumbered"><h2>{heading}</h2>\n'
            f"{own}\n</section>\n"
        )
    return html


def entries(citations: Citations) -> dict[str, str]:
    """Return the entries of the list of references, by the ids that links lead to."""
    return {f"ref-{m.group(1)}": m.group(0) for m in _ENTRY.finditer(citations.bibliography)}


def _own_entries(href: str, citations: Citations) -> str:
    """Return the entries that one page cites, for a book without a list of its own."""
    cited = set(citations.keys.get(href, ()))
    entries = [m.group(0) for m in _ENTRY.finditer(citations.bibliography) if m.group(1) in cited]
    if not entries:
        return ""
    return "\n".join([_opening(citations), *entries, "</div>"])


def _opening(citations: Citations) -> str:
    """Return the tag that the list begins with."""
    return citations.bibliography.split(">", 1)[0] + ">"


def _note_missing(
    name: str,
    project: Project,
    pages: Sequence[RenderedPage],
    keys: dict[str, list[str]],
    reporter: Reporter,
) -> None:
    known = [
        key
        for path in project.bibliography
        for key in re.findall(
            r"@\w+\s*\{\s*([^,\s]+)\s*,|\"id\"\s*:\s*\"([^\"]+)\"",
            (project.root / path).read_text(encoding="utf-8", errors="replace"),
        )
    ]
    flat = [each for pair in known for each in pair if each]
    near = difflib.get_close_matches(name, flat, n=1, cutoff=0.6)
    files = ", ".join(project.bibliography) or "a file under `bibliography:` in _quarto.yml"
    for page in pages:
        if name in keys[page.page.chapter.href]:
            reporter.note(
                page.page,
                f"citation @{name} not found in the bibliography",
                *reference_patterns(name),
                hint=f"Did you mean @{near[0]}?" if near else f"Add it to {files}.",
            )


KEY = "references-in-parts"
_HINT = (
    "Write a list of parts, each with a `title`, and all but the last with `types` or `fields`, "
    "for example `types: [article, book]` and `fields: [doi]`."
)
_LISTED_ENTRY = re.compile(
    r"^\s*@(\w+)\s*[{(]\s*([^,\s]+)\s*,(.*?)(?=^\s*@|\Z)", re.MULTILINE | re.DOTALL
)
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

    def refused(wanted: str) -> SourceError:
        message = f"`mlsim-book: {KEY}:` is {given!r}, which must be {wanted}"
        return SourceError(message, file="_quarto.yml", hint=_HINT)

    if not isinstance(given, list) or len(given) < 2:
        raise refused("a list of two parts or more")
    parts = []
    for each in given:
        if not isinstance(each, Mapping) or set(each) - {"title", "types", "fields"}:
            raise refused("parts with `title`, `types` and `fields`")
        if not isinstance(each.get("title"), str) or not each["title"]:
            raise refused("parts with a title")
        lists = [each.get(name) or [] for name in ("types", "fields")]
        if not all(TEXTS.allows(one) for one in lists):
            raise refused("parts with lists of words")
        named = (frozenset(map(str.lower, one)) for one in lists)
        parts.append(Part(each["title"], *named))
    *first, last = parts
    if last.types or last.fields:
        raise refused("a list whose last part has neither `types` nor `fields`")
    if not all(each.types or each.fields for each in first):
        raise refused("a list in which only the last part has no `types` or `fields`")
    return tuple(parts)


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
        for kind, key, body in _LISTED_ENTRY.findall(text):
            known[key] = (kind.lower(), frozenset(each.lower() for each in _FIELD.findall(body)))
    return known
