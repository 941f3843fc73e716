"""Cells that nothing here can run: diagrams, and code in other languages than Python.

They become code blocks of the page. Their option lines are read, not shown.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.attributes import attributes, fence_for
from mlsim_book.read.lines import Fences, SourceLine
from mlsim_book.read.yamlfile import load_yaml

RUN = "python"
# Cells that are drawings, and what their option lines begin with.
_DIAGRAMS = {"mermaid": "%%|", "dot": "//|"}
# An option line, behind the comment sign of whatever language.
_OPTION = re.compile(r"^\s*(?:#|//|--|%%?)\|\s?(.*)$")
# What knitr takes from the opening line, as in ```{r setup, echo=FALSE}.
_HIDES = re.compile(r"\b(echo|include)\s*=\s*(?:FALSE|F|false)\b")
_LISTING = re.compile(r"lst-[\w-]+")
_PAIRS = ("lst-cap", "filename", "code-fold", "code-summary", "code-line-numbers")
# Languages whose code is highlighted as that of another.
_HIGHLIGHT = {"ojs": "js"}
# Languages of their own, however much their names look like Python's.
_OTHERS = {"cython", "jython"}
_QUARTO = {
    "r": "Quarto shows them, too, if the page's front matter says `jupyter: python3`; without"
    " that it wants R, and stops where there is none.",
    "ojs": "Quarto would run them in the reader's browser.",
}


def shown_lines(
    opening: SourceLine, fence: re.Match[str], body: Sequence[SourceLine]
) -> tuple[SourceLine, ...]:
    """Return a cell that isn't run as lines of Markdown.

    Parameters
    ----------
    opening
        The line that opens the cell.
    fence
        That line's match, as `Fences.cell` has it.
    body
        The lines between the fences.
    """
    if fence.group(3) in _DIAGRAMS:
        return _diagram(opening, fence, body)
    return _code(opening, fence, body)


def advise_languages(lines: Sequence[SourceLine], problems: Problems) -> None:
    """Tell of the first cell in each other language; note one that is Python misspelled."""
    fences = Fences()
    for line in lines:
        if fences.feed(line.text) != "open" or fences.cell is None:
            continue
        language = fences.cell.group(3)
        if language == RUN or language in _DIAGRAMS:
            continue
        if _means_python(language):
            problems.add(
                f"a cell in '{language}' is shown, not run: what runs is '{RUN}'",
                file=line.file,
                line=line.line,
                hint=f"Write ```{{{RUN}}}; to show it only, write ```{RUN} without braces.",
            )
            continue
        message = f"cells in '{language}' are shown, not run: only '{RUN}' runs here"
        if all(each.message != message for each in problems.advice):
            said = _QUARTO.get(language, "Quarto shows them, too, where a page's kernel is Python.")
            plain = f"Write ```{language} without braces to say that they are only shown."
            problems.advise(message, file=line.file, line=line.line, hint=f"{said} {plain}")


def _means_python(language: str) -> bool:
    """Say whether a name is a slip for `python`.

    >>> [_means_python(name) for name in ("Python", "pyhton", "python3", "cython", "julia")]
    [True, True, True, False, False]
    """
    near = difflib.get_close_matches(language.lower(), [RUN], n=1, cutoff=0.8)
    return language == "py" or (bool(near) and language not in _OTHERS)


def _code(
    opening: SourceLine, fence: re.Match[str], body: Sequence[SourceLine]
) -> tuple[SourceLine, ...]:
    """Return a cell of another language as a block of its code; a hidden one as a blank line.

    Its own options count: `echo: false` of a page is for cells that run.
    """
    indent, language = fence.group(1), fence.group(3)
    start = next((i for i, line in enumerate(body) if not _OPTION.match(line.text)), len(body))
    options = _options(body[:start]) | dict.fromkeys(_HIDES.findall(fence.group(4) or ""), False)
    code = _trimmed(body[start:])
    if not code or any(options.get(name) is False for name in ("echo", "include")):
        return (replace(opening, text=""),)
    label = str(options.get("lst-label") or options.get("label") or "").removeprefix("#")
    given = attributes(
        label=label if _LISTING.fullmatch(label) else None,
        classes=[_HIGHLIGHT.get(language, language)],
        pairs={name: options.get(name) for name in _PAIRS},
    )
    ticks = fence_for("\n".join(line.text for line in code))
    inner = [replace(line, text=_moved(line.text, indent)) for line in code]
    first, last = f"{indent}{ticks} {given}", f"{indent}{ticks}"
    return (replace(opening, text=first), *inner, replace(opening, text=last))


def _options(lines: Sequence[SourceLine]) -> dict[str, Any]:
    """Return a cell's options; of lines that are no YAML, as R's `!expr`, those that are."""
    texts = [match[1] for line in lines if (match := _OPTION.match(line.text))]
    whole = _mapping("\n".join(texts))
    if whole is not None:
        return whole
    found: dict[str, Any] = {}
    for text in texts:
        found.update(_mapping(text) or {})
    return found


def _mapping(text: str) -> dict[str, Any] | None:
    try:
        data = load_yaml(text, file="").data
    except SourceError:
        return None
    return data if isinstance(data, dict) else None


def _trimmed(lines: Sequence[SourceLine]) -> list[SourceLine]:
    """Return lines without the blank ones around them."""
    filled = [index for index, line in enumerate(lines) if line.text.strip()]
    return list(lines[filled[0] : filled[-1] + 1]) if filled else []


def _moved(text: str, indent: str) -> str:
    """Return a line of code at the indent of its fence, which a list may need."""
    return text if text.startswith(indent) or not text.strip() else indent + text.lstrip()


def _diagram(
    opening: SourceLine, fence: re.Match[str], body: Sequence[SourceLine]
) -> tuple[SourceLine, ...]:
    """Return a diagram as a cell that shows its source, with its label and caption.

    Nothing here can draw one; the filter tells the author so.
    """
    indent, language = fence.group(1), fence.group(3)
    mark = _DIAGRAMS[language]
    said = [line for line in body if line.text.strip().startswith(mark)]
    text = "\n".join(line.text.strip().removeprefix(mark) for line in said)
    data = load_yaml(text, file=opening.file, first_line=opening.line + 1).data if said else {}
    options: Mapping[str, Any] = data if isinstance(data, dict) else {}
    code = [line for line in body if line not in said]
    ticks = fence_for("\n".join(line.text for line in code))

    def lines(*texts: str) -> list[SourceLine]:
        return [replace(opening, text=text) for text in texts]

    def block(given: str) -> list[SourceLine]:
        return [*lines(f"{ticks} {{{given}}}"), *code, *lines(ticks)]

    drawn = block(f".{language} .diagram")
    label = str(options.get("label") or "")
    if label.startswith("fig-"):
        caption = " ".join(str(options.get("fig-cap") or "").split())
        drawn = [*lines(f"::: {{#{label}}}"), *drawn, *lines("", caption, ":::")]
    shown = block(".default .cell-code") if options.get("echo") is True else []
    first, last = lines("", "::: {.cell}"), lines(":::", ":::", "")
    whole = [*first, *shown, *lines("", "::: {.cell-output-display}"), *drawn, *last]
    return tuple(replace(line, text=_moved(line.text, indent)) for line in whole)
