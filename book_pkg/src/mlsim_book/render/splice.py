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
from typing import Any

from mlsim_book.errors import BookError
from mlsim_book.render.changed_paragraphs import changed_paragraphs

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
