"""The glossary: what its page defines, hints where terms are met, and where first.

`_quarto.yml` names the page, `mlsim-book: {glossary: glossary.qmd}`. Its entries:

    ::: {.glossary-entry}
    [draught]{.term-entry #term-draught also="draughts; draft"}
    [The current of air through a chimney.]{.glossary-definition}
    [Explained in @sec-chimneys.]{.term-explained}
    :::

On every other page the first occurrence of a term in running text becomes a link
to its entry, with the definition and the place where it is explained; front matter
`mlsim-book: {terms: false}` switches that off for a page, and `[word]{.no-hint}` for a word that
means something else there. `not="draught beer"` names phrases in which the word always does, and
`only="cold draught"` the spellings that get a link, where not all do. Quoted sentences are somebody
else's, and get none. An entry that names no place says on which page its term comes first.
All this is done when references are filled in, so rendered pages stay valid.
"""

from __future__ import annotations

import difflib
import html as htmllib
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mlsim_book.caches import Memo
from mlsim_book.errors import SourceError
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.lines import Reporter
from mlsim_book.read.yamlfile import book_settings
from mlsim_book.render.postprocess import Element, Text, edited, parse, relative

_TEX = (  # what makes a small formula readable as text
    (r"\\(?:mathrm|text|mathit|mathbf|operatorname)\s*", ""),
    (r"\s*\\times\b\s*", " × "),
    (r"\s*\\cdot\b\s*", " · "),
    (r"\s*\\leq?\b\s*", " ≤ "),
    (r"\s*\\geq?\b\s*", " ≥ "),
    (r"\s*\\approx\b\s*", " ≈ "),
    (r"\\(?:left|right|displaystyle)\b", ""),
    (r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"\1/\2"),
    (r"\\[,;:! ]", " "),
    (r"\\([%&#$_])", r"\1"),
    (r"[{}]", ""),
)


_CONTRACT = (
    "Write [term]{.term-entry #term-name}, then [what it means]{.glossary-definition}, in one"
    " ::: {.glossary-entry}."
)


@dataclass(frozen=True)
class FilledPage:
    """A page whose references are filled in, as far as the glossary looks at it."""

    page: ExecutedPage
    title: str  # as text, with its number
    body: str


def glossary_source(project: Project) -> str | None:
    """Return the source of the page that `_quarto.yml` names as the glossary.

    Raises
    ------
    SourceError
        It is no chapter of the book.
    """
    name = book_settings(project.metadata).get("glossary")
    sources = [chapter.source for chapter in project.chapters]
    if name is None or name in sources:
        return name
    near = difflib.get_close_matches(str(name), sources, n=1)
    raise SourceError(
        f"`mlsim-book: glossary:` is {name!r}, which must be a chapter of the book",
        file="_quarto.yml",
        hint=f"Did you mean '{near[0]}'?" if near else "List it under `book: chapters:`.",
    )


def place_hints(
    project: Project, pages: Sequence[FilledPage], reporter: Reporter, memo: Memo | None = None
) -> Mapping[str, str]:
    """Return the bodies of pages (by href) that hints or the glossary's own links change."""
    source = glossary_source(project)
    home = next((each for each in pages if each.page.chapter.source == source), None)
    if home is None:
        return {}
    entries = read_entries(home, reporter)
    terms, memo = Terms(entries), memo or Memo()
    changed: dict[str, str] = {}
    first: dict[str, FilledPage] = {}
    for each in pages:
        href = each.page.chapter.href
        if each is home or not _wants_hints(each.page, reporter):
            continue
        there = relative(home.page.chapter.href, href)
        body, used = memo.get(("hints", href), terms.hint, each.body, there, beside=entries)
        changed[href] = body
        for name in used:
            first.setdefault(name, each)
    changed[home.page.chapter.href] = _with_first_uses(home, first)
    return changed


def _wants_hints(page: ExecutedPage, reporter: Reporter) -> bool:
    wanted = book_settings(page.metadata).get("terms", True)
    if not isinstance(wanted, bool):
        reporter.note(
            page, f"`mlsim-book: terms:` is {wanted!r}, which must be true or false", r"\bterms:"
        )
    return wanted is not False


def read_entries(home: FilledPage, reporter: Reporter) -> list[Entry]:
    """Return the entries of the glossary page; note those that can't be used."""
    entries: list[Entry] = []
    taken: dict[str, str] = {}
    root = parse(home.body)
    if not any(root.all("term-entry")):
        reporter.note(home.page, "the glossary has no entries", r"^# ", hint=_CONTRACT)
    for block in root.all("glossary-entry"):
        term = next(block.all("term-entry"), None)
        if term is None:
            continue  # a heading among the entries, say
        name = plain_text(home.body, term)
        pattern = re.escape(name)
        definition = next(block.all("glossary-definition"), None)
        if not term.attribute("id") or definition is None:
            lacks = "definition" if term.attribute("id") else "id"
            message = f"the glossary entry '{name}' has no {lacks}"
            reporter.note(home.page, message, pattern, hint=_CONTRACT)
            continue
        entry = Entry(
            str(term.attribute("id")),
            plain_text(home.body, definition),
            (name, *_parts(term.attribute("data-also"))),
            *_place(home.body, block),
            only=_parts(term.attribute("data-only")),
            other=_parts(term.attribute("data-not")),
        )
        for spelling in entry.spellings:
            if taken.setdefault(spelling, name) != name:
                reporter.note(
                    home.page, f"the spelling '{spelling}' is given by two glossary entries,"
                    f" '{taken[spelling]}' and '{name}'", pattern,
                    hint="Leave it to one of them: a hint can show one definition.",
                )  # fmt: skip
        entries.append(entry)
    return entries


def _parts(listed: str | None) -> tuple[str, ...]:
    return tuple(filter(None, re.split(r"\s*[;,]\s*", listed or "")))


def _place(html: str, entry: Element) -> tuple[str, str]:
    """Return where a term is explained, and the address of that place, if its entry says so."""
    said = next(entry.all("term-explained"), None)
    link = next((each for each in said.below() if each.tag == "a"), None) if said else None
    return (plain_text(html, link), link.attribute("href") or "") if link else ("", "")


def _with_first_uses(home: FilledPage, first: Mapping[str, FilledPage]) -> str:
    """Return the glossary's body with, where no place is named, the page of the first use."""
    edits = []
    for block in parse(home.body).all("glossary-entry"):
        term = next(block.all("term-entry"), None)
        used = first.get(term.attribute("id") or "") if term else None
        if used is not None and not any(block.all("term-explained")):
            href = relative(used.page.chapter.href, home.page.chapter.href)
            link = f'<a href="{htmllib.escape(href)}">{htmllib.escape(used.title, quote=False)}</a>'
            line = f'<div class="term-first-used">First used in: {link}</div>\n'
            edits.append((block.inner_end, block.inner_end, line))
    return edited(home.body, edits)


def plain_text(html: str, element: Element) -> str:
    """Return the text of an element as a hint can show it: no markup, no formulas, no marks.

    >>> root = parse('<p>Gib: <span class="math inline">2^{30}</span> &amp; <em>more</em></p>')
    >>> plain_text('<p>Gib: <span class="math inline">2^{30}</span> &amp; <em>more</em></p>', root)
    'Gib: 2^30 & more'
    """
    return " ".join("".join(_pieces(html, element)).split())


def _pieces(html: str, element: Element) -> list[str]:
    pieces: list[str] = []
    for child in element.children:
        if isinstance(child, Text):
            pieces.append(htmllib.unescape(html[child.start : child.end]))
        elif "math" in child.classes:
            pieces.append(tex_text(htmllib.unescape(html[child.inner : child.inner_end])))
        elif not {"citation", "footnote-ref"} & child.classes and child.tag not in {
            "script",
            "style",
        }:
            pieces += _pieces(html, child)
    return pieces


def tex_text(tex: str) -> str:
    r"""Return a small formula as text.

    >>> tex_text(r"2^{30} \cdot \frac{F}{D}"), tex_text(r"t_\text{mem} \leq \beta")
    ('2^30 · F/D', 't_mem ≤ β')
    """
    for pattern, new in _TEX:
        tex = re.sub(pattern, new, tex)
    return re.sub(r"\\([a-zA-Z]+)", lambda found: _sign(found[1]), tex)


def _sign(name: str) -> str:
    """Return the Greek letter of a name, or else the name."""
    case = "SMALL" if name.islower() else "CAPITAL"
    try:
        return unicodedata.lookup(f"GREEK {case} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}")
    except KeyError:
        return name


_PROSE_TAGS = frozenset({"p", "li", "dd"})
_PROSE_CLASSES = frozenset({"callout-body-container"})
_BARRED_TAGS = frozenset({
    "h1", "h2", "h3", "h4", "h5", "h6", "a", "button", "summary", "label", "select", "code", "pre",
    "kbd", "samp", "var", "math", "svg", "figcaption", "caption", "table", "blockquote", "q",
    "cite", "dt", "dfn", "script", "style", "template", "textarea", "title", "nav", "header",
})  # fmt: skip
_BARRED_CLASSES = frozenset({
    "math", "opens", "citation", "callout-header", "theorem-title", "proof-title", "csl-entry",
    "quarto-unresolved-ref", "footnotes", "no-hint",
})  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A term: where it is defined, as what, how it is spelled, and where it is explained."""

    id: str
    definition: str
    spellings: tuple[str, ...]
    place: str = ""  # where it is explained
    at: str = ""  # the address of that place, from the glossary's page
    only: tuple[str, ...] = ()  # the spellings that get a hint, where not all do
    other: tuple[str, ...] = ()  # phrases in which the word means something else


class Terms:
    """The terms of a book, ready to be found.

    >>> terms = Terms([Entry("term-pot", "A vessel.", ("pot", "kettle"), other=("pot luck",))])
    >>> terms.hint("<p>Two kettles and a pot.</p>", "g.html")[1]
    ['term-pot']
    >>> terms.hint("<p>Pot luck, “a pot and a half pot”.</p>", "g.html")[1]
    []
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        entries = tuple(entries)
        self._entries: dict[str, Entry | None] = {
            _key(spelling): entry
            for entry in entries
            for spelling in reversed(entry.only or entry.spellings)
        }
        self._entries |= {_key(phrase): None for entry in entries for phrase in entry.other}
        # the longest first: "memory bandwidth" is no occurrence of "bandwidth"
        spellings = sorted(self._entries, key=len, reverse=True)
        words = "|".join(map(_pattern, spellings))
        # an ampersand before it: the name of a character reference, no word
        found = rf"“[^”]{{20,}}”|(?<![\w&#-])(?:{words})s?(?!-?\w)"
        self._found = re.compile(found) if words else None

    def hint(self, html: str, glossary: str) -> tuple[str, list[str]]:
        """Put hints into a page's HTML; return it, and the ids of the terms met, in order.

        Parameters
        ----------
        glossary
            The address of the glossary, from this page.
        """
        if self._found is None:
            return html, []
        edits: list[tuple[int, int, str]] = []
        used: dict[str, None] = {}
        for start, end in running_text(parse(html), prose=False):
            for match in self._found.finditer(html, start, end):
                key = _key(htmllib.unescape(match.group()))
                entry = self._entries.get(key, self._entries.get(key.removesuffix("s")))
                if entry is None or entry.id in used:
                    continue
                used[entry.id] = None
                href = htmllib.escape(f"{glossary}#{entry.id}")
                meaning = htmllib.escape(entry.definition)
                told = f' data-term="{htmllib.escape(entry.spellings[0])}"'
                if entry.place:
                    at = posixpath.normpath(posixpath.join(posixpath.dirname(glossary), entry.at))
                    told += f' data-place="{htmllib.escape(entry.place)}"'
                    told += f' data-at="{htmllib.escape(at)}"'
                link = (
                    f'<a class="term" href="{href}" data-definition="{meaning}"{told}>'
                    f"{match[0]}</a>"
                )
                edits.append((*match.span(), link))
        return edited(html, edits), list(used)


def _key(spelling: str) -> str:
    """Return a spelling in one form: the first letter small, single spaces."""
    text = " ".join(spelling.split())
    return text[:1].lower() + text[1:]


def _pattern(spelling: str) -> str:
    """Return the pattern of a spelling in HTML, whatever the case of its first letter."""
    words = [re.escape(htmllib.escape(word, quote=False)) for word in spelling.split()]
    first = spelling[:1]
    if first.isalpha():
        words[0] = f"[{first.lower()}{first.upper()}]{words[0][1:]}"
    return r"\s+".join(words)


def running_text(element: Element, *, prose: bool) -> Iterable[tuple[int, int]]:
    """Yield the places of running text, in reading order; `prose` says that it is inside one."""
    for child in element.children:
        if not isinstance(child, Element):
            if prose:
                yield child.start, child.end
        elif child.tag not in _BARRED_TAGS and not child.classes & _BARRED_CLASSES:
            inside = child.tag in _PROSE_TAGS or bool(child.classes & _PROSE_CLASSES)
            yield from running_text(child, prose=prose or inside)
