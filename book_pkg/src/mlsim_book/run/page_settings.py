"""What a page or its book says about how its cells run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.read.yamlfile import book_settings


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
