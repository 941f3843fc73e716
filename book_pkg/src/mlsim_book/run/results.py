"""What running a page gives, and whether there is anything to run.

Apart from `execute`, so that a build with everything in the cache doesn't load
the libraries that run kernels.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.read.qmd import Cell, Defaults, Document
from mlsim_book.read.yamlfile import book_settings
from mlsim_book.run.inline import find_inline

Output = dict[str, Any]  # as nbformat has it


@dataclass(frozen=True)
class Results:
    """What a page gave: outputs for each cell, display bundles for each expression.

    A cell that wasn't run has no outputs. `opened` are the files that a run opened, and
    the folders that it listed; results from the cache don't say.
    """

    cells: tuple[tuple[Output, ...], ...] = ()
    values: tuple[Mapping[str, str], ...] = ()
    opened: tuple[str, ...] = field(default=(), compare=False)


def needs_kernel(document: Document, defaults: Defaults) -> bool:
    """Say whether anything on the page is to be run."""
    return any(
        defaults.of(block.options, "eval") is not False
        if isinstance(block, Cell)
        else find_inline(block)
        for block in document.blocks
    )


def runs(document: Document, metadata: Mapping[str, Any]) -> bool:
    """Say whether `execute:` lets a page run; a notebook runs only where it asks for that.

    >>> runs(Document({}, (), ""), {"execute": {"enabled": False}})
    False
    """
    execute = metadata.get("execute")
    said = execute if isinstance(execute, Mapping) else {}
    if document.notebook is None:
        return said.get("enabled") is not False
    return bool(said.get("ipynb", said.get("enabled", False)))


def stored_results(document: Document) -> Results:
    """Return what a page shows that isn't run: a notebook's stored outputs, else none.

    Its inline expressions stay as they are written.
    """
    cells = document.notebook.outputs if document.notebook else ()
    values = tuple(
        {"text/markdown": f"`{{python}} {each.expression}`"}
        for block in document.blocks
        if not isinstance(block, Cell)
        for each in find_inline(block)
    )
    return Results(cells or tuple(() for _ in document.cells), values)


class Stop:
    """A wish, of one run of pages, that they end.

    It may come at any moment: a page may be in its cells, but also on its way to them
    (its cache is read, the kernel's client is imported) or about to run again after its
    kernel died. So a wish is kept, and a page that comes late finds it.

    >>> stop = Stop()
    >>> with stop.by(lambda: print("ended")):
    ...     stop.wish()
    ended
    >>> with stop.by(lambda: print("ended before it began")):
    ...     pass
    ended before it began
    """

    def __init__(self) -> None:
        self.wished = False
        self._lock = threading.Lock()
        self._ends: dict[object, Callable[[], object]] = {}

    def wish(self) -> None:
        """End what runs, and what is still to come."""
        with self._lock:
            self.wished = True
            for end in self._ends.values():
                end()

    @contextmanager
    def by(self, end: Callable[[], object]) -> Iterator[None]:
        """Have `end` called by a wish, from its thread; at once if there is one already."""
        key = object()
        with self._lock:
            self._ends[key] = end
            if self.wished:
                end()
        try:
            yield
        finally:
            with self._lock:
                del self._ends[key]


def runs_alone(book: Mapping[str, Any], page: Mapping[str, Any], source: str) -> bool:
    """Say whether nothing may run beside a page: `mlsim-book: alone: true`.

    What a page measures is wrong if another one computes at the same time.

    Raises
    ------
    SourceError
        The setting is neither `true` nor `false`.

    >>> runs_alone({}, {"mlsim-book": {"alone": True}}, "measuring.qmd")
    True
    """
    given = {**book_settings(book), **book_settings(page)}.get("alone", False)
    if isinstance(given, bool):
        return given
    raise SourceError(
        f"`mlsim-book: alone:` is {given!r}, which must be `true` or `false`",
        file=_where("alone", page, source),
        hint="Write `alone: true` for a page that measures: no other runs beside it.",
    )


def cell_timeout(book: Mapping[str, Any], page: Mapping[str, Any], source: str) -> float:
    """Return how many seconds one cell of a page may run.

    600 unless `mlsim-book: cell-timeout:` says otherwise, in the page's front matter
    or in `_quarto.yml`. A cell that waits for ever would stop a build for ever, so
    `.inf` is refused.

    Raises
    ------
    SourceError
        The setting is no number above 0.
    """
    given = {**book_settings(book), **book_settings(page)}.get("cell-timeout", 600)
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if number and 0 < given < math.inf:
        return float(given)
    raise SourceError(
        f"`mlsim-book: cell-timeout:` is {given!r}, which must be a number of seconds above 0",
        file=_where("cell-timeout", page, source),
        hint="Write seconds, such as `cell-timeout: 1800`; leave it out for 600.",
    )


def _where(setting: str, page: Mapping[str, Any], source: str) -> str:
    return source if setting in book_settings(page) else "_quarto.yml"
