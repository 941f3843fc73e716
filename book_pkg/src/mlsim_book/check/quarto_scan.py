"""Read a site that Quarto rendered: what must never be seen, and which numbers differ.

Neither needs Quarto: a site from anywhere will do. What our own site shows in the same
place, such as a page that writes of `{python}`, is no fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from mlsim_book.check.page_pieces import Piece, read_out
from mlsim_book.errors import SourceError
from mlsim_book.quarto import output_dir, render_with_quarto
from mlsim_book.read.measured import MEASURED
from mlsim_book.run.quarto_inline import BLOCKS

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
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source",
         "track", "wbr"}  # fmt: skip


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


def pages_of(folder: Path) -> dict[str, Path]:
    """Return the pages of a site by name.

    Raises
    ------
    SourceError
        The folder holds none.
    """
    pages = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*.html"))
        if not {"site_libs", "index_files"} & set(path.relative_to(folder).parts)
    }
    if not pages:
        raise SourceError(
            f"there is no built page in {str(folder)!r}",
            hint="Build the site first: mlsim-book build, or quarto render.",
        )
    return pages


def _pieces(path: Path) -> list[Piece]:
    return [each for each in read_out(path, leave_out=_APART) if each.kind != "figure"]


def _differing(name: str, theirs: list[Piece], ours: list[Piece]) -> Iterator[Fault]:
    """Yield numbers of the pieces that only one page has, in the piece that has them."""
    both = Counter(each.text for each in theirs) & Counter(each.text for each in ours)
    theirs, ours = _without(theirs, both), _without(ours, both)
    first, second = _counted(theirs), _counted(ours)
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


def _counted(pieces: list[Piece]) -> Counter[str]:
    return Counter(number for piece in pieces for number in _numbers(piece.text))


def _numbers(text: str) -> list[str]:
    """Return the numbers of a text, without commas: 1,024 is 1024.

    >>> _numbers("−3.5 of 1,024, FP16")
    ['−3.5', '1024']
    """
    return [match[0].rstrip(".,").replace(",", "") for match in _NUMBER.finditer(text)]


@dataclass
class _Page:
    text: str
    blocks: list[str]  # tags of blocks within a paragraph
    loose: list[str]


def _read(html: str) -> _Page:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return _Page("".join(reader.text), reader.blocks, reader.loose)


class _Reader(HTMLParser):
    """Reads what is seen in <main>, and how it is nested as it is written."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.blocks: list[str] = []
        self.loose: list[str] = []
        self._open: list[tuple[str, bool]] = []  # tags within <main>, and whether seen

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (not self._open and tag != "main") or tag in _VOID:
            return
        given = dict(attrs)
        classes = set((given.get("class") or "").split())
        hidden = tag in {"script", "style", "template", "svg"} or bool(
            {"sourceCode", "katex", "math"} & classes
        )
        if tag in BLOCKS and "p" in (name for name, _ in self._open):
            self.blocks.append(tag)
        seen = not hidden and (not self._open or self._open[-1][1])
        self._open.append((tag, seen))
        if tag in BLOCKS or tag in {"td", "th", "br"}:
            self.text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag not in (name for name, _ in self._open):
            return
        while self._open and self._open.pop()[0] != tag:
            pass
        if tag in BLOCKS:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._open or not self._open[-1][1]:
            return
        self.text.append(data)
        if self._open[-1][0] in _HOLDERS and data.strip():
            self.loose.append(data.strip())
