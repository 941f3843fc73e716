"""The Markdown of a reader notebook: a page's prose with nothing of Quarto left in it.

The page goes through pandoc once, with placeholders where its code cells stand;
`lua/notebook.lua` writes it back as plain Markdown, cut at the placeholders.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.model import Project
from mlsim_book.read.document import Cell, Markdown
from mlsim_book.render.notebook_cells import is_asis
from mlsim_book.render.pandoc import run_pandoc
from mlsim_book.run.inline import find_inline, substitute
from mlsim_book.run.outputs import Figure, output_markdown, wanted_outputs
from mlsim_book.run.pages import ParsedPage
from mlsim_book.run.results import Results

_WRITER = Path(__file__).parent / "lua" / "notebook.lua"


def page_items(
    page: ParsedPage, results: Results, project: Project, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return a page in order, as `{"markdown": text}`, `{"cell": index}` and `{"code": text}`.

    The last is a cell that only the notebook has.
    """
    folder = PurePosixPath(page.chapter.source).parent.as_posix()
    return _write(
        marked_markdown(page, results), project, labels, folder=folder, file=page.chapter.source
    )


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


def marked_markdown(page: ParsedPage, results: Results) -> str:
    """Return a page's Markdown with values in it, and placeholders for its cells.

    A cell that stands for what it prints is replaced by that; one that isn't
    run becomes a code block.
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
            text = _placeholder(block, index, page, results)
            pieces.append("".join(block.indent + line for line in text.splitlines(keepends=True)))
            index += 1
    return "".join(pieces)


def _placeholder(cell: Cell, index: int, page: ParsedPage, results: Results) -> str:
    if page.defaults.of(cell.options, "eval") is False:
        if page.defaults.of(cell.options, "include") is False:
            return "\n"
        return f"\n~~~~~~ python\n{cell.source}\n~~~~~~\n\n"
    if is_asis(cell, page.defaults):
        outputs = wanted_outputs(results.cells[index], warning=False)
        return "\n" + "\n".join(
            output_markdown(output, Figure("figure"), {}, asis=True) for output in outputs
        ) + "\n"  # fmt: skip
    caption = cell.options.get("fig-cap") or cell.options.get("tbl-cap")
    label = cell.label or ""
    below = ""
    if caption and label.startswith(("fig-", "tbl-")) and isinstance(caption, str):
        below = f"::: {{#{label}}}\n\n`x`{{=none}}\n\n{' '.join(caption.split())}\n:::\n\n"
    return f'\n::: {{.book-cell cell="{index}"}}\n:::\n\n{below}'
