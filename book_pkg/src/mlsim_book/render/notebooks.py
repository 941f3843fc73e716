"""Notebooks for readers, made from the chapters: for Colab, for download, for nbval.

They are kept in git (Colab opens them, nbval compares with them), so they are
the same on every run: ids from labels or sources, counts from 1, outputs as
text only. What nbval can't compare (figures, HTML, warnings) is tagged
`nbval-ignore-output`. Hidden code that feeds nothing in a notebook is left out
(see `live_code`), and the rest of it comes folded. Never edit one: edit the
chapter, and write them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.errors import Problems
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.labels import label_texts
from mlsim_book.render.install import install_cell
from mlsim_book.render.notebook_cells import (
    code_cell,
    is_shown,
    markdown_cell,
    number_cells,
    own_cell,
)
from mlsim_book.render.notebook_text import live_code, page_items
from mlsim_book.run.page_cache import PageCache
from mlsim_book.run.pages import ParsedPage, Progress, finish_page, parse_pages, run_pages
from mlsim_book.run.results import Results

_SHORTCODE = re.compile(r"\{\{\\*< *([\w-]+)")


@dataclass(frozen=True)
class NotebookPage:
    """All that is known of a page when its notebook is written."""

    parsed: ParsedPage
    results: Results
    executed: ExecutedPage


def notebook_path(source: str) -> str:
    """Return a chapter's notebook, by path from the folder of notebooks.

    >>> notebook_path("tutorials/hello.qmd")
    'tutorials/hello.ipynb'
    """
    return PurePosixPath(source).with_suffix(".ipynb").as_posix()


def has_notebook(page: ParsedPage) -> bool:
    """Say whether a chapter gets a notebook: it has code that readers see and run.

    Front matter `mlsim-book: {notebook: true}` or `false` decides otherwise.
    """
    settings = page.metadata.get("mlsim-book")
    if isinstance(settings, Mapping) and isinstance(settings.get("notebook"), bool):
        return bool(settings["notebook"])
    return any(is_shown(cell, page.defaults) for cell in page.document.cells)


def make_notebooks(
    project: Project,
    problems: Problems,
    *,
    labels: Mapping[str, str] | None = None,
    jobs: int = 2,
    refresh: bool = False,
    progress: Progress = lambda _: None,
    cache: PageCache | None = None,
) -> dict[str, str]:
    """Return the notebooks' texts, by path from the folder of notebooks.

    Parameters
    ----------
    labels
        What cross-references read as (`fig-x` -> `Figure 1.1`), as a build
        knows them; counted from the pages when None.
    """
    parsed = parse_pages(project, problems)
    results = run_pages(project, parsed, jobs=jobs, refresh=refresh, progress=progress, cache=cache)
    pages = [
        NotebookPage(page, result, finish_page(page, result))
        for page, result in zip(parsed, results, strict=True)
    ]
    texts = label_texts([page.executed for page in pages]) if labels is None else labels
    notebooks = {}
    for page in pages:
        if has_notebook(page.parsed):
            source = page.parsed.chapter.source
            text = notebook_json(page, project, texts)
            notebooks[notebook_path(source)] = text
            _note_leftovers(text, source, problems)
    return notebooks


def _note_leftovers(text: str, source: str, problems: Problems) -> None:
    """Note what only a page can show and a notebook would print as it is written."""
    for found in sorted(set(_SHORTCODE.findall(text))):
        problems.add(
            f"the notebook of this chapter shows the shortcode '{found}' as text",
            file=source,
            hint="Write the value itself, or as an inline expression.",
        )


def write_notebooks(
    project: Project, out_dir: Path, problems: Problems, **options: Any
) -> list[Path]:
    """Write the notebooks that differ from what is there; `options` as `make_notebooks`."""
    written = []
    for name, text in make_notebooks(project, problems, **options).items():
        path = out_dir / name
        if _read(path) != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


def check_notebooks(
    project: Project, out_dir: Path, problems: Problems, **options: Any
) -> list[str]:
    """Note each notebook that isn't what its chapter gives now, or has no chapter.

    Returns
    -------
    The paths of those notebooks, from the book's folder where they are in it.
    """
    wanted = make_notebooks(project, problems, **options)
    present = {
        path.relative_to(out_dir).as_posix()
        for path in out_dir.rglob("*.ipynb")
        if ".ipynb_checkpoints" not in path.parts
    }
    stale = []
    for name in sorted(wanted.keys() | present):
        path = out_dir / name
        shown = path.resolve()
        label = (
            shown.relative_to(project.root).as_posix()
            if shown.is_relative_to(project.root)
            else str(path)
        )
        if name not in wanted:
            problems.add(f"{label} belongs to no chapter: delete it", file=label)
        elif _read(path) != wanted[name]:
            problems.add(f"{label} is out of date: run 'mlsim-book notebooks'")
        else:
            continue
        stale.append(label)
    return stale


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def notebook_json(page: NotebookPage, project: Project, labels: Mapping[str, str]) -> str:
    """Return the text of one notebook."""
    parsed = page.parsed
    cells: list[dict[str, Any]] = list(_first_cells(page, project))
    live = live_code(parsed, page.results)
    for item in page_items(parsed, page.results, project, labels, live):
        if "cell" in item:
            index = item["cell"]
            cell, source = parsed.document.cells[index], live[index] or ""
            cells.append(code_cell(cell, source, page.results.cells[index], parsed.defaults))
        elif "code" in item:
            cells.append(own_cell(item["code"]))
        else:
            cells.append(markdown_cell(item["markdown"]))
    return notebook_text(cells)


def notebook_text(cells: list[dict[str, Any]], **metadata: Any) -> str:
    """Return cells as the text of a notebook."""
    notebook = {
        "cells": number_cells(cells),
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            **metadata,
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _first_cells(page: NotebookPage, project: Project) -> Sequence[dict[str, Any]]:
    """Return the cell that installs the package, and the title if it is in the YAML."""
    cells = []
    install = install_cell(project)
    if install is not None:
        cells.append(install)
    title = page.parsed.document.front_matter.get("title")
    if title:
        cells.append(markdown_cell(f"# {title}\n"))
    return cells
