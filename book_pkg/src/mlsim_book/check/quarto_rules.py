"""What a genuine Quarto would do with a book's sources, where that isn't what they mean.

Each rule was seen in a rendering by Quarto 1.10.18. A `fails` finding ends Quarto's
render; a `loses` finding puts something wrong or raw on a page; a `differs` finding is one
where our engine does better and a reader would notice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlsim_book.errors import Problems
from mlsim_book.model import Project
from mlsim_book.read.document import Cell, Markdown
from mlsim_book.read.lines import Fences, SourceLine
from mlsim_book.read.options import merge
from mlsim_book.run.pages import ParsedPage
from mlsim_book.run.quarto_inline import quarto_only

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
            yield from _classes(block)
            continue
        for file, line, source in quarto_only(block) if page.document.notebook is None else ():
            shown = source if len(source) <= 50 else f"{source[:49]}…"
            yield Finding(
                "loses", file, line, f"runs {shown} here, too",
                "To show it, write {{python}} for {python}.",
            )  # fmt: skip
        if cached and "`{python} " in block.text:
            first = next(each for each in block.lines if "`{python} " in each.text)
            yield Finding(
                "fails", first.file, first.line, "refuses inline expressions with a cache",
                "Write `execute: freeze: auto` for `cache: true`.",
            )  # fmt: skip
            cached = False


def _classes(cell: Cell) -> Iterator[Finding]:
    classes = cell.options.get("classes")
    if isinstance(classes, list) or (
        isinstance(classes, str) and " " in classes.strip() and "." not in classes
    ):
        yield Finding(
            "loses", cell.file, cell.option_line("classes"),
            "breaks the box of this output and prints its colons",
            'Write classes: "one .two".',
        )  # fmt: skip


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
            yield Finding(
                "loses", line.file, line.line,
                "numbers this heading as the next chapter, which then has the same number",
                "Use one heading of level 1 in a file.",
            )  # fmt: skip
        if last and level > last + 1 and ".unnumbered" not in attributes:
            yield Finding(
                "differs", line.file, line.line,
                f"numbers '{title}' with a 0 for each level left out",
                f"Write {'#' * (last + 1)} for {'#' * level}.",
            )  # fmt: skip
        last = level


def _index_title(page: ParsedPage) -> Iterator[Finding]:
    if page.chapter.source == "index.qmd" and page.metadata.get("title"):
        yield Finding(
            "loses", page.chapter.source, 1,
            "shows the book's title here instead of the one in the YAML block",
            "Write `# Preface {.unnumbered}` below the block instead.",
        )  # fmt: skip


def _title_signs(page: ParsedPage) -> Iterator[Finding]:
    title = page.chapter.title
    if re.search(r"[&<]", title) and re.search(r"[*`_$]|--|\.\.\.", title):
        yield Finding(
            "differs", page.chapter.source, 1,
            f"shows '{title}' in the sidebar as it is written",
            "Leave out & and <, or the markup.",
        )  # fmt: skip


def _lines(page: ParsedPage) -> Iterator[Finding]:
    """Judge what stands on one line of prose."""
    for line in _text_lines(page):
        bare = re.sub(r"(`+).*?\1", "", line.text)
        for match in _GROUP.finditer(bare):
            if _KEY.sub("", match[1]).strip(" ;,"):
                yield Finding(
                    "loses", line.file, line.line,
                    f"drops the words around the reference in [{match[1]}]",
                    "Put them outside the brackets.",
                )  # fmt: skip
        if _QUERY.search(bare):
            yield Finding(
                "loses", line.file, line.line, "leaves a link to x.qmd?... as it is",
                "Leave the part from ? away.",
            )  # fmt: skip


def _callouts(page: ParsedPage) -> Iterator[Finding]:
    """Judge the titles of callouts."""
    title: str | None = None
    for line in _text_lines(page):
        match = _CALLOUT.match(line.text)
        if match and re.search(r"[*`_$\[]", match[1]):
            yield Finding(
                "differs", line.file, line.line, f"keeps '{match[1]}' as a raw tooltip",
                "Write the title as a heading within the callout.",
            )  # fmt: skip
        if title is not None and line.text.strip():
            if _HEADING.match(line.text):
                yield Finding(
                    "loses", line.file, line.line,
                    "makes this heading a section of the page, since the callout has a title",
                    "Leave out the heading or title=.",
                )  # fmt: skip
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
                    yield Finding(
                        "loses", line.file, line.line,
                        "drops the rest of the page after a shortcode that is not closed",
                        "Close it with >}}.",
                    )  # fmt: skip


_RULES: tuple[Callable[[ParsedPage], Iterator[Finding]], ...] = (
    _levels, _index_title, _title_signs, _lines, _callouts, _shortcodes,
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
                yield Finding(
                    "loses", line.file, line.line,
                    f"prints ?{key}, since its section has no number",
                    f"Write a link: [its title](page.qmd#{key}).",
                )  # fmt: skip


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
                yield Finding(
                    "differs", file, line,
                    f"calls this {what} 1, as it does in {first[kind][0]}",
                    "Number the chapter, or leave the label out.",
                )  # fmt: skip
            first.setdefault(kind, (file, line))
