"""What a built page tells, stretch by stretch, and what it asks: for the check of spoilers.

A stretch is a paragraph, a cell of a table with what heads it, a line of code or of a print, an
alternative text. What opens, is given or is hidden from readers is known as such. Self-checks
are not asked here: they repeat what a chapter has taught.
"""

from __future__ import annotations

import html as htmllib
import re
from dataclasses import dataclass, field

from mlsim_book.render.postprocess import Element, Text, parse

_BLOCKS = frozenset(
    "p li h1 h2 h3 h4 h5 h6 td th tr figcaption caption div section dt dd summary pre table"  # noqa: SIM905
    " ul ol details blockquote figure".split()
)
_SILENT = frozenset({"nav", "template", "style", "title", "annotation", "button"})
_HIDDEN = frozenset({"katex-html", "header-section-number", "exercise-folds", "exercise"})
_KINDS = {
    "figure-data": "the data of a figure", "cell-output-stdout": "printed output",
    "code-fold": "folded code", "sourceCode": "code",
}  # fmt: skip
_OF_TAGS = {"table": "a table", **{f"h{level}": "a heading" for level in range(1, 7)}}
_LABEL = re.compile(r"(?:fig|tbl|lst)-")


@dataclass(frozen=True)
class Told:
    """A stretch of a page: where it stands, what it is, and the numbers in it that open."""

    start: int
    kind: str
    text: str
    around: str = ""  # what heads its row and its column, or the print
    label: str = ""  # of the figure or table around it
    opens: tuple[tuple[int, int, str], ...] = ()
    block: int = 0  # where its table or print begins
    row: str = ""  # the first cell of its row


@dataclass(frozen=True)
class Question:
    """A guess or an exercise, and what tells its answer."""

    name: str
    what: str  # "guess" or "exercise"
    page: str
    start: int
    text: str
    answer: float  # not a number where the answer is none
    unit: str
    tolerance: float
    origins: frozenset[str]
    names: frozenset[str]  # of the answer
    figures: frozenset[str]  # that settle it
    notes: tuple[str, ...] = ()  # what it opens to: more digits than its page shows
    options: tuple[str, ...] = ()  # of a choice, the right one first; of an order, in that order
    ordered: bool = False


@dataclass
class Page:
    """A built page, in reading order."""

    html: str
    told: list[Told] = field(default_factory=list)
    cards: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # names and values
    questions: list[Question] = field(default_factory=list)
    links: list[tuple[int, str]] = field(default_factory=list)  # to a label of this page


def read_told(html: str, name: str) -> Page:
    """Read what a page tells and asks.

    >>> page = read_told('<main><p>In <b>3 s</b>.</p><img alt="A cup."></main>', "a.html")
    >>> [(each.kind, each.text) for each in page.told]
    [('the text', 'In 3 s.'), ('an alternative text', 'A cup.')]
    """
    root, page = parse(html), Page(html)
    for card in root.tagged("template"):
        texts = [words(html, each) for each in card.below() if each.tag in {"p", "li"}]
        pairs = [each.split(" = ", 1) for each in texts if " = " in each]
        page.cards[card.attribute("id") or ""] = [(_plain(a), b) for a, b in pairs]
    main = next(root.tagged("main"), root)
    walk = _Walk(html)
    walk.element(main, "the text", "")
    walk.flush("the text", "")
    page.told = walk.told
    settles = {each.attribute("data-guess"): each for each in main.all("settles")}
    for each in main.below():
        if each.tag == "a" and (each.attribute("href") or "").startswith("#"):
            page.links.append((each.start, each.attributes["href"][1:]))
        what = next((one for one in ("guess", "exercise") if one in each.classes), "")
        given = each.attributes if what else {}
        place = settles.get(given.get("id")) if what == "guess" else None
        kind = given.get("data-kind")
        number = kind == "number" and given.get("data-answer")
        options = _options(html, each) if kind in {"choice", "order"} else ()
        if not (number or place or options):
            continue
        if place and any(one.tag == "div" for one in place.all("measured")):
            continue  # measured as the page is made: nothing can tell it
        origins, names, figures = _settled(page, place) if place else ([], [], [])
        title = next(each.all("theorem-title"), None)
        if title and (named := re.search(r"\((.*)\)", words(html, title))):
            names = [named[1]]
        about = next(each.all("exercise-about"), None)
        asked = words(html, each).removesuffix(words(html, about) if about else "")
        page.questions.append(Question(
            given.get("id", ""), what, name, each.start,
            asked.removeprefix(words(html, title) if title else "").strip(),
            float(number or "nan"), given.get("data-unit", ""),
            min(0.01, float(given.get("data-tolerance", 0.01))),
            frozenset(origins), frozenset(names), frozenset(figures),
            tuple(value for one in origins for _, value in page.cards.get(one, [])[:1]),
            options, kind == "order",
        ))  # fmt: skip
    return page


def _options(html: str, question: Element) -> tuple[str, ...]:
    """Return the right option and the others, or all in the right order."""
    lists = [each for each in question.below() if each.tag in {"ul", "ol"}]
    texts = [words(html, each) for each in lists[-1].tagged("li")] if lists else []
    places = [int(each) - 1 for each in question.attributes.get("data-answer", "").split()]
    right = [texts[place] for place in places if place < len(texts)]
    return (*right, *(each for each in texts if right and each not in right))


def _settled(page: Page, place: Element) -> tuple[list[str], list[str], list[str]]:
    """Return the origins and names of what settles a guess, and the figures in it."""
    measured = next(place.all("measured"), place)
    opened = [
        each.attribute("data-opens") or ""
        for each in next(place.all("answer"), place).all("opens")
        if measured is place or not measured.start <= each.start < measured.inner_end
    ]
    names = [page.cards[each][0][0] for each in opened if page.cards.get(each)]
    ids = [each.attribute("id") or "" for each in (place, *place.below())]
    return opened, names, [each for each in ids if _LABEL.match(each)]


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").lower().split())


def words(html: str, place: Element) -> str:
    """Return the text of an element that is read."""
    walk = _Walk(html)
    walk.element(place, "", "", blocks=False)
    return " ".join("".join(walk.pieces).split())


class _Walk:
    """Goes through a page; what is pending is the stretch that the next text belongs to."""

    def __init__(self, html: str) -> None:
        self.html = html
        self.told: list[Told] = []
        self.pieces: list[str] = []
        self.opens: list[tuple[int, int, str]] = []
        self.start = 0
        self.around = self.row = self.caption = ""
        self.block = 0

    def flush(self, kind: str, label: str) -> None:
        text = "".join(self.pieces)
        if text.strip():
            self.told.append(Told(
                self.start, kind, text, self.around, label, tuple(self.opens), self.block, self.row
            ))  # fmt: skip
        self.pieces, self.opens = [], []

    def element(self, place: Element, kind: str, label: str, *, blocks: bool = True) -> None:
        """Take what an element holds; without `blocks` it is one stretch."""
        for each in place.children:
            if isinstance(each, Text):
                text = htmllib.unescape(self.html[each.start : each.end])
                self.start = self.start if self.pieces else each.start
                self.pieces.append(text if kind in {"code", "folded code", "printed output"}
                                   else re.sub(r"\s+", " ", text))  # fmt: skip
            elif each.tag == "script":
                if blocks and each.attribute("type") == "application/json":
                    text = self.html[each.inner : each.inner_end]
                    self.told.append(Told(each.start, _KINDS["figure-data"], text, "", label))
            elif each.tag == "img" and blocks and each.attribute("alt"):
                alt = each.attributes["alt"]
                self.told.append(Told(each.start, "an alternative text", alt, "", label))
            elif each.tag not in _SILENT and not (blocks and each.classes & _HIDDEN):
                self._inner(each, kind, label, blocks=blocks)

    def _inner(self, each: Element, kind: str, label: str, *, blocks: bool) -> None:
        if "katex-html" in each.classes or each.attribute("popover") is not None:
            return
        if each.tag == "div" and "measured" in each.classes:
            return  # whatever the machine gives that makes the page, it tells by chance
        if not blocks or each.tag not in _BLOCKS:
            before = sum(map(len, self.pieces))
            if blocks and each.classes & {"given", "quarto-xref", "citation"}:
                self.pieces.append(re.sub(r"\d", "·", words(self.html, each)))
                return
            self.element(each, kind, label, blocks=blocks)
            if origin := each.attribute("data-opens"):
                self.opens.append((before, sum(map(len, self.pieces)), origin))
            return
        self.flush(kind, label)
        found = next((_KINDS[one] for one in _KINDS if one in each.classes), "")
        found = found or _OF_TAGS.get(each.tag, "")
        # what stands in folded code or in a figure's data stays that
        own = found if found and kind not in {"folded code", "the data of a figure"} else kind
        name = each.attribute("id") or ""
        if _LABEL.match(name):
            label, caption = name, next(each.tagged("figcaption"), None)
            self.caption = words(self.html, caption) if caption else ""
        if each.tag == "table":
            self._table(each, own, label)
        elif each.tag == "pre" and own != "the text":
            self._lines(each, own, label)
        else:
            self.element(each, own, label)
            self.flush(own, label)

    def _table(self, table: Element, kind: str, label: str) -> None:
        heads: list[str] = []
        caption = " ".join(words(self.html, each) for each in table.tagged("caption"))
        caption = caption or (self.caption if label else "")
        for row in table.tagged("tr"):
            cells = [one for one in row.children if isinstance(one, Element)]
            texts = [words(self.html, each) for each in cells]
            heads = heads or texts
            for at, cell in enumerate(cells):
                head = heads[at] if at < len(heads) else ""
                self.around = f"{head} {texts[0]} {caption}" if texts != heads else ""
                self.block, self.row = table.start, texts[0]
                self.element(cell, kind, label)
                self.flush(kind, label)
        self.around, self.block, self.row = "", 0, ""

    def _lines(self, pre: Element, kind: str, label: str) -> None:
        walk = _Walk(self.html)
        walk.element(pre, "code", label, blocks=False)
        lines = "".join(walk.pieces).split("\n")
        above = self.told[-1].text if self.told and "code" in self.told[-1].kind else ""
        heads = f"{lines[0]} {above}" if kind == "printed output" else ""
        self.told += [
            Told(pre.start, kind, each, heads, label, block=pre.start)
            for each in lines if each.strip()
        ]  # fmt: skip
