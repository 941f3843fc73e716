"""Which paragraphs of a page an edit has changed, and whether their rendering is their own.

An edit is widened to whole paragraphs, and to the whole of a list, a table or a list of
definitions. One that may reach beyond them (a heading, a fence, a note, an address of
links) is left to a rendering of the whole page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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
