"""Check a book without building it: its sources, its notebooks, and the site that is there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mlsim_book.errors import Problems
from mlsim_book.labels import WORDS
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.notebooks import check_notebooks
from mlsim_book.number_check import check_numbers
from mlsim_book.pages import ParsedPage, parse_pages
from mlsim_book.places import place, sources_of
from mlsim_book.project import load_project

_LOADS = {
    "script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset"),
    "video": ("src", "poster"), "audio": ("src",), "object": ("data",), "embed": ("src",),
}  # fmt: skip
_LOADING_LINKS = {"stylesheet", "preload", "icon", "modulepreload", "preconnect", "dns-prefetch"}
_CSS_URL = re.compile(
    r"url\(\s*[\"']?((?:https?:)?//[^)\"']+)|@import\s+[\"']((?:https?:)?//[^\"']+)"
)
_LABEL = re.compile(
    r"\{[^}]*#((?:" + "|".join(WORDS) + r")-[\w-]+)|^#\|\s*(?:lst-)?label:\s*[\"']?([\w-]+)"
)
_REFERENCE = re.compile(r"(?<![\w.\\`@])@((?:" + "|".join(WORDS) + r")-[\w-]*\w)")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")


@dataclass
class SitePage:
    """What matters of an HTML page."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    images: list[tuple[str, str | None]] = field(default_factory=list)  # src, alt
    loaded: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = SitePage()
        self._named_link = False  # an image in a link with a name may be silent
        self._templates = 0  # what they hold is on no page until a script copies it

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id") and not self._templates:
            self.page.ids.append(str(given["id"]))
        self._templates += tag == "template"
        if tag == "a" and given.get("href"):
            self.page.links.append(str(given["href"]))
            self._named_link = "aria-label" in given
        if tag == "img":
            alt = "named by its link" if self._named_link else given.get("alt")
            self.page.images.append((str(given.get("src") or ""), alt))
        self.page.loaded += [str(given[name]) for name in _LOADS.get(tag, ()) if given.get(name)]
        loading = set(str(given.get("rel") or "").split()) & _LOADING_LINKS
        if tag == "link" and loading and given.get("href"):
            self.page.loaded.append(str(given["href"]))

    def handle_endtag(self, tag: str) -> None:
        self._templates -= tag == "template"
        if tag == "a":
            self._named_link = False


def read_page(html: str) -> SitePage:
    """Read what matters of a page.

    >>> read_page('<a href="b.html#x">b</a><img src="c.png">').images
    [('c.png', None)]
    """
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.page


def check_book(
    root: Path, *, out: Path | None = None, progress: Callable[[str], None] = lambda _: None
) -> Problems:
    """Check a book's sources, its numbers and notebooks, and its site if there is one.

    `progress` is told how many numbers of each page are computed, cited, given, bare.
    """
    problems = Problems()
    project = load_project(root.resolve(), problems)
    parsed = parse_pages(project, problems)
    pages = check_sources(project, parsed, problems)
    for name, counts in check_numbers(project, parsed, problems).items():
        progress(f"{name}: {counts.text()}")
    folder = project.root / "notebooks"
    if folder.is_dir():
        check_notebooks(project, folder, problems)
    site = (out or project.root / project.output_dir).resolve()
    if (site / "index.html").is_file():
        check_site(project, site, pages, problems)
    else:
        problems.add(f"there is no built site in {site}", hint="Run: mlsim-book build")
    return problems


def check_sources(
    project: Project, parsed: Sequence[ParsedPage], problems: Problems
) -> dict[str, ExecutedPage]:
    """Check references against labels, as far as the sources tell without running them."""
    pages = {
        each.chapter.href: ExecutedPage(each.chapter, "", each.metadata, {}, each.document.source)
        for each in parsed
    }
    labels: set[str] = {each.label for each in project.chapters if each.label}
    for page in pages.values():
        for _, text in sources_of(page, project.root):
            labels.update(a or b for line in text.splitlines() for a, b in _LABEL.findall(line))
    for page in pages.values():
        for name, text in sources_of(page, project.root):
            for number, key in _references(text):
                if key not in labels and not _is_part(key, labels):
                    problems.add(
                        f"Unable to resolve crossref @{key}", file=name, line=number,
                        hint="No source gives this label.",
                    )  # fmt: skip
    return pages


def _is_part(key: str, labels: set[str]) -> bool:
    """Say whether a label is a part of a figure: fig-x-2 of fig-x."""
    whole, _, number = key.rpartition("-")
    return number.isdigit() and whole in labels


def _references(text: str) -> Iterable[tuple[int, str]]:
    """Yield the references in the prose of a source, with their lines."""
    fence = ""
    for number, line in enumerate(text.splitlines(), start=1):
        mark = _FENCE.match(line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence or line.lstrip().startswith("#| "):
            prose = re.sub(r"(`+).*?\1", "", line)
            for key in _REFERENCE.findall(prose):
                yield number, key[0].lower() + key[1:]


@dataclass(frozen=True)
class _Site:
    """A built site, and how to tell of its faults."""

    project: Project
    folder: Path
    read: Mapping[str, SitePage]
    pages: Mapping[str, ExecutedPage]
    problems: Problems

    def note(self, name: str, message: str, *patterns: str, hint: str | None = None) -> None:
        """Note a fault of a page, at the place in its source where it has one."""
        source = self.pages.get(name)
        file, line = place(source, self.project.root, *patterns) if source else (name, None)
        self.problems.add(message, file=file, line=line, hint=hint)


def check_site(
    project: Project, folder: Path, pages: Mapping[str, ExecutedPage], problems: Problems
) -> None:
    """Check the pages of a built site against each other."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    read = {name: read_page((folder / name).read_text(encoding="utf-8")) for name in names}
    site = _Site(project, folder, read, pages, problems)
    for name, page in read.items():
        _check_ids(site, name, page)
        _check_links(site, name, page)
        _check_images(site, name, page)
        _check_requests(site, name, page.loaded)
    for chapter in project.chapters:
        if chapter.href not in read:
            problems.add(
                f"the site has no page {chapter.href}", file=chapter.source, hint="Build it again."
            )
    for css in sorted(folder.rglob("*.css")):
        urls = [a or b for a, b in _CSS_URL.findall(css.read_text(encoding="utf-8"))]
        _check_requests(site, css.relative_to(folder).as_posix(), urls)


def _check_ids(site: _Site, name: str, page: SitePage) -> None:
    seen: set[str] = set()
    for each in page.ids:
        if each in seen:
            site.note(name, f"the id '{each}' is on {name} twice", re.escape(each))
        seen.add(each)


def _check_links(site: _Site, name: str, page: SitePage) -> None:
    for link in dict.fromkeys(page.links):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
        target = target if parts.path else name
        if (site.folder / target).is_dir():
            target = posixpath.normpath(posixpath.join(target, "index.html"))
        anchor = unquote(parts.fragment)
        if not (site.folder / target).is_file():
            message = f"the link {link} leads nowhere"
        elif anchor and target in site.read and anchor not in site.read[target].ids:
            message = f"the link {link} leads to an anchor that {target} doesn't have"
        else:
            continue
        as_written = re.escape(anchor or posixpath.splitext(parts.path)[0])
        site.note(name, message, rf"\([^)]*{as_written}", as_written)


def _check_images(site: _Site, name: str, page: SitePage) -> None:
    for src, alt in page.images:
        if not alt:
            site.note(
                name, f"the image {src} has no alternative text", *_image_patterns(src),
                hint='Write one: `#| fig-alt:` in its cell, or {fig-alt="..."} behind the image.',
            )  # fmt: skip


def _image_patterns(src: str) -> tuple[str, ...]:
    """Return patterns for where an image comes from: its cell's label, or its file."""
    drawn = re.search(r"figure-html/(.+)-output-\d+\.\w+$", src)
    if drawn:
        return (rf"label:\s*[\"']?{re.escape(drawn[1])}\b",)
    return (re.escape(src), re.escape(posixpath.basename(src)))


def _check_requests(site: _Site, name: str, urls: Sequence[str]) -> None:
    for url in dict.fromkeys(urls):
        if host := urlsplit(url).netloc:
            site.note(
                name, f"{name} loads {url} from somebody else's server ({host})", re.escape(url),
                hint="Keep a copy beside the chapter and name that.",
            )  # fmt: skip
