"""What Quarto makes of an inline expression where that isn't what its author meant.

Quarto finds expressions by a pattern, line by line, and puts in their place the first of
HTML, Markdown, SVG and plain text that a result offers. What doesn't fit that is printed
raw, or tears its paragraph. What builds here must render there, so a strict build refuses
it. The rules were recorded with Quarto 1.10.18.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from mlsim_book.errors import Problems
from mlsim_book.read.qmd import Document, Markdown
from mlsim_book.run.inline import Inline, find_inline

# What a browser doesn't let stand in a paragraph, but for what only HTML documents hold.
BLOCKS = (
    "address", "article", "aside", "blockquote", "details", "dialog", "dd", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "li", "main", "menu", "nav", "ol", "p", "pre", "search", "section",
    "table", "ul",
)  # fmt: skip
_BLOCK = re.compile(rf"</?({'|'.join(BLOCKS)})(?=[\s/>])", re.IGNORECASE)
_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
_BLOCK_LINE = re.compile(r"\n(`{3,}|~{3,}|:{3,}|#{1,6} )")
_ESCAPED = re.compile(r"[\\`*_{}\[\]()>#+,\-.!]")
_MARKUP = re.compile(r"\$\S.*?(?<!\s)\$(?!\d)|~\S+?~|\^\S+?\^|(?<![\w@])@\w")
_QUOTED = re.compile(r"'.*'|\".*\"", re.DOTALL)
_ORDER = ("text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg")

Fault = tuple[str, str]  # what Quarto does, and what to do about it
_ONE_LINE = "Write it on one line; give a long one a name in a cell above."
_IN_MATHS = "Give a number, or IPython.display.Markdown(text)."
_SENTENCE = "Show it from a cell of its own; in a sentence, give text or inline markup."


def check_written(document: Document, problems: Problems) -> None:
    """Note the inline expressions of a page that Quarto prints as they are written."""
    if document.notebook is not None:
        return  # nothing in a notebook's Markdown is run
    for block in document.blocks:
        for each in find_inline(block) if isinstance(block, Markdown) else ():
            fault = written_fault(each)
            if fault:
                _note(each, fault, problems)


def written_fault(place: Inline) -> Fault | None:
    """Return what is wrong with the way in which an expression is written.

    >>> written_fault(Inline("n", 0, 0, "a.qmd", 1, written=" n"))
    >>> written_fault(Inline("n", 0, 0, "a.qmd", 1, written="  n"))[0]
    'Quarto prints it as code, since more than one blank stands around it'
    """
    if "\n" in place.written:
        return "Quarto prints it as code, since it goes over two lines", _ONE_LINE
    if place.written[1:].strip() != place.written[1:]:
        hint = "Write one blank after {python}, and none before the closing tick."
        return "Quarto prints it as code, since more than one blank stands around it", hint
    if place.touching:
        hint = "Put something between the two, such as a blank or `<!-- -->`."
        return "Quarto prints it as code, since it touches the expression before it", hint
    return None


def check_values(
    document: Document, values: Sequence[Mapping[str, str]], problems: Problems
) -> None:
    """Note the results of a page that Quarto prints raw, or that tear their paragraph."""
    if document.notebook is not None:
        return
    places = [
        each
        for block in document.blocks
        if isinstance(block, Markdown)
        for each in find_inline(block)
    ]
    for place, value in zip(places, values, strict=True):
        fault = value_fault(value, place)
        if fault:
            _note(place, fault, problems)


def value_fault(data: Mapping[str, str], place: Inline) -> Fault | None:
    """Return what is wrong with a result (MIME type -> text) at its place.

    >>> place = Inline("n", 0, 0, "a.qmd", 1)
    >>> value_fault({"text/plain": "3"}, place)
    >>> value_fault({"text/plain": "''"}, place)[0]
    'Quarto prints its source, since its result is empty'
    """
    mime = next((each for each in _ORDER if each in data), "text/plain")
    judge: Callable[[str, Mapping[str, str], Inline], Fault | None] = {
        "text/html": _of_html,
        "text/markdown": _of_markdown,
        "image/svg+xml": _of_html,
        "text/plain": _of_plain,
    }.get(mime, _of_picture)
    return judge(data.get(mime, ""), data, place)


def _of_html(html: str, data: Mapping[str, str], place: Inline) -> Fault | None:
    block = _BLOCK.search(html)
    if not html.strip():
        return _EMPTY
    if place.math:
        return "Quarto prints `{=html}` in the formula, since its result is HTML", _IN_MATHS
    if "`" in html:
        return "Quarto prints `{=html}`, since its HTML holds a backtick", "Write &#96; for it."
    if _EMPTY_LINE.search(html):
        return "Quarto prints `{=html}`, since its HTML holds an empty line", _SENTENCE
    if block:
        return f"its HTML holds a <{block[1].lower()}>, which ends the paragraph", _SENTENCE
    return None


_EMPTY: Fault = (
    "Quarto prints its source, since its result is empty",
    "Give a blank or a word; or put what depends on it into a cell.",
)


def _of_markdown(markdown: str, data: Mapping[str, str], place: Inline) -> Fault | None:
    if not markdown.strip():
        return _EMPTY
    tests = (_EMPTY_LINE, _BLOCK_LINE, _BLOCK)
    if not place.alone and any(each.search(markdown) for each in tests):
        return "its Markdown holds more than a paragraph, which breaks the sentence", _SENTENCE
    return None


def _of_picture(_: str, data: Mapping[str, str], place: Inline) -> Fault | None:
    return "Quarto prints the letters of a picture's data", _SENTENCE


def _of_plain(text: str, data: Mapping[str, str], place: Inline) -> Fault | None:
    """Judge a result that has nothing but its `repr`."""
    quoted = bool(_QUOTED.fullmatch(text)) and len(text) > 1
    shown = text[1:-1] if quoted else text
    if not shown:
        return _EMPTY
    if "text/latex" in data:
        return (
            f"Quarto prints {_short(text)}, not the formula",
            'Give Markdown: IPython.display.Markdown(f"${…}$").',
        )
    if re.fullmatch(r"np\.\w+\(.*\)", text, re.DOTALL):
        return f"Quarto prints {_short(text)}", 'Format it (f"{x:.3g}"), or call .item().'
    if not quoted:
        return None
    if "\\" in shown:
        return (
            "Quarto prints each backslash of this text twice",
            "Give Markdown: IPython.display.Markdown(text).",
        )
    if place.math:
        marked = _ESCAPED.search(shown)
        return marked and (
            f"Quarto writes a backslash before '{marked[0]}' in this text, also in a formula",
            _IN_MATHS,
        )
    markup = _MARKUP.search(shown)
    return markup and (
        f"Quarto reads {_short(markup[0])} in this text as markup",
        "Give Markdown with a backslash before it: IPython.display.Markdown(text).",
    )


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def _note(place: Inline, fault: Fault, problems: Problems) -> None:
    source = " ".join(place.expression.split())
    problems.add(
        f"the inline expression `{_short(source)}`: {fault[0]}",
        file=place.file, line=place.line, hint=fault[1],
    )  # fmt: skip


def quarto_only(run: Markdown) -> list[tuple[str, int, str]]:
    """Return what Quarto runs in a run of Markdown and nothing else does: file, line, source.

    Quarto looks for expressions everywhere: in code blocks, in comments, between several
    ticks.
    """
    text = run.text
    known = {each.start for each in find_inline(run)}
    found = []
    for match in re.finditer(r"(?:^|[^`])(`\{python\}[ \t][^`]+`)", text, re.MULTILINE):
        if match.start(1) not in known:
            line = run.lines[text.count("\n", 0, match.start(1))]
            found.append((line.file, line.line, match[1]))
    return found
