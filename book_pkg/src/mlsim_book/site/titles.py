"""The titles of a book as its navigation shows them: HTML that may stand within a link.

A chapter's title comes from its rendered page. Those of the book, of its parts, and of
chapters whose page shows none, are Markdown of `_quarto.yml` or of a heading: pandoc
reads all of them in one go, and none that has no markup.

The navigation of a book: sidebar, previous and next page, the page's contents.
"""

from __future__ import annotations

import html as htmllib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mlsim_book.caches import TextCache, content_hash
from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, Project
from mlsim_book.read.labels import appendices_title, chapter_number
from mlsim_book.read.lines import text_pattern
from mlsim_book.render import to_html
from mlsim_book.render.assets import Assets
from mlsim_book.render.pandoc import find_pandoc, pandoc_version, run_pandoc
from mlsim_book.render.postprocess import relative
from mlsim_book.render.to_html import Heading

_ARGUMENTS = ("--from=markdown", "--to=html5", "--katex", "--wrap=none")
_PLAIN = re.compile(
    r"(?:(?!--|\.\.\.)[^\W_]|(?!--|\.\.\.)[ ,.:;!?()-]|&(?= )|(?<=[^\W_])'(?=[^\W_]))*"
)
# What makes a title a line of a paragraph, whatever it begins with; it is not written.
_INLINE = "`-`{=none}"
_MARK = "<!--next title-->"
_BETWEEN = re.compile(rf"\s*<p>{_MARK}</p>\s*")
_NOTES = re.compile(
    r'<a\b[^>]*\bclass="footnote-ref"[^>]*>.*?</a>|<section\b[^>]*class="footnotes\b.*?</section>',
    re.DOTALL,
)
_NUMBER = re.compile(r'<span class="header-section-number">[^<]*</span>\s*')
_TAG = re.compile(r"<(/?)(\w+)([^<>]*)>")
_ALT = re.compile(r'\salt="([^"]*)"')
_ID = re.compile(r'\sid="[^"]*"')


@dataclass(frozen=True)
class Titles:
    """The titles of a book in HTML; one that is not known is shown as it is written."""

    chapters: Mapping[str, str] = field(default_factory=dict)  # by the chapter's page
    others: Mapping[str, str] = field(default_factory=dict)  # by their Markdown
    text: str = ""  # the book's, as plain text

    def chapter(self, chapter: Chapter) -> str:
        """Return a chapter's title, without its number.

        >>> known = Titles({"a.html": "<b>A</b>"})
        >>> [known.chapter(Chapter(name, f"{name}.html", name, 1)) for name in ("a", "b")]
        ['<b>A</b>', 'b']
        """
        return self.chapters.get(chapter.href) or self.written(chapter.title)

    def part(self, text: str, href: str | None) -> str:
        """Return a part's title: that of its own page, if it has one.

        >>> known = Titles({"q.html": "<b>Q</b>"}, {"*P*": "<em>P</em>"})
        >>> known.part("Q", "q.html"), known.part("*P*", "p.html"), known.part("*P*", None)
        ('<b>Q</b>', '<em>P</em>', '<em>P</em>')
        """
        return self.chapters.get(href or "") or self.written(text)

    def written(self, text: str) -> str:
        """Return a title by its Markdown.

        >>> Titles(others={"*Clay*": "<em>Clay</em>"}).written("*Clay*"), Titles().written("A & B")
        ('<em>Clay</em>', 'A &amp; B')
        """
        return self.others.get(text) or htmllib.escape(text, quote=False)


def is_plain(text: str) -> bool:
    """Say whether a line of Markdown has nothing to interpret.

    >>> [is_plain(text) for text in ("Clay & it's use", "A -- b", "_Clay_", "`a`", "At & T&amp;")]
    [True, False, False, False, False]
    """
    return _PLAIN.fullmatch(text) is not None


def plain_html(text: str) -> str:
    """Return the HTML of a line that is plain.

    >>> plain_html("Clay & it's use")
    'Clay &amp; it’s use'
    """
    return htmllib.escape(text.replace("'", "’"), quote=False)


def bare(html: str) -> str:
    """Return a title for navigation: no link within a link, no id twice, no note, no image.

    >>> bare('<span id="a">A</span> <a href="b.html">b</a> <img src="c.svg" alt="c">')
    '<span>A</span> b c'
    """

    def tag(match: re.Match[str]) -> str:
        if match[2] == "a":
            return ""
        if match[2] == "img":
            alt = _ALT.search(match[3])
            return alt[1] if alt else ""
        return f"<{match[1]}{match[2]}{_ID.sub('', match[3])}>"

    return _TAG.sub(tag, _NUMBER.sub("", _NOTES.sub("", html))).strip()


def book_titles(
    project: Project,
    chapters: Mapping[str, str],
    assets: Assets,
    keep: TextCache,
    *,
    macros: Mapping[str, str],
    problems: Problems,
) -> Titles:
    """Return a book's titles, given those that its pages show; note formulas KaTeX refuses."""
    others = render_titles(_written(project, chapters), keep)
    text = htmllib.unescape(_TAG.sub("", others[project.title]))
    found = to_html.formulas("".join(others.values()))
    if found:
        done = to_html.typeset(found, assets, keep, macros)
        others = {name: to_html.place_formulas(html, done) for name, html in others.items()}
        for formula in found:
            if error := done[formula].error:
                _note_broken(formula.tex, error, project, problems)
    return Titles(chapters, others, text)


def _written(project: Project, chapters: Mapping[str, str]) -> list[str]:
    """Return the titles that no page shows, as they are written: the book's, parts', others'.

    >>> from pathlib import Path
    >>> parts = (("a", "P", None), ("b", "P", None), ("c", "Q", "q"), ("d", "R", "r"))
    >>> chapters = [
    ...     Chapter(name, name, name.upper(), 1, part=part, part_href=href)
    ...     for name, part, href in (*parts, ("e", None, None))
    ... ]
    >>> _written(Project(Path(), "T", tuple(chapters)), {"a": "A", "q": "Q"})
    ['T', 'P', 'R', 'B', 'C', 'D', 'E']
    """
    parts = [each.part for each in project.chapters if each.part and each.part_href not in chapters]
    untitled = [each.title for each in project.chapters if each.href not in chapters]
    return list(dict.fromkeys([project.title, *parts, *untitled]))


def _note_broken(tex: str, error: str, project: Project, problems: Problems) -> None:
    """Tell of a formula that KaTeX refuses; in quotes, YAML has its backslashes twice."""
    lines = (project.root / "_quarto.yml").read_text(encoding="utf-8").splitlines()
    pattern = re.compile(text_pattern(tex).replace(r"\\", r"\\{1,2}"))
    line = next((number for number, each in enumerate(lines, 1) if pattern.search(each)), None)
    problems.add(
        f"KaTeX can't typeset the formula  {tex}  of a title\n  {error}",
        file="_quarto.yml",
        line=line,
        hint="See katex.org/docs/supported.html for what KaTeX knows, or define a macro"
        " under `mlsim-book: {macros: {...}}`.",
    )


def render_titles(texts: Iterable[str], keep: TextCache) -> dict[str, str]:
    """Return titles in HTML, by their Markdown; formulas are not typeset yet."""
    done = {text: plain_html(text) for text in texts if is_plain(text)}
    marked = [text for text in texts if text not in done]
    if not marked:
        return done
    version = ".".join(map(str, pandoc_version(find_pandoc())))
    key = content_hash("titles", version, *_ARGUMENTS, *marked)
    html = keep.load(key)
    if html is None:
        html = f"\n<p>{_MARK}</p>\n".join(_rendered(marked))
        keep.store(key, html)
    return done | dict(zip(marked, _BETWEEN.split(html), strict=True))


def _rendered(texts: Sequence[str]) -> list[str]:
    """Return the HTML of titles, all by one run of pandoc; each by its own if one spoils it."""
    lines = [_INLINE + " ".join(text.split()) for text in texts]
    html = _NOTES.sub("", run_pandoc(_ARGUMENTS, f"\n\n`{_MARK}`{{=html}}\n\n".join(lines))[0])
    pieces = [each.strip() for each in _BETWEEN.split(html)]
    lines_alone = all(re.fullmatch(r"<p>(?:(?!<p>).)*</p>", each, re.DOTALL) for each in pieces)
    if len(pieces) == len(texts) and lines_alone:
        return [bare(each[len("<p>") : -len("</p>")]) for each in pieces]
    if len(texts) == 1:
        return [htmllib.escape(texts[0], quote=False)]
    return [_rendered([text])[0] for text in texts]


_UNKNOWN = Titles()
_MOST = 10  # pages of a part that are listed without being asked for


@dataclass(frozen=True)
class Entry:
    """A line of the sidebar: a page, or a part with pages below it."""

    text: str  # HTML
    href: str | None = None  # relative to the page it is shown on
    active: bool = False
    items: tuple[Entry, ...] = ()

    @property
    def folded(self) -> bool:
        """Whether it is a part so long that its pages fold away.

        >>> pages = (Entry("A"),) * 11
        >>> Entry("P", items=pages).folded, Entry("P", items=pages[1:]).folded
        (True, False)
        """
        return len(self.items) > _MOST and self.href is None


@dataclass
class Contents:
    """A heading in the table of contents, and those below it."""

    heading: Heading
    html: str = ""
    items: list[Contents] = field(default_factory=list)


def numbered(project: Project) -> bool:
    """Say whether chapters are shown with their numbers: `number-sections: false` hides them."""
    return project.html.get("number-sections", project.metadata.get("number-sections")) is not False


def chapter_text(chapter: Chapter, titles: Titles = _UNKNOWN, *, numbers: bool = True) -> str:
    """Return a chapter's number and title, in HTML, as the sidebar shows them."""
    title = titles.chapter(chapter)
    number = chapter_number(chapter) if numbers else ""
    if not number:
        return title
    return (
        f'<span class="chapter-number">{number}</span>&nbsp; '
        f'<span class="chapter-title">{title}</span>'
    )


def sidebar(project: Project, here: Chapter, titles: Titles = _UNKNOWN) -> tuple[Entry, ...]:
    """Return the sidebar of a page: chapters, under their parts."""
    groups: list[tuple[str | None, str | None, list[Chapter]]] = []
    appendices = appendices_title(project)
    for chapter in project.chapters:
        part = appendices if chapter.appendix and not chapter.part else chapter.part
        if not groups or groups[-1][0] != part:
            groups.append((part, chapter.part_href, []))
        if chapter.part_href != chapter.href:
            groups[-1][2].append(chapter)
    entries: list[Entry] = []
    numbers = numbered(project)
    for part, part_href, chapters in groups:
        # one with an `&` is shown as it is written, as in Quarto
        items = tuple(
            _entry(each, here, _UNKNOWN if "&" in each.title else titles, numbers)
            for each in chapters
        )
        if part is None:
            entries.extend(items)
        else:
            href = relative(part_href, here.href) if part_href else None
            text = titles.part(part, part_href)
            entries.append(Entry(text, href, part_href == here.href, items))
    return tuple(entries)


def _entry(chapter: Chapter, here: Chapter, titles: Titles, numbers: bool) -> Entry:
    text = chapter_text(chapter, titles, numbers=numbers)
    return Entry(text, relative(chapter.href, here.href), chapter.href == here.href)


def neighbours(
    project: Project, here: Chapter, titles: Titles = _UNKNOWN
) -> tuple[Entry | None, Entry | None]:
    """Return the previous and the next page."""
    chapters, numbers = project.chapters, numbered(project)
    at = [chapter.href for chapter in chapters].index(here.href)
    before = _entry(chapters[at - 1], here, titles, numbers) if at > 0 else None
    last = at + 1 == len(chapters)
    after = None if last else _entry(chapters[at + 1], here, titles, numbers)
    return before, after


def breadcrumb(project: Project, here: Chapter, titles: Titles = _UNKNOWN) -> tuple[Entry, ...]:
    """Return the way down to a page: its part (which leads to its first page), itself."""
    own = _entry(here, here, titles, numbered(project))
    part = appendices_title(project) if here.appendix and not here.part else here.part
    if part is None or here.part_href == here.href:
        return (own,)
    first = next(
        chapter
        for chapter in project.chapters
        if chapter.part == here.part and chapter.appendix == here.appendix
    )
    text = titles.part(part, here.part_href)
    return (Entry(text, relative(here.part_href or first.href, here.href)), own)


def contents(headings: Sequence[Heading], depth: int = 3) -> list[Contents]:
    """Return the table of contents as a tree, down to a level.

    >>> [(c.heading.id, len(c.items)) for c in contents([
    ...     Heading(2, "a", "1.1", "A", "A"), Heading(3, "b", "1.1.1", "B", "B")])]
    [('a', 1)]
    """
    top: list[Contents] = []
    stack: list[Contents] = []
    for heading in headings:
        if heading.unlisted or heading.level > depth or not heading.id:
            continue
        # no link within a link, no id twice
        html = re.sub(r"</?a\b[^>]*>|\sid=\"[^\"]*\"", "", heading.html)
        item = Contents(heading, html)
        while stack and stack[-1].heading.level >= heading.level:
            stack.pop()
        (stack[-1].items if stack else top).append(item)
        stack.append(item)
    return top
