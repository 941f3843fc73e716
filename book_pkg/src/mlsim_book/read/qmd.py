"""Read a .qmd file into a `Document`: front matter, runs of Markdown, and code cells.

A line state machine in the manner of Quarto's own: a cell opens with
```` ```{python} ```` at any indent, and closes with as many ticks at the same
indent. Every line keeps its place in the file it was written in.

What a chapter is made of: front matter, runs of Markdown, code cells.

Outputs that a machine measured: marked in the source, and other at each run. A cell with `#|
classes: measured` prints what the machine gave. A notebook keeps the form of that, with a sign for
each number, and a comparison of two builds passes over it.

Cells that nothing here can run: diagrams, and code in other languages than Python. They become
code blocks of the page. Their option lines are read, not shown.

The options of a cell: its `#|` lines, checked, over the defaults of page and book. The cascade,
weakest first: built in, `_quarto.yml`, `_metadata.yml` of each folder on the way down, the page's
front matter, the cell.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.ipynb import Notebook, is_notebook, read_notebook
from mlsim_book.read.lines import (
    Fences,
    SourceLine,
    attributes,
    check_divs,
    expand_includes,
    fence_for,
    read_lines,
)
from mlsim_book.read.yamlfile import (
    CELL,
    EXECUTE,
    HTML,
    OPTIONS,
    YamlFile,
    book_settings,
    check_values,
    did_you_mean,
    load_yaml,
)


@dataclass(frozen=True)
class Markdown:
    """A run of lines that are not cells."""

    lines: tuple[SourceLine, ...]

    @property
    def text(self) -> str:
        """The lines as one text, each with its end."""
        return "".join(line.text + "\n" for line in self.lines)


@dataclass(frozen=True)
class Cell:
    """A code cell.

    `code` are its lines without options and indent; `number` counts cells and
    non-blank runs of Markdown from 1, as Quarto does to name figure files.
    """

    options: Mapping[str, Any]
    option_lines: tuple[SourceLine, ...]
    code: tuple[SourceLine, ...]
    indent: str
    opening: SourceLine
    number: int

    @property
    def source(self) -> str:
        """The code as the kernel runs it."""
        return "\n".join(line.text for line in self.code)

    @property
    def file(self) -> str:
        """The file the cell is written in."""
        return self.opening.file

    @property
    def line(self) -> int:
        """The line of its opening fence."""
        return self.opening.line

    @property
    def label(self) -> str | None:
        """Its label, without a leading `#`."""
        label = self.options.get("label")
        return str(label).removeprefix("#") if label is not None else None

    def option_line(self, name: str) -> int:
        """Return the line on which an option is written."""
        for line in self.option_lines:
            if line.text.removeprefix("#|").strip().startswith(f"{name}:"):
                return line.line
        return self.line


@dataclass(frozen=True)
class Document:
    """A parsed chapter."""

    front_matter: Mapping[str, Any]
    blocks: tuple[Markdown | Cell, ...]
    source: str  # the chapter's own text, includes not expanded
    included: tuple[Path, ...] = ()
    notebook: Notebook | None = None  # what it was read from, if that is a notebook

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The code cells, in order."""
        return tuple(block for block in self.blocks if isinstance(block, Cell))


MEASURED = "measured"
# A number that stands alone: the 3 of "L3" and the 32 of "FP32" are names. A prefix goes with
# it, since one machine takes 900 us and the next one 1.1 ms.
_NUMBER = re.compile(
    r"(?<![A-Za-z_\d.,])[-−+]?\d(?:[\d,.]*\d)?(?:[eE][-+]?\d+)?"
    r"(?:(?P<gap> ?)[kKMGTPmµun]i?(?=(?:s|B|Hz|W|J|FLOP)(?![A-Za-z])))?"
)
_GAP = re.compile(r"[ \t]+")
_RULE = re.compile(r"[-─=]{3,}")


def is_measured(cell: Cell) -> bool:
    """Say whether a cell is marked as measured."""
    return MEASURED in {name.lstrip(".") for name in str(cell.options.get("classes") or "").split()}


def form_of(text: str) -> str:
    """Return a text with `#` for each number and its prefix, and one space for several.

    >>> form_of("triad   12.1 GB/s  ± 3 %, FP32 in L3"), form_of("900 us") == form_of("1.1 ms")
    ('triad # B/s ± # %, FP32 in L3', True)
    """
    lines = []
    for line in text.split("\n"):
        masked = _NUMBER.sub(lambda found: f"#{found['gap'] or ''}", line)
        lines.append(_GAP.sub(" ", _RULE.sub("---", masked)).strip())
    return "\n".join(lines)


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
    filled = [index for index, line in enumerate(body) if index >= start and line.text.strip()]
    code = body[filled[0] : filled[-1] + 1] if filled else []
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


_OPTION_LINE = re.compile(r"^#\| ?(.*)$")

_BUILT_IN: Mapping[str, Any] = {
    **dict.fromkeys(OPTIONS["unset"]["names"]), **OPTIONS["defaults"],
}  # fmt: skip


@dataclass(frozen=True)
class Defaults:
    """What the cells of a page do unless they say otherwise."""

    values: Mapping[str, Any]

    def of(self, options: Mapping[str, Any], name: str) -> Any:
        """Return an option of a cell: its own value, or the page's."""
        return options[name] if name in options else self.values.get(name)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one mapping over another: mappings merge, everything else is replaced.

    >>> merge({"execute": {"echo": True, "eval": True}}, {"execute": {"echo": False}})
    {'execute': {'echo': False, 'eval': True}}
    """
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(under, value) if both else value  # type: ignore[arg-type]
    return merged


def html_format(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `format: html`, however it is written.

    >>> html_format({"format": "html"}), html_format({"format": {"html": {"toc": True}}})
    ({}, {'toc': True})
    """
    formats = metadata.get("format")
    html = formats.get("html") if isinstance(formats, Mapping) else None
    return dict(html) if isinstance(html, Mapping) else {}


def page_defaults(metadata: Mapping[str, Any]) -> Defaults:
    """Return the defaults that merged metadata (book, folders, page) gives its cells.

    An option stands under `format: html`, under `execute`, or at the top level,
    the first of these weighing most.

    >>> page_defaults({"execute": {"echo": False}, "fig-width": 4}).values["echo"]
    False
    """
    values = dict(_BUILT_IN)
    execute = metadata.get("execute")
    html = html_format(metadata)
    html_execute = html.get("execute")
    for layer in (metadata, execute, html, html_execute):
        if isinstance(layer, Mapping):
            values.update({name: layer[name] for name in _BUILT_IN if name in layer})
    return Defaults({**values, **_figure_settings(metadata)})


def _figure_settings(metadata: Mapping[str, Any]) -> dict[str, bool]:
    """Return the settings of this builder that a page's figures depend on; off if not given."""
    given = book_settings(metadata)
    found = {name: given.get(name, False) for name in ("figure-theme", "figure-data")}
    for name, value in found.items():
        if not isinstance(value, bool):
            raise SourceError(
                f"`mlsim-book: {name}:` is {value!r}, which must be `true` or `false`",
                file="_quarto.yml",
                hint="`figure-theme` gives figures one style and a dark look, `figure-data` a "
                "table of what they show.",
            )
    return found


def split_options(lines: Sequence[str]) -> tuple[list[str], int]:
    """Return a cell's `#|` lines without the mark, and the index of its first code line.

    >>> split_options(["#| echo: false", "#|eval: true", "", "x = 1"])
    (['echo: false', 'eval: true'], 3)
    """
    options: list[str] = []
    for line in lines:
        match = _OPTION_LINE.match(line)
        if match is None:
            break
        options.append(match.group(1))
    start = len(options)
    while start < len(lines) and not lines[start].strip():
        start += 1
    return options, start


def parse_options(lines: Sequence[str], *, file: str, line: int) -> dict[str, Any]:
    """Read a cell's options (as `split_options` returns them) and check their values.

    >>> parse_options(["label: fig-a", "echo: false"], file="a.qmd", line=2)
    {'label': 'fig-a', 'echo': False}
    """
    source = load_yaml("\n".join(lines), file=file, first_line=line)
    if not isinstance(source.data, dict):
        said = f"cell options must be `name: value`, got {lines[0]!r}"
        raise source.error(said, hint="Write for example `#| echo: false`.")
    check_values(source.data, CELL, source)
    label = source.data.get("label")
    if isinstance(label, str) and re.search(r"[\s{}]", label):
        hint = "Use letters, digits and hyphens, as in fig-roofline."
        raise source.error(f"the label {label!r} holds a space or brace", "label", hint=hint)
    return source.data


def check_cells(cells: Sequence[Cell], problems: Problems) -> None:
    """Refuse a label used by two cells; note options that look mistyped."""
    seen: dict[str, Cell] = {}
    for cell in cells:
        _note_unknown(cell, problems)
        label = cell.label
        if label is None:
            continue
        if label in seen:
            first = seen[label]
            raise cell.opening.error(
                f"the label '{label}' is used by two cells, first at {first.file}:{first.line}",
                "Give one of them another label.",
            )
        seen[label] = cell


def _note_unknown(cell: Cell, problems: Problems) -> None:
    for line in cell.code:
        if _OPTION_LINE.match(line.text):
            problems.add(
                f"the option line '{line.text.strip()}' stands below code, so it is ignored",
                file=line.file,
                line=line.line,
                hint="Move it to the top of the cell.",
            )
    for name, value in cell.options.items():
        hint = did_you_mean(name, CELL) if name not in CELL else None
        if hint:
            problems.add(
                f"unknown cell option '{name}'",
                file=cell.file,
                line=cell.option_line(name),
                hint=hint,
            )
        if isinstance(value, str) and "`{python}" in value:
            problems.add(
                f"an inline expression in the cell option '{name}' isn't run (nor by Quarto)",
                file=cell.file,
                line=cell.option_line(name),
                hint="Put the figure in a ::: {#fig-...} div and write the caption below it.",
            )


def read_document(path: Path, *, root: Path, problems: Problems) -> Document:
    """Read, expand and parse a chapter.

    Raises
    ------
    SourceError
        With file and line: invalid YAML, an unclosed fence or div, a missing
        include, a wrong option, a label used twice.
    """
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    notebook = read_notebook(path, name=name) if is_notebook(name) else None
    lines = notebook.lines if notebook else read_lines(path, name=name)
    front, body = split_front_matter(lines, file=name)
    expanded, included = expand_includes(body, path=path, root=root)
    blocks = parse_blocks(expanded)
    check_divs(expanded, problems)
    advise_languages(expanded, problems)
    text = "".join(line.text + "\n" for line in lines)
    document = Document(front.data, blocks, text, included, notebook)
    check_cells(document.cells, problems)
    return document


def split_front_matter(
    lines: Sequence[SourceLine], *, file: str
) -> tuple[YamlFile, Sequence[SourceLine]]:
    r"""Take the YAML block off the top of a file.

    >>> from mlsim_book.read.lines import split_lines
    >>> front, body = split_front_matter(split_lines("---\na: 1\n---\nText", file="x"), file="x")
    >>> front.data, body[0].line
    ({'a': 1}, 4)
    """
    start = next((i for i, line in enumerate(lines) if line.text.strip()), 0)
    followed = len(lines) > start + 1 and bool(lines[start + 1].text.strip())
    if not followed or lines[start].text.rstrip() != "---":
        return YamlFile(file, {(): 1}, {}), lines
    for index in range(start + 1, len(lines)):
        if lines[index].text.rstrip() in {"---", "..."}:
            text = "\n".join(line.text for line in lines[start + 1 : index])
            front = load_yaml(text, file=file, first_line=lines[start].line + 1)
            if not isinstance(front.data, dict):
                raise front.error("the YAML block at the top must hold `name: value` lines")
            check_metadata(front)
            return front, lines[index + 1 :]
    raise lines[start].error("the YAML block at the top is not closed", "End it with a line '---'.")


def check_metadata(source: YamlFile) -> None:
    """Refuse wrong values of known options in a YAML file or front matter."""
    execute = source.data.get("execute")
    if isinstance(execute, dict):
        check_values(execute, EXECUTE, source, "execute")
    formats = source.data.get("format")
    html = formats.get("html") if isinstance(formats, dict) else None
    if isinstance(html, dict):
        check_values(html, HTML, source, "format", "html")
    check_values({k: v for k, v in source.data.items() if k in HTML}, HTML, source)


def parse_blocks(lines: Sequence[SourceLine]) -> tuple[Markdown | Cell, ...]:
    r"""Split lines into runs of Markdown and cells.

    >>> from mlsim_book.read.lines import split_lines
    >>> text = "Hello.\n\n```{python}\n#| echo: false\n1 + 1\n```\n"
    >>> hello, cell = parse_blocks(split_lines(text, file="x.qmd"))
    >>> cell.source, cell.options, cell.line
    ('1 + 1', {'echo': False}, 3)
    """
    blocks: list[Markdown | Cell] = []
    fences = Fences()
    run: list[SourceLine] = []
    opening: SourceLine | None = None
    comment: SourceLine | None = None
    body: list[SourceLine] = []
    count = 0
    for line in lines:
        kind = fences.feed(line.text)
        comment = (line if kind == "text" else comment) if fences.in_comment else None
        if kind == "open":
            opening, body = line, []
        if fences.cell is None or kind in {"text", "comment"}:
            run.append(line)
        elif kind == "open":
            count += any(each.text.strip() for each in run)
            blocks.extend([Markdown(tuple(run))] if run else [])
            run = []
        elif kind == "code":
            body.append(line)
        else:
            count += 1
            first = opening or line
            if fences.cell.group(3) == RUN:
                blocks.append(_cell(first, fences.cell.group(1), body, count))
            else:
                blocks.append(Markdown(shown_lines(first, fences.cell, body)))
    if fences.in_code and opening is not None:
        what = "cell" if fences.cell else "code block"
        mark = opening.text.strip()
        ticks = mark[: len(mark) - len(mark.lstrip(mark[0]))]
        hint = f"End it with a line '{ticks}' at the same indent."
        raise opening.error(f"the {what} that opens here is not closed", hint)
    if comment is not None:
        raise comment.error("the comment that opens here is not closed", "End it with '-->'.")
    return (*blocks, Markdown(tuple(run))) if run else tuple(blocks)


def _cell(opening: SourceLine, indent: str, body: Sequence[SourceLine], number: int) -> Cell:
    inner = [
        replace(line, text=text.removeprefix(indent) if text.startswith(indent) else text.lstrip())
        for line in body
        for text in (line.text,)
    ]
    option_texts, start = split_options([line.text for line in inner])
    options: dict[str, Any] = {}
    if option_texts:
        options = parse_options(option_texts, file=inner[0].file, line=inner[0].line)
    code = inner[start:]
    while code and not code[-1].text.strip():
        code.pop()
    return Cell(options, tuple(inner[: len(option_texts)]), tuple(code), indent, opening, number)
