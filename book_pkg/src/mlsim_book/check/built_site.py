"""Check a built site: ids, links, images, headings, markup, terms, requests to others."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mlsim_book.caches import TextCache, cache_folder
from mlsim_book.check.built_page import SitePage, css_loads, read_page, script_loads
from mlsim_book.check.html_faults import Fault, find_faults
from mlsim_book.check.term_spelling import find_misspelled
from mlsim_book.errors import Problems
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.places import place
from mlsim_book.site.cards import with_cards

_ELSEWHERE = {"http", "https"}


@dataclass(frozen=True)
class BuiltSite:
    """A built site, and how to report its faults."""

    project: Project
    folder: Path
    html: Mapping[str, str]  # by the path of the page
    read: Mapping[str, SitePage]
    pages: Mapping[str, ExecutedPage]
    problems: Problems

    def note(self, name: str, message: str, *patterns: str, hint: str | None = None) -> None:
        """Note a fault of a page, at the place in its source where it has one."""
        source = self.pages.get(name)
        file, line = place(source, self.project.root, *patterns) if source else (name, None)
        self.problems.add(message, file=file, line=line, hint=hint)


def read_site(
    project: Project, folder: Path, pages: Mapping[str, ExecutedPage], problems: Problems
) -> BuiltSite:
    """Read all pages of a built site."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    html = {
        name: with_cards((folder / name).read_text(encoding="utf-8"), folder / name)
        for name in names
    }
    read = {name: read_page(text) for name, text in html.items()}
    return BuiltSite(project, folder, html, read, pages, problems)


def check_site(site: BuiltSite) -> None:
    """Check the pages of a built site, by themselves and against each other."""
    keep = TextCache(cache_folder() / "html")
    for name, page in site.read.items():
        _check_ids(site, name, page)
        _check_links(site, name, page)
        _check_images(site, name, page)
        _check_headings(site, name, page)
        _check_requests(site, name, page.loaded)
        _check_markup(site, name, find_faults(site.html[name], keep))
    for chapter in site.project.chapters:
        if chapter.href not in site.read:
            site.problems.add(
                f"the site has no page {chapter.href}", file=chapter.source, hint="Build it again."
            )
    for path in sorted(site.folder.rglob("*.css")) + sorted(site.folder.rglob("*.js")):
        loads = css_loads if path.suffix == ".css" else script_loads
        found = loads(path.read_text(encoding="utf-8", errors="replace"))
        _check_requests(site, path.relative_to(site.folder).as_posix(), found)
    for name, message, hint, patterns in find_misspelled(site.project, site.html, site.pages):
        site.note(name, message, *patterns, hint=hint)


def external_links(site: BuiltSite) -> dict[str, str]:
    """Return the addresses on other servers that readers are sent to, with the first page."""
    found: dict[str, str] = {}
    for name, page in site.read.items():
        for link in page.links:
            if urlsplit(link).scheme in _ELSEWHERE:
                found.setdefault(link.split("#")[0], name)
    return found


def _check_ids(site: BuiltSite, name: str, page: SitePage) -> None:
    seen: set[str] = set()
    for each in page.ids:
        if each in seen:
            site.note(
                name, f"the id '{each}' is on {name} twice", re.escape(each),
                hint="Links lead to the first. Give one of them another name.",
            )  # fmt: skip
        seen.add(each)


def _check_links(site: BuiltSite, name: str, page: SitePage) -> None:
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
            hint = f"The site has no file {target}. Mend the link, or add the file."
        elif anchor and target in site.read and anchor not in site.read[target].ids:
            message = f"the link {link} leads to an anchor that {target} doesn't have"
            hint = "Name an anchor that is there, or give the heading this one: {#...}."
        else:
            continue
        as_written = re.escape(anchor or posixpath.splitext(parts.path)[0])
        site.note(name, message, rf"\([^)]*{as_written}", as_written, hint=hint)


def _check_images(site: BuiltSite, name: str, page: SitePage) -> None:
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


def _check_headings(site: BuiltSite, name: str, page: SitePage) -> None:
    above, title = 0, ""
    for level, text in page.headings:
        pattern = rf"^\s*#+\s+{re.escape(text[:40])}"
        if level > above + 1:
            behind = f"a heading of level {above}, '{title}'" if above else "no heading at all"
            site.note(
                name, f"the heading '{text}' of level {level} comes after {behind}", pattern,
                re.escape(text[:40]),
                hint=f"Make it level {above + 1}, {'#' * (above + 1)}: who listens to a page goes"
                " by its levels.",
            )  # fmt: skip
        if not text:
            site.note(
                name, f"a heading of level {level} on {name} has no text", r"^\s*#+\s*(\{.*)?$",
                hint="Give it a text, or take it out.",
            )  # fmt: skip
        above, title = level, text


def _check_requests(site: BuiltSite, name: str, urls: Sequence[str]) -> None:
    for url in dict.fromkeys(urls):
        if host := urlsplit(url).netloc:
            site.note(
                name, f"{name} loads {url} from somebody else's server ({host})", re.escape(url),
                hint="Keep a copy beside the chapter and name that.",
            )  # fmt: skip


def _check_markup(site: BuiltSite, name: str, faults: Sequence[Fault]) -> None:
    lines: dict[str, list[Fault]] = {}
    for each in faults:
        lines.setdefault(each.message, []).append(each)
    for message, (first, *others) in lines.items():
        more = f" (and {len(others)} more like it)" if others else ""
        near = f", near {first.near}" if first.near else ""
        site.note(
            name, f"{name}:{first.line} is no valid HTML{near}: {message}{more}",
            re.escape(first.near) if first.near else r"(?!)",
            hint="Mend the raw HTML of the chapter or of the cell that writes it;"
            r" a < that is meant as text is \< in Markdown.",
        )  # fmt: skip
