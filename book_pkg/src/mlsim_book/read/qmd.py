"""Read a .qmd file into a `Document`: front matter, runs of Markdown, and code cells.

A line state machine in the manner of Quarto's own: a cell opens with
```` ```{python} ```` at any indent, and closes with as many ticks at the same
indent. Every line keeps its place in the file it was written in.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.divs import check_divs
from mlsim_book.read.document import Cell, Document, Markdown
from mlsim_book.read.includes import expand_includes
from mlsim_book.read.ipynb import is_notebook, read_notebook
from mlsim_book.read.lines import Fences, SourceLine, read_lines
from mlsim_book.read.options import check_cells, parse_options, split_options
from mlsim_book.read.schema import EXECUTE, HTML, check_values
from mlsim_book.read.shown_cells import RUN, advise_languages, shown_lines
from mlsim_book.read.yamlfile import YamlFile, load_yaml


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
            _check_front_matter(front)
            return front, lines[index + 1 :]
    raise SourceError(
        "the YAML block at the top is not closed",
        file=file,
        line=lines[start].line,
        hint="End it with a line '---'.",
    )


def _check_front_matter(front: YamlFile) -> None:
    if not isinstance(front.data, dict):
        raise SourceError(
            "the YAML block at the top must hold `name: value` lines",
            file=front.file,
            line=front.line(),
        )
    check_metadata(front)


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
        raise _unclosed(opening, fences)
    if comment is not None:
        raise SourceError(
            "the comment that opens here is not closed",
            file=comment.file,
            line=comment.line,
            hint="End it with '-->'.",
        )
    return (*blocks, Markdown(tuple(run))) if run else tuple(blocks)


def _unclosed(opening: SourceLine, fences: Fences) -> SourceError:
    what = "cell" if fences.cell else "code block"
    mark = opening.text.strip()
    ticks = mark[: len(mark) - len(mark.lstrip(mark[0]))]
    return SourceError(
        f"the {what} that opens here is not closed",
        file=opening.file,
        line=opening.line,
        hint=f"End it with a line '{ticks}' at the same indent.",
    )


def _cell(opening: SourceLine, indent: str, body: Sequence[SourceLine], number: int) -> Cell:
    inner = [SourceLine(_dedent(line.text, indent), line.file, line.line) for line in body]
    option_texts, start = split_options([line.text for line in inner])
    options: dict[str, Any] = {}
    if option_texts:
        options = parse_options(option_texts, file=inner[0].file, line=inner[0].line)
    code = inner[start:]
    while code and not code[-1].text.strip():
        code.pop()
    return Cell(options, tuple(inner[: len(option_texts)]), tuple(code), indent, opening, number)


def _dedent(text: str, indent: str) -> str:
    return text[len(indent) :] if text.startswith(indent) else text.lstrip()
