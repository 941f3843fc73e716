"""Check a built site: ids, links, images, headings, markup, terms, requests to others.

What checks need from a built page: ids, links, images, headings, loads.

Whether a page is valid HTML: as the standard's parser reads it, and what may stand in what.
html5lib follows the parsing rules of the standard and reports every error. It does not know what
an element may hold; of those rules, the few that are broken in practice are kept here: no block in
a line of text, no control in a link or a button, nothing but items in a list. Elements of SVG and
MathML are left to the parser.

Find terms of the glossary that a page spells otherwise than the glossary does. "relu" and
"allreduce" are reported where the glossary says "ReLU" and "all-reduce". It would
rather miss one than report what is right: a capital at the start, a plural and "memory-bandwidth
limit" pass, and so does what may be a name of something else: "Memory Bandwidth", and capitals
only for a term of small letters. Looked at is running text, as for hints: no headings, code,
quotes, tables or links.

Where a term looks like an everyday word (ZeRO, MAC), `_quarto.yml` lists the words that are not
meant: `mlsim-book: {not-terms: [zero, Mac]}`.

Ask other servers whether the pages that a book links to are there. Only on request (`mlsim-book
check --external`): it needs the network, takes its time, and depends on others. A page that is
gone is a problem. A server that won't say, or isn't reached in time, is reported but is no
problem: it may answer readers all the same.
"""

from __future__ import annotations

import html as htmllib
import http.client
import itertools
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib import error as failures, request as requests
from urllib.parse import unquote, urlsplit

import html5lib
from html5lib.constants import E as MESSAGES

from mlsim_book.caches import TextCache, cache_folder, content_hash
from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.lines import Reporter, place
from mlsim_book.read.yamlfile import book_settings
from mlsim_book.render.glossary import FilledPage, glossary_source, read_entries, running_text
from mlsim_book.render.postprocess import Element, Text, parse
from mlsim_book.site.shared_files import with_cards

_LOADS = {
    "script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset"),
    "video": ("src", "poster"), "audio": ("src",), "object": ("data",), "embed": ("src",),
    "input": ("src",), "track": ("src",), "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"), "feimage": ("href", "xlink:href"),
}  # fmt: skip
_LOADING_LINKS = {
    "stylesheet", "preload", "prefetch", "prerender", "icon", "apple-touch-icon", "manifest",
    "modulepreload", "preconnect", "dns-prefetch",
}  # fmt: skip
_CSS_URL = re.compile(
    r"url\(\s*[\"']?((?:https?:)?//[^)\"'\s]+)|@import\s+[\"']((?:https?:)?//[^\"']+)"
)
_JS_URL = re.compile(
    r"\b(?:import|from|fetch|importScripts|sendBeacon|EventSource|WebSocket)\s*\(?\s*"
    r"[\"'`]((?:https?:|wss?:)?//[^\"'`\s]+)"
)
_HEADING = re.compile(r"h([1-6])")
_TAG = re.compile(r"<[^>]*>")


@dataclass
class SitePage:
    """What matters of an HTML page."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    images: list[tuple[str, str | None]] = field(default_factory=list)  # src, alt
    loaded: list[str] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)  # of the content


def read_page(html: str) -> SitePage:
    """Read what matters of a page.

    >>> read_page('<a href="b.html#x">b</a><img src="c.png">').images
    [('c.png', None)]
    """
    page, content = SitePage(), list[tuple[int, str]]()

    def walk(above: Element, place: frozenset[str]) -> None:
        """Read what an element holds; `place` are the tags around that make a difference."""
        for each in above.children:
            if isinstance(each, Element):
                read(each, place)
                named = {"named link"} if "aria-label" in each.attributes else set()
                inner = {each.tag} & {"main", "template"} | (named if each.tag == "a" else set())
                walk(each, place | inner)

    def read(each: Element, place: frozenset[str]) -> None:
        tag, given, text = each.tag, each.attributes, html[each.inner : each.inner_end]
        # what a template holds is on no page until a script copies it
        if given.get("id") and "template" not in place:
            page.ids.append(given["id"])
        if tag == "a" and given.get("href"):
            page.links.append(given["href"])
        if tag == "img":  # in a link with a name it may be silent
            alt = "named by its link" if "named link" in place else given.get("alt")
            page.images.append((given.get("src", ""), alt))
        if (heading := _HEADING.fullmatch(tag)) and "template" not in place:
            words = " ".join(htmllib.unescape(_TAG.sub("", text)).split())
            page.headings.append((int(heading[1]), words))
            content.extend(page.headings[-1:] if "main" in place else ())
        for name in _LOADS.get(tag, ()):
            value = given.get(name, "")
            # of a srcset, the addresses: "a.png 1x, b.png 2x"
            parts = re.split(r",\s+", value) if name == "srcset" else [value]
            page.loaded.extend(part.split()[0] for part in parts if part.split())
        loading = set(given.get("rel", "").lower().split()) & _LOADING_LINKS
        if tag == "link" and loading and given.get("href"):
            page.loaded.append(given["href"])
        page.loaded.extend(css_loads(given.get("style", "")))
        loads = {"style": css_loads, "script": script_loads}.get(tag)
        page.loaded.extend(loads(text) if loads else ())

    walk(parse(html), frozenset())
    if re.search(r"<main\b", html):  # navigation around it has an order of its own
        page.headings = content
    return page


def css_loads(css: str) -> list[str]:
    """Return the addresses on other servers that a style loads from.

    >>> css_loads("a { background: url(//cdn.example.org/a.png) } b { mask: url(b.svg) }")
    ['//cdn.example.org/a.png']
    """
    return [a or b for a, b in _CSS_URL.findall(css)]


def script_loads(script: str) -> list[str]:
    """Return the addresses on other servers that a script names where it loads something.

    >>> script_loads('import a from "https://cdn.example.org/a.js"; open("https://b.org")')
    ['https://cdn.example.org/a.js']
    """
    return _JS_URL.findall(script)


_RULES = "1"  # part of the key of what is kept: raise it when a rule changes
_TEMPLATE = re.compile(r"(<template\b[^>]*>)(.*?)(</template>)", re.DOTALL)
_MOST = 20  # of one page; one missing end tag makes many errors

_LINES = frozenset({
    "span", "h1", "h2", "h3", "h4", "h5", "h6", "button", "em", "strong", "b", "i", "u", "s",
    "code", "kbd", "samp", "var", "small", "sub", "sup", "q", "cite", "abbr", "dfn", "label",
    "time", "mark", "pre",
})  # fmt: skip
_BLOCKS = frozenset({
    "div", "p", "ul", "ol", "dl", "table", "section", "article", "aside", "nav", "header",
    "footer", "main", "figure", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "form", "details", "fieldset", "address",
})  # fmt: skip
_CONTROLS = frozenset({"a", "button", "input", "select", "textarea", "details", "iframe", "label"})
_FOREIGN = frozenset({"svg", "math"})
_ITEMS = {
    "ul": frozenset({"li", "script", "template"}),
    "ol": frozenset({"li", "script", "template"}),
    "dl": frozenset({"dt", "dd", "div", "script", "template"}),
}


@dataclass(frozen=True)
class Fault:
    """Something that is not valid, on a line of the page, and the markup near it."""

    line: int
    message: str
    near: str


def find_faults(html: str, keep: TextCache | None = None) -> list[Fault]:
    """Return what is not valid in a page, the first twenty; `keep` remembers known pages.

    >>> page = "<!DOCTYPE html><title>A</title><p>B</b></p>"
    >>> [each.message for each in find_faults(page)]
    ['Unexpected end tag (b). Ignored.']
    >>> find_faults("<!DOCTYPE html><title>A</title><span><div>B</div></span>")[0].message
    'a <div> stands in a <span>, which holds a line of text only'
    """
    key = content_hash("html", _RULES, html5lib.__version__, html)
    if keep is not None and (kept := keep.load(key)) is not None:
        return [Fault(**each) for each in json.loads(kept)]
    faults = [*_parse_errors(html), *_misplaced(html, parse(html), ())]
    faults = sorted(dict.fromkeys(faults), key=lambda each: each.line)[:_MOST]
    if keep is not None:
        keep.store(key, json.dumps([asdict(each) for each in faults]))
    return faults


def _parse_errors(html: str) -> Iterator[Fault]:
    """Yield the errors of a page, and of its templates, which html5lib takes for ordinary."""
    bare = _TEMPLATE.sub(lambda match: match[1] + "\n" * match[2].count("\n") + match[3], html)
    yield from _errors(bare, html, 0, fragment=False)
    for match in _TEMPLATE.finditer(html):
        yield from _errors(match[2], match[2], html.count("\n", 0, match.start(2)), fragment=True)


def _errors(html: str, shown: str, above: int, *, fragment: bool) -> Iterator[Fault]:
    parser = html5lib.HTMLParser()
    if fragment:
        parser.parseFragment(html, container="template")
    else:
        parser.parse(html)
    lines = shown.split("\n")
    for (line, column), code, data in parser.errors:
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        try:
            message = MESSAGES[code] % data
        except (KeyError, TypeError):
            message = code
        yield Fault(line + above, message, _near(text, column))


def _near(text: str, column: int) -> str:
    """Return the tag that ends before a column of a line, at most 60 characters."""
    start = text.rfind("<", 0, column + 1)
    end = text.find(">", max(start, 0))
    return text[start : end + 1 or None].strip()[:60] if start >= 0 else ""


def _misplaced(html: str, element: Element, above: tuple[str, ...]) -> Iterator[Fault]:
    """Yield the elements that may not stand where they do."""
    inside = (*above, element.tag)
    for child in element.children:
        if isinstance(child, Text):
            if element.tag in _ITEMS and html[child.start : child.end].strip():
                yield _fault(html, child.start, f"text stands in a <{element.tag}>, outside items")
            continue
        if element.tag in _ITEMS and child.tag not in _ITEMS[element.tag]:
            yield _fault(html, child.start, f"a <{child.tag}> stands in a <{element.tag}>, no item")
        if message := _forbidden(child.tag, inside):
            yield _fault(html, child.start, message)
        if child.tag not in _FOREIGN:
            # what a template holds is put elsewhere by a script
            yield from _misplaced(html, child, () if child.tag == "template" else inside)


def _forbidden(tag: str, inside: tuple[str, ...]) -> str | None:
    if tag in _BLOCKS:
        line = next((each for each in reversed(inside) if each in _LINES), None)
        if line is not None:
            return f"a <{tag}> stands in a <{line}>, which holds a line of text only"
    if tag in _CONTROLS:
        control = next((each for each in reversed(inside) if each in {"a", "button"}), None)
        if control is not None:
            return f"a <{tag}> stands in a <{control}>: two controls in one"
    return None


def _fault(html: str, start: int, message: str) -> Fault:
    end = html.find(">", start)
    near = html[start : end + 1] if end >= 0 else html[start:]
    return Fault(html.count("\n", 0, start) + 1, message, near.split("\n")[0][:60])


_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_MAIN = re.compile(r"<main\b.*?</main>", re.DOTALL)
_BRITISH = re.compile(r"(?<=[a-z]{2})is(?=(?:e|ed|er|ers|es|ing|ation|ations)\b)")
_QUOTE = re.compile(r"“[^“”]*”|\"[^\"\n]*\"")
_SHORTEST = 3  # letters: what is shorter is another word too easily

Misspelled = tuple[str, str, str, tuple[str, ...]]  # page, message, hint, patterns of its place


class Speller:
    """How a glossary spells its terms.

    >>> speller = Speller(["all-reduce", "batch size", "FLOPs"])
    >>> list(speller.find("An allreduce for a batch Size; all-reduces, batch-size sweep, flops"))
    [('allreduce', 'all-reduce'), ('batch Size', 'batch size'), ('flops', 'FLOPs')]
    """

    def __init__(self, spellings: Sequence[str], words: Sequence[str] = ()) -> None:
        self._words = frozenset(words)  # that are no terms
        self._known: dict[str, list[str]] = {}
        for each in spellings:
            if len(_bare(each)) >= _SHORTEST:
                self._known.setdefault(_bare(each), []).append(each)
        self._longest = max((len(each.split()) for each in spellings), default=0)
        self._begins = {each[:end] for each in self._known for end in range(1, len(each) + 1)}

    def find(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield what a text spells otherwise, and how the glossary spells it."""
        words = list(_WORD.finditer(text))
        at = 0
        while at < len(words):
            taken = 1
            if _bare(words[at].group()).removesuffix("s") not in self._begins:
                at += 1
                continue
            for count in range(min(self._longest, len(words) - at), 0, -1):
                start, end = words[at].start(), words[at + count - 1].end()
                if not _is_one(text, words[at : at + count]):
                    continue
                written = text[start:end]
                bare = _bare(written)
                if known := self._known.get(bare) or self._known.get(bare.removesuffix("s")):
                    taken = count
                    if written not in self._words and not any(_same(written, k) for k in known):
                        yield " ".join(written.split()), known[0]
                    break
            at += taken


def _bare(text: str) -> str:
    """Return a spelling without case, spaces and hyphens, and with z for the British s."""
    return re.sub(r"[\s-]+", "", _BRITISH.sub("iz", text.lower()))


def _is_one(text: str, words: Sequence[re.Match[str]]) -> bool:
    """Say whether only spaces stand between words, and they aren't part of something else."""
    pairs = itertools.pairwise(words)
    start, end = words[0].start(), words[-1].end()
    before, after = text[max(start - 1, 0) : start], text[end : end + 2]
    return (
        all(text[a.end() : b.start()].isspace() for a, b in pairs)
        and before not in {"_", "/", ".", "@", "#", "&", "\\", "$"}
        and not re.match(r"[_/]|[.@]\w", after)
    )


def _same(written: str, term: str) -> bool:
    """Say whether a text is a fair way to write a term, a plural among them."""
    ours, theirs = re.split(r"[\s-]+", written), re.split(r"[\s-]+", term)
    if len(ours) != len(theirs):  # "through put" may be two words of a sentence
        return len(ours) > len(theirs) and "-" not in written
    if written.isupper() and term.islower():
        return True
    if len(ours) > 1 and all(each[:1].isupper() for each in ours) and term.islower():
        return _bare(written).removesuffix("s") == _bare(term).removesuffix("s")
    plural = ours[-1] in {f"{theirs[-1]}s", theirs[-1][:1].swapcase() + f"{theirs[-1][1:]}s"}
    if plural:
        ours[-1] = ours[-1][:-1]
    first = ours[0][:1].lower() == theirs[0][:1].lower() and ours[0][1:] == theirs[0][1:]
    return first and ours[1:] == theirs[1:]


def find_misspelled(
    project: Project, html: Mapping[str, str], pages: Mapping[str, ExecutedPage]
) -> Iterator[Misspelled]:
    """Yield the terms that pages of a built site spell otherwise, each once a page."""
    speller = _read_speller(project, html, pages)
    if speller is None:
        return
    for name, page in pages.items():
        if name not in html or book_settings(page.metadata).get("terms", True) is False:
            continue
        for written, term in dict.fromkeys(speller.find(_text(html[name]))):
            pattern = r"\s+".join(map(re.escape, written.split()))
            message = f"'{written}' is a term of the glossary, which spells it '{term}'"
            hint = f"Write '{term}', or give its entry the other spelling: also=\"{written}\"."
            yield name, message, hint, (rf"(?<![\w-]){pattern}(?![\w-])", re.escape(written))


def _read_speller(
    project: Project, html: Mapping[str, str], pages: Mapping[str, ExecutedPage]
) -> Speller | None:
    source = glossary_source(project)
    home = next((href for href, page in pages.items() if page.chapter.source == source), None)
    if home is None or home not in html:
        return None
    unused = Reporter(Problems(), project.root)  # the build reports faults of the entries
    entries = read_entries(FilledPage(pages[home], "", html[home]), unused)
    words = book_settings(project.metadata).get("not-terms", [])
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        raise SourceError(
            f"`mlsim-book: not-terms:` is {words!r}, which must be a list of words",
            file="_quarto.yml",
            hint="Write [word, other]: words that look like a term of the glossary and are none.",
        )
    return Speller([spelling for entry in entries for spelling in entry.spellings], words)


def _text(html: str) -> str:
    """Return the running text of a page, one piece a paragraph break apart from the next."""
    main = _MAIN.search(html)
    body = main.group() if main else html
    pieces = [htmllib.unescape(body[a:b]) for a, b in running_text(parse(body), prose=False)]
    return _QUOTE.sub(" \u2029 ", " \u2029 ".join(pieces))


_GONE = frozenset({404, 410})
_AGENT = "Mozilla/5.0 (compatible; mlsim-book check)"
_WORKERS = 8


@dataclass(frozen=True)
class Answer:
    """What asking for an address gave: nothing when it is there."""

    url: str
    fault: str | None = None
    sure: bool = True  # whether the fault is the link's


def ask_all(urls: Iterable[str]) -> Iterator[Answer]:
    """Ask for addresses, eight at a time; yield the answers in the order of the addresses."""
    with ThreadPoolExecutor(_WORKERS) as workers:
        yield from workers.map(ask, urls)


def ask(url: str, *, timeout: float = 20.0) -> Answer:
    """Ask for an address: for its head, and for all of it where a server knows no heads."""
    for method in ("HEAD", "GET"):
        request = requests.Request(url, method=method, headers={"User-Agent": _AGENT})  # noqa: S310 - http(s) only
        try:
            with requests.urlopen(request, timeout=timeout):  # noqa: S310 - http(s) only
                return Answer(url)
        except failures.HTTPError as error:
            said = f"the server says {error.code} {error.reason}"
            answer = Answer(url, said, error.code in _GONE)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            answer = Answer(url, f"it can't be reached ({reason})", sure=False)
    return answer


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
    names = [each for each in names if each != "404.html"]  # its links begin at the server's root
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
            places = [re.escape(src), re.escape(posixpath.basename(src))]
            if drawn := re.search(r"figure-html/(.+)-output-\d+\.\w+$", src):
                places = [rf"label:\s*[\"']?{re.escape(drawn[1])}\b"]
            site.note(
                name, f"the image {src} has no alternative text", *places,
                hint='Write one: `#| fig-alt:` in its cell, or {fig-alt="..."} behind the image.',
            )  # fmt: skip


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
