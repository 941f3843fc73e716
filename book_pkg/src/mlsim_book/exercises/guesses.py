"""The guesses of a chapter as its author writes them: what is asked, and where it is settled.

    ::: {.guess #gss-alone kind="number" unit="tokens/s" topic="decode" better="higher"}
    1. One user alone: how many tokens per second?
    :::

    So one user gets [`{python} rate` tokens per second]{.settles guess="gss-alone"}.

`kind` is "number", "choice" or "order"; a choice and an order end in a list. What stands in
`.settles`, a span or a box, is the answer: its number, or which of the choices it names, or the
items in their order. A number in `[...]{.measured}` in it is what was measured. Nobody types an
answer: it is read of the page (`mlsim_book.render.guesses`). Here is what a source tells without
being run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlsim_book.errors import Problems
from mlsim_book.read.lines import Fences, SourceLine
from mlsim_book.read.qmd import Document, Markdown
from mlsim_book.read.yamlfile import did_you_mean

KINDS = ("number", "choice", "order")
BETTER = ("higher", "lower")
_KEYS = ("kind", "unit", "topic", "better")
_MARK = re.compile(r"\{(?=[^{}]*\.(?:guess|settles)(?![\w-]))[^{}]*\}")
_PART = re.compile(r"([#.])([\w:-]+)|([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s}]+))")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_COMPUTED, _OTHER = "\ue000", "\ue001"
WRITE = 'Write ::: {.guess #gss-users kind="number" unit="users"}.'


@dataclass(frozen=True)
class Mark:
    """A guess that is asked, or what settles one, at its place in the sources."""

    name: str  # of the guess
    line: SourceLine
    given: Mapping[str, str]
    settles: bool = False
    box: bool = False  # a div, not a span
    computed: bool = False  # whether a span holds an inline expression


def read_marks(document: Document) -> list[Mark]:
    """Return the guesses of a chapter and what settles them, in reading order.

    >>> from mlsim_book.read.lines import split_lines
    >>> lines = split_lines("So [`{python} n`]{.settles guess='gss-n'} fit.", file="a.qmd")
    >>> (mark,) = read_marks(Document({}, (Markdown(lines),), ""))
    >>> mark.name, mark.line.line, mark.settles, mark.computed
    ('gss-n', 1, True, True)
    """
    return [mark for block in document.blocks if isinstance(block, Markdown) for mark in _of(block)]


def _of(run: Markdown) -> Iterator[Mark]:
    fences = Fences()
    kinds = [fences.feed(line.text) for line in run.lines]
    text = "\n".join(
        line.text if kind == "text" else _OTHER * len(line.text)
        for line, kind in zip(run.lines, kinds, strict=True)
    )
    text = _CODE.sub(_blanked, text)
    for match in _MARK.finditer(text):
        parts = _PART.findall(match[0])
        classes = {name for sign, name, *_ in parts if sign == "."}
        given = {key: "".join(values) for _, _, key, *values in parts if key}
        line = run.lines[text.count("\n", 0, match.start())]
        before = text[: match.start()]
        box = re.search(r"(?:^|\n)[^\n]*:{3,}\s*\Z", before) is not None
        if "settles" in classes:
            inside = bracketed(before) if not box else ""
            name = given.pop("guess", "")
            yield Mark(name, line, given, settles=True, box=box, computed=_COMPUTED in inside)
        else:
            name = next((name for sign, name, *_ in parts if sign == "#"), "")
            yield Mark(name, line, given, box=box)


def _blanked(code: re.Match[str]) -> str:
    mark = _COMPUTED if re.match(r"`\{python\}\s", code[0]) else _OTHER
    return "".join("\n" if char == "\n" else mark for char in code[0])


def bracketed(before: str) -> str:
    """Return what stands in the brackets that a text ends with."""
    depth = 0
    for at in range(len(before) - 1, -1, -1):
        depth += {"]": 1, "[": -1}.get(before[at], 0)
        if depth <= 0:
            return before[at:]
    return before


def check_guesses(document: Document, problems: Problems) -> None:
    """Note guesses that nothing settles, what settles none, and what is asked in no known way."""
    asked: dict[str, Mark] = {}
    settled: dict[str, Mark] = {}

    def note(mark: Mark, message: str, hint: str) -> None:
        problems.add(message, file=mark.line.file, line=mark.line.line, hint=hint)

    marks = read_marks(document)
    names = [each.name for each in marks if not each.settles]
    for mark in marks:
        if not mark.settles:
            for message, hint in _faults(mark):
                note(mark, message, hint)
            if mark.name in asked:
                first = asked[mark.name].line.line
                note(mark, f"the guess '{mark.name}' is asked twice, first in line {first}",
                     "Give it a name of its own.")  # fmt: skip
            asked.setdefault(mark.name, mark)
            continue
        if mark.name not in names:
            near = did_you_mean(mark.name, names)
            said = f"the guess '{mark.name}', which this page does not ask" if mark.name else "none"
            hint = near or 'Name one that is asked above: [...]{.settles guess="gss-users"}.'
            note(mark, f"this settles {said}", hint)
        elif mark.name not in asked:
            note(mark, f"the guess '{mark.name}' is settled before it is asked",
                 "Ask above what tells the answer.")  # fmt: skip
        elif mark.name in settled:
            first = settled[mark.name].line.line
            note(mark, f"the guess '{mark.name}' is settled twice, first in line {first}",
                 "Settle it in one place.")  # fmt: skip
        elif asked[mark.name].given.get("kind") == "number" and not (mark.box or mark.computed):
            note(mark, f"what settles the guess '{mark.name}' computes nothing",
                 "Put its number in as `{python} ...`: an answer is not typed.")  # fmt: skip
        settled.setdefault(mark.name, mark)
    for name, mark in asked.items():
        if name and name not in settled:
            hint = f'Mark what tells the answer: [`{{python}} n` users]{{.settles guess="{name}"}}.'
            note(mark, f"nothing settles the guess '{name}'", hint)


def _faults(mark: Mark) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the way in which something is asked, and what to do."""
    name, given = mark.name or "?", mark.given
    if not mark.box or not mark.name:
        yield "a guess is a box with a name", WRITE
    kind = given.get("kind", "")
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS) or f"Known are: {', '.join(KINDS)}."
        yield f"the guess '{name}' is of the kind '{kind}', which is none", hint
    for key in given:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS) or f"Known are: {', '.join(_KEYS)}."
            yield f"a guess has no '{key}'", hint
    if given.get("better", BETTER[0]) not in BETTER:
        said = f"'{given['better']}' is no way in which the guess '{name}' is better"
        yield said, f"Write one of: {', '.join(BETTER)}."
    if kind in KINDS[1:] and {"unit", "better"} & set(given):
        yield f"the guess '{name}' is no number, and has no unit and no better", WRITE
