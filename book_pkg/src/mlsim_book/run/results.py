"""What running a page gives, and whether there is anything to run.

Apart from `execute`, so that a build with everything in the cache doesn't load
the libraries that run kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsim_book.read.qmd import Cell, Defaults, Document
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
