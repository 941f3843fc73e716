"""Expand shortcodes in a page's Markdown: `var`, `meta`, `env` and others.

They are expanded in code too, as in Quarto; `{{{< … >}}}` shows one. Includes
were resolved when the page was read.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from typing import Any

from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.lines import Reporter
from mlsim_book.read.yamlfile import read_yaml

_SHORTCODE = re.compile(r"\{\{(\{?)<\s*(.*?)\s*>(\}?)\}\}")
_VARIABLES = ("_variables.yml", "_variables.yaml")
_KNOWN = ("var", "meta", "env", "pagebreak", "include", "version")
QUARTO = "1.10.18"  # whose behaviour this is: what `{{< version >}}` says


def expand_shortcodes(page: ExecutedPage, project: Project, reporter: Reporter) -> str:
    """Return a page's Markdown with its shortcodes expanded; note those that can't be."""
    if "{{" not in page.markdown:
        return page.markdown

    def expand(match: re.Match[str]) -> str:
        if match[1]:
            return f"{{{{< {match[2]} >}}}}"
        value = _value(match[2], page, project)
        if value is not None:
            return value
        name = (match[2].split() or [""])[0]
        reporter.note(
            page,
            f"the shortcode {match[0]} can't be expanded",
            re.escape(match[0]),
            hint=None if name in _KNOWN else f"Known are: {', '.join(_KNOWN)}.",
        )
        return f"**?{':'.join(match[2].split()[:2])}**" if name in _KNOWN else match[0]

    return _SHORTCODE.sub(expand, page.markdown)


def _value(call: str, page: ExecutedPage, project: Project) -> str | None:
    try:
        name, *arguments = shlex.split(call)
    except ValueError:
        return None
    if name == "pagebreak":
        return '\n\n```{=html}\n<div style="page-break-after: always;"></div>\n```\n\n'
    if name == "version":
        return QUARTO
    if not arguments:
        return None
    if name == "var":
        return look_up(_variables(project), arguments[0])
    if name == "meta":
        layers = (page.metadata, project.metadata, project.metadata.get("book") or {})
        values = (look_up(each, arguments[0]) for each in layers)
        return next((value for value in values if value is not None), None)
    if name == "env":
        return os.environ.get(arguments[0], arguments[1] if len(arguments) > 1 else None)
    return None


def _variables(project: Project) -> Mapping[str, Any]:
    for name in _VARIABLES:
        path = project.root / name
        if path.is_file():
            data = read_yaml(path, name=name).data
            return data if isinstance(data, Mapping) else {}
    return {}


def look_up(data: Mapping[str, Any], name: str) -> str | None:
    """Return a value by its dotted name, as text.

    >>> look_up({"drink": {"hot": True}}, "drink.hot")
    'true'
    """
    value: Any = data
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    if isinstance(value, bool):
        return str(value).lower()
    return None if isinstance(value, Mapping | list) else str(value)
