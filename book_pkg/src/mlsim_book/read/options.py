"""The options of a cell: its `#|` lines, checked, over the defaults of page and book.

The cascade, weakest first: built in, `_quarto.yml`, `_metadata.yml` of each
folder on the way down, the page's front matter, the cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.document import Cell
from mlsim_book.read.schema import (
    ANY,
    BOOL,
    CODE,
    COUNT,
    EXECUTE,
    FIGURE,
    TEXT,
    TEXTS,
    Kind,
    check_values,
    did_you_mean,
)
from mlsim_book.read.settings import book_settings
from mlsim_book.read.yamlfile import load_yaml

_OPTION_LINE = re.compile(r"^#\| ?(.*)$")

# What a cell may say, beside the options of `execute:`.
CELL: Mapping[str, Kind] = {
    **{name: kind for name, kind in EXECUTE.items() if name in
       {"echo", "eval", "output", "include", "warning", "error"}},
    **FIGURE,
    **CODE,
    "label": TEXT,
    "id": TEXT,
    "classes": TEXT,
    "panel": TEXT,
    "column": TEXT,
    "fig-column": TEXT,
    "tbl-column": TEXT,
    "tags": TEXTS,
    "fig-cap": TEXT | TEXTS | BOOL,
    "fig-subcap": TEXT | TEXTS | BOOL,
    "fig-scap": TEXT | TEXTS,
    "fig-alt": TEXT | TEXTS,
    "fig-link": TEXT | TEXTS,
    "fig-pos": TEXT | BOOL,
    "fig-env": TEXT,
    "tbl-cap": TEXT | TEXTS,
    "tbl-subcap": TEXT | TEXTS | BOOL,
    "tbl-colwidths": ANY,
    "lst-label": TEXT,
    "lst-cap": TEXT,
    "layout": ANY,
    "layout-ncol": COUNT,
    "layout-nrow": COUNT,
    "layout-align": TEXT,
    "layout-valign": TEXT,
    "filename": TEXT,
    "title": TEXT,
    "renderings": TEXTS,
    "html-table-processing": TEXT,
    "code-annotations": TEXT | BOOL,
    "autodep": BOOL,
    "slideshow": ANY,
    "export": ANY,
}  # fmt: skip

_BUILT_IN: Mapping[str, Any] = {
    "echo": True,
    "eval": True,
    "output": True,
    "include": True,
    "warning": True,
    "error": False,
    "code-fold": None,
    "code-summary": None,
    "code-overflow": None,
    "code-line-numbers": None,
    "fig-width": 7,
    "fig-height": 5,
    "fig-dpi": 96,
    "fig-format": "svg",
    "fig-align": None,
    "fig-cap-location": None,
    "tbl-cap-location": None,
}


@dataclass(frozen=True)
class Defaults:
    """What the cells of a page do unless they say otherwise."""

    values: Mapping[str, Any]

    def of(self, options: Mapping[str, Any], name: str) -> Any:
        """Return an option of a cell: its own value, or the page's."""
        return options[name] if name in options else self.values.get(name)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one mapping over another: mappings merge, everything else is replaced.

    >>> merge({"execute": {"echo": True, "eval": True}}, {"execute": {"echo": False}})
    {'execute': {'echo': False, 'eval': True}}
    """
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(under, value) if both else value  # type: ignore[arg-type]
    return merged


def html_format(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `format: html`, however it is written.

    >>> html_format({"format": "html"}), html_format({"format": {"html": {"toc": True}}})
    ({}, {'toc': True})
    """
    formats = metadata.get("format")
    html = formats.get("html") if isinstance(formats, Mapping) else None
    return dict(html) if isinstance(html, Mapping) else {}


def page_defaults(metadata: Mapping[str, Any]) -> Defaults:
    """Return the defaults that merged metadata (book, folders, page) gives its cells.

    An option stands under `format: html`, under `execute`, or at the top level,
    the first of these weighing most.

    >>> page_defaults({"execute": {"echo": False}, "fig-width": 4}).values["echo"]
    False
    """
    values = dict(_BUILT_IN)
    execute = metadata.get("execute")
    html = html_format(metadata)
    html_execute = html.get("execute")
    for layer in (metadata, execute, html, html_execute):
        if isinstance(layer, Mapping):
            values.update({name: layer[name] for name in _BUILT_IN if name in layer})
    return Defaults({**values, **_figure_settings(metadata)})


def _figure_settings(metadata: Mapping[str, Any]) -> dict[str, bool]:
    """Return the settings of this builder that a page's figures depend on; off if not given."""
    given = book_settings(metadata)
    found = {name: given.get(name, False) for name in ("figure-theme", "figure-data")}
    for name, value in found.items():
        if not isinstance(value, bool):
            raise SourceError(
                f"`mlsim-book: {name}:` is {value!r}, which must be `true` or `false`",
                file="_quarto.yml",
                hint="`figure-theme` gives figures one style and a dark look, `figure-data` a "
                "table of what they show.",
            )
    return found


def split_options(lines: Sequence[str]) -> tuple[list[str], int]:
    """Return a cell's `#|` lines without the mark, and the index of its first code line.

    >>> split_options(["#| echo: false", "#|eval: true", "", "x = 1"])
    (['echo: false', 'eval: true'], 3)
    """
    options: list[str] = []
    for line in lines:
        match = _OPTION_LINE.match(line)
        if match is None:
            break
        options.append(match.group(1))
    start = len(options)
    while start < len(lines) and not lines[start].strip():
        start += 1
    return options, start


def parse_options(lines: Sequence[str], *, file: str, line: int) -> dict[str, Any]:
    """Read a cell's options (as `split_options` returns them) and check their values.

    >>> parse_options(["label: fig-a", "echo: false"], file="a.qmd", line=2)
    {'label': 'fig-a', 'echo': False}
    """
    source = load_yaml("\n".join(lines), file=file, first_line=line)
    if not isinstance(source.data, dict):
        raise SourceError(
            f"cell options must be `name: value`, got {lines[0]!r}",
            file=file,
            line=line,
            hint="Write for example `#| echo: false`.",
        )
    check_values(source.data, CELL, source)
    label = source.data.get("label")
    if isinstance(label, str) and re.search(r"[\s{}]", label):
        raise SourceError(
            f"the label {label!r} holds a space or brace",
            file=file,
            line=source.line("label"),
            hint="Use letters, digits and hyphens, as in fig-roofline.",
        )
    return source.data


def check_cells(cells: Sequence[Cell], problems: Problems) -> None:
    """Refuse a label used by two cells; note options that look mistyped."""
    seen: dict[str, Cell] = {}
    for cell in cells:
        _note_unknown(cell, problems)
        label = cell.label
        if label is None:
            continue
        if label in seen:
            first = seen[label]
            raise SourceError(
                f"the label '{label}' is used by two cells, first at {first.file}:{first.line}",
                file=cell.file,
                line=cell.line,
                hint="Give one of them another label.",
            )
        seen[label] = cell


def _note_unknown(cell: Cell, problems: Problems) -> None:
    for line in cell.code:
        if _OPTION_LINE.match(line.text):
            problems.add(
                f"the option line '{line.text.strip()}' stands below code, so it is ignored",
                file=line.file,
                line=line.line,
                hint="Move it to the top of the cell.",
            )
    for name, value in cell.options.items():
        hint = did_you_mean(name, CELL) if name not in CELL else None
        if hint:
            problems.add(
                f"unknown cell option '{name}'",
                file=cell.file,
                line=cell.option_line(name),
                hint=hint,
            )
        if isinstance(value, str) and "`{python}" in value:
            problems.add(
                f"an inline expression in the cell option '{name}' isn't run (nor by Quarto)",
                file=cell.file,
                line=cell.option_line(name),
                hint="Put the figure in a ::: {#fig-...} div and write the caption below it.",
            )
