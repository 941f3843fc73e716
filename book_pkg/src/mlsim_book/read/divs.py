"""Find `:::` fences that do not pair up, before pandoc prints them on the page.

Pandoc's rule: an opening fence has three or more colons and attributes (a word
or braces); a closing fence has colons only and closes the innermost div,
however many colons either has. A div can't begin in the middle of a paragraph; an item
of a list can begin with one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.lines import Fences, SourceLine

_MARK = r"(?:[-+*]|\(?[0-9#a-zA-Z]{1,3}[.)])\s"
_OPEN = re.compile(rf"^\s*(?:{_MARK}\s*)*:{{3,}}\s*(\{{.*|[^\s:{{}}]+)\s*:*\s*$")
_CLOSE = re.compile(r"^\s*:{3,}\s*$")
_LIST_ITEM = re.compile(rf"^\s*{_MARK}")
_NOT_A_PARAGRAPH = re.compile(r"^\s*(:{3,}|#{1,6}\s|<|`{3,}|~{3,}|-->|(\*\s*|-\s*|_\s*){3,}$)")


def check_divs(lines: Sequence[SourceLine], problems: Problems) -> None:
    r"""Refuse unclosed divs and stray closers; note openers that pandoc won't see.

    >>> from mlsim_book.read.lines import split_lines
    >>> check_divs(split_lines("::: {.note}\nText", file="a.qmd"), Problems())
    Traceback (most recent call last):
    mlsim_book.errors.SourceError: a.qmd:1: the div '::: {.note}' is not closed
      End it with a line ':::'.
    """
    fences = Fences()
    open_divs: list[SourceLine] = []
    before: SourceLine | None = None  # the line above, if it belongs to a paragraph
    in_list = False
    for line in lines:
        kind = fences.feed(line.text)
        if kind != "text":
            before = None
            continue
        in_list = _still_in_list(line.text, before, in_list)
        if re.match(r"^( {4}|\t)", line.text) and not in_list:
            before = line if before else None  # indented code, or a paragraph going on
            continue
        if _CLOSE.match(line.text):
            if not open_divs:
                raise _stray(line)
            open_divs.pop()
        elif _OPEN.match(line.text):
            open_divs.append(line)
            if before is not None and not _LIST_ITEM.match(line.text):
                _note_glued(line, problems)
        ends = not line.text.strip() or _NOT_A_PARAGRAPH.match(line.text)
        before = None if ends else line
    if open_divs:
        raise _unclosed(open_divs[-1])


def _still_in_list(text: str, before: SourceLine | None, in_list: bool) -> bool:
    if _LIST_ITEM.match(text):
        return True
    unindented = bool(text.strip()) and not text[0].isspace()
    return in_list and not (unindented and before is None)


def _stray(line: SourceLine) -> SourceError:
    return SourceError(
        f"'{line.text.strip()}' closes no div",
        file=line.file,
        line=line.line,
        hint="Take it out, or open a div above it, such as '::: {.callout-note}'.",
    )


def _unclosed(line: SourceLine) -> SourceError:
    return SourceError(
        f"the div '{line.text.strip()}' is not closed",
        file=line.file,
        line=line.line,
        hint="End it with a line ':::'.",
    )


def _note_glued(line: SourceLine, problems: Problems) -> None:
    problems.add(
        f"'{line.text.strip()}' follows a paragraph, so it is printed instead of opening a div",
        file=line.file,
        line=line.line,
        hint="Put a blank line above it.",
    )
