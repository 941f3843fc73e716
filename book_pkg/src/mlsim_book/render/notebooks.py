"""Notebooks for readers, made from the chapters: for Colab, for download, for nbval.

They are kept in git (Colab opens them, nbval compares with them), so they are
the same on every run: ids from labels or sources, counts from 1, outputs as
text only. What nbval can't compare (figures, HTML, warnings) is tagged
`nbval-ignore-output`. Hidden code that feeds nothing in a notebook is left out
(see `live_code`), and the rest of it comes folded. Never edit one: edit the
chapter, and write them again.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.caches import TextCache, cache_folder, content_hash
from mlsim_book.errors import Problems
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.ipynb import strip_ansi
from mlsim_book.read.lines import Reporter
from mlsim_book.read.qmd import MEASURED, Cell, Defaults, Markdown, form_of, is_measured
from mlsim_book.read.yamlfile import BookPackage, book_package, web_address
from mlsim_book.render.crossref import build_index, label_texts
from mlsim_book.render.live_code import Code, live_sources
from mlsim_book.render.pandoc import find_pandoc, pandoc_version, run_pandoc
from mlsim_book.render.shortcodes import expand_shortcodes
from mlsim_book.render.to_html import filter_hash, render_pages
from mlsim_book.run.inline import find_inline, substitute
from mlsim_book.run.outputs import Figure, is_display, output_markdown, wanted_outputs
from mlsim_book.run.page_cache import PageCache
from mlsim_book.run.pages import ParsedPage, Progress, finish_page, parse_pages, run_pages
from mlsim_book.run.results import Output, Results

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
    jobs: int = 2,
    refresh: bool = False,
    progress: Progress = lambda _: None,
    cache: PageCache | None = None,
) -> dict[str, str]:
    """Return the notebooks' texts, by path from the folder of notebooks."""
    parsed = parse_pages(project, problems)
    results = run_pages(project, parsed, jobs=jobs, refresh=refresh, progress=progress, cache=cache)
    pages = [
        NotebookPage(page, result, finish_page(page, result))
        for page, result in zip(parsed, results, strict=True)
    ]
    reporter = Reporter(Problems(), project.root)  # the build reports what is wrong with labels
    expanded = [
        replace(each, markdown=expand_shortcodes(each, project, reporter))
        for each in (page.executed for page in pages)
    ]
    rendered = render_pages(project, expanded, keep=TextCache(cache_folder() / "render"), jobs=jobs)
    texts = label_texts(build_index(rendered, reporter), project)
    notebooks = {}
    for page in pages:
        if has_notebook(page.parsed):
            source = page.parsed.chapter.source
            text = notebook_json(page, project, texts)
            notebooks[notebook_path(source)] = text
            for found in sorted(set(_SHORTCODE.findall(text))):  # what only a page can show
                problems.add(
                    f"the notebook of this chapter shows the shortcode '{found}' as text",
                    file=source,
                    hint="Write the value itself, or as an inline expression.",
                )
    return notebooks


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
        path = (out_dir / name).resolve()
        inside = path.is_relative_to(project.root)
        label = path.relative_to(project.root).as_posix() if inside else str(out_dir / name)
        if name not in wanted:
            problems.add(f"{label} belongs to no chapter: delete it", file=label)
        elif _read(path) != wanted[name]:
            apart = _first_difference(_read(path) or wanted[name], wanted[name])
            problems.add(f"{label} is out of date{apart}: run 'mlsim-book notebooks'")
        else:
            continue
        stale.append(label)
    return stale


def _first_difference(old: str, new: str) -> str:
    """Say where a notebook stops saying what its chapter gives: it may be what a machine did."""
    lines = enumerate(zip_longest(old.splitlines(), new.splitlines(), fillvalue=""), start=1)
    for at, (before, now) in lines:
        if before != now:
            return (
                f" (line {at} has {before.strip()[:90]!r}, the chapter gives {now.strip()[:90]!r})"
            )
    return ""


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def notebook_json(page: NotebookPage, project: Project, labels: Mapping[str, str]) -> str:
    """Return the text of one notebook."""
    parsed = page.parsed
    install, title = install_cell(project), parsed.document.front_matter.get("title")
    cells = [install] if install else []
    cells += [markdown_cell(f"# {title}\n")] if title else []
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


# How a notebook folds a cell's code: for JupyterLab, and for Colab.
FOLDED: Mapping[str, Any] = {"cellView": "form", "jupyter": {"source_hidden": True}}
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_shown(cell: Cell, defaults: Defaults) -> bool:
    """Say whether readers of the page see a cell's code, and it runs."""
    return (
        defaults.of(cell.options, "include") is not False
        and defaults.of(cell.options, "echo") is not False
        and defaults.of(cell.options, "eval") is not False
    )


def is_asis(cell: Cell, defaults: Defaults) -> bool:
    """Say whether a cell stands for the Markdown it prints."""
    hides = defaults.of(cell.options, "echo") is False
    return hides and defaults.of(cell.options, "output") == "asis"


def is_folded(cell: Cell, defaults: Defaults) -> bool:
    """Say whether readers have to open a cell's code: the page hides it, or folds it."""
    return not is_shown(cell, defaults) or defaults.of(cell.options, "code-fold") in {True, "true"}


def page_code(cell: Cell, outputs: Sequence[Output], defaults: Defaults) -> Code:
    """Return a cell's code, with what the page shows of it."""
    if defaults.of(cell.options, "eval") is False:
        return Code("")
    whole = {"error"} if defaults.of(cell.options, "warning") is False else {"error", "stderr"}
    kinds = {each.get("name", each["output_type"]) for each in outputs}
    if _is_silent(cell, defaults):
        return Code(cell.source, acts=not is_asis(cell, defaults))
    if is_shown(cell, defaults) or kinds & whole:
        return Code(cell.source, seen=True)
    kinds -= {"stderr"}
    only_value = kinds == {"execute_result"}
    return Code(cell.source, shows="value" if only_value else "all" if kinds else "nothing")


def _is_silent(cell: Cell, defaults: Defaults) -> bool:
    """Say whether a page shows neither a cell's code nor, as an output, what it gives."""
    output = defaults.of(cell.options, "output")
    return defaults.of(cell.options, "include") is False or (
        not is_shown(cell, defaults) and output in {False, "asis"}
    )


def markdown_cell(text: str) -> dict[str, Any]:
    """Return a Markdown cell."""
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip("\n")}


def own_cell(source: str) -> dict[str, Any]:
    """Return a code cell that no chapter runs: nbval sees that it runs, not what it says."""
    metadata = {"tags": ["nbval-ignore-output"]}
    return {"cell_type": "code", "id": "", "metadata": metadata, "outputs": [], "source": source}


def code_cell(
    cell: Cell, source: str, outputs: Sequence[Output], defaults: Defaults
) -> dict[str, Any]:
    """Return a code cell with the outputs that are text; of measured ones, their form.

    `source` is what the notebook needs of the cell's code.
    """
    kept, comparable = _kept_outputs(outputs, defaults, cell)
    if _is_silent(cell, defaults):
        kept, comparable = [], not outputs
    tags = [str(tag) for tag in cell.options.get("tags") or []]
    if is_measured(cell):
        for each in kept:  # a sign for each number
            each |= {name: form_of(each[name]) for name in ("text", "evalue") if name in each}
            if "data" in each:
                each["data"] = {kind: form_of(text) for kind, text in each["data"].items()}
        comparable = False
        tags += [MEASURED] if kept else []
    if defaults.of(cell.options, "error") is True:
        tags.append("raises-exception")
    if not comparable and "nbval-ignore-output" not in tags:
        tags.append("nbval-ignore-output")
    metadata: dict[str, Any] = {**FOLDED} if is_folded(cell, defaults) else {}
    if tags:
        metadata["tags"] = tags
    return {
        "cell_type": "code",
        "id": cell.label or "",
        "metadata": metadata,
        "outputs": kept,
        "source": source,
    }


def _kept_outputs(
    outputs: Sequence[Output], defaults: Defaults, cell: Cell
) -> tuple[list[dict[str, Any]], bool]:
    """Return the outputs a notebook keeps, and whether nbval will see just these."""
    kept: list[dict[str, Any]] = []
    comparable = True
    for output in outputs:
        text = None
        if output["output_type"] == "stream":
            text = output["text"]
            comparable = comparable and output["name"] == "stdout"
            if output["name"] == "stdout" or defaults.of(cell.options, "warning") is not False:
                kept.append({"name": output["name"], "output_type": "stream", "text": text})
        elif output["output_type"] == "error":
            text = strip_ansi(output["evalue"])
            trace = [f"{output['ename']}: {text}"]
            kept.append(
                {
                    "ename": output["ename"],
                    "evalue": text,
                    "output_type": "error",
                    "traceback": trace,
                }
            )
        elif is_display(output):
            text = output["data"].get("text/plain")
            comparable = comparable and set(output["data"]) == {"text/plain"}
            if text is not None and not any(mime.startswith("image/") for mime in output["data"]):
                own: dict[str, Any] = {"data": {"text/plain": strip_ansi(text)}, "metadata": {}}
                if output["output_type"] == "execute_result":
                    own["execution_count"] = None  # set when the cells are numbered
                kept.append({**own, "output_type": output["output_type"]})
        comparable = comparable and "at 0x0" not in (text or "")
    return kept, comparable


def number_cells(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give cells unique ids and counts, and split their text into lines.

    An id is the label, or a hash of the source; a repeated one gets a number.
    """
    used: set[str] = set()
    count = 0
    numbered = []
    for cell in cells:
        source = cell["source"]
        wanted = cell.get("id") or ""
        if not _ID.fullmatch(wanted):
            wanted = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()[:8]
        name, again = wanted, 1
        while name in used:
            again += 1
            name = f"{wanted}-{again}"
        used.add(name)
        done = {**cell, "id": name, "source": source.splitlines(keepends=True)}
        if cell["cell_type"] == "code":
            count += 1
            done |= {"execution_count": count, "outputs": []}
            for output in cell["outputs"]:
                own: dict[str, Any] = (
                    {"execution_count": count} if "execution_count" in output else {}
                )
                if "text" in output:
                    own["text"] = str(output["text"]).splitlines(keepends=True)
                if "data" in output:
                    forms = output["data"].items()
                    own["data"] = {mime: text.splitlines(keepends=True) for mime, text in forms}
                done["outputs"].append({**output, **own})
        numbered.append(done)
    return numbered


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
    given = json.dumps({k: v for k, v in settings.items() if v is not None})
    files = [project.root / name for name in (*project.bibliography, project.csl) if name]
    cited = [each.read_bytes() for each in files if each.is_file()]
    version = ".".join(map(str, pandoc_version(find_pandoc())))
    keep = TextCache(cache_folder() / "render")  # which the build prunes
    key = content_hash(version, filter_hash(), given, text, *cited)
    written = keep.load(key)
    if written is None:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "settings.json"
            path.write_text(given)
            written, _ = run_pandoc(
                ["--from=markdown", f"--to={_WRITER}"],
                text,
                environment={"BOOK_NOTEBOOK": str(path)},
                file=file,
            )
        keep.store(key, written)
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


FOLDER = "notebooks"  # of notebooks and the wheel, in the repository and on the site

_CELL = """\
# {about}, this cell does nothing.
import importlib.{needed}
import subprocess
import sys
from pathlib import Path

if {missing}:
    ways = [[f"{{wheel}}{extras}"] for up in (".", "..") for wheel in Path(up).glob("{wheels}")]
{elsewhere}    for way in ways:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", *way]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode == 0:
            break
        print(done.stderr)
    importlib.invalidate_caches()
    if {missing}:
        raise ModuleNotFoundError(
{message}
        )"""


def install_cell(project: Project, *, version: str = "", commit: str = "") -> dict[str, Any] | None:
    """Return the cell that gets the book's package; None if the book names none.

    With a version it gets that one, of that commit if one is given, and says so where it can't:
    numbers that were computed with one version are asked for with the same.
    """
    package = book_package(project.metadata)
    if package is None:
        return None
    missing = f'importlib.util.find_spec("{package.name}") is None'
    about, needed = f"Where {package.name} is installed", "util"
    if version:
        about = f"The questions were made with {package.name} {version}. Where that is installed"
        needed = "metadata\nimport importlib.util"
        missing += f' or importlib.metadata.version("{package.name}") != "{version}"'
    ways = []
    if project.site_url and carries_wheel(project):
        ways.append(["-r", f"{web_address(project.site_url)}/{requirements_path(package)}"])
    if project.repo_url:
        where = f"git+{web_address(project.repo_url)}@{commit or project.repo_branch}"
        where += f"#subdirectory={package.path}" if package.path else ""
        ways.append([f"{package.wanted} @ {where}"])
    if version:  # the sure way first, not the quick one
        ways.reverse()
    source = _CELL.format(
        about=about,
        needed=needed,
        missing=missing,
        extras=package.with_extras,
        wheels=f"{package.name.lower()}-{version or '*'}{'-*' if version else ''}.whl",
        elsewhere="".join(f"    ways.append({json.dumps(way)})\n" for way in ways),
        message="\n".join(
            f"            {json.dumps(line + chr(10))}"
            for line in _message(project, package, version)
        ),
    )
    return {"cell_type": "code", "id": "install", "metadata": {}, "outputs": [], "source": source}


def requirements_path(package: BookPackage) -> str:
    """Return the file that names the site's wheel: its own name never changes, the wheel's does.

    >>> requirements_path(BookPackage("kettle", None, ()))
    'notebooks/kettle.txt'
    """
    return f"{FOLDER}/{package.name.lower()}.txt"


def carries_wheel(project: Project) -> bool:
    """Say whether the site of a book has the wheel of a package: one whose place is known."""
    package = book_package(project.metadata)
    return package is not None and package.path is not None


def has_address(project: Project) -> bool:
    """Say whether a notebook can get the package by itself."""
    return bool(project.repo_url or (project.site_url and carries_wheel(project)))


def _message(project: Project, package: BookPackage, version: str) -> Iterator[str]:
    """Yield the lines that say what a student can do."""
    name = f"{package.name} {version}".strip()
    site = project.site_url if carries_wheel(project) else None
    ways = []
    if has_address(project):
        ways.append("Connect to the network, and run this cell again.")
    if site:
        ways.append(
            f"On {web_address(site)}/, copy the line that begins with `pip install` from the top of"
            " a chapter, run it in a terminal, and restart the notebook."
        )
    if package.path is not None:
        wheel = f"{package.name.lower()}-{version + '-' if version else ''}...whl"
        whence = ""
        if version:
            whence = " Your teacher has it."
        elif site:
            whence = " That line has its address."
        elif not project.repo_url:
            whence = (
                " The chapter's page offers both in a zip. For what"
                f" {name} uses, pip needs a network."
            )
        ways.append(
            f"Put the file {wheel} into the folder of this notebook (in Colab: into Files), and"
            f" run this cell again.{whence}"
        )
        clone = f'run pip install "./{package.path}{package.with_extras}" in a terminal'
        ways.append(f"In a copy of the book's repository, {clone}, and restart the notebook.")
    elif not project.repo_url:
        ways.append(f"Run pip install {name} in a terminal, and restart the notebook.")
    yield f"{name} is not installed, and this cell could not install it."
    yield "If it called pip, what pip said stands above. Try one of these:"
    for way in ways:
        yield from textwrap.wrap(
            f"- {way}", 84, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
