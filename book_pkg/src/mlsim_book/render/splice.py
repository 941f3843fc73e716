"""Render an edit of prose by its own paragraphs, for a preview that must be quick.

Pandoc needs a second for a long chapter, whatever was changed in it. So the changed
paragraphs are rendered alone, as they were and as they are. If what they were stands
in the page exactly once, letter for letter, then nothing around them has a say in
them, and what they are takes its place. Where that isn't certain (headings, cells,
labels, footnotes, fences), nothing is returned, and the whole page is rendered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from mlsim_book.errors import BookError

Render = Callable[[str], str]

FACTS = re.compile(r"<!--mlsim-book-facts (.*?)-->\n?", re.DOTALL)
_CITED = re.compile(r'(<x-cite data-index=")(\d+)(")')
_PLACE = re.compile(r'"citationNoteNum":\d+,?')


def splice(page: str, old: str, new: str) -> str | None:
    """Return a page's HTML with one passage in another's place; None where that isn't certain.

    All three carry their facts. Citations are counted through the page: those of the
    passage, and all behind it, get the numbers they have there.
    """
    facts, was, now = _facts(page), _facts(old), _facts(new)
    if not all(map(_plain, (was, now))) or _opened(was) != _opened(now):
        return None
    body = FACTS.sub("", page)
    pieces = _CITED.split(FACTS.sub("", old).strip())
    pattern = r'(<x-cite data-index=")(\d+)(")'.join(map(re.escape, pieces[::4]))
    found = list(re.finditer(rf"(?:^|(?<=[\n>])){pattern}(?=[\n<]|$)", body))
    if len(found) != 1 or not pieces[0].startswith("<"):
        return None
    match = found[0]
    numbers = [int(each) for each in match.groups()[1::3]]
    cites = list(facts.get("cites") or ())
    inner = FACTS.sub("", new).strip()
    # what numbers open to cites too, and is counted behind all that stands on the page
    fresh = list(now.get("cites") or ())[: len(_CITED.findall(inner))]
    more = len(fresh) - len(numbers)
    before = [int(each[2]) for each in _CITED.finditer(body[: match.start()])]
    first = numbers[0] if numbers else max(before, default=-1) + 1
    if numbers != list(range(first, first + len(numbers))) or (more and not _in_order(body)):
        return None

    def moved(html: str) -> str:
        return _CITED.sub(
            lambda m: f"{m[1]}{int(m[2]) + more * (int(m[2]) >= first + len(numbers))}{m[3]}", html
        )

    inner = _CITED.sub(lambda m: f"{m[1]}{int(m[2]) + first}{m[3]}", inner)
    kept = cites[first : first + len(numbers)]
    if _unplaced(kept) == _unplaced(fresh):
        fresh = kept  # else all citations of the book would be formatted again
    told = {
        **facts,
        "cites": cites[:first] + fresh + cites[first + len(numbers) :],
        "refs": _without(facts.get("refs") or (), was.get("refs") or ())
        + list(now.get("refs") or ()),
        "opens": [{**each, "html": moved(each["html"])} for each in facts.get("opens") or ()],
        "headings": [
            {**each, "html": moved(each.get("html", ""))} for each in facts.get("headings") or ()
        ],
    }
    if title := facts.get("title"):
        told["title"] = {**title, "html": moved(title["html"])}
    text = json.dumps(told, ensure_ascii=False).replace(">", "\\u003e")
    joined = moved(body[: match.start()]) + inner + moved(body[match.end() :])
    return f"{joined.rstrip()}\n<!--mlsim-book-facts {text}-->\n"


def same(one: str, other: str) -> bool:
    """Say whether two renderings of a page would be shown alike."""

    def seen(html: str) -> tuple[str, Any]:
        facts = _facts(html)
        opens = [{**each, "span": None} for each in facts.get("opens") or ()]
        told = {
            **facts,
            "refs": sorted(facts.get("refs") or ()),
            "cites": _unplaced(facts.get("cites") or ()),
            "opens": opens,
        }
        return FACTS.sub("", html).strip(), {key: value for key, value in told.items() if value}

    return seen(one) == seen(other)


def _facts(html: str) -> dict[str, Any]:
    match = FACTS.search(html)
    return json.loads(match.group(1)) if match else {}


def _plain(facts: Mapping[str, Any]) -> bool:
    """Say whether a passage counts nothing, names nothing and has nothing wrong."""
    names = ("labels", "headings", "notes", "has_refs", "nocite", "title", "meta")
    return not any(facts.get(name) for name in names)


def _unplaced(cites: Sequence[str]) -> list[str]:
    """Return citations without their place among the page's notes, which nothing asks for."""
    return [_PLACE.sub("", each) for each in cites]


def _opened(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(each["id"], each["text"]) for each in facts.get("opens") or ()]


def _in_order(body: str) -> bool:
    numbers = [int(match[2]) for match in _CITED.finditer(body)]
    return numbers == sorted(numbers)


def _without(given: Sequence[str], gone: Sequence[str]) -> list[str]:
    rest = list(given)
    for each in gone:
        if each in rest:
            rest.remove(each)
    return rest


class Splicer:
    """Remembers the pages as they were shown, and which are yet to be rendered as a whole."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[str, str, str]] = {}  # page: its settings, text, HTML
        self._unsure: dict[str, tuple[str, Callable[[], str]]] = {}

    def quick(
        self, name: str, settings: str, text: str, render: Render, whole: Callable[[], str]
    ) -> str | None:
        """Return a page's HTML without rendering all of it, if it differs by prose alone.

        Parameters
        ----------
        settings
            All that the rendering depends on besides the text.
        render
            Gives HTML and facts of a text under these settings.
        whole
            Renders the page as a whole, and keeps it; `confirm` calls it.
        """
        shown = self._shown.get(name)
        if shown is None or shown[0] != settings:
            return None
        if shown[1] == text:
            return shown[2]
        html = None
        for more in range(3):  # what stands in the page twice doesn't with what is above it
            change = changed_paragraphs(shown[1], text, more=more)
            if change is None:
                return None
            with ThreadPoolExecutor(max_workers=2) as pool:
                old, new = pool.map(render, (change.old, change.new))
            html = splice(shown[2], old, new)
            if html is not None or shown[2].count(FACTS.sub("", old).strip()) < 2:
                break
        if html is not None:
            self._shown[name] = (settings, text, html)
            self._unsure[name] = (html, whole)
        return html

    def note(self, name: str, settings: str, text: str, html: str) -> None:
        """Remember a page that was rendered as a whole."""
        self._shown[name] = (settings, text, html)
        self._unsure.pop(name, None)

    @property
    def unsure(self) -> bool:
        """Whether something is shown that was not rendered as a whole."""
        return bool(self._unsure)

    def confirm(self) -> bool:
        """Render what is unsure as a whole; say whether all of it was right.

        What was wrong is forgotten, so the next build takes the whole page.
        """
        right = True
        for name, (html, whole) in list(self._unsure.items()):
            try:
                well = same(whole(), html)
            except (BookError, OSError):  # the next build will say so
                well = False
            if not well:
                right = False
                self._shown.pop(name, None)
            if self._unsure.get(name, ("",))[0] == html:  # no edit came in between
                del self._unsure[name]
        return right


# What may reach beyond its own paragraph, or depends on what stands elsewhere.
_FAR = re.compile(
    r"^\s*(?:```|~~~|:::|#|---+\s*$|\.\.\.\s*$|===+\s*$)|<[A-Za-z/!?]|-->|\[\^|\^\[|\(@|\{\{<|\\begin|\\end"
    r"|\\(?:re)?newcommand|\\def\b",
    re.MULTILINE,
)
_DEFINITION = re.compile(r"^ {0,3}\[(?![@^])[^\]\n]+\]:\s.*$", re.MULTILINE)
_LISTED = re.compile(r"\s|[-*+>|:~]\s|\(?(?:\d+|[A-Za-z]|#)[.)]\s|\||\+-|[Tt]able:")
_JOINED = re.compile(r"\s|[:~]\s|[Tt]able:")  # belongs to what stands above, whatever that is


@dataclass(frozen=True)
class Change:
    """The paragraphs that differ between two texts of a page."""

    old: str
    new: str


def changed_paragraphs(old: str, new: str, *, more: int = 0) -> Change | None:
    r"""Return what differs, widened to whole paragraphs and lists; None if it may reach far.

    `more` paragraphs above come along.

    >>> changed_paragraphs("One.\n\nTwo.\n\n## Three\n", "One.\n\nTwo!\n\n## Three\n")
    Change(old='Two.', new='Two!')
    >>> changed_paragraphs("One.\n\n## Two\n", "One.\n\n## Three\n") is None
    True
    """
    was, now = old.split("\n"), new.split("\n")
    start = 0
    while start < min(len(was), len(now)) and was[start] == now[start]:
        start += 1
    end = 0
    while end < min(len(was), len(now)) - start and was[-1 - end] == now[-1 - end]:
        end += 1
    start, end = _widened(was, now, start, end, more)
    before, after = was[start : len(was) - end], now[start : len(now) - end]
    change = Change("\n".join(before).strip("\n"), "\n".join(after).strip("\n"))
    if not change.old.strip() or not change.new.strip() or _shape(before) != _shape(after):
        return None
    both = f"{change.old}\n{change.new}"
    if _FAR.search(both) or _DEFINITION.search(both):
        return None
    if "[" not in both or not (known := "\n".join(_DEFINITION.findall(old))):
        return change
    return Change(f"{change.old}\n\n{known}", f"{change.new}\n\n{known}")  # addresses of links


def _widened(
    was: Sequence[str], now: Sequence[str], start: int, end: int, more: int
) -> tuple[int, int]:
    """Widen a change to the blank lines or fences around its paragraphs and lists."""

    def edge(at: int) -> bool:
        return not 0 <= at < len(was) or not was[at].strip() or was[at].startswith(":::")

    def whole() -> None:
        nonlocal start, end
        while not edge(start - 1):
            start -= 1
        while not edge(len(was) - end):
            end -= 1

    whole()
    for _ in range(len(was)):  # a list is one thing
        above, below = _above(was, start), _below(was, end)
        # a paragraph that came or went stands beside one that stays
        gone = not _text(was, start, end) or not _text(now, start, end)
        tops = [_first(lines, start) for lines in (was, now)]
        lists = any(map(_listed, tops))
        if above and (
            gone or any(map(_JOINED.match, tops)) or (lists and _listed(_block(was, above - 1)))
        ):
            start = above - 1
        elif below is not None and (
            _JOINED.match(was[below]) or (lists and _listed(_first(was, below)))
        ):
            end = len(was) - below - 1
        elif above and more > 0:
            start, more = above - 1, more - 1
        else:
            break
        whole()
    return start, end


def _text(lines: Sequence[str], start: int, end: int) -> bool:
    return any(line.strip() for line in lines[start : len(lines) - end])


def _above(lines: Sequence[str], start: int) -> int:
    """Return the line after the paragraph above; 0 if there is none before a fence."""
    while start > 0 and not lines[start - 1].strip():
        start -= 1
    return 0 if start == 0 or lines[start - 1].startswith(":::") else start


def _below(lines: Sequence[str], end: int) -> int | None:
    """Return the first line of the paragraph below, if there is one before a fence."""
    at = len(lines) - end
    while at < len(lines) and not lines[at].strip():
        at += 1
    return None if at == len(lines) or lines[at].startswith(":::") else at


def _first(lines: Sequence[str], at: int) -> str:
    """Return the first paragraph from a line on."""
    while at < len(lines) - 1 and not lines[at].strip():
        at += 1
    return _block(lines, at)


def _block(lines: Sequence[str], at: int) -> str:
    """Return the paragraph that a line stands in."""
    first = last = at
    while first > 0 and lines[first - 1].strip() and not lines[first - 1].startswith(":::"):
        first -= 1
    while last + 1 < len(lines) and lines[last + 1].strip() and lines[last + 1][:3] != ":::":
        last += 1
    return "\n".join(lines[first : last + 1])


def _listed(block: str) -> bool:
    """Say whether a paragraph may be part of a list, a table, or a list of definitions."""
    return bool(_LISTED.match(block) or re.search(r"^[:~]\s", block, re.MULTILINE))


def _shape(lines: Sequence[str]) -> tuple[str, str]:
    """Return what the first and the last paragraph begin with: equal if neighbours join alike."""
    starts = [
        match.group() if (match := _LISTED.match(line)) else ""
        for at, line in enumerate(lines)
        if line.strip() and (at == 0 or not lines[at - 1].strip())
    ]
    kinds = [re.sub(r"\d+|[A-Za-z]", "1", each) for each in starts]
    return (kinds[0], kinds[-1]) if kinds else ("", "")
