"""What cross-references read as, counted from the pages' Markdown: fig-x -> Figure 1.1.

A small stand-in for a full build's label index, enough for notebooks: things
count by kind and chapter in the order they stand, sections by their headings.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mlsim_book.model import Chapter, ExecutedPage
from mlsim_book.read.lines import Fences

WORDS: Mapping[str, str] = {
    "fig": "Figure", "tbl": "Table", "eq": "Equation", "lst": "Listing", "sec": "Section",
    "thm": "Theorem", "lem": "Lemma", "cor": "Corollary", "prp": "Proposition",
    "cnj": "Conjecture", "def": "Definition", "exm": "Example", "exr": "Exercise",
    "alg": "Algorithm", "sol": "Solution", "rem": "Remark",
    "nte": "Note", "tip": "Tip", "wrn": "Warning", "imp": "Important", "cau": "Caution",
}  # fmt: skip
_LABEL = re.compile(r"\{#((" + "|".join(WORDS) + r")-[\w-]+)")
_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
_DIV = re.compile(r"^\s*:{3,}\s*(\S.*)?$")
_OWN_HEADINGS = re.compile(r"callout-|panel-tabset|#(thm|lem|cor|prp|cnj|def|exm|exr|alg|sol|rem)-")


def label_texts(pages: Sequence[ExecutedPage]) -> dict[str, str]:
    """Return what a reference to each label reads as."""
    texts: dict[str, str] = {}
    for page in pages:
        texts.update(_page_texts(page.markdown, page.chapter))
    return texts


def _page_texts(markdown: str, chapter: Chapter) -> dict[str, str]:
    """Return the label texts of one page."""
    prefix = chapter_number(chapter)
    texts: dict[str, str] = {}
    if chapter.label:
        texts[chapter.label] = chapter_name(chapter)
    counts: Counter[str] = Counter()
    sections = [0] * 7
    fences, divs = Fences(), list[bool]()
    for line in markdown.splitlines():
        if fences.feed(line) != "text":
            continue
        if div := _DIV.match(line):
            divs = [*divs, bool(_OWN_HEADINGS.search(line))] if div.group(1) else divs[:-1]
        heading = _HEADING.match(line)
        if heading and not any(divs) and ".unnumbered" not in line and "{-}" not in line:
            level = len(heading.group(1))
            sections[level] += level > 1
            sections[level + 1 :] = [0] * (6 - level)
        for label, kind in _LABEL.findall(line):
            if label in texts or _add_panel(label, texts):
                continue
            if kind == "sec":
                depth = max((i for i, number in enumerate(sections) if number), default=1)
                number = ".".join([prefix, *(str(each) for each in sections[2 : depth + 1])])
            else:
                counts[kind] += 1
                number = ".".join(each for each in (prefix, str(counts[kind])) if each)
            texts[label] = f"{WORDS[kind]} {number.strip('.')}"
    return texts


def _add_panel(label: str, texts: dict[str, str]) -> bool:
    """Name a panel of a figure already counted: fig-x-1 of fig-x is "Figure 1.1 (a)"."""
    whole, _, number = label.rpartition("-")
    if not number.isdigit() or whole not in texts:
        return False
    texts[label] = f"{texts[whole]} ({chr(ord('a') + int(number) - 1)})"
    return True


def nearest_label(key: str, known: Iterable[str]) -> str | None:
    """Return the label of the same kind whose name `key` may be a slip for.

    >>> nearest_label("eq-sped", ["eq-speed", "sec-sped"])
    'eq-speed'
    >>> nearest_label("sec-capacity", ["sec-api"])
    """
    kind, _, name = key.partition("-")
    names = [each.partition("-")[2] for each in known if each.startswith(f"{kind}-")]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.75)
    return f"{kind}-{near[0]}" if near else None


def chapter_number(chapter: Chapter) -> str:
    """Return a chapter's number, a letter for an appendix, nothing if it has none.

    >>> chapter_number(Chapter("a.qmd", "a.html", "A", 2, appendix=True))
    'B'
    """
    if chapter.number is None:
        return ""
    return chr(ord("A") + chapter.number - 1) if chapter.appendix else str(chapter.number)


def chapter_name(chapter: Chapter) -> str:
    """Return what a reference to a chapter reads as."""
    number = chapter_number(chapter)
    if not number:
        return chapter.title
    return f"{'Appendix' if chapter.appendix else 'Chapter'} {number}"
