"""The Markdown of a reader notebook: a page's prose with nothing of Quarto left in it.

The page goes through pandoc once, with placeholders where its code cells stand;
`lua/notebook.lua` writes it back as plain Markdown, cut at the placeholders.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.model import Project
from mlsim_book.read.qmd import Cell, Markdown
from mlsim_book.render.live_code import Code, live_sources
from mlsim_book.render.notebook_cells import is_asis, page_code
from mlsim_book.render.pandoc import run_pandoc
from mlsim_book.run.inline import find_inline, substitute
from mlsim_book.run.outputs import Figure, output_markdown, wanted_outputs
from mlsim_book.run.pages import ParsedPage
from mlsim_book.run.results import Output, Results

_WRITER = Path(__file__).parent / "lua" / "notebook.lua"
_OWN = re.compile(
    r"^ *(?P<fence>`{3,}|~{3,})[^\n]*\bnotebook-cell\b[^\n]*\n(?P<code>.*?)^ *(?P=fence)",
    re.MULTILINE | re.DOTALL,
)


def page_items(
    page: ParsedPage,
    results: Results,
    project: Project,
    labels: Mapping[str, str],
    live: Sequence[str | None],
) -> list[dict[str, Any]]:
    """Return a page in order, as `{"markdown": text}`, `{"cell": index}` and `{"code": text}`.

    The last is a cell that only the notebook has. `live` is what the notebook needs of the code
    of each cell of the page; one of which it needs nothing is left out.
    """
    folder = PurePosixPath(page.chapter.source).parent.as_posix()
    text = marked_markdown(page, results, live)
    return _write(text, project, labels, folder=folder, file=page.chapter.source)


def live_code(page: ParsedPage, results: Results) -> list[str | None]:
    """Return what a page's notebook needs of the code of each cell, None if nothing."""
    code: list[Code] = []
    places: list[int] = []  # of the page's cells among them
    inline: list[str] = []
    for block in page.document.blocks:
        if isinstance(block, Markdown):
            inline += [each.expression for each in find_inline(block)]
            code += _own_code(block.text)
        else:
            outputs = results.cells[len(places)]
            places.append(len(code))
            code.append(page_code(block, outputs, page.defaults))
            code += _own_code(_asis_text(outputs)) if is_asis(block, page.defaults) else []
    live = live_sources(code, inline)
    return [live[place] for place in places]


def _own_code(text: str) -> list[Code]:
    """Return the cells that only the notebook has, as a page's Markdown has them."""
    return [Code(found["code"], seen=True) for found in _OWN.finditer(text)]


def _asis_text(outputs: Sequence[Output]) -> str:
    wanted = wanted_outputs(outputs, warning=False)
    return "\n".join(output_markdown(each, Figure("figure"), {}, asis=True) for each in wanted)


def plain_markdown(texts: Sequence[str], project: Project) -> list[str]:
    """Return texts of Quarto Markdown as notebooks show them, all by one run of pandoc."""
    mark = '\n\n::: {.book-cell cell="0"}\n:::\n\n'
    items = _write(mark.join(texts), project, {}, folder=".", file="exercises")
    pieces = [""]
    for item in items:
        if "cell" in item:
            pieces.append("")
        else:
            pieces[-1] += ("\n\n" if pieces[-1] else "") + item["markdown"].strip("\n")
    return pieces


def _write(
    text: str, project: Project, labels: Mapping[str, str], *, folder: str, file: str
) -> list[dict[str, Any]]:
    """Have pandoc write Markdown for notebooks, cut at its placeholders."""
    settings = {
        "labels": dict(labels),
        "site": f"{project.site_url.rstrip('/')}/" if project.site_url else None,
        "folder": folder,
        "bibliography": [str(project.root / name) for name in project.bibliography],
        "csl": str(project.root / project.csl) if project.csl else None,
    }
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "settings.json"
        path.write_text(json.dumps({k: v for k, v in settings.items() if v is not None}))
        written, _ = run_pandoc(
            ["--from=markdown", f"--to={_WRITER}"],
            text,
            environment={"BOOK_NOTEBOOK": str(path)},
            file=file,
        )
    items: list[dict[str, Any]] = json.loads(written)
    return items


def marked_markdown(page: ParsedPage, results: Results, live: Sequence[str | None]) -> str:
    """Return a page's Markdown with values in it, and placeholders for its cells.

    A cell that stands for what it prints is replaced by that; one that isn't
    run becomes a code block. What has no part in the notebook leaves nothing.
    """
    pieces: list[str] = []
    values = list(results.values)
    index = 0
    for block in page.document.blocks:
        if isinstance(block, Markdown):
            used = len(find_inline(block))
            pieces.append(substitute(block, values[:used]))
            values = values[used:]
        else:
            text = _placeholder(block, index, page, results, live[index])
            pieces.append("".join(block.indent + line for line in text.splitlines(keepends=True)))
            index += 1
    return "".join(pieces)


def _placeholder(
    cell: Cell, index: int, page: ParsedPage, results: Results, live: str | None
) -> str:
    if page.defaults.of(cell.options, "eval") is False:
        if page.defaults.of(cell.options, "include") is False:
            return "\n"
        return f"\n~~~~~~ python\n{cell.source}\n~~~~~~\n\n"
    mark = "\n" if live is None else f'\n::: {{.book-cell cell="{index}"}}\n:::\n\n'
    if is_asis(cell, page.defaults):
        return f"{mark}{_asis_text(results.cells[index])}\n"
    caption = cell.options.get("fig-cap") or cell.options.get("tbl-cap")
    label = cell.label or ""
    below = ""
    if caption and label.startswith(("fig-", "tbl-")) and isinstance(caption, str):
        below = f"::: {{#{label}}}\n\n`x`{{=none}}\n\n{' '.join(caption.split())}\n:::\n\n"
    return f"{mark}{below}"
