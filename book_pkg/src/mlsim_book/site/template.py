"""Put pages into the template: titles, navigation, notebook links, footer.

The menu of `code-tools`: show or hide all code of a page, and see the page's source.

The Content-Security-Policy of a book that asks for one: nothing but its own origin.

    mlsim-book:
      content-security-policy: true

A browser then runs no script but the site's own files, loads nothing from elsewhere and sends
nothing elsewhere. It is off unless set, since a book may well embed a video, a widget or a script
of its own, which this policy would silence.

What a site offers to students: notebooks, the wheel of their package, both in a zip.

    | the book has | a page offers                      | its notebook takes the package from |
    |--------------|------------------------------------|-------------------------------------|
    | `site-url`   | the notebook, a line for pip       | the site                            |
    | `repo-url`   | the notebook, Colab if it can open | the repository                      |
    | neither      | a zip of the notebook and wheel    | the wheel beside it                 |

The wheel lies among the notebooks, so that in a copy of the site on a disk they find it.
"""

from __future__ import annotations

import base64
import datetime
import functools
import hashlib
import html as htmllib
import posixpath
import re
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jinja2

from mlsim_book.errors import Problems, SourceError
from mlsim_book.exercises.files import has_exercises
from mlsim_book.model import Chapter, Project
from mlsim_book.paper.formats import Download, zip_time
from mlsim_book.paper.zips import pack
from mlsim_book.read.labels import chapter_number, words_of
from mlsim_book.read.yamlfile import book_package, book_settings, web_address
from mlsim_book.render.assets import Assets
from mlsim_book.render.live_figures import names_on, styles_on
from mlsim_book.render.notebooks import (
    FOLDER as NOTEBOOKS,
    has_address,
    make_notebooks,
    notebook_path,
    requirements_path,
)
from mlsim_book.render.pandoc import run_pandoc
from mlsim_book.render.postprocess import Element, parse
from mlsim_book.render.to_html import RenderedPage, html_options, is_index
from mlsim_book.render.wheel import Wheel
from mlsim_book.site.shared_files import FOLDER, LIBS, Shared, inline_icon
from mlsim_book.site.titles import (
    Contents,
    Titles,
    breadcrumb,
    is_plain,
    neighbours,
    plain_html,
    sidebar,
)

_FOLDED = '<details class="code-fold"'


def code_tools(
    given: Any, body: str, words: Mapping[str, str], *, repo_source: str, source: str
) -> tuple[str, str]:
    """Return the menu that `code-tools:` asks for and the box with a page's source; "" for none.

    `source: repo` leads to `repo_source`, the page's file in the repository; a notebook has no
    `source` to show.
    """
    asked = given if isinstance(given, Mapping) else {}
    toggle = asked.get("toggle") is not False and _FOLDED in body
    wanted = asked.get("source", True)
    if not given or (not toggle and wanted is False):
        return "", ""

    def button(name: str, text: str) -> str:
        return f'<button type="button" class="dropdown-item" id="quarto-{name}">{text}</button>'

    shown = ("show-all-code", "hide-all-code") if toggle else ()
    items = [button(each, words[f"code-tools-{each}"]) for each in shown]
    view = words["code-tools-view-source"]
    if isinstance(wanted, str) and (address := repo_source if wanted == "repo" else wanted):
        link = htmllib.escape(address)
        items.append(f'<a id="quarto-view-source" class="dropdown-item" href="{link}">{view}</a>')
    elif wanted:
        items.append(button("view-source", view))
    usual = words["code-tools-menu-caption"]
    caption = str(asked.get("caption") or usual)
    caption = "" if caption == "none" else htmllib.escape(caption)
    name = "" if caption else f' aria-label="{usual}"'
    listed = "".join(f"<li>{item}</li>" for item in items)
    menu = (
        '<details class="code-tools"><summary id="quarto-code-tools-menu" '
        f'class="btn code-tools-button dropdown-toggle"{name}>{caption}</summary>'
        f'<ul class="dropdown-menu">{listed}</ul></details>'
    )
    title = words["code-tools-source-code"]
    box = (
        f'<dialog id="quarto-embedded-source-code-modal" aria-label="{title}">'
        f'<form method="dialog"><strong>{title}</strong>'
        '<button class="tool" aria-label="Close">✕</button></form>'
        f'<pre tabindex="0"><code>{htmllib.escape(source)}</code></pre></dialog>'
    )
    return menu, box if source and wanted and not isinstance(wanted, str) else ""


KEY = "content-security-policy"

_INLINE = re.compile(
    r"<script\b(?![^>]*\bsrc=)(?![^>]*\btype=[\"']?(?:application/(?:ld\+)?json|text/template))[^>]*>"
    r"|<[a-z][^>]*?\son(?:click|load|error|change|input|submit|toggle|focus|blur|key|mouse|pointer)"
    r"\w*\s*=|<[a-z][^>]*?\s(?:href|src|action)=[\"']?\s*javascript:",
    re.IGNORECASE,
)
_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)


def wants_policy(metadata: Mapping[str, Any]) -> bool:
    """Say whether a book asks for the policy.

    >>> wants_policy({}), wants_policy({"mlsim-book": {"content-security-policy": True}})
    (False, True)
    """
    given = book_settings(metadata).get(KEY, False)
    if not isinstance(given, bool):
        raise SourceError(
            f"`mlsim-book: {KEY}:` is {given!r}, which must be `true` or `false`",
            file="_quarto.yml",
            hint="`true` allows scripts and connections of the site's own origin only.",
        )
    return given


def policy(inline_script: str) -> str:
    """Return the policy of a page whose one inline script is given.

    The script is allowed by its hash. Formulas and tables carry inline styles; the
    stylesheet holds its icons as `data:` images.
    """
    digest = base64.b64encode(hashlib.sha256(inline_script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}';"
        " style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self';"
        " media-src 'self'; connect-src 'self'; worker-src 'self'; frame-src 'none';"
        " base-uri 'none'; form-action 'none'"
    )


def refused(html: str, allowed: str = "") -> str | None:
    """Return what of a page the policy would silence, if anything; `allowed` is the one script.

    >>> refused('<p onclick="x()">'), refused('<script src="a.js"></script>')
    ('<p onclick=', None)
    """
    found = _INLINE.search(_HIDDEN.sub("", html.replace(f"<script>{allowed}</script>", "")))
    return found.group()[:80] if found else None


_GITHUB = re.compile(r"https?://github\.com/([^/]+/[^/]+?)(?:\.git)?/?")


@dataclass(frozen=True)
class Offer:
    """The notebooks of a site, and the wheel that it carries."""

    notebooks: Mapping[str, str]  # their texts, by path from the folder of notebooks
    wheel: Wheel | None = None


@dataclass(frozen=True)
class Offered:
    """What of it lies on the site, by path from its root."""

    notebooks: frozenset[str] = frozenset()
    zipped: bool = False
    install: str = ""  # the line for pip

    @property
    def zips(self) -> list[str]:
        """The zips of a notebook and the wheel."""
        return [_zip_name(each) for each in self.notebooks] if self.zipped else []

    def links(self, project: Project, chapter: Chapter, base: str) -> dict[str, Any]:
        """Return what a page's template needs; "" for what the page hasn't."""
        name = f"{NOTEBOOKS}/{notebook_path(chapter.source)}"
        if name not in self.notebooks:
            return {"notebook": "", "zipped": False, "colab": "", "install": ""}
        match = _GITHUB.fullmatch(project.repo_url or "")
        place = f"{match[1]}/blob/{project.repo_branch}/{name}" if match else ""
        colab = f"https://colab.research.google.com/github/{place}" if match else ""
        return {
            "notebook": htmllib.escape(base + (_zip_name(name) if self.zipped else name)),
            "zipped": self.zipped,
            "colab": htmllib.escape(colab),
            "install": htmllib.escape(self.install, quote=False),
        }


def committed_notebooks(project: Project) -> dict[str, str]:
    """Return the notebooks that lie in the repository, as Colab opens them."""
    folder = project.root / NOTEBOOKS
    names = (notebook_path(chapter.source) for chapter in project.chapters)
    return {name: (folder / name).read_text("utf-8") for name in names if (folder / name).is_file()}


def notebooks_for(project: Project, site_url: str | None, *, jobs: int = 2) -> Mapping[str, str]:
    """Return the notebooks for a site: those in the repository, if they have its address.

    Else they are made again from results that are kept; those in the repository stay as they are.
    """
    there = committed_notebooks(project)
    if (site_url or "").rstrip("/") == (project.site_url or "").rstrip("/") or not there:
        return there
    made = make_notebooks(replace(project, site_url=site_url), Problems(), jobs=jobs)
    return {name: text for name, text in made.items() if name in there}


def write_offer(offer: Offer, project: Project, out: Path) -> Offered:
    """Write notebooks, wheel and zips into a site."""
    for name, text in offer.notebooks.items():
        path = out / NOTEBOOKS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    names = frozenset(f"{NOTEBOOKS}/{name}" for name in offer.notebooks)
    package, wheel = book_package(project.metadata), offer.wheel
    if package is None or wheel is None or not names:
        return Offered(names)
    (out / NOTEBOOKS / wheel.name).write_bytes(wheel.data)
    if project.site_url:
        line = f"{package.wanted} @ {web_address(project.site_url)}/{NOTEBOOKS}/{wheel.name}"
        (out / requirements_path(package)).write_text(f"{line}\n", encoding="utf-8")
        return Offered(names, install=f'pip install "{line}"')
    if not has_address(project):
        for name, text in offer.notebooks.items():
            both = [(posixpath.basename(name), text.encode()), (wheel.name, wheel.data)]
            pack(out / NOTEBOOKS / _zip_name(name), both, zip_time(), compress=False)
        return Offered(names, zipped=True)
    return Offered(names)


def _zip_name(notebook: str) -> str:
    return f"{posixpath.splitext(notebook)[0]}.zip"


# What stands in a page's margin.
_COLUMNS = re.compile(r'\sclass="(?:[^"]*\s)?(?:column-margin|margin-caption)[\s"]')
_ASIDE = re.compile(r"<aside(?![^>]*\bfootnotes\b)")
# A page whose tables sort, filter or compare; theme/tables.js does it.
_TABLES = re.compile(r'\sclass="[^"]*\b(?:sortable|filterable|comparable)\b')

_MISSING = (
    "<p>There is no page at this address. It may have moved: search the book, or begin at its"
    ' <a href="index.html">first page</a>.</p>'
)
_ADDRESS = re.compile(r'(\s(?:href|src|data-base)=")(?!#|/|\w+:)(?:\./)?')
# Of a description: letters that are searched, that say something, that are shown.
_SEARCHED, _SAYS, _SHOWN = 40_000, 30, 200

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

    def page(self, page: RenderedPage, body: str, toc: list[Contents]) -> str:
        """Return a whole HTML page."""
        return template(self.assets).render(self.fields(page, body, toc))

    @functools.cached_property
    def policy(self) -> str:
        """The Content-Security-Policy, "" for a book that sets none."""
        return policy(_early_script()) if wants_policy(self.project.metadata) else ""

    @functools.cached_property
    def edition(self) -> str:
        """The version of the book's package, and the day of the last commit; "" for neither."""
        version, day = _version(self.project), _day(self.project.root)
        return ", ".join(filter(None, [version and f"Version {version}", day and format_date(day)]))

    @functools.cached_property
    def cite(self) -> str:
        """How to name the book and its state."""
        authors = " and ".join(_authors(list(self.project.author)))
        title = f"“{htmllib.escape(self.titles.text)}”"
        words = ". ".join(filter(None, [authors, title, self.edition]))
        return f"{words}. {_escaped(self.project.site_url)}".rstrip()

    def missing(self, front: RenderedPage) -> str:
        """Return the page for an address without one, made of the book's first.

        A server shows it at any depth, so its links begin at the server's root.
        """
        nowhere = replace(front.page.chapter, href="404.html")
        no_text = ("subtitle", "description", "description_text", "abstract", "keywords",
            "published", "notebook", "canonical", "code_menu", "code_box", "edit_url")  # fmt: skip
        fields = {
            **self.fields(front, _MISSING, []),
            **dict.fromkeys(no_text, ""),
            "prev": None,
            "next": None,
            "authors": [],
            "breadcrumb": (),
            "sidebar": sidebar(self.project, nowhere, self.titles),
            "title_html": "Page not found",
            "title_text": "Page not found",
        }
        root = urlsplit(self.project.site_url or "").path.rstrip("/")
        return _ADDRESS.sub(rf"\1{root}/", template(self.assets).render(fields))

    def refused(self, html: str) -> str | None:
        """Return what of a page its own policy would silence, if anything."""
        return refused(html, _early_script()) if self.policy else None

    def fields(self, page: RenderedPage, body: str, toc: list[Contents]) -> dict[str, Any]:
        """Return what the template needs."""
        project, chapter, url = self.project, page.page.chapter, self.project.site_url
        base = posixpath.relpath(".", posixpath.dirname(chapter.href) or ".") + "/"
        before, after = neighbours(project, chapter, self.titles)
        options = html_options(project, page.page)
        titled = title_fields(project, page, self.titles)
        if not titled["description_text"]:
            titled["description_text"] = htmllib.escape(opening(body) or project.description or "")
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
            "live": [f"live/{each}.js" for each in names_on(body)],
            "live_styles": [f"live/{each}.css" for each in styles_on(body)],
            "live_script": self.shared.live_script,
            "guesses": base + self.guesses if self.guesses else "",
            "early_script": _early_script(),
            "policy": self.policy,
            "book_title": self.titles.written(project.title),
            "book_text": htmllib.escape(self.titles.text),
            "sidebar": sidebar(project, chapter, self.titles),
            "breadcrumb": breadcrumb(project, chapter, self.titles),
            "prev": before,
            "next": after,
            "toc": toc if options.get("toc", True) else [],
            "toc_title": _escaped(options.get("toc-title")) or words["toc-title-document"],
            "words": words,
            "body": body,
            "beside": _beside(body),
            "repo_url": _escaped(project.repo_url),
            "footer": self._footer(),
            "edition": self.edition,
            "cite": self.cite if self.edition else "",
            "canonical": _escaped(url and f"{url.rstrip('/')}/{chapter.href}"),
            "downloads": self.downloads,
            "extra_styles": [
                each if "//" in str(each) else posixpath.normpath(base + str(each))
                for each in as_list(options.get("css"))
            ],
            **self._includes(options),
            **self._repository(chapter, options.get("code-tools"), body, words),
            **titled,
            **self.offered.links(project, chapter, base),
        }

    def _repository(
        self, chapter: Chapter, given: Any, body: str, words: Mapping[str, str]
    ) -> dict[str, str]:
        """Return what leads to the page's source: the menu of its code, and links."""
        project, path = self.project, self.project.root / chapter.source
        base = (project.repo_url or "").rstrip("/").removesuffix(".git")
        place = f"{project.repo_branch}/{chapter.source}"
        file = f"{base}/blob/{place}" if base else ""
        source = path.read_text(encoding="utf-8") if path.suffix != ".ipynb" else ""
        code_menu, code_box = code_tools(given, body, words, repo_source=file, source=source)
        actions = as_list((project.metadata.get("book") or {}).get("repo-actions", ["edit"]))
        edit = f"{base}/edit/{place}" if base and "edit" in actions else ""
        issue = f"{base}/issues/new" if base and "issue" in actions else ""
        return {
            "code_menu": code_menu, "code_box": code_box, "edit_url": htmllib.escape(edit),
            "issue_url": htmllib.escape(issue),
        }  # fmt: skip

    def _footer(self) -> str:
        footer = (self.project.metadata.get("book") or {}).get("page-footer")
        if isinstance(footer, Mapping):
            footer = " · ".join(str(v) for k in ("left", "center", "right") if (v := footer.get(k)))
        return block_markdown(str(footer)) if footer else ""

    def _includes(self, options: Mapping[str, Any]) -> dict[str, str]:
        found = {}
        for name in ("include-in-header", "include-before-body", "include-after-body"):
            texts = []
            for given in as_list(options.get(name)):
                if isinstance(given, Mapping) and "text" in given:
                    texts.append(str(given["text"]))
                    continue
                file = str(given["file"] if isinstance(given, Mapping) else given)
                path = self.project.root / file
                texts.append(path.read_text(encoding="utf-8") if path.is_file() else "")
            found[name.replace("-", "_")] = "\n".join(texts)
        return found


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
        "title_text": htmllib.escape(book if index else text),
        "head_title": htmllib.escape(book if index else f"{text} – {book}"),
        "title_html": titles.written(project.title) if index else html,
        "subtitle": strip_p(front.get("subtitle", ""))
        or (inline_markdown(project.subtitle) if index and project.subtitle else ""),
        "authors": _authors(own.get("author")) or (_authors(list(project.author)) if index else []),
        "published": format_date(own.get("date") or (settings.get("date") if index else None)),
        "description": strip_p(description) if index else "",
        "description_text": htmllib.escape(strip_tags(description)),
        "abstract": strip_p(front.get("abstract", "")),
        "abstract_title": page.words.get("section-title-abstract", "Abstract"),
        "keywords": htmllib.escape(", ".join(map(str, as_list(own.get("keywords"))))),
        "licence": licence(
            own.get("license") or settings.get("license") or project.metadata.get("license")
        ),
    }  # fmt: skip


def opening(body: str) -> str:
    """Return how a page's text begins: its first paragraph that is no box and has no formula.

    >>> opening("<div><p>A box.</p></div><p>What a page <b>begins</b> with is this.</p>")
    'What a page begins with is this.'
    """
    body = body[:_SEARCHED]
    waiting = [parse(body)]
    while waiting:
        element = waiting.pop()
        if element.tag == "p" and "katex" not in (html := body[element.inner : element.inner_end]):
            text = " ".join(strip_tags(html).split())
            if len(text) >= _SAYS:
                return text if len(text) <= _SHOWN else text[:_SHOWN].rsplit(" ", 1)[0] + " …"
        elif element.tag in {"", "section"}:
            waiting += [each for each in element.children[::-1] if isinstance(each, Element)]
    return ""


def _version(project: Project) -> str:
    """Return the version of the book's package, "" without one."""
    package = book_package(project.metadata)
    file = project.root / ((package and package.path) or "") / "pyproject.toml"
    if package is None or not file.is_file():
        return ""
    return str(tomllib.loads(file.read_text("utf-8")).get("project", {}).get("version", ""))


def _day(root: Path) -> str:
    """Return the day of the last commit, the same for all builds of it; "" without one."""
    try:
        command = ["git", "-C", str(root), "log", "-1", "--format=%cs"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git
        return ""


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


def _beside(body: str) -> str:
    """Return the classes of a page whose margin holds something: columns, or notes alone.

    >>> _beside('<div class="page-full column-margin">'), _beside("<aside>"), _beside("<p>")
    ('with-notes with-columns', 'with-notes', '')
    """
    if _COLUMNS.search(body):
        return "with-notes with-columns"
    return "with-notes" if _ASIDE.search(body) else ""


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
    """Return the license line of the footer.

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
