"""Put pages into the template: titles, navigation, notebook links, footer."""

from __future__ import annotations

import datetime
import functools
import html as htmllib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jinja2

from mlsim_book.exercises.page_script import has_exercises
from mlsim_book.model import Chapter, Project
from mlsim_book.paper.formats import Download
from mlsim_book.read.labels import chapter_number
from mlsim_book.read.language import words_of
from mlsim_book.render.assets import Assets
from mlsim_book.render.pandoc import run_pandoc
from mlsim_book.render.to_html import RenderedPage, html_options, is_index
from mlsim_book.site import navigation
from mlsim_book.site.code_tools import code_tools, menu, source_box
from mlsim_book.site.offer import Offered
from mlsim_book.site.policy import policy, refused, wants_policy
from mlsim_book.site.shared_files import FOLDER, LIBS, Shared, inline_icon
from mlsim_book.site.titles import Titles, is_plain, plain_html

# A page whose tables sort, filter or compare; theme/tables.js does it.
_TABLES = re.compile(r'\sclass="[^"]*\b(?:sortable|filterable|comparable)\b')

_LICENCES = {
    "CC BY": "https://creativecommons.org/licenses/by/4.0/",
    "CC BY-SA": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC BY-NC": "https://creativecommons.org/licenses/by-nc/4.0/",
    "CC0": "https://creativecommons.org/publicdomain/zero/1.0/",
}


@dataclass(frozen=True)
class Site:
    """What all pages have in common."""

    project: Project
    assets: Assets
    shared: Shared
    offered: Offered
    titles: Titles
    downloads: tuple[Download, ...] = ()  # the whole book in other formats
    guesses: str = ""  # the page of a reader's guesses

    def page(self, page: RenderedPage, body: str, toc: list[navigation.Contents]) -> str:
        """Return a whole HTML page."""
        return template(self.assets).render(self.fields(page, body, toc))

    @functools.cached_property
    def policy(self) -> str:
        """The Content-Security-Policy, "" for a book that sets none."""
        return policy(_early_script()) if wants_policy(self.project.metadata) else ""

    def refused(self, html: str) -> str | None:
        """Return what of a page its own policy would silence, if anything."""
        return refused(html, _early_script()) if self.policy else None

    def fields(
        self, page: RenderedPage, body: str, toc: list[navigation.Contents]
    ) -> dict[str, Any]:
        """Return what the template needs."""
        project, chapter = self.project, page.page.chapter
        base = posixpath.relpath(".", posixpath.dirname(chapter.href) or ".") + "/"
        before, after = navigation.neighbours(project, chapter, self.titles)
        options = html_options(project, page.page)
        words = {
            key: htmllib.escape(word) for key, word in {**words_of("en"), **page.words}.items()
        }
        return {
            "lang": htmllib.escape(project.lang),
            "base": base,
            "libs": base + LIBS,
            "stylesheet": self.shared.stylesheet,
            "script": self.shared.script,
            "preload": self.shared.preload,
            "favicon": self.shared.favicon,
            "tables": self.shared if _TABLES.search(body) else None,
            "exercises": self.shared if has_exercises(body) else None,
            "guesses": base + self.guesses if self.guesses else "",
            "early_script": _early_script(),
            "policy": self.policy,
            "book_title": self.titles.written(project.title),
            "sidebar": navigation.sidebar(project, chapter, self.titles),
            "breadcrumb": navigation.breadcrumb(project, chapter, self.titles),
            "prev": before,
            "next": after,
            "toc": toc if options.get("toc", True) else [],
            "toc_title": _escaped(options.get("toc-title")) or words["toc-title-document"],
            "words": words,
            "body": body,
            "repo_url": _escaped(project.repo_url),
            "footer": self._footer(),
            "canonical": self._canonical(chapter),
            "downloads": self.downloads,
            "extra_styles": [
                each if "//" in str(each) else posixpath.normpath(base + str(each))
                for each in as_list(options.get("css"))
            ],
            **self._includes(options),
            **self._code_tools(chapter, options.get("code-tools"), body, words),
            **title_fields(project, page, self.titles),
            **self.offered.links(project, chapter, base),
            **self._source_links(chapter),
        }

    def _code_tools(
        self, chapter: Chapter, given: Any, body: str, words: Mapping[str, str]
    ) -> dict[str, str]:
        tools = code_tools(given, body, words)
        if tools is None:
            return {"code_menu": "", "code_box": ""}
        base = (self.project.repo_url or "").rstrip("/").removesuffix(".git")
        file = f"{base}/blob/{self.project.repo_branch}/{chapter.source}" if base else ""
        path = self.project.root / chapter.source
        source = path.read_text(encoding="utf-8") if path.suffix != ".ipynb" else ""
        return {
            "code_menu": menu(tools, words, repo_source=file),
            "code_box": source_box(tools, words, source) if source else "",
        }

    def _canonical(self, chapter: Chapter) -> str:
        url = self.project.site_url
        return htmllib.escape(f"{url.rstrip('/')}/{chapter.href}") if url else ""

    def _source_links(self, chapter: Chapter) -> dict[str, str]:
        project = self.project
        actions = as_list((project.metadata.get("book") or {}).get("repo-actions", ["edit"]))
        if not project.repo_url:
            return {"edit_url": "", "issue_url": ""}
        base = project.repo_url.rstrip("/").removesuffix(".git")
        edit = f"{base}/edit/{project.repo_branch}/{chapter.source}" if "edit" in actions else ""
        issue = f"{base}/issues/new" if "issue" in actions else ""
        return {"edit_url": htmllib.escape(edit), "issue_url": htmllib.escape(issue)}

    def _footer(self) -> str:
        footer = (self.project.metadata.get("book") or {}).get("page-footer")
        if isinstance(footer, Mapping):
            footer = " · ".join(
                str(footer[k]) for k in ("left", "center", "right") if footer.get(k)
            )
        return block_markdown(str(footer)) if footer else ""

    def _includes(self, options: Mapping[str, Any]) -> dict[str, str]:
        return {
            name.replace("-", "_"): "\n".join(
                self._include(each) for each in as_list(options.get(name))
            )
            for name in ("include-in-header", "include-before-body", "include-after-body")
        }

    def _include(self, given: Any) -> str:
        if isinstance(given, Mapping) and "text" in given:
            return str(given["text"])
        name = str(given["file"] if isinstance(given, Mapping) else given)
        path = self.project.root / name
        return path.read_text(encoding="utf-8") if path.is_file() else ""


@functools.lru_cache(maxsize=1)
def template(assets: Assets) -> jinja2.Template:
    """Return the page's template."""
    loader = jinja2.FileSystemLoader(FOLDER)
    # everything that reaches it is HTML already: escaped by pandoc, or in `fields`
    environment = jinja2.Environment(  # noqa: S701 - see above
        loader=loader, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.globals["icon"] = lambda name: inline_icon(assets, name)
    return environment.get_template("page.html")


def as_list(value: Any) -> list[Any]:
    """Return a YAML value that may be one thing or several as a list.

    >>> as_list("a"), as_list(None), as_list(["a", "b"])
    (['a'], [], ['a', 'b'])
    """
    if value is None or value is False:
        return []
    return list(value) if isinstance(value, list) else [value]


def title_fields(project: Project, page: RenderedPage, titles: Titles) -> dict[str, Any]:
    """Return the title block of a page and the title of its tab."""
    own, index = page.page.metadata, is_index(page.page)
    book = titles.text
    text, html = page_title(page)
    settings = project.metadata.get("book") or {}
    front = page.front
    description = front.get("description", "")
    if index and project.description:
        description = description or inline_markdown(project.description)
    return {
        "head_title": htmllib.escape(book if index else f"{text} – {book}"),
        "title_html": titles.written(project.title) if index else html,
        "subtitle": strip_p(front.get("subtitle", ""))
        or (inline_markdown(project.subtitle) if index and project.subtitle else ""),
        "authors": _authors(own.get("author")) or (_authors(list(project.author)) if index else []),
        "published": format_date(own.get("date") or (settings.get("date") if index else None)),
        "description": strip_p(description) if index else "",
        "description_text": htmllib.escape(strip_tags(description) or project.description or ""),
        "abstract": strip_p(front.get("abstract", "")),
        "abstract_title": page.words.get("section-title-abstract", "Abstract"),
        "keywords": htmllib.escape(", ".join(map(str, as_list(own.get("keywords"))))),
        "licence": licence(
            own.get("license") or settings.get("license") or project.metadata.get("license")
        ),
    }  # fmt: skip


def page_title(page: RenderedPage) -> tuple[str, str]:
    """Return a chapter's title with its number: as text, and as HTML."""
    chapter, title = page.page.chapter, page.title
    name, html = (
        (title.text, title.html) if title else (chapter.title, htmllib.escape(chapter.title))
    )
    number = chapter_number(chapter)
    appendix = page.words.get("crossref-apx-prefix", "Appendix")
    if number and title and not page.numbered and not chapter.appendix:
        html = f'<span class="chapter-title">{html}</span>'
    elif number and title and "unnumbered" not in title.classes:
        shown = f"{appendix} {number} — " if chapter.appendix else f"{number}&nbsp; "
        mark = f"{appendix} {number}" if chapter.appendix else number
        html = (
            f'<span class="chapter-number">{mark}</span>{shown[len(mark):]}'
            f'<span class="chapter-title">{html}</span>'
        )  # fmt: skip
        name = f"{appendix} {number} — {name}" if chapter.appendix else f"{number} {name}"
    if title and title.id:
        html = f'<span id="{title.id}" class="quarto-section-identifier">{html}</span>'
    return name, html


@functools.cache
def _early_script() -> str:
    text = (FOLDER / "early.js").read_text(encoding="utf-8")
    return re.sub(r"\s*\n\s*", " ", text).strip()


@functools.cache
def block_markdown(text: str) -> str:
    """Return HTML of a Markdown text from `_quarto.yml`."""
    if is_plain(text):  # no need for pandoc
        return f"<p>{plain_html(text)}</p>"
    return run_pandoc(["--from=markdown", "--to=html5", "--wrap=none"], text)[0].strip()


def inline_markdown(text: str) -> str:
    """Return HTML of a line of Markdown.

    >>> inline_markdown("Systems & such")
    'Systems &amp; such'
    """
    return strip_p(block_markdown(text))


def strip_p(html: str) -> str:
    """Take the paragraph off around a single line."""
    html = html.strip()
    return html[3:-4] if html.startswith("<p>") and html.count("<p>") == 1 else html


def strip_tags(html: str) -> str:
    """Return the text of some HTML."""
    return htmllib.unescape(re.sub(r"<[^>]*>", "", html)).strip()


def _escaped(text: str | None) -> str:
    return htmllib.escape(text) if text else ""


def _authors(given: Any) -> list[str]:
    names = [each.get("name", "") if isinstance(each, Mapping) else each for each in as_list(given)]
    return [htmllib.escape(str(name)) for name in names]


def format_date(given: Any) -> str:
    """Return a date in words; anything that isn't one as it stands.

    >>> format_date("2024-03-05"), format_date("spring"), format_date(None)
    ('March 5, 2024', 'spring', '')
    """
    if given is None:
        return ""
    try:
        date = datetime.date.fromisoformat(str(given))
    except ValueError:
        return htmllib.escape(str(given))
    return f"{date:%B} {date.day}, {date.year}"


def licence(given: Any) -> str:
    """Return the licence line of the footer.

    >>> licence("CC BY")
    '<a href="https://creativecommons.org/licenses/by/4.0/" rel="license">CC BY 4.0</a>'
    """
    if isinstance(given, Mapping):
        name, url = str(given.get("type") or given.get("text") or ""), given.get("url")
        if not url:
            return inline_markdown(name)
        return f'<a href="{htmllib.escape(str(url))}" rel="license">{htmllib.escape(name)}</a>'
    if not given:
        return ""
    text = str(given).removesuffix(" 4.0").strip()
    if text in _LICENCES:
        shown = text if text == "CC0" else f"{text} 4.0"
        return f'<a href="{_LICENCES[text]}" rel="license">{shown}</a>'
    return inline_markdown(str(given))
