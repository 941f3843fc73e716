"""What a genuine Quarto would do with a book's sources, where that isn't what they mean.

Each rule was seen in a rendering by Quarto 1.10.18. A `fails` finding ends Quarto's
render; a `loses` finding puts something wrong or raw on a page; a `differs` finding is one
where our engine does better and a reader would notice.

Read a site that Quarto rendered: what must never be seen, and which numbers differ. Neither needs
Quarto: a site from anywhere will do. What our own site shows in the same place, such as a page
that writes of `{python}`, is no fault.
"""

from __future__ import annotations

import html as htmllib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from mlsim_book.check.compare_builds import Piece, pages_of, read_out
from mlsim_book.errors import Problems
from mlsim_book.model import Project
from mlsim_book.quarto import output_dir, render_with_quarto
from mlsim_book.read.lines import Fences, SourceLine
from mlsim_book.read.qmd import MEASURED, Cell, Markdown, merge
from mlsim_book.render.postprocess import VOID, Element, Text, parse
from mlsim_book.run.inline import BLOCKS, quarto_only
from mlsim_book.run.pages import ParsedPage

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*(?:\{([^{}]*)\})?\s*$")
_LABEL = re.compile(r"#(sec-[\w-]+)")
_REFERENCE = re.compile(r"(?<![\w@])@([Ss]ec-[\w-]*\w)")
_GROUP = re.compile(r"\[([^\[\]]*@(?:fig|tbl|eq|sec|lst|thm|exr|exm)-[\w-]*\w[^\[\]]*)\]")
_KEY = re.compile(r"-?@[\w-]+")
_CALLOUT = re.compile(r"^:{3,}\s*\{[^}]*\.callout-\w+[^}]*\btitle=\"([^\"]*)\"")
_QUERY = re.compile(r"\]\([^()\s]+\.qmd\?[^()\s]*\)")
_SHORTCODE = re.compile(r"(?<!\{)\{\{<")
_FLOAT = re.compile(r"#((?:fig|tbl)-[\w-]+)")


@dataclass(frozen=True)
class Finding:
    """What Quarto would do at a line, how bad that is, and what to do about it."""

    kind: str  # "fails", "loses" or "differs"
    file: str
    line: int
    message: str
    hint: str


@cache
def _rules() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("quarto.toml").read_text(encoding="utf-8"))


def _found(rule: str, file: str, line: int, **words: str) -> Finding:
    """Return a finding in the words of `quarto.toml`."""
    said = _rules()[rule]
    message, hint = (said[each].format(**words) for each in ("message", "hint"))
    return Finding(said["kind"], file, line, message, hint)


def quarto_findings(project: Project, pages: Sequence[ParsedPage]) -> list[Finding]:
    """Return what a genuine Quarto would do otherwise, in the order of the sources.

    What is wrong with inline expressions, the reading of the pages has noted already.
    """
    unnumbered = {label for page in pages for label in _unnumbered_labels(page)}
    found: list[Finding] = []
    for page in pages:
        found += _of_cells(project, page)
        for rule in _RULES:
            found += rule(page)
        found += _references(page, unnumbered)
    found += _floats(pages)
    order = {page.chapter.source: index for index, page in enumerate(pages)}
    return sorted(found, key=lambda each: (order.get(each.file, len(order)), each.line))


def note_findings(found: Sequence[Finding], problems: Problems) -> None:
    """Note findings: what only differs is advice."""
    for each in found:
        note = problems.advise if each.kind == "differs" else problems.add
        note(f"Quarto {each.message}", file=each.file, line=each.line, hint=each.hint)


def _text_lines(page: ParsedPage) -> Iterator[SourceLine]:
    """Yield the lines of a page that are prose."""
    for block in page.document.blocks:
        if isinstance(block, Markdown):
            fences = Fences()
            yield from (line for line in block.lines if fences.feed(line.text) == "text")


def _of_cells(project: Project, page: ParsedPage) -> Iterator[Finding]:
    """Judge how code is run: cells with a cache, and expressions that were not meant to run."""
    execute = merge(project.metadata, page.metadata).get("execute")
    cached = isinstance(execute, Mapping) and execute.get("cache") in (True, "refresh")
    for block in page.document.blocks:
        if isinstance(block, Cell):
            classes = block.options.get("classes")
            words = classes.strip() if isinstance(classes, str) else ""
            if isinstance(classes, list) or (" " in words and "." not in words):
                yield _found("classes", block.file, block.option_line("classes"))
            continue
        for file, line, source in quarto_only(block) if page.document.notebook is None else ():
            shown = source if len(source) <= 50 else f"{source[:49]}…"
            yield _found("expression", file, line, shown=shown)
        if cached and "`{python} " in block.text:
            first = next(each for each in block.lines if "`{python} " in each.text)
            yield _found("cache", first.file, first.line)
            cached = False


def _headings(page: ParsedPage) -> Iterator[tuple[SourceLine, int, str, str]]:
    for line in _text_lines(page):
        match = _HEADING.match(line.text)
        if match:
            yield line, len(match[1]), match[2], match[3] or ""


def _levels(page: ParsedPage) -> Iterator[Finding]:
    """Judge the levels of a page's headings."""
    last, firsts = 0, 0
    for line, level, title, attributes in _headings(page):
        firsts += level == 1
        if level == 1 and firsts + bool(page.metadata.get("title")) > 1:
            yield _found("second-title", line.file, line.line)
        if last and level > last + 1 and ".unnumbered" not in attributes:
            right, written = "#" * (last + 1), "#" * level
            yield _found("level", line.file, line.line, title=title, right=right, written=written)
        last = level


def _titles(page: ParsedPage) -> Iterator[Finding]:
    source, title = page.chapter.source, page.chapter.title
    if source == "index.qmd" and page.metadata.get("title"):
        yield _found("index-title", source, 1)
    if re.search(r"[&<]", title) and re.search(r"[*`_$]|--|\.\.\.", title):
        yield _found("title-signs", source, 1, title=title)


def _lines(page: ParsedPage) -> Iterator[Finding]:
    """Judge what stands on one line of prose."""
    for line in _text_lines(page):
        bare = re.sub(r"(`+).*?\1", "", line.text)
        for match in _GROUP.finditer(bare):
            if _KEY.sub("", match[1]).strip(" ;,"):
                yield _found("group", line.file, line.line, text=match[1])
        if _QUERY.search(bare):
            yield _found("query", line.file, line.line)


def _callouts(page: ParsedPage) -> Iterator[Finding]:
    """Judge the titles of callouts."""
    title: str | None = None
    for line in _text_lines(page):
        match = _CALLOUT.match(line.text)
        if match and re.search(r"[*`_$\[]", match[1]):
            yield _found("tooltip", line.file, line.line, title=match[1])
        if title is not None and line.text.strip():
            if _HEADING.match(line.text):
                yield _found("callout-heading", line.file, line.line)
            title = None
        title = match[1] if match else title


def _shortcodes(page: ParsedPage) -> Iterator[Finding]:
    """Judge shortcodes that are not closed."""
    for block in page.document.blocks:
        if not isinstance(block, Markdown):
            continue
        text = block.text
        for match in _SHORTCODE.finditer(text):
            end = text.find(">}}", match.end())
            if end < 0 or "\n\n" in text[match.end() : end]:
                line = block.lines[text.count("\n", 0, match.start())]
                if Fences().feed(line.text) == "text":
                    yield _found("shortcode", line.file, line.line)


_RULES: tuple[Callable[[ParsedPage], Iterator[Finding]], ...] = (
    _levels, _titles, _lines, _callouts, _shortcodes,
)  # fmt: skip


def _unnumbered_labels(page: ParsedPage) -> Iterator[str]:
    for _, level, _, attributes in _headings(page):
        label = _LABEL.search(attributes)
        words = attributes.split()
        own = {"-", ".unnumbered"} & set(words)
        if label and (own or (level == 1 and page.chapter.number is None)):
            yield label[1]


def _references(page: ParsedPage, unnumbered: set[str]) -> Iterator[Finding]:
    for line in _text_lines(page):
        for key in _REFERENCE.findall(re.sub(r"(`+).*?\1", "", line.text)):
            if key.lower() in unnumbered:
                yield _found("unnumbered", line.file, line.line, key=key)


def _floats(pages: Sequence[ParsedPage]) -> Iterator[Finding]:
    """Judge figures and tables of unnumbered chapters: each counts from 1."""
    first: dict[str, tuple[str, int]] = {}
    for page in pages:
        if page.chapter.number is not None:
            continue
        own: dict[str, tuple[str, int]] = {}
        for block in page.document.blocks:
            if isinstance(block, Cell):
                labels = [(block.label or "", block.file, block.line)]
            else:
                labels = [(name, each.file, each.line) for each in block.lines
                          for name in _FLOAT.findall(each.text)]  # fmt: skip
            for name, file, line in labels:
                kind = name.partition("-")[0]
                if kind in {"fig", "tbl"}:
                    own.setdefault(kind, (file, line))
        for kind, (file, line) in own.items():
            if kind in first:
                what = "Figure" if kind == "fig" else "Table"
                yield _found("float", file, line, what=what, first=first[kind][0])
            first.setdefault(kind, (file, line))


# In the text of a page, code of cells apart: what it is, and what it looks like.
_SEEN = {
    "an expression that was not run": r"\{python\}\s*[^}\s][^`\n]{0,40}",
    "raw HTML's mark": r"`?\{=html\}",
    "a box's colons": r"(?:^|\s):::+(?:\s*\{[^}]*\}?)?",
    "an unresolved reference": r"\?@\S+"
    r"|\?(?:fig|tbl|sec|eq|lst|thm|exr|exm|def|cor|lem|prp)-[\w-]+",
    "attributes that nothing took": r"\]\{\.[\w-]+[^}]*\}?",
    "an object's address or type": r"<[\w.]+ object(?: at 0x\w+)?>|np\.\w+\([^)]*\)",
    "letters of a picture's data": r"\b[A-Za-z0-9+/]{200,}",
    "a shortcode": r"\{\{<[^>]*>?\}?\}?",
    "a date that is none": r"\bInvalid Date\b",
    "a citation that was not resolved": r"\[(?:[^\[\]]*[\s;])?-?@\w[^\[\]]*\]",
}  # fmt: skip
_PATTERNS = {what: re.compile(pattern, re.MULTILINE) for what, pattern in _SEEN.items()}
_NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,.]*")
# Not compared, since a reader finds no difference there: formulas, which are typeset otherwise;
# citations and bibliographies, whose years get letters page by page or once; what a machine
# measured anew; and what only our engine adds, the tables below figures and where a term is
# first used. (Code, notes and numbers of sections are no pieces of a page at all.)
_APART = (
    "katex", "math", "citation", "csl-bib-body", "csl-entry", MEASURED, "figure-data",
    "term-first-used", "code-annotation-container",
)  # fmt: skip
_HOLDERS = {"main", "section"}
_HIDDEN = {"script", "style", "template", "svg"}


@dataclass(frozen=True)
class Fault:
    """Something on a page that must not be there, or a number that only one site has."""

    page: str
    what: str
    text: str

    def __str__(self) -> str:
        text = " ".join(self.text.split())
        return f"{self.page}: {self.what}: {text if len(text) <= 90 else f'{text[:89]}…'}"


def try_quarto(
    root: Path,
    *,
    site: Path | None = None,
    ours: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Fault]:
    """Render a book with Quarto, and hold its pages against those of our site.

    Parameters
    ----------
    site
        A site that Quarto has rendered already; none is rendered then.
    ours
        Our own site; the book's output folder when None.

    Raises
    ------
    ToolError
        There is no Quarto, or its render failed.
    SourceError
        One of the two sites holds no page.
    """
    ours = ours or root / output_dir(root)
    own = pages_of(ours)
    if site is None:
        site = render_with_quarto(root, out=root / "_book_quarto", progress=progress)
    found = scan_site(site, ours) + compare_numbers(site, ours)
    progress(f"read {len(pages_of(site))} pages of Quarto's site beside {len(own)} of ours")
    return found


def scan_site(folder: Path, ours: Path | None = None) -> list[Fault]:
    """Return what must not be seen on the pages of a site, in order of their names."""
    found = []
    for name, path in pages_of(folder).items():
        twin = ours / name if ours else None
        allowed = twin.read_text("utf-8") if twin and twin.is_file() else ""
        found += scan_page(path.read_text("utf-8"), name, allowed=allowed)
    return found


def scan_page(html: str, name: str = "", *, allowed: str = "") -> list[Fault]:
    """Return what must not be seen on a page; `allowed` is our own page.

    >>> [str(each) for each in scan_page("<main><p>It is `{=html} here.</p></main>", "a.html")]
    ["a.html: raw HTML's mark: `{=html}"]
    """
    read, own = _read(html), _read(allowed)
    found = []
    for what, pattern in _PATTERNS.items():
        known = Counter(match[0].strip() for match in pattern.finditer(own.text))
        for match in pattern.finditer(read.text):
            if known[match[0].strip()]:
                known[match[0].strip()] -= 1
            else:
                found.append(Fault(name, what, match[0].strip()))
    found += [Fault(name, "a block within a paragraph", f"<{tag}>") for tag in read.blocks]
    loose = Counter(own.loose)
    for text in read.loose:
        if loose[text]:
            loose[text] -= 1
        else:
            found.append(Fault(name, "text outside of any paragraph", text))
    return found


def compare_numbers(folder: Path, ours: Path) -> list[Fault]:
    """Return the visible numbers that a page of one site has and its twin lacks."""
    theirs, own = pages_of(folder), pages_of(ours)
    found = [Fault(name, "no such page", "in Quarto's site") for name in own if name not in theirs]
    for name, path in theirs.items():
        if name in own:
            found += _differing(name, _pieces(path), _pieces(own[name]))
    return found


def _pieces(path: Path) -> list[Piece]:
    return [each for each in read_out(path, leave_out=_APART) if each.kind != "figure"]


def _differing(name: str, theirs: list[Piece], ours: list[Piece]) -> Iterator[Fault]:
    """Yield numbers of the pieces that only one page has, in the piece that has them."""
    both = Counter(each.text for each in theirs) & Counter(each.text for each in ours)
    theirs, ours = _without(theirs, both), _without(ours, both)
    first, second = (
        Counter(number for piece in pieces for number in _numbers(piece.text))
        for pieces in (theirs, ours)
    )
    for what, pieces, more, less in (
        ("only in Quarto's page", theirs, first, second),
        ("only in our page", ours, second, first),
    ):
        left = more - less
        for piece in pieces:
            for number in _numbers(piece.text):
                if left[number]:
                    left[number] -= 1
                    yield Fault(name, f"{number} is {what}", piece.text)


def _without(pieces: list[Piece], others: Counter[str]) -> list[Piece]:
    """Return the pieces without as many of each text as there are in `others`."""
    left, kept = Counter(others), []
    for piece in pieces:
        if left[piece.text]:
            left[piece.text] -= 1
        else:
            kept.append(piece)
    return kept


def _numbers(text: str) -> list[str]:
    """Return the numbers of a text, without commas: 1,024 is 1024.

    >>> _numbers("−3.5 of 1,024, FP16")
    ['−3.5', '1024']
    """
    return [match[0].rstrip(".,").replace(",", "") for match in _NUMBER.finditer(text)]


@dataclass
class _Seen:
    """What is seen in <main>, and how it is nested as it is written."""

    text: str = ""
    blocks: list[str] = field(default_factory=list)  # tags of blocks within a paragraph
    loose: list[str] = field(default_factory=list)  # texts outside of any


def _read(html: str) -> _Seen:
    found, text = _Seen(), list[str]()

    def walk(above: Element, seen: bool, in_paragraph: bool) -> None:
        for each in above.children:
            if isinstance(each, Text):
                words = htmllib.unescape(html[each.start : each.end])
                text.extend([words] if seen else ())
                if seen and above.tag in _HOLDERS and words.strip():
                    found.loose.append(words.strip())
                continue
            if each.tag in BLOCKS and in_paragraph and each.tag not in VOID:
                found.blocks.append(each.tag)
            hidden = each.tag in _HIDDEN or each.classes & {"sourceCode", "katex", "math"}
            around = ["\n"] * (each.tag in BLOCKS or each.tag in {"td", "th"})
            text.extend(around)
            walk(each, seen and not hidden, in_paragraph or each.tag == "p")
            text.extend(around)

    for main in parse(html).tagged("main"):
        walk(main, seen=True, in_paragraph=False)
    found.text = "".join(text)
    return found
