"""What a page of the book says in numbers: its sentences and tables, run in order in this process.

An entry is one number: as printed, its value in a base unit, its name, and where it comes from.
What a cell measures on the machine that runs it (`#| classes: measured`) is left out.
"""

from __future__ import annotations

import ast
import hashlib
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import unquote

from mlsim_book.errors import Problems
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import Cell, Markdown, is_measured
from mlsim_book.run.inline import find_inline, plain_numbers
from mlsim_book.run.pages import ParsedPage, parse_pages
from mlsim_book.run.results import needs_kernel

_SPAN = re.compile(r'\[[^\[\]]*\]\{\.opens\s+opens="([^"]*)"\}')
_DIGIT = re.compile(r"\d")
# A page knows by these that it is one: tables then give the Markdown of pages.
_PAGE = {"QUARTO_FIG_WIDTH": "7", "QUARTO_FIG_HEIGHT": "4.2", "QUARTO_FIG_FORMAT": "svg"}
_ORIGIN = 120
_BARE = ("", "", "")
# Pages that count the package and the book: such counts move with every line that is written.
_OF_ITSELF = {
    "math.qmd",
    "how_it_works.qmd",
    "glossary.qmd",
    "quantities.qmd",
    "api.qmd",
    "teaching.qmd",
}


class Entry(NamedTuple):
    """One number of a page, or a word that a sentence computes."""

    place: str  # sentence, table, shown (alone, by a cell) or printed
    text: str
    value: str  # as Python prints it, in base units; empty for what is text alone
    unit: str
    name: str
    origin: str  # the first line of its derivation
    rest: str  # a short hash of all of the derivation


@cache
def pages(root: Path) -> dict[str, ParsedPage]:
    """Return the parsed pages of a book that run anything, by their source."""
    problems = Problems()
    found = parse_pages(load_project(root, problems), problems)
    return {
        page.chapter.source: page for page in found if needs_kernel(page.document, page.defaults)
    }


def entries_of(page: ParsedPage, root: Path) -> list[Entry]:
    """Run a page as the builder would, and return what it says."""
    with ran(page, root) as (found, _):
        return found


@contextmanager
def ran(page: ParsedPage, root: Path) -> Iterator[tuple[list[Entry], dict[str, Any]]]:
    """Run a page as the builder would; yield what it says, and its names, in its folder."""
    found: list[Entry] = []
    with _as_page((root / page.chapter.source).parent) as (names, shown):
        for block in page.document.blocks:
            if isinstance(block, Markdown):
                for each in find_inline(block):
                    value = eval(compile(each.expression, each.file, "eval"), names)
                    found += _entries(value, "sentence")
            elif _runs(block, page):
                with redirect_stdout(io.StringIO()) as printed:
                    _run(block, names, shown, fails=page.defaults.of(block.options, "error"))
                if not is_measured(block):
                    found += [entry for each in shown for entry in _entries(each, "shown")]
                    found += _printed(printed.getvalue())
                shown.clear()
        if page.chapter.source in _OF_ITSELF:
            found = [each for each in found if each.origin]
        yield found, names


def _runs(cell: Cell, page: ParsedPage) -> bool:
    """Tell whether a cell is run: it may be empty, or only shown."""
    return bool(cell.code) and page.defaults.of(cell.options, "eval") is not False


@contextmanager
def _as_page(folder: Path) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield the names of a page and the list of what its cells show; draws into nothing."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    page, shown = ModuleType("page_of_the_book"), list[Any]()
    with (
        chdir(folder),
        patch.dict(os.environ, _PAGE),
        patch("IPython.display.display", lambda *things, **_: shown.extend(things)),
        mpl.rc_context(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        plt.switch_backend("agg")
        sys.modules[page.__name__] = page  # where classes of the page look for their names
        try:
            yield page.__dict__, shown
        finally:
            del sys.modules[page.__name__]
            plt.close("all")


def _run(cell: Cell, names: dict[str, Any], shown: list[Any], *, fails: Any) -> None:
    """Run a cell; what its last line gives is shown."""
    source = "\n" * (cell.code[0].line - 1) + cell.source
    tree = ast.parse(source, cell.file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    try:
        exec(compile(tree, cell.file, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), cell.file, "eval"), names)
            shown += [value] if value is not None else []
    except Exception:
        if fails is not True:
            raise


def _entries(thing: Any, place: str) -> Iterator[Entry]:
    """Yield what a value says: of a sentence, of a cell of a table, or shown alone."""
    if hasattr(thing, "to_dict") and isinstance(getattr(thing, "text", None), str):
        data = thing.to_dict()
        value, origin = repr(float(data["value"])), _origin([data["derivation"]])
        yield Entry(place, thing.text, value, data["unit"], data["name"], *origin)
    elif hasattr(thing, "rows") and hasattr(thing, "header"):
        for row in thing.rows:
            for cell in row:
                yield from _entries(cell, "table")
    elif hasattr(thing, "to_base_units") and hasattr(thing.magnitude, "__float__"):
        base = thing.to_base_units()
        yield Entry(
            place, str(thing), repr(float(base.magnitude)), f"{base.units:~C}" or "1", *_BARE
        )
    elif place != "shown" or isinstance(thing, int | float):
        yield from _plain(thing, place)


def _plain(thing: Any, place: str) -> Iterator[Entry]:
    """Yield what is text alone; some has numbers in it that open."""
    written = f"{thing:.6g}" if isinstance(thing, float) else str(getattr(thing, "data", thing))
    said = plain_numbers(written).replace("\n", " ").strip()
    if place != "table" or _DIGIT.search(said):
        yield Entry(place, said, "", "", "", *_origin(_SPAN.findall(written)))


def _printed(text: str) -> Iterator[Entry]:
    """Yield the numbers that open in what a cell prints."""
    for span in _SPAN.finditer(text):
        yield Entry("printed", plain_numbers(span[0]), "", "", "", *_origin([span[1]]))


def _origin(derivations: list[str]) -> tuple[str, str]:
    """Return the first line of a derivation, and a short hash of all of it."""
    whole = "\n".join(unquote(each) for each in derivations)
    first = whole.partition("\n")[0]
    first = first if len(first) <= _ORIGIN else first[:_ORIGIN].rstrip() + "…"
    return first, hashlib.sha256(whole.encode()).hexdigest()[:8] if whole else ""
