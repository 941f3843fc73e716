"""The navigation of a book: sidebar, previous and next page, the page's contents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlsim_book.model import Chapter, Project
from mlsim_book.read.labels import chapter_number
from mlsim_book.read.language import appendices_title
from mlsim_book.render.postprocess import relative
from mlsim_book.render.to_html import Heading
from mlsim_book.site.titles import Titles

_UNKNOWN = Titles()


@dataclass(frozen=True)
class Entry:
    """A line of the sidebar: a page, or a part with pages below it."""

    text: str  # HTML
    href: str | None = None  # relative to the page it is shown on
    active: bool = False
    items: tuple[Entry, ...] = ()


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
        items = tuple(_entry(each, here, _of_sidebar(each, titles), numbers) for each in chapters)
        if part is None:
            entries.extend(items)
        else:
            href = relative(part_href, here.href) if part_href else None
            text = titles.part(part, part_href)
            entries.append(Entry(text, href, part_href == here.href, items))
    return tuple(entries)


def _of_sidebar(chapter: Chapter, titles: Titles) -> Titles:
    """Return the titles to show a chapter by: one with an `&` as it is written, as in Quarto."""
    return _UNKNOWN if "&" in chapter.title else titles


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
