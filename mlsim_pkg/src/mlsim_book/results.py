"""What running a page gives, and whether there is anything to run.

Apart from `execute`, so that a build with everything in the cache doesn't load
the libraries that run kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlsim_book.inline import find_inline
from mlsim_book.options import Defaults
from mlsim_book.qmd import Cell, Document

Output = dict[str, Any]  # as nbformat has it


@dataclass(frozen=True)
class Results:
    """What a page gave: outputs for each cell, display bundles for each expression.

    A cell that wasn't run has no outputs.
    """

    cells: tuple[tuple[Output, ...], ...] = ()
    values: tuple[Mapping[str, str], ...] = ()


def needs_kernel(document: Document, defaults: Defaults) -> bool:
    """Say whether anything on the page is to be run."""
    return any(
        defaults.of(block.options, "eval") is not False
        if isinstance(block, Cell)
        else find_inline(block)
        for block in document.blocks
    )
