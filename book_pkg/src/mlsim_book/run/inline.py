"""Inline expressions: find `` `{python} expr` `` in Markdown, put values in its place.

As Quarto does: a string is Markdown-escaped, a number stands as it is, HTML objects
and, after them, Markdown objects pass through, and `` `{{python}} expr` `` shows the
expression instead. Better than Quarto: code blocks, comments and longer code spans are
left alone, nothing is escaped inside maths, and an error names its line. Where Quarto
would print something else, `quarto_inline` says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlsim_book.errors import Problems
from mlsim_book.read.lines import Fences
from mlsim_book.read.qmd import Document, Markdown
from mlsim_book.run.repair import repaired

_EXPRESSION = re.compile(r"\{python\}([ \t\n]+\S.*)", re.DOTALL)
_ESCAPED = re.compile(r"\{\{python\}\}(.*)", re.DOTALL)
_TOKEN = re.compile(r"\\.|<!--.*?(?:-->|\Z)|(?P<ticks>`+)|\$\$|\$", re.DOTALL)
_MATH_END = re.compile(r"(?<![\s\\])\$(?!\d)")
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#$^~|@&]|--+|\.\.\.")
_NUMPY_SCALAR = re.compile(r"np\.\w+\((.*)\)", re.DOTALL)
# A number that opens gives this Markdown beside HTML: our pages make a card of it.
_OPENS = re.compile(r"\[.*\]\{\.opens opens=\"[^\"]*\"\}", re.DOTALL)
_RAW = r"`[^`]*`\{=html\}"
_SPAN = re.compile(rf'\[(?:{_RAW})?([^\[\]`]*)(?:{_RAW})?\]\{{\.opens\s+opens="[^"]*"\}}')


@dataclass(frozen=True)
class Inline:
    """An inline expression: where it stands, and in what."""

    expression: str
    start: int  # in the text of its Markdown run
    end: int
    file: str
    line: int
    math: bool = False
    shown: bool = False  # written {{python}}: shown, not run
    written: str = ""  # what stands between {python} and the closing tick
    touching: bool = False  # nothing stands between it and the expression before it
    alone: bool = False  # nothing else stands in its paragraph


def find_inline(run: Markdown) -> tuple[Inline, ...]:
    """Return the inline expressions of a run of Markdown that are to be run, in order.

    >>> from mlsim_book.read.lines import split_lines
    >>> run = Markdown(split_lines("Is `{python} n` and $x = `{python} x`$.", file="a.qmd"))
    >>> [(each.expression, each.math) for each in find_inline(run)]
    [('n', False), ('x', True)]
    """
    return tuple(each for each in _scan(run) if not each.shown)


def substitute(run: Markdown, values: Sequence[Mapping[str, str]]) -> str:
    """Return the text of a run with its expressions replaced by their values.

    `values` are display bundles (MIME type -> text) in the order of `find_inline`.
    """
    text, position, pieces = run.text, 0, []
    remaining = iter(values)
    for each in _scan(run):
        new = f"`{{python}}{each.expression}`" if each.shown else render(next(remaining), each)
        pieces += [text[position : each.start], new]
        position = each.end
    return "".join(pieces) + text[position:]


def render(data: Mapping[str, str], place: Inline) -> str:
    r"""Return the Markdown for one value.

    >>> place = Inline("n", 0, 0, "a.qmd", 1)
    >>> render({"text/plain": "'a_b'"}, place), render({"text/plain": "0.5"}, place)
    ('a\\_b', '0.5')
    """
    markdown = data.get("text/markdown", "").strip()
    if "text/html" in data and not _OPENS.fullmatch(markdown):
        return _raw(data["text/html"])
    for mime in ("text/markdown", "text/latex"):
        if mime in data:
            return data[mime].strip()
    if "image/svg+xml" in data:
        return _raw(data["image/svg+xml"])
    plain = data.get("text/plain", "")
    scalar = _NUMPY_SCALAR.fullmatch(plain)
    if scalar:
        plain = scalar.group(1)
    if plain[:1] in {"'", '"'}:
        text = str(ast.literal_eval(plain)).replace("\n", " ")
        return text if place.math else escape(text)
    return plain.replace("\n", " ")


def _raw(html: str) -> str:
    """Write HTML so that it passes through Markdown, within its paragraph."""
    html = repaired(html.strip()).replace("\n", " ")
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", html)), default=0) + 1)
    return f"{ticks}{html}{ticks}{{=html}}"


def escape(text: str) -> str:
    r"""Escape what Markdown would read as markup.

    >>> escape("*a* -- $5")
    '\\*a\\* \\-\\- \\$5'
    """
    return _SPECIAL.sub(lambda m: "".join("\\" + char for char in m.group()), text)


def _scan(run: Markdown) -> Iterator[Inline]:
    """Yield the expressions of a run, looking only at paragraphs of text."""
    for start, first, text in _paragraphs(run):
        math_until = -1
        display = False
        position = 0
        while token := _TOKEN.search(text, position):
            position = token.end()
            if token.group() == "$$":
                display = not display
            elif token.group() == "$" and token.start() >= math_until and not display:
                end = _MATH_END.search(text, position)
                starts = end is not None and not text[position : position + 1].isspace()
                math_until = end.start() + 1 if end is not None and starts else math_until
            elif token.group("ticks"):
                closing = re.compile(rf"(?<!`){token.group()}(?!`)").search(text, position)
                if closing is None:
                    continue
                span_end = closing.end()
                body = text[token.end() : span_end - len(token.group())]
                line = run.lines[first + text.count("\n", 0, token.start())]
                in_math = display or token.start() < math_until
                position = span_end
                if len(token.group()) > 1:
                    continue
                places = (start + token.start(), start + span_end, line.file, line.line)
                if match := _ESCAPED.fullmatch(body):
                    yield Inline(match.group(1), *places, shown=True)
                    continue
                alone = text.strip() == text[token.start() : span_end]
                yield from _touching(body, places, math=in_math, alone=alone)


def _touching(
    body: str, places: tuple[int, int, str, int], *, math: bool, alone: bool
) -> Iterator[Inline]:
    """Yield the expressions of a code span: one, or several that touch.

    To Markdown `` `{python} a``{python} b` `` is one span: two ticks don't close one.
    """
    start, end, file, line = places
    parts = body.split("``")
    for index, part in enumerate(parts):
        match = _EXPRESSION.fullmatch(part)
        if match is None and not index:
            return  # a code span
        stop = start + len(part) + 2 if len(parts) > 1 else end
        if match is not None:
            yield Inline(
                match[1].strip(), start, stop, file, line, math=math, written=match[1],
                touching=index > 0, alone=alone and len(parts) == 1,
            )  # fmt: skip
        line += part.count("\n")
        start = stop


def _paragraphs(run: Markdown) -> Iterator[tuple[int, int, str]]:
    """Yield (offset, index of first line, text) of each stretch of text without a break."""
    fences = Fences()
    offset, start, first = 0, 0, 0
    pending: list[str] = []
    for index, line in enumerate(run.lines):
        kind = fences.feed(line.text)
        if kind == "text" and line.text.strip():
            if not pending:
                start, first = offset, index
            pending.append(line.text)
        elif pending:
            yield start, first, "\n".join(pending)
            pending = []
        offset += len(line.text) + 1
    if pending:
        yield start, first, "\n".join(pending)


def plain_numbers(markdown: str) -> str:
    """Return Markdown with plain numbers in the place of those that open.

    >>> plain_numbers('Up to [3 s]{.opens opens="%24t%24"} long')
    'Up to 3 s long'
    """
    return _SPAN.sub(r"\1", markdown)


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
_QUARTO_ESCAPED = re.compile(r"[\\`*_{}\[\]()>#+,\-.!]")
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
    }.get(mime, lambda *_: ("Quarto prints the letters of a picture's data", _SENTENCE))
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
        marked = _QUARTO_ESCAPED.search(shown)
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
